// ShortSteps: the steps of a collective of which every chunk is one short message, done without a
// run as far as they can be done now.
//
// Most operations of few bytes begin with a message that can be sent at once, and many are over
// with it, or with one that has come already. To make a run for them would take three times as long
// as all of that, and keep the peer waiting meanwhile. What must wait goes on later (short_run.h);
// what is out of the ordinary (another message than expected, say) is left for a run, which begins
// at that step and knows what to do about it. The same for sends and receives, which have no steps:
// send_short(), keep_short().
//
// Peers are not rung by that, but by ring_peers(), best once the drive lock is given back.
//
// Threads: who holds the drive lock; ring_peers() any. Nothing waits. Failure: what links throw.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/base/size_literals.h"
#include "src/engine/framing.h"
#include "src/engine/schedule_run.h"

namespace catenary {

// Where there is more, to make a run takes no time beside it, and how it is moved matters more.
inline constexpr std::size_t kMostAtOnce = 8_KB;

// Sends a message that opens an operation and is all of it. False: there is no slot yet.
bool send_short(SendLink& link, const Descriptor& opening, ByteView data);
// Keeps the data of the next message, as is quickest there, if that has come, opens so and has as
// many bytes. The caller releases it.
struct ShortMessage {
  const std::byte* data = nullptr;
  bool is_another = false;  // one has come, but not that one
};
ShortMessage keep_short(RecvLink& link, const Descriptor& opening, ByteSpan to);

class ShortSteps {
 public:
  ShortSteps() = default;
  // Of the only lane of a collective. None, if there are others than such steps, or very many.
  explicit ShortSteps(const RunSpec& spec);

  explicit operator bool() const { return !moves_.empty(); }
  // Of the longest message.
  std::size_t longest_bytes() const { return longest_bytes_; }
  // This rank does not both send and receive.
  bool go_one_way() const { return !(sends_ && receives_); }
  void begin(const void* input, void* output, std::uint32_t sequence) {
    descriptor_.sequence = sequence;
    input_ = static_cast<const std::byte*>(input);
    output_ = static_cast<std::byte*>(output);
    done_ = 0;
    met_another_ = false;
  }
  // Goes on as far as possible, unless a link throws.
  void try_do() {
    while (!all_done() && try_move(moves_[done_])) ++done_;
  }
  // So many are done, the first ones.
  std::size_t done() const { return done_; }
  bool all_done() const { return done_ == count_; }
  // Whether the next one has found another message than it expects.
  bool met_another() const { return met_another_; }
  // So many are done already.
  void skip(std::size_t steps) { done_ = steps; }
  // Those of the steps that are done, but for the first ones; and if the next one has thrown, not
  // those of its links.
  void ring_peers(std::size_t first, bool has_thrown) const noexcept;
  // What was begun.
  const Descriptor& descriptor() const { return descriptor_; }

 private:
  // A step, with all that its chunks' lengths make of it.
  struct Move {
    Move(const PlannedStep& step, const Partition& partition, std::size_t element_bytes);

    RecvLink* recv;
    SendLink* send;
    std::size_t bytes;
    std::size_t src;  // how far into its buffer
    std::size_t dst;
    Buffer src_buffer;
    bool is_kept;
    bool received_first;
    bool opens_recv;
    std::uint8_t send_skip;  // bytes of the opening
  };
  bool try_move(const Move& move);
  void ring_all_but(const Move& broken, std::size_t first) const noexcept;
  const std::byte* peek(const Move& move);
  void reduce(const Move& move, std::byte* out, const std::byte* received,
              const std::byte* own) const;

  std::vector<Move> moves_;
  std::size_t longest_bytes_ = 0;
  bool sends_ = false;
  bool receives_ = false;
  std::size_t count_ = 0;   // moves_.size()
  std::size_t linked_ = 0;  // behind so many moves none uses a link
  const kernels::ReduceKernels* kernels_ = nullptr;
  int element_shift_ = 0;
  std::int64_t divisor_ = 1;
  Descriptor descriptor_;
  // Of what is being done.
  const std::byte* input_ = nullptr;
  std::byte* output_ = nullptr;
  std::size_t done_ = 0;
  bool met_another_ = false;
};

}  // namespace catenary
