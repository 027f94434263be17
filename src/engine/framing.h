// Framing: what the messages of an operation look like on a link.
//
// The first message of an operation on a link opens with its descriptor. Then come the bytes, or in
// their place a loan: where in the sender's memory they lie. Values and a look at a link; nothing
// waits.
#pragma once

#include <cstddef>
#include <cstring>
#include <optional>

#include "src/base/size_literals.h"
#include "src/engine/descriptor.h"
#include "src/transport/transport.h"

namespace catenary {

// A message that is shorter is never a loan, so its length tells a loan from a message.
inline constexpr std::size_t kLeastLoan = 1_KB;

// From so many bytes on a message may go straight from the memory of who sends it, where that
// spares a copy.
inline constexpr std::size_t kLeastFromMemory = 4_KB;

// What a message is, if it is a loan: where it would bring `bytes` or more. One that is longer
// than what is wanted of it at a time stays where it is, with its opening, until all is taken.
inline std::optional<Loan> loan_in(ByteView message, std::size_t bytes) {
  constexpr std::size_t kLoan = sizeof(Loan);
  if (bytes < kLeastLoan) return std::nullopt;
  const std::size_t loan_at = message.size() - kLoan;
  if (message.size() < kLoan || (loan_at != 0 && loan_at != opening_bytes(kLoan))) {
    return std::nullopt;
  }
  Loan loan;
  std::memcpy(&loan, message.data() + loan_at, kLoan);
  return loan;
}

// Whether what is made of a loan can be put where the sender wants it.
inline bool wants_result(const Loan& loan, const RecvLink& link) {
  return loan.result != Loan::kNowhere && link.reaches_results();
}

// What a message is to bring: `bytes`, of `rest` that are still to come before the pass ends. A
// loan may reach up to there, and may have begun before: it is of `most` bytes at most.
struct ExpectedMessage {
  std::size_t bytes;
  std::size_t rest;
  std::size_t most;
  bool may_be_returned = false;  // we have asked the sender to put it where we want it
  bool together = false;         // the peer may help to copy it
};

// The bytes that a message brings. Null: it does not bring as many as it should.
struct Payload {
  const std::byte* data = nullptr;
  bool lent = false;            // they lie in the sender's memory
  std::byte* result = nullptr;  // where the sender wants what is made of them, too
};

// `into`: where it may be put, if the link has to copy it, and where it is if it was returned.
inline Payload payload_of(ByteView message, bool opening, const ExpectedMessage& expected,
                          RecvLink& link, std::byte* into = nullptr) {
  const std::size_t bytes = expected.bytes;
  if (const std::optional<Loan> loan = loan_in(message, bytes)) {
    const bool is_whole = loan->bytes >= expected.rest && loan->bytes <= expected.most;
    if (loan->bytes != bytes && !is_whole) return {.lent = true};
    if (loan->offset == Loan::kReturned) {
      return {.data = expected.may_be_returned ? into : nullptr, .lent = true};
    }
    const std::uint64_t taken = is_whole ? loan->bytes - expected.rest : 0;
    std::byte* const result = wants_result(*loan, link) ? link.place_for_result(*loan) : nullptr;
    return {.data = link.borrow({loan->offset + taken, bytes}, into, expected.together).data(),
            .lent = true,
            .result = result != nullptr ? result + taken : nullptr};
  }
  const std::size_t skip = opening ? opening_bytes(bytes) : 0;
  return {.data = message.size() == skip + bytes ? message.data() + skip : nullptr};
}

// Whether more is to be taken of the message than those `bytes`.
inline bool holds_more(ByteView message, std::size_t bytes) {
  const std::optional<Loan> loan = loan_in(message, bytes);
  return loan && loan->bytes > bytes;
}

// What a run sends leaves too late for more than a line to be fetched now: the peer's looks would
// take them back.
inline void prepare_for_run(const SendLink& link, std::size_t bytes) {
  if (bytes <= kOneLineDataBytes) link.prepare(opened_bytes(bytes));
}

// What users read when there is no payload, where the message should have brought `bytes`, and when
// the sender has withdrawn what it lent. `mine` is what `rank` runs.
Error wrong_length(int rank, const Descriptor& mine, int peer, ByteView message, bool opening,
                   std::size_t bytes);
Error withdrawn(int rank, const Descriptor& mine, int peer);

}  // namespace catenary
