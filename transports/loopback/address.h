// The address of loopback: which process a rank lives in.
//
// Any thread; nothing waits. Throws kSystem if the kernel has no random numbers to give.
#pragma once

#include "src/base/types.h"

namespace catenary::loopback {

// Random, the same for all ranks of this process, and another one after fork.
Bytes local_address();

bool reaches(ByteView address, ByteView peer_address);

}  // namespace catenary::loopback
