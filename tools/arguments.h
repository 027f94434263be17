// What arguments of several verbs mean. Throws Error(kInvalidUsage) for what cannot be, with the
// remedy.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "src/collective/operation.h"

namespace catenary {

// Without what people write differently: all_reduce, AllReduce and allreduce are one.
std::string plain(std::string_view name);
Collective collective_of(std::string_view name);
int number_of(const char* option, const char* text, int least, int most);
// "8,64K,1M": bytes.
std::vector<std::size_t> sizes_of(const char* option, std::string_view text);

}  // namespace catenary
