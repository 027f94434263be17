// Faulty transport: makes the links of another transport behave badly, the same way for a seed.
//
// It never breaks the contract of a link: "not yet" may be answered at any time, and a link may
// throw. So whatever runs correctly over the transport inside must run over this one. Since an
// answer of "not yet" is not followed by a ring, it has no doorbell and must be polled.
//
// Threads, waiting and ownership as the transport inside.
#pragma once

#include <cstdint>
#include <memory>

#include "src/transport/transport.h"

namespace catenary {

struct Faults {
  std::uint64_t seed = 1;
  // Of 1000 tries, how many answer "not yet" although there is something.
  std::uint32_t delays_in_1000 = 0;
  // After such an answer, how many more follow: a peer that does not come to its turn.
  std::uint32_t starved_tries = 0;
  // From this message on a link throws kRemote, as if the peer had died. 0: never.
  std::uint64_t dies_after_messages = 0;
};

std::unique_ptr<Transport> make_faulty_transport(std::unique_ptr<Transport> inside,
                                                 const Faults& faults);

}  // namespace catenary
