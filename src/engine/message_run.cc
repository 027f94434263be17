#include "src/engine/message_run.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "src/base/copy.h"
#include "src/base/size_literals.h"
#include "src/engine/framing.h"

namespace catenary {

namespace {

// What is lent need not fit into a slot. But whoever takes it does so at once, and nothing else
// meanwhile: some 100 us of it.
constexpr std::size_t kMostLent = 1_MB;

}  // namespace

bool MessageRun::move(ByteView& soon) {
  if (spec_.send != nullptr) return send_some(soon);
  if (spec_.recv != nullptr) return receive_some(soon);
  copy_own();
  return true;
}

void MessageRun::note_moved(std::size_t bytes) {
  moved_ += bytes;
  opened_ = true;
}

bool MessageRun::send_some(ByteView& soon) {
  const std::byte* const data = spec_.input + moved_;
  const std::size_t rest = spec_.bytes - moved_;
  const std::size_t most = std::min(rest, kMostLent);
  std::optional<Loan> loan;
  if (most >= spec_.least_loan)
    loan = spec_.send->try_lend({data, most}, {.fetching = spec_.fetching});
  const std::size_t bytes = loan ? most : std::min(spec_.slice_bytes, rest);
  const bool in_place =
      bytes >= spec_.least_loan && !loan && spec_.send->sends_in_place({data, bytes});
  const std::size_t payload = loan ? sizeof *loan : bytes;
  const std::size_t skip = opened_ ? 0 : opening_bytes(payload);
  const ByteSpan slot = spec_.send->try_acquire(skip + payload);
  if (slot.empty()) return false;
  if (!opened_) std::memcpy(slot.data(), &spec_.descriptor, sizeof spec_.descriptor);
  note_moved(bytes);
  if (in_place) {
    spec_.send->commit_in_place(skip, {data, bytes});
    return true;
  }
  if (!loan && bytes >= kLeastFromMemory && spec_.send->spares_copy()) {
    spec_.send->commit_from(skip, {data, bytes});
    return true;
  }
  if (loan) {
    std::memcpy(slot.data() + skip, &*loan, sizeof *loan);
  } else if (bytes > 0) {
    spec_.send->write(slot.data() + skip, {data, bytes});
    if (spec_.past_caches) soon = {data + bytes, std::min(spec_.slice_bytes, rest - bytes)};
  }
  spec_.send->commit(skip + payload);
  return true;
}

bool MessageRun::receive_some(ByteView& soon) {
  const ByteView message = spec_.recv->try_peek();
  if (message.empty()) return false;
  if (!opened_) {
    Descriptor theirs;
    if (message.size() >= sizeof theirs) std::memcpy(&theirs, message.data(), sizeof theirs);
    if (message.size() < sizeof theirs || theirs != spec_.descriptor) {
      throw disagreement(spec_.rank, descriptor(), spec_.peer, theirs);
    }
  }
  const std::size_t rest = spec_.bytes - moved_;
  const std::size_t bytes = std::min(loan_in(message, rest) ? kMostLent : spec_.slice_bytes, rest);
  std::byte* const to = spec_.output + moved_;
  const Payload payload = payload_of(
      message, !opened_, {.bytes = bytes, .rest = bytes, .most = bytes, .together = is_helped()},
      *spec_.recv, to);
  if (payload.data == nullptr) {
    throw wrong_length(spec_.rank, descriptor(), spec_.peer, message, !opened_, bytes);
  }
  if (payload.lent && is_helped()) {
    if (!take_together({payload.data, bytes}, to)) return false;
  } else {
    keep(payload.data, to, bytes, std::exchange(soon, {}));
  }
  if (payload.lent && !spec_.recv->still_lent()) {
    throw withdrawn(spec_.rank, descriptor(), spec_.peer);
  }
  spec_.recv->release();
  note_moved(bytes);
  return true;
}

// Keeps what was borrowed, with the peer's help if it has the time. False: that still has a part of
// it; it is tried again.
bool MessageRun::take_together(ByteView borrowed, std::byte* to) {
  const RecvLink::Copied copied =
      spec_.recv->copy_together(borrowed, {.into = to, .past_caches = spec_.past_caches});
  copying_ = copied == RecvLink::Copied::kUnderWay;
  if (copied == RecvLink::Copied::kNothing) keep(borrowed.data(), to, borrowed.size());
  return !copying_;
}

void MessageRun::copy_own() {
  if (spec_.input != spec_.output) keep(spec_.input, spec_.output, spec_.bytes);
  moved_ = spec_.bytes;
  opened_ = true;
}

void MessageRun::keep(const std::byte* data, std::byte* to, std::size_t bytes,
                      ByteView soon) const {
  if (data == to) return;  // the kernel has put it there
  if (spec_.past_caches) {
    copy_streaming_and_fetch(to, data, bytes, soon);
  } else if (spec_.recv != nullptr) {
    spec_.recv->read(to, {data, bytes});
  } else {
    copy(to, data, bytes);
  }
}

Descriptor MessageRun::descriptor() const {
  Descriptor mine = spec_.descriptor;
  if (spec_.send == nullptr) mine.kind = Collective::kRecv;
  return mine;
}

}  // namespace catenary
