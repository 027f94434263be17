// A port that behaves badly, as EFA may but for splitting and repeating, from a seed: it refuses in
// bursts, holds what it took and lets it go in any order, tells what happened late and in any
// order, and fails. With every other seed it gathers nothing.
//
// Everything that runs over a port must run over this one. The same seed and the same calls give
// the same behaviour. Threads: as the port inside.
#pragma once

#include <cstdint>
#include <memory>

#include "src/transport/put_port.h"

namespace catenary {

struct PortFaults {
  std::uint64_t seed = 1;
  std::uint32_t refusals_in_1000 = 0;  // of tries; each begins a burst
  std::uint32_t refused_tries = 0;     // how long a burst lasts
  std::uint32_t holds_in_1000 = 0;     // of operations that go out, and events that come, each turn
  std::uint64_t fails_after_puts = 0;  // then each put fails; 0: never
};

std::unique_ptr<PutPort> make_faulty_port(std::unique_ptr<PutPort> inside,
                                          const PortFaults& faults);

}  // namespace catenary
