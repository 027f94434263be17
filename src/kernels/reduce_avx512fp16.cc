// Kernels of halves for AVX512-FP16, which adds and multiplies them as they are. All other types
// are those of AVX-512.
//
// Of two operands that is the same as computing in float and rounding once: a float has 24 bits of
// significand, twice those of a half and two more, so that its sums and products, rounded again to
// a half, are what rounding the exact ones gives. Of more than two it is not, since a fold rounds
// only at its end; those are left to AVX-512.
#include <immintrin.h>

#include "src/kernels/loops.h"
#include "src/kernels/raw512.h"

namespace catenary::kernels {
namespace {

struct Halves : Raw512<2> {
  using Value = __m512h;
  static Value decode(Raw raw) { return _mm512_castsi512_ph(raw); }
  static Raw encode(Value value) {
    const __mmask32 is_nan = _mm512_cmp_ph_mask(value, value, _CMP_UNORD_Q);
    return _mm512_mask_mov_epi16(_mm512_castph_si512(value), is_nan, _mm512_set1_epi16(0x7e00));
  }
  // Rounded to nearest, whatever the thread's environment says, as conversions to halves are.
  static constexpr int kNearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  static Value add(Value a, Value b) { return _mm512_add_round_ph(a, b, kNearest); }
  static Value mul(Value a, Value b) { return _mm512_mul_round_ph(a, b, kNearest); }
  // VMAXPH and VMINPH take the second operand where either is NaN, and of two zeros. So the sum is
  // NaN where one is, and what is equal has the same bits but for the sign of zeros.
  static Value max(Value a, Value b) {
    const __mmask32 equal = _mm512_cmp_ph_mask(a, b, _CMP_EQ_OQ);
    const Raw greater = _mm512_castph_si512(_mm512_max_ph(a, b));
    return with_nans(_mm512_mask_mov_epi16(greater, equal, _mm512_and_si512(raw(a), raw(b))), a, b);
  }
  static Value min(Value a, Value b) {
    const __mmask32 equal = _mm512_cmp_ph_mask(a, b, _CMP_EQ_OQ);
    const Raw less = _mm512_castph_si512(_mm512_min_ph(a, b));
    return with_nans(_mm512_mask_mov_epi16(less, equal, _mm512_or_si512(raw(a), raw(b))), a, b);
  }

 private:
  static Raw raw(Value value) { return _mm512_castph_si512(value); }
  static Value with_nans(Raw numbers, Value a, Value b) {
    const __mmask32 unordered = _mm512_cmp_ph_mask(a, b, _CMP_UNORD_Q);
    return decode(_mm512_mask_mov_epi16(numbers, unordered, _mm512_set1_epi16(0x7e00)));
  }
};

template <ReduceOp kOp>
const ReduceKernels& of_avx512() {
  return kAvx512Table.rows[static_cast<int>(DataType::kFloat16)][static_cast<int>(kOp)];
}

template <ReduceOp kOp>
void fold_halves(void* out, const void* const* sources, int nsources, std::size_t count) {
  if (nsources == 2) return reduce<Halves, kOp>(out, sources[0], sources[1], count);
  of_avx512<kOp>().fold(out, sources, nsources, count);
}

template <ReduceOp kOp>
void fold_halves_streaming(void* out, const void* const* sources, int nsources, std::size_t count) {
  if (nsources == 2) return fold_streaming<Halves, kOp>(out, sources, nsources, count);
  of_avx512<kOp>().fold_streaming(out, sources, nsources, count);
}

template <ReduceOp kOp>
constexpr ReduceKernels row() {
  return {&reduce<Halves, kOp>, &reduce_twice<Halves, kOp>,  &reduce_scaled<Halves, kOp>,
          &fold_halves<kOp>,    &fold_halves_streaming<kOp>, &scale<Halves>,
          &divide_floats};
}

template <int... kOps>
consteval OneType rows_of(std::integer_sequence<int, kOps...>) {
  return {{row<static_cast<ReduceOp>(kOps)>()...}};
}

}  // namespace

constinit const OneType kAvx512Fp16Halves =
    rows_of(std::make_integer_sequence<int, kReduceOpCount>{});

}  // namespace catenary::kernels
