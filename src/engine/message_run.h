// MessageRun: one send or receive under way, or a message of a rank to itself.
//
// As a schedule it is a single step on a single chunk, which leaves of a ScheduleRun nothing but a
// number of bytes. Groups hold many of these, so each is kept small.
//
// Threads: move() by whoever drives the device. Waiting: none. Failure: move() throws Error,
// kInvalidUsage when the peer's operation does not match; the run is then over.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/engine/descriptor.h"
#include "src/engine/framing.h"
#include "src/transport/transport.h"

namespace catenary {

// All that a run needs. A send has a send link, a receive has a receive link, and a
// message to oneself has none.
struct MessageSpec {
  SendLink* send = nullptr;
  RecvLink* recv = nullptr;
  const std::byte* input = nullptr;
  std::byte* output = nullptr;
  std::size_t bytes = 0;
  std::size_t slice_bytes = 0;  // the most that one message of a link carries
  std::size_t least_loan = SIZE_MAX;
  Descriptor descriptor;  // as its opening has it: both ends call it a send
  int rank = 0;
  int peer = 0;
  Fetching fetching = Fetching::kNever;
  bool past_caches = false;  // the bytes are more than caches hold: output is written past them
};

class MessageRun {
 public:
  // Begins a new life, once the caller has written the spec.
  MessageSpec& begin() {
    moved_ = 0;
    opened_ = copying_ = false;
    return spec_;
  }

  // Moves a slice, or what is lent in place of several, if it can be moved now; a message of
  // nothing opens, too. One at a time, so that slices to and from a peer take turns and go on its
  // shuttles (shuttles.h). `soon` is what a send will read next, if the caches do not hold it: the
  // next receive takes that, and fetches it while it copies.
  bool move(ByteView& soon);
  // Helps the peer to copy what was lent to it, a piece of it: for who has nothing to move. Whether
  // there was one.
  bool help() { return spec_.send != nullptr && is_helped() && spec_.send->try_help({}); }
  // Whether all was moved.
  bool is_moved() const { return opened_ && moved_ == spec_.bytes; }
  // Of what was moved: whether the buffers belong to the caller again.
  bool try_finish() const { return spec_.send == nullptr || spec_.send->try_flush(); }
  // It is given up: what is lent may change from now on.
  void withdraw() const noexcept {
    if (opened_ && spec_.send != nullptr) spec_.send->withdraw();
  }

  // Whether the peer may write to the output while this runs, pieces of what it lent; and the peer,
  // while it does, or kNobody.
  bool is_open_to_writers() const { return spec_.recv != nullptr && is_helped(); }
  int writer() const noexcept { return copying_ && spec_.recv->is_helped() ? spec_.peer : kNobody; }

  // It is not waited for any more.
  void forbid_writer() noexcept {
    if (copying_) spec_.recv->forbid_help();
  }

  int peer() const { return spec_.peer; }
  // What this rank calls it.
  Descriptor descriptor() const;

 private:
  bool send_some(ByteView& soon);
  bool receive_some(ByteView& soon);
  void note_moved(std::size_t bytes);
  void copy_own();
  bool is_helped() const {
    return spec_.bytes >= RecvLink::kLeastCopiedTogether && spec_.least_loan != SIZE_MAX;
  }
  bool take_together(ByteView borrowed, std::byte* to);
  void keep(const std::byte* data, std::byte* to, std::size_t bytes, ByteView soon = {}) const;

  MessageSpec spec_;
  std::size_t moved_ = 0;
  bool opened_ = false;
  bool copying_ = false;  // the peer still has a piece of what is received
};

}  // namespace catenary
