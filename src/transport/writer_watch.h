// Who has lent memory for results, and takes it back, waits for the peer that is writing to it just
// then.
//
// That is a matter of microseconds while the peer runs, and longer where it has lost its core. A
// dead peer writes no more. One that is stopped, as by a debugger, is not waited for longer than
// some seconds: then a warning says what may happen.
//
// Any thread. Fails never.
#pragma once

#include <cstdint>

#include "src/base/slot_ring.h"

namespace catenary {

void wait_for_writer(const SlotProducer& ring) noexcept;

// Whether a process of this pid namespace is there and has not ended.
bool process_runs(std::uint32_t process) noexcept;

}  // namespace catenary
