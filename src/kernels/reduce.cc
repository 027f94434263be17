#include "src/kernels/reduce.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "src/base/config.h"
#include "src/base/error.h"
#include "src/kernels/convert.h"
#include "src/kernels/table.h"

namespace catenary::kernels {
namespace {

#ifdef CATENARY_HAS_AVX512FP16
const KernelTable* avx512fp16_table() {
  static const KernelTable table = [] {
    KernelTable made = kAvx512Table;
    std::ranges::copy(kAvx512Fp16Halves.rows, made.rows[static_cast<int>(DataType::kFloat16)]);
    return made;
  }();
  return &table;
}
#endif

// Null if the processor has not got it. The builtin asks the system too, whether it keeps the wide
// registers.
const KernelTable* table_of(Isa isa) {
#ifdef __x86_64__
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c");
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
  if (isa == Isa::kAvx2 && avx2) return &kAvx2Table;
  if (isa == Isa::kAvx512 && avx512) return &kAvx512Table;
#endif
#ifdef CATENARY_HAS_AVX512FP16
  const bool fp16 = avx512 && __builtin_cpu_supports("avx512fp16");
  if (isa == Isa::kAvx512Fp16 && fp16) return avx512fp16_table();
#endif
  return isa == Isa::kScalar ? &kScalarTable : nullptr;
}

struct Tables {
  const KernelTable* by_isa[kIsaCount];
  Tables() {
    for (int i = 0; i < kIsaCount; ++i) by_isa[i] = table_of(static_cast<Isa>(i));
  }
};

// Asking the processor takes hundreds of nanoseconds in a virtual machine: once is enough.
const KernelTable* usable_table(Isa isa) {
  static const Tables tables;
  return tables.by_isa[static_cast<int>(isa)];
}

template <class T>
Scalar scalar_of(T value) {
  Scalar scalar;
  std::memcpy(scalar.bits, &value, sizeof(value));
  return scalar;
}

// To float, but toward zero with the last bit set if inexact: rounding that once more to a smaller
// type is then as good as rounding `value` itself.
float sticky_float(double value) {
  float nearest = static_cast<float>(value);
  if (static_cast<double>(nearest) == value) return nearest;
  auto bits = std::bit_cast<std::uint32_t>(nearest);
  if (static_cast<double>(nearest) > value) --bits;  // value > 0
  return std::bit_cast<float>(bits | 1);
}

}  // namespace

std::string_view name_of(Isa isa) {
  switch (isa) {
    case Isa::kScalar: return "scalar";
    case Isa::kAvx2: return "avx2";
    case Isa::kAvx512: return "avx512";
    case Isa::kAvx512Fp16: return "avx512fp16";
  }
  return "unknown";
}

bool is_usable(Isa isa) { return usable_table(isa) != nullptr; }

Isa best_isa() {
  int best = kIsaCount - 1;
  while (!is_usable(static_cast<Isa>(best))) --best;
  return static_cast<Isa>(best);
}

Isa isa_from(const Config& config) {
  if (config.isa.empty()) return best_isa();
  for (int i = 0; i < kIsaCount; ++i) {
    const Isa isa = static_cast<Isa>(i);
    if (config.isa != name_of(isa)) continue;
    if (is_usable(isa)) return isa;
    throw_error(
        ErrorCode::kInvalidUsage,
        "CATENARY_ISA=%s: this processor, or this build, has no %s; the best here is %s. Unset it "
        "to use that.",
        config.isa.c_str(), config.isa.c_str(), name_of(best_isa()).data());
  }
  throw_error(
      ErrorCode::kInvalidUsage,
      "CATENARY_ISA=%s is not an instruction set; it is scalar, avx2, avx512 or avx512fp16, or "
      "unset for the best, which is %s here.",
      config.isa.c_str(), name_of(best_isa()).data());
}

const ReduceKernels& reduce_kernels(DataType type, ReduceOp op, Isa isa) {
  const KernelTable* table = usable_table(isa);
  if (table == nullptr) {
    throw_error(ErrorCode::kInternal, "kernels for %s were asked for, which is not usable here",
                name_of(isa).data());
  }
  return table->rows[static_cast<int>(type)][static_cast<int>(op)];
}

Scalar scalar_one_over(DataType type, int n) {
  const double exact = 1.0 / n;
  switch (type) {
    case DataType::kFloat16: return scalar_of(float_to_half(sticky_float(exact)));
    case DataType::kBfloat16: return scalar_of(float_to_bfloat16(sticky_float(exact)));
    case DataType::kFloat8e4m3: return scalar_of(float_to_e4m3(sticky_float(exact)));
    case DataType::kFloat8e5m2: return scalar_of(float_to_e5m2(sticky_float(exact)));
    case DataType::kFloat32: return scalar_of(static_cast<float>(exact));
    case DataType::kFloat64: return scalar_of(exact);
    case DataType::kInt8:
    case DataType::kUint8:
    case DataType::kInt32:
    case DataType::kUint32:
    case DataType::kInt64:
    case DataType::kUint64: break;
  }
  throw_error(ErrorCode::kInternal, "1/%d was asked for as %s; averages of integers divide", n,
              catenary::name_of(type).data());
}

void divide_floats(void*, const void*, std::int64_t divisor, std::size_t) {
  throw_error(ErrorCode::kInternal,
              "floats were to be divided by %lld; averages of floats scale by scalar_one_over",
              static_cast<long long>(divisor));
}

}  // namespace catenary::kernels
