// Ledger: which collectives this rank has issued of late, and which ones other ranks say they have.
//
// The n-th collective of a communicator is the same one for all ranks. So a peer whose n-th differs
// from ours disagrees, whoever waits for whom and however late anybody is: that is proof. What a
// peer has issued is known from what it claims, and from the openings that it sent.
//
// Threads: under the communicator's issue lock. Nothing waits or fails: a proof is a value.
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

  // Collectives are issued in the order of their numbers.
  void issue(const Descriptor& descriptor) {
    issued_[descriptor.sequence % kKept] = descriptor;
    next_ = descriptor.sequence + 1;
  }

  // The proof that a peer that has issued `theirs` disagrees. None if it agrees, or if ours of that
  // number is yet to be issued or is forgotten.
  std::optional<Error> judge(int peer, const Descriptor& theirs) const;
  // The same for the oldest thing that lies unread on the link from a peer while nothing of ours
  // is to be read from there: whatever we have issued already, we have issued it otherwise.
  std::optional<Error> judge_unread(int peer, const Descriptor& theirs) const;

  // Notes what a peer claims to have issued, until we have issued ours. Other claims than
  // descriptors are not for us.
  void hear(int peer, ByteView claim);
  // The first proof among what was heard.
  std::optional<Error> judge_heard();

 private:
  struct Heard {
    int peer;
    Descriptor theirs;
  };

  // How far back a number lies: 1 is the last one issued, 0 and less are yet to come. Numbers wrap.
  std::int32_t age(std::uint32_t sequence) const {
    return static_cast<std::int32_t>(next_ - sequence);
  }

  const int rank_;
  std::array<Descriptor, kKept> issued_{};  // by number, modulo kKept
  std::uint32_t next_ = 0;
  std::vector<Heard> heard_;
};

}  // namespace catenary
