// What is done to words that people wrote. Values; any thread; nothing waits or fails.
#pragma once

#include <string_view>

namespace catenary {

// Without the blanks around it; a view of the same text.
constexpr std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n\v\f";
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) + 1 - first);
}

}  // namespace catenary
