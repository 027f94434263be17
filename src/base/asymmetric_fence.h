// Asymmetric fences, for two threads of a process that each store something and then look at what
// the other one stores, where one of them does so all the time and the other hardly ever. The one
// pays nothing: its light fence only keeps the compiler from moving things. The other one's heavy
// fence makes the system interrupt every running thread of the process, so that each has either
// stored before it, and is seen, or looks after it, and sees.
//
// Any thread. The heavy fence takes microseconds. Nothing fails, but a system may have no such
// fence: both sides must ask.
#pragma once

#include <atomic>

namespace catenary {

// Always the same answer; asked once when the library is loaded.
bool has_asymmetric_fence() noexcept;

inline void light_fence() noexcept { std::atomic_signal_fence(std::memory_order_seq_cst); }
// Only where there is one.
void heavy_fence() noexcept;

}  // namespace catenary
