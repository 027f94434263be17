// The control messages by which two ends of a link over a PutPort find each other and part.
//
//     sender                                        receiver
//     OPEN where credits go, the slots  ------->    makes the ring
//                                       <-------    RING where it lies
//                                                   (or REFUSE: other slots, or no memory)
//     puts, and credits for them        <------>
//     TALLY what I put, what I gave back  ----->    (either, when quiet for long: put_tally.cc)
//     LEAVE what I sent, what came      <------>    STAY what has come
//
// Each carries a keyed MAC of who says it to whom: the memory that messages give away is given to
// holders of the communicator's key only, and strangers' messages are dropped. A message that is
// repeated changes nothing, but that OPEN is answered again. Pure functions on bytes; nothing
// waits, nothing fails.
#pragma once

#include <optional>

#include "src/bootstrap/key.h"
#include "src/transport/put_port.h"

namespace catenary {

enum class ControlKind : std::uint16_t { kOpen = 1, kRing, kRefuse, kLeave, kStay, kTally };

struct ControlWords {
  ControlKind kind = ControlKind::kOpen;
  std::uint16_t channel = 0;
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  std::uint32_t slots = 0;       // OPEN, REFUSE
  std::uint32_t slot_bytes = 0;  // OPEN, REFUSE
  std::uint32_t unused = 0;
  PutTarget target = {};   // OPEN, RING
  std::uint64_t sent = 0;  // LEAVE, TALLY: messages
  std::uint64_t came = 0;  // LEAVE, STAY: messages; TALLY: slots that were given back
};
static_assert(sizeof(ControlWords) == 80, "no padding goes out");

ControlMessage seal_control(const Key& key, const ControlWords& words);
// Nullopt unless a holder of the key says this to rank `self` of `nranks`.
std::optional<ControlWords> open_control(const Key& key, const ControlMessage& message, int self,
                                         int nranks);

}  // namespace catenary
