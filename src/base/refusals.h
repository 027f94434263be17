// Refusals: who was turned away where only members have business, how often and why.
//
// A user wants to know of strangers, and a flood of them must not fill the log: of each kind the
// first one is told at once, as a warning that is no error, and then one every five seconds at
// most, with the number of all of them. Of the whole process; any thread; nothing waits but the
// log.
#pragma once

#include <cstdint>
#include <string>

namespace catenary {

enum class Refused : std::uint8_t { kControlConnection, kLink, kWatch, kMessage, kWrite };
inline constexpr int kRefusedKinds = 5;

// `by`: "rank 0". `from`: an address, or empty if nobody knows.
void note_refusal(Refused kind, const std::string& by, const std::string& from,
                  const std::string& why);
// Of this process so far.
std::uint64_t count_of_refusals(Refused kind) noexcept;

}  // namespace catenary
