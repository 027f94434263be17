// Kernels for AVX-512 (F, BW, VL, DQ). See loops.h for what an Element is and why nothing is
// shared.
#include <immintrin.h>

#include "src/kernels/loops.h"
#include "src/kernels/raw512.h"

namespace catenary::kernels {
namespace {

template <std::size_t kElement>
struct Raw256 {
  using Raw = __m256i;
  static constexpr std::size_t kElementBytes = kElement;
  static constexpr int kUnroll = 2;
  static Raw load(const void* from) {
    return _mm256_loadu_si256(static_cast<const __m256i_u*>(from));
  }
  static void store(void* to, Raw raw) { _mm256_storeu_si256(static_cast<__m256i_u*>(to), raw); }
  static void stream(void* to, Raw raw) { _mm256_stream_si256(static_cast<__m256i*>(to), raw); }
  static void fence() { _mm_sfence(); }
  static Raw load_tail(const void* from, std::size_t bytes) {
    return _mm256_maskz_loadu_epi8(static_cast<__mmask32>(first_lanes(bytes)), from);
  }
  static void store_tail(void* to, Raw raw, std::size_t bytes) {
    _mm256_mask_storeu_epi8(to, static_cast<__mmask32>(first_lanes(bytes)), raw);
  }
  static Raw splat(const Scalar& scalar) {
    return _mm512_castsi512_si256(Raw512<kElement>::splat(scalar));
  }
};

template <class T>
struct IntegerElement : Raw512<sizeof(T)> {
  using Value = __m512i;
  using Integer = T;
  static Value decode(__m512i raw) { return raw; }
  static __m512i encode(Value value) { return value; }
};

struct Bytes8 {
  static __m512i add(__m512i a, __m512i b) { return _mm512_add_epi8(a, b); }
  // Products of the even and of the odd bytes, each in the low half of 16 bits.
  static __m512i mul(__m512i a, __m512i b) {
    const __m512i even = _mm512_mullo_epi16(a, b);
    const __m512i odd = _mm512_mullo_epi16(_mm512_srli_epi16(a, 8), _mm512_srli_epi16(b, 8));
    return _mm512_mask_blend_epi8(0xaaaaaaaaaaaaaaaa, even, _mm512_slli_epi16(odd, 8));
  }
};

struct Words32 {
  static __m512i add(__m512i a, __m512i b) { return _mm512_add_epi32(a, b); }
  static __m512i mul(__m512i a, __m512i b) { return _mm512_mullo_epi32(a, b); }
};

struct Words64 {
  static __m512i add(__m512i a, __m512i b) { return _mm512_add_epi64(a, b); }
  static __m512i mul(__m512i a, __m512i b) { return _mm512_mullo_epi64(a, b); }
};

// a | (b & c)
__m512i or_and(__m512i a, __m512i b, __m512i c) { return _mm512_ternarylogic_epi32(a, b, c, 0xf8); }

// VRANGE orders zeros by their sign, but prefers a number to a NaN.
constexpr int kRangeMax = 0b0101;
constexpr int kRangeMin = 0b0100;

struct Floats32 {
  using Value = __m512;
  static Value nan() { return _mm512_castsi512_ps(_mm512_set1_epi32(0x7fc00000)); }
  static Value add(Value a, Value b) { return _mm512_add_ps(a, b); }
  static Value mul(Value a, Value b) { return _mm512_mul_ps(a, b); }
  static Value max(Value a, Value b) {
    const __mmask16 unordered = _mm512_cmp_ps_mask(a, b, _CMP_UNORD_Q);
    return _mm512_mask_mov_ps(_mm512_range_ps(a, b, kRangeMax), unordered, nan());
  }
  static Value min(Value a, Value b) {
    const __mmask16 unordered = _mm512_cmp_ps_mask(a, b, _CMP_UNORD_Q);
    return _mm512_mask_mov_ps(_mm512_range_ps(a, b, kRangeMin), unordered, nan());
  }
  static Value canonical(Value value) {
    return _mm512_mask_mov_ps(value, _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q), nan());
  }
};

struct Floats64 {
  using Value = __m512d;
  static Value nan() { return _mm512_castsi512_pd(_mm512_set1_epi64(0x7ff8000000000000)); }
  static Value add(Value a, Value b) { return _mm512_add_pd(a, b); }
  static Value mul(Value a, Value b) { return _mm512_mul_pd(a, b); }
  static Value max(Value a, Value b) {
    const __mmask8 unordered = _mm512_cmp_pd_mask(a, b, _CMP_UNORD_Q);
    return _mm512_mask_mov_pd(_mm512_range_pd(a, b, kRangeMax), unordered, nan());
  }
  static Value min(Value a, Value b) {
    const __mmask8 unordered = _mm512_cmp_pd_mask(a, b, _CMP_UNORD_Q);
    return _mm512_mask_mov_pd(_mm512_range_pd(a, b, kRangeMin), unordered, nan());
  }
  static Value canonical(Value value) {
    return _mm512_mask_mov_pd(value, _mm512_cmp_pd_mask(value, value, _CMP_UNORD_Q), nan());
  }
};

// The elements of 8-bit floats as halves, in their order for e5m2, times 2^-8 for e4m3: a half's
// range is just that of e5m2, so that denormals of the one are denormals of the other. Elements
// stay in place, even ones and odd ones in two vectors of 16-bit lanes, and each of these is two of
// floats.
struct Float8 : Raw512<1>, Paired<Paired<Floats32>> {
  static constexpr int kUnroll = 2;

  static Paired<Floats32>::Value widened(__m512i halves) {
    return {_mm512_cvtph_ps(_mm512_castsi512_si256(halves)),
            _mm512_cvtph_ps(_mm512_extracti64x4_epi64(halves, 1))};
  }

  // Rounds to codes, each in the upper byte of 16 bits; what is left in the lower byte is garbage.
  // A code is a half without its last kShift bits, up to the sign.
  template <int kShift, int kLargestCode, int kNanCode>
  static __m512i codes(Paired<Floats32>::Value value) {
    // Toward zero first. What that has cut off decides only ties.
    const __m256i first = _mm512_cvtps_ph(value.first, _MM_FROUND_TO_ZERO);
    const __m256i second = _mm512_cvtps_ph(value.second, _MM_FROUND_TO_ZERO);
    const __mmask32 inexact =
        _mm512_kunpackw(_mm512_cmp_ps_mask(_mm512_cvtph_ps(second), value.second, _CMP_NEQ_UQ),
                        _mm512_cmp_ps_mask(_mm512_cvtph_ps(first), value.first, _CMP_NEQ_UQ));
    const __m512i halves = _mm512_inserti64x4(_mm512_castsi256_si512(first), second, 1);

    const __m512i one = _mm512_set1_epi16(1);
    const __m512i magnitude = _mm512_and_si512(halves, _mm512_set1_epi16(0x7fff));
    const __mmask32 is_nan = _mm512_cmpgt_epi16_mask(magnitude, _mm512_set1_epi16(0x7c00));
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi16(magnitude, kShift), one);
    const __m512i tie_goes_up = _mm512_mask_mov_epi16(odd, inexact, one);
    const __m512i nearly_half = _mm512_set1_epi16((1 << (kShift - 1)) - 1);
    const __m512i rounded = _mm512_add_epi16(_mm512_add_epi16(magnitude, nearly_half), tie_goes_up);
    constexpr int kLargest = ((kLargestCode + 1) << kShift) - 1;
    const __m512i placed =
        _mm512_slli_epi16(_mm512_min_epu16(rounded, _mm512_set1_epi16(kLargest)), 8 - kShift);
    return _mm512_mask_mov_epi16(or_and(placed, halves, _mm512_set1_epi16(-0x8000)), is_nan,
                                 _mm512_set1_epi16(kNanCode << 8));
  }

  static Raw joined(__m512i even_codes, __m512i odd_codes) {
    return or_and(_mm512_srli_epi16(even_codes, 8), odd_codes, _mm512_set1_epi16(-0x100));
  }
};

template <DataType>
struct Element;

template <>
struct Element<DataType::kInt8> : IntegerElement<std::int8_t>, Bytes8 {
  static Value max(Value a, Value b) { return _mm512_max_epi8(a, b); }
  static Value min(Value a, Value b) { return _mm512_min_epi8(a, b); }
};

template <>
struct Element<DataType::kUint8> : IntegerElement<std::uint8_t>, Bytes8 {
  static Value max(Value a, Value b) { return _mm512_max_epu8(a, b); }
  static Value min(Value a, Value b) { return _mm512_min_epu8(a, b); }
};

template <>
struct Element<DataType::kInt32> : IntegerElement<std::int32_t>, Words32 {
  static Value max(Value a, Value b) { return _mm512_max_epi32(a, b); }
  static Value min(Value a, Value b) { return _mm512_min_epi32(a, b); }
};

template <>
struct Element<DataType::kUint32> : IntegerElement<std::uint32_t>, Words32 {
  static Value max(Value a, Value b) { return _mm512_max_epu32(a, b); }
  static Value min(Value a, Value b) { return _mm512_min_epu32(a, b); }
};

template <>
struct Element<DataType::kInt64> : IntegerElement<std::int64_t>, Words64 {
  static Value max(Value a, Value b) { return _mm512_max_epi64(a, b); }
  static Value min(Value a, Value b) { return _mm512_min_epi64(a, b); }
};

template <>
struct Element<DataType::kUint64> : IntegerElement<std::uint64_t>, Words64 {
  static Value max(Value a, Value b) { return _mm512_max_epu64(a, b); }
  static Value min(Value a, Value b) { return _mm512_min_epu64(a, b); }
};

template <>
struct Element<DataType::kFloat32> : Raw512<4>, Floats32 {
  static Value decode(Raw raw) { return _mm512_castsi512_ps(raw); }
  static Raw encode(Value value) { return _mm512_castps_si512(canonical(value)); }
};

template <>
struct Element<DataType::kFloat64> : Raw512<8>, Floats64 {
  static Value decode(Raw raw) { return _mm512_castsi512_pd(raw); }
  static Raw encode(Value value) { return _mm512_castpd_si512(canonical(value)); }
};

template <>
struct Element<DataType::kFloat16> : Raw256<2>, Floats32, Converted {
  static Value decode(Raw raw) { return _mm512_cvtph_ps(raw); }
  static Raw encode(Value value) {
    return _mm512_cvtps_ph(canonical(value), _MM_FROUND_TO_NEAREST_INT);
  }
};

// `first` has the even elements and `second` the odd ones: both are in place for a mask or a shift.
// Not VCVTNE2PS2BF16, which flushes denormals.
template <>
struct Element<DataType::kBfloat16> : Raw512<2>, Paired<Floats32> {
  static constexpr int kUnroll = 2;
  static Value decode(Raw raw) {
    return {_mm512_castsi512_ps(_mm512_slli_epi32(raw, 16)),
            _mm512_castsi512_ps(_mm512_and_si512(raw, _mm512_set1_epi32(-0x10000)))};
  }
  // Rounds in the upper half; what is left in the lower half is garbage. Half of the last place and
  // the bit that decides ties come as two words, which one instruction adds up.
  static __m512i rounded(__m512 value) {
    const __m512i bits = _mm512_castps_si512(value);
    const __m512i words = or_and(_mm512_set1_epi32(0x7fff), bits, _mm512_set1_epi32(0x10000));
    return _mm512_add_epi32(bits, _mm512_madd_epi16(words, _mm512_set1_epi16(1)));
  }
  // NaNs are rare: one question for both registers, and a branch.
  static Raw encode(Value value) {
    const __mmask16 nans = _mm512_cmp_ps_mask(value.first, value.second, _CMP_UNORD_Q);
    if (__builtin_expect(nans != 0, 0)) {
      value = {Floats32::canonical(value.first), Floats32::canonical(value.second)};
    }
    return _mm512_mask_blend_epi16(0xaaaaaaaa, _mm512_srli_epi32(rounded(value.first), 16),
                                   rounded(value.second));
  }
};

template <>
struct Element<DataType::kFloat8e4m3> : Float8 {
  // The upper byte's exponent is moved to where a half has it; all ones is NaN.
  static Paired<Floats32>::Value wide(__m512i upper_bytes) {
    const __m512i halves =
        _mm512_and_si512(_mm512_srai_epi16(upper_bytes, 1), _mm512_set1_epi16(-0x4080));
    const __mmask32 is_nan = _mm512_cmpeq_epi16_mask(
        _mm512_and_si512(halves, _mm512_set1_epi16(0x3f80)), _mm512_set1_epi16(0x3f80));
    const auto value = widened(_mm512_mask_mov_epi16(halves, is_nan, _mm512_set1_epi16(0x7e00)));
    return Paired<Floats32>::mul(value, {_mm512_set1_ps(0x1p8f), _mm512_set1_ps(0x1p8f)});
  }
  static __m512i narrow(Paired<Floats32>::Value value) {
    return codes<7, 0x7e, 0x7f>(
        Paired<Floats32>::mul(value, {_mm512_set1_ps(0x1p-8f), _mm512_set1_ps(0x1p-8f)}));
  }
  static Value decode(Raw raw) { return {wide(_mm512_slli_epi16(raw, 8)), wide(raw)}; }
  static Raw encode(Value value) { return joined(narrow(value.first), narrow(value.second)); }
};

template <>
struct Element<DataType::kFloat8e5m2> : Float8 {
  static Value decode(Raw raw) {
    return {widened(_mm512_slli_epi16(raw, 8)),
            widened(_mm512_and_si512(raw, _mm512_set1_epi16(-0x100)))};
  }
  static Raw encode(Value value) {
    return joined(codes<8, 0x7b, 0x7e>(value.first), codes<8, 0x7b, 0x7e>(value.second));
  }
};

}  // namespace

constinit const KernelTable kAvx512Table = make_table<Element>();

}  // namespace catenary::kernels
