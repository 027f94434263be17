// What arguments of several verbs mean. Throws Error(kInvalidUsage) for what cannot be, with the
// remedy.
#pragma once

#include <getopt.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "src/collective/operation.h"

namespace catenary {

// Without what people write differently: all_reduce, AllReduce and allreduce are one.
std::string plain(std::string_view name);
Collective collective_of(std::string_view name);
// The next of the options, as getopt_long finds them, or -1 behind the last one.
int next_option(int argc, char** argv, const char* letters, const option* known);
// Of a verb that takes no other option, and so many words at most.
bool asks_for_help(int argc, char** argv, int words = 0);
// What nobody asked for, from that word on.
void refuse_more(int argc, char** argv, int first);
std::int64_t whole_number_of(const char* option, std::string_view text, std::int64_t least,
                             std::int64_t most);
template <std::integral T>
T number_of(const char* option, std::string_view text, T least, T most) {
  return static_cast<T>(whole_number_of(option, text, static_cast<std::int64_t>(least),
                                        static_cast<std::int64_t>(most)));
}
// "8", or "2-8": the first and the last.
struct NumberRange {
  int first;
  int last;
};
NumberRange range_of(const char* option, const std::string& text, int least, int most);
// "a,b,c"
std::vector<std::string> words_of(std::string_view list);
// "8,64K,1M": bytes.
std::vector<std::size_t> sizes_of(const char* option, std::string_view text);

}  // namespace catenary
