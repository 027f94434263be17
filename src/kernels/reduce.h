// Reduction kernels: the arithmetic of every collective, as plain functions over memory.
//
// One table, data type x operation x instruction set, is the single source of dispatch, test and
// benchmark: reduce_kernels(). Pure functions, any thread, nothing waits or allocates.
//
// All instruction sets give the same bits, by these rules:
// - Integers wrap.
// - half, bfloat16 and both 8-bit floats are computed in float and rounded once, to nearest even,
//   where a kernel stores them. Denormals are kept.
// - 8-bit floats saturate: what is too large for e4m3 becomes 448, for e5m2 57344, infinities
//   included, as a conversion to __nv_fp8_e4m3 or __nv_fp8_e5m2 does.
// - A NaN operand gives NaN, in max and min too. A NaN that a kernel stores is positive, quiet and
//   has no payload (0x7fc00000 for float, 0x7e00 half, 0x7fc0 bfloat16, 0x7f e4m3, 0x7e e5m2).
// - max(-0, +0) is +0 and min(-0, +0) is -0, in either order.
// They hold in the floating-point environment that a thread starts with: round to nearest, and
// denormals not flushed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "src/base/types.h"

namespace catenary {
struct Config;
}

namespace catenary::kernels {

// From the plainest to the best of x86; a NEON table would be one more value and one more file.
enum class Isa : std::uint8_t { kScalar, kAvx2, kAvx512, kAvx512Fp16 };
inline constexpr int kIsaCount = 4;

std::string_view name_of(Isa isa);

// Whether this build has the instruction set, and this processor and system run it.
bool is_usable(Isa isa);
// The last usable one.
Isa best_isa();
// The one that CATENARY_ISA asks for, or the best. Throws kInvalidUsage for an unknown name and for
// an instruction set that is not usable here.
Isa isa_from(const Config& config);

// How a result is stored in two places: past the caches, or not.
enum class TwinStores : std::uint8_t { kCached, kTwinStreaming, kBothStreaming };

// One row of the table; no pointer is null. Memory may have any alignment. Nothing but the `count`
// elements of `out` is written, nothing but `count` elements of the inputs is read.
// `out` may be one of the inputs; otherwise it is disjoint from them.
struct ReduceKernels {
  // out = a op b
  void (*reduce)(void* out, const void* a, const void* b, std::size_t count);
  // out = twin = a op b. What is said of `out` holds for `twin`, too. What goes past the caches is
  // done, for other threads too, on return; where it cannot, it does not.
  void (*reduce_twice)(void* out, void* twin, const void* a, const void* b, std::size_t count,
                       TwinStores stores);
  // out = a op (scale * b), the product rounded to the type first: the bits are those of an input
  // that had been scaled before it travelled.
  void (*reduce_scaled)(void* out, const void* a, const void* b, Scalar scale, std::size_t count);
  // out = ((s0 op s1) op s2) ..., nsources >= 1, in one pass; small floats round only at the end.
  void (*fold)(void* out, const void* const* sources, int nsources, std::size_t count);
  // The same bits with stores that go past the caches, done, for other threads too, on return.
  // Worth it when `out` is none of the sources, the whole working set exceeds the last-level cache
  // and nobody reads the result soon; otherwise slower.
  void (*fold_streaming)(void* out, const void* const* sources, int nsources, std::size_t count);
  // out = scale * in
  void (*scale)(void* out, const void* in, Scalar scale, std::size_t count);
  // out = in / divisor, truncated toward zero; divisor > 0. Integers only: throws kInternal on
  // floats, whose averages are scaled instead.
  void (*divide)(void* out, const void* in, std::int64_t divisor, std::size_t count);
};

// The row. `isa` must be usable.
const ReduceKernels& reduce_kernels(DataType type, ReduceOp op, Isa isa);

// 1/n correctly rounded to the type, for averages of floats. Throws kInternal on integers.
Scalar scalar_one_over(DataType type, int n);

}  // namespace catenary::kernels
