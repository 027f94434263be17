// Framing: what the messages of an operation look like on a link.
//
// The first message of an operation on a link opens with its descriptor. Then come the bytes, or in
// their place a loan: where in the sender's memory they lie. Values and a look at a link; nothing
// waits.
#pragma once

#include <cstddef>
#include <cstring>

#include "src/engine/descriptor.h"
#include "src/transport/transport.h"

namespace catenary {

// A message that is shorter is never a loan, so its length tells a loan from a message.
inline constexpr std::size_t kLeastLoan = 1024;

// From so many bytes on a message may go straight from the memory of who sends it, where that
// spares a copy.
inline constexpr std::size_t kLeastFromMemory = 4096;

// The bytes that a message brings. Null: it does not bring as many as it should.
struct Payload {
  const std::byte* data = nullptr;
  bool lent = false;  // they lie in the sender's memory
};

inline Payload payload_of(ByteView message, bool opening, std::size_t bytes, RecvLink& link) {
  const std::size_t loan_at = opening ? opening_bytes(sizeof(Loan)) : 0;
  if (bytes >= kLeastLoan && message.size() == loan_at + sizeof(Loan)) {
    Loan loan;
    std::memcpy(&loan, message.data() + loan_at, sizeof loan);
    return {loan.bytes == bytes ? link.borrow(loan).data() : nullptr, true};
  }
  const std::size_t skip = opening ? opening_bytes(bytes) : 0;
  return {message.size() == skip + bytes ? message.data() + skip : nullptr, false};
}

// What users read when there is no payload, where the message should have brought `bytes`, and when
// the sender has withdrawn what it lent. `mine` is what `rank` runs.
Error wrong_length(int rank, const Descriptor& mine, int peer, ByteView message, bool opening,
                   std::size_t bytes);
Error withdrawn(int rank, const Descriptor& mine, int peer);

}  // namespace catenary
