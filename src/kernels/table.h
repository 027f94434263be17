// The table of kernels, one per instruction set: what its file defines and reduce.cc chooses from.
#pragma once

#include "src/base/types.h"
#include "src/kernels/reduce.h"

namespace catenary::kernels {

struct KernelTable {
  ReduceKernels rows[kDataTypeCount][kReduceOpCount];
};

// The rows of a type.
struct OneType {
  ReduceKernels rows[kReduceOpCount];
};

extern const KernelTable kScalarTable;
extern const KernelTable kAvx2Table;    // x86-64 only
extern const KernelTable kAvx512Table;  // x86-64 only
extern const OneType kAvx512Fp16Halves;  // x86-64 only, and where the compiler knows them

// What float rows have for `divide`.
void divide_floats(void* out, const void* in, std::int64_t divisor, std::size_t count);

}  // namespace catenary::kernels
