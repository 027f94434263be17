// What puts of a PutHub (put_hub.h) say: the header of a message, and the 32 bits that its receiver
// is told. Values only.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/base/size_literals.h"

namespace catenary {

// In front of the data of a message.
struct MessageHeader {
  std::uint64_t number;
  std::uint32_t bytes;
  std::uint32_t credit;  // slots of the link the other way that its sender may use again
  std::uint64_t check;   // check_of(*this)
};
inline std::uint64_t check_of(const MessageHeader& header) {
  return ~(std::uint64_t{header.credit} << 32 | header.bytes);
}
inline constexpr std::size_t kDataOffset = 64;  // a cache line for what goes before data
inline constexpr std::size_t kHeaderOffset = kDataOffset - sizeof(MessageHeader);

// In `bytes`: the body comes by itself.
inline constexpr std::uint32_t kBodyApart = 1u << 31;

// What a put tells, from the highest bit on: whether it is a credit, or a body; which link, in 19
// bits; in 11 bits, of a credit how many slots, of others the slot, and above that whether the
// message is of an odd round through the slots, since bodies carry no number.
inline constexpr std::uint32_t kIsCredit = 1u << 31;
inline constexpr std::uint32_t kIsBody = 1u << 30;
inline constexpr std::uint32_t kMostLinks = 1u << 19;
inline constexpr int kLowBits = 11;
inline constexpr std::uint32_t kCountMask = (1u << kLowBits) - 1;
inline constexpr std::uint32_t kMostSlots = 1u << 10;
inline constexpr std::uint32_t kOddRound = kMostSlots;
inline constexpr std::uint32_t kSlotMask = kMostSlots - 1;
inline constexpr std::size_t kWordsBytes = 4_KB;
inline constexpr std::size_t kCreditBytes = 8;
inline constexpr std::size_t kCreditsComeTo = 64;  // in words_; they come from 0

inline std::uint32_t message_word(std::uint32_t link, std::uint64_t number, std::uint32_t slots) {
  const auto slot = static_cast<std::uint32_t>(number % slots);
  return link << kLowBits | (number / slots % 2 != 0 ? kOddRound : 0) | slot;
}
inline std::uint32_t link_of(std::uint32_t word) {
  return (word & ~(kIsCredit | kIsBody)) >> kLowBits;
}
inline std::uint32_t credit_word(std::uint32_t link, std::uint32_t slots) {
  return kIsCredit | link << kLowBits | slots;
}

}  // namespace catenary
