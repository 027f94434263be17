#include "tools/arguments.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstdlib>

#include "src/base/error.h"

namespace catenary {
namespace {

constexpr int kMostBits = 50;  // of a size

std::size_t size_of(const char* option, std::string_view text) {
  constexpr std::string_view kUnits = "KMG";
  std::size_t size = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, size);
  const std::string_view unit(stop, static_cast<std::size_t>(end - stop));
  const std::size_t power = unit.empty() ? 0 : kUnits.find(unit) + 1;
  const bool is_unit = unit.empty() || (unit.size() == 1 && power > 0);
  if (error != std::errc() || size == 0 || !is_unit || size >> (kMostBits - 10 * power) != 0) {
    throw_error(ErrorCode::kInvalidUsage, "--%s: \"%s\" is no size, such as 8, 64K or 1M", option,
                std::string(text).c_str());
  }
  return size << 10 * power;
}

}  // namespace

std::string plain(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (c != '_' && c != '-') out += static_cast<char>(std::tolower(c));
  }
  return out;
}

Collective collective_of(std::string_view name) {
  if (plain(name) == "bcast") return Collective::kBroadcast;  // its other name in NCCL
  for (int i = 0; i < kCollectiveCount; ++i) {
    const auto collective = static_cast<Collective>(i);
    if (plain(name_of(collective)) == plain(name)) return collective;
  }
  throw_error(ErrorCode::kInvalidUsage, "there is no collective \"%s\": see catenary list",
              std::string(name).c_str());
}

int number_of(const char* option, const char* text, int least, int most) {
  char* end = nullptr;
  errno = 0;
  const long value = std::strtol(text, &end, 10);
  if (errno != 0 || end == text || *end != '\0' || value < least || value > most) {
    throw_error(ErrorCode::kInvalidUsage, "--%s wants a number from %d to %d, not \"%s\"", option,
                least, most, text);
  }
  return static_cast<int>(value);
}

std::vector<std::size_t> sizes_of(const char* option, std::string_view text) {
  std::vector<std::size_t> sizes;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    sizes.push_back(size_of(option, text.substr(at, comma - at)));
    at = comma + 1;
  }
  return sizes;
}

}  // namespace catenary
