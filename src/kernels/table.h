// The table of kernels, one per instruction set: what its file defines and reduce.cc chooses from.
#pragma once

#include "src/base/types.h"
#include "src/kernels/reduce.h"

namespace catenary::kernels {

struct KernelTable {
  ReduceKernels rows[kDataTypeCount][kReduceOpCount];
};

extern const KernelTable kScalarTable;
extern const KernelTable kAvx2Table;    // x86-64 only
extern const KernelTable kAvx512Table;  // x86-64 only

// What float rows have for `divide`.
void divide_floats(void* out, const void* in, std::int64_t divisor, std::size_t count);

}  // namespace catenary::kernels
