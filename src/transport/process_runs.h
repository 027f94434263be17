// Whether a process of this pid namespace is there, with a thread that may still do something.
// Where that cannot be found out it is taken to be.
//
// Any thread; nothing waits or fails.
#pragma once

#include <cstdint>

namespace catenary {

bool process_runs(std::uint32_t process) noexcept;

}  // namespace catenary
