// What puts of a PutHub (put_hub.h) say: the header of a message, and the 32 bits that its receiver
// is told. Values only.
#pragma once

#include <cstddef>
#include <cstdint>

namespace catenary {

// In front of the data of a message.
struct MessageHeader {
  std::uint64_t number;
  std::uint32_t bytes;
  std::uint32_t check;  // ~bytes
};
inline constexpr std::size_t kDataOffset = 64;  // so that data is aligned, and the header before it
inline constexpr std::size_t kHeaderOffset = kDataOffset - sizeof(MessageHeader);

// In `bytes`: the body comes by itself.
inline constexpr std::uint32_t kBodyApart = 1u << 31;

// What a put tells: whether it is a credit, or a body, which link, and the slot or how many slots.
inline constexpr std::uint32_t kIsCredit = 1u << 31;
inline constexpr std::uint32_t kIsBody = 1u << 30;
inline constexpr int kSlotBits = 11;
inline constexpr std::uint32_t kSlotMask = (1u << kSlotBits) - 1;
inline constexpr std::uint32_t kMostLinks = 1u << 19;
inline constexpr std::size_t kWordsBytes = 4096;
inline constexpr std::size_t kCreditBytes = 8;
inline constexpr std::size_t kCreditsComeTo = 64;  // in words_; they come from 0

inline std::uint32_t message_word(std::uint32_t link, std::uint32_t slot) {
  return link << kSlotBits | slot;
}
inline std::uint32_t link_of(std::uint32_t word) {
  return (word & ~(kIsCredit | kIsBody)) >> kSlotBits;
}
inline std::uint32_t credit_word(std::uint32_t link, std::uint32_t slots) {
  return kIsCredit | link << kSlotBits | slots;
}

}  // namespace catenary
