// Ledger: which collectives this rank has begun of late, and which ones other ranks say they have.
//
// The n-th collective of a communicator is the same one for all ranks. So a peer whose n-th differs
// from ours disagrees, whoever waits for whom and however late anybody is: that is proof. What a
// peer has begun is known from what it claims, and from the openings that it sent.
//
// Threads: who drives. Nothing waits or fails: a proof is a value.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "src/base/error.h"
#include "src/base/types.h"
#include "src/engine/descriptor.h"

namespace catenary {

class Ledger {
 public:
  // How many collectives are remembered. A rank that waits holds the others up long before they are
  // so far ahead, unless they are very many.
  static constexpr std::uint32_t kKept = 128;

  explicit Ledger(int rank) : rank_(rank) {}

  // Collectives begin in the order of their numbers, and one is over before the next one begins.
  void begin(const Descriptor& descriptor) {
    begun_[descriptor.sequence % kKept] = descriptor;
    next_ = descriptor.sequence + 1;
  }

  // The proof that a peer that has begun `theirs` disagrees. None if it agrees, or if ours of that
  // number is yet to begin or is forgotten.
  std::optional<Error> judge(int peer, const Descriptor& theirs) const;
  // The same for the oldest thing that lies unread on the link from a peer, while nothing is to be
  // read from there: if it is so old that ours is forgotten, ours did not read it.
  std::optional<Error> judge_unread(int peer, const Descriptor& theirs) const;

  // Notes what a peer claims to have begun, until we have begun ours. Other claims than descriptors
  // are not for us.
  void hear(int peer, ByteView claim);
  // Nothing begins any more. The last collective that did, if any.
  std::optional<Descriptor> close();
  // The first proof among what was heard.
  std::optional<Error> judge_heard();

 private:
  struct Heard {
    int peer;
    Descriptor theirs;
  };

  Error too_late(const Heard& heard) const;

  // How far back a number lies: 1 is the last one begun, 0 and less are yet to come. Numbers wrap.
  std::int32_t age(std::uint32_t sequence) const {
    return static_cast<std::int32_t>(next_ - sequence);
  }

  const int rank_;
  std::array<Descriptor, kKept> begun_{};  // by number, modulo kKept
  std::uint32_t next_ = 0;
  bool closed_ = false;
  std::vector<Heard> heard_;
};

}  // namespace catenary
