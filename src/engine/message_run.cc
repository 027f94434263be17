#include "src/engine/message_run.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "src/base/copy.h"
#include "src/engine/framing.h"

namespace catenary {

bool MessageRun::move() {
  if (spec_.send == nullptr && spec_.recv == nullptr) return copy_own(), true;
  const std::size_t bytes = std::min(spec_.slice_bytes, spec_.bytes - moved_);
  if (!(spec_.send != nullptr ? send_slice(bytes) : receive_slice(bytes))) return false;
  moved_ += bytes;
  opened_ = true;
  return true;
}

bool MessageRun::send_slice(std::size_t bytes) {
  const std::byte* const data = spec_.input + moved_;
  std::optional<Loan> loan;
  if (bytes >= spec_.least_loan) loan = spec_.send->try_lend({data, bytes});
  const bool in_place =
      bytes >= spec_.least_loan && !loan && spec_.send->sends_in_place({data, bytes});
  const std::size_t payload = loan ? sizeof *loan : bytes;
  const std::size_t skip = opened_ ? 0 : opening_bytes(payload);
  const ByteSpan slot = spec_.send->try_acquire(skip + payload);
  if (slot.empty()) return false;
  if (!opened_) std::memcpy(slot.data(), &spec_.descriptor, sizeof spec_.descriptor);
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
  }
  spec_.send->commit(skip + payload);
  return true;
}

bool MessageRun::receive_slice(std::size_t bytes) {
  const ByteView message = spec_.recv->try_peek();
  if (message.empty()) return false;
  if (!opened_) {
    Descriptor theirs;
    if (message.size() >= sizeof theirs) std::memcpy(&theirs, message.data(), sizeof theirs);
    if (message.size() < sizeof theirs || theirs != spec_.descriptor) {
      throw disagreement(spec_.rank, descriptor(), spec_.peer, theirs);
    }
  }
  const Payload payload = payload_of(message, !opened_, bytes, *spec_.recv);
  if (payload.data == nullptr) {
    throw wrong_length(spec_.rank, descriptor(), spec_.peer, message, !opened_, bytes);
  }
  keep(payload.data, bytes);
  if (payload.lent && !spec_.recv->still_lent()) {
    throw withdrawn(spec_.rank, descriptor(), spec_.peer);
  }
  spec_.recv->release();
  return true;
}

void MessageRun::copy_own() {
  if (spec_.input != spec_.output) keep(spec_.input, spec_.bytes);
  moved_ = spec_.bytes;
  opened_ = true;
}

void MessageRun::keep(const std::byte* data, std::size_t bytes) {
  std::byte* const to = spec_.output + moved_;
  if (spec_.past_caches) {
    copy_streaming(to, data, bytes);
  } else if (bytes > 0) {
    std::memcpy(to, data, bytes);
  }
}

Descriptor MessageRun::descriptor() const {
  Descriptor mine = spec_.descriptor;
  if (spec_.send == nullptr) mine.kind = Collective::kRecv;
  return mine;
}

}  // namespace catenary
