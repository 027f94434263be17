// Kernels for AVX2 with F16C. See loops.h for what an Element is and why nothing here is shared.
#include <immintrin.h>

#include "src/kernels/loops.h"

namespace catenary::kernels {
namespace {

template <std::size_t kElement>
struct Raw256 {
  using Raw = __m256i;
  static constexpr std::size_t kElementBytes = kElement;
  static constexpr int kUnroll = 4;
  static Raw load(const void* from) {
    return _mm256_loadu_si256(static_cast<const __m256i_u*>(from));
  }
  static void store(void* to, Raw raw) { _mm256_storeu_si256(static_cast<__m256i_u*>(to), raw); }
  static void stream(void* to, Raw raw) { _mm256_stream_si256(static_cast<__m256i*>(to), raw); }
  static void fence() { _mm_sfence(); }
  static Raw load_tail(const void* from, std::size_t bytes) {
    Raw raw = _mm256_setzero_si256();
    std::memcpy(&raw, from, bytes);
    return raw;
  }
  static void store_tail(void* to, Raw raw, std::size_t bytes) { std::memcpy(to, &raw, bytes); }
  static Raw splat(const Scalar& scalar) {
    long long bits;
    std::memcpy(&bits, scalar.bits, sizeof(bits));
    if constexpr (kElement == 1) return _mm256_set1_epi8(static_cast<char>(bits));
    if constexpr (kElement == 2) return _mm256_set1_epi16(static_cast<short>(bits));
    if constexpr (kElement == 4) return _mm256_set1_epi32(static_cast<int>(bits));
    if constexpr (kElement == 8) return _mm256_set1_epi64x(bits);
  }
};

template <std::size_t kElement>
struct Raw128 {
  using Raw = __m128i;
  static constexpr std::size_t kElementBytes = kElement;
  static constexpr int kUnroll = 2;
  static Raw load(const void* from) { return _mm_loadu_si128(static_cast<const __m128i_u*>(from)); }
  static void store(void* to, Raw raw) { _mm_storeu_si128(static_cast<__m128i_u*>(to), raw); }
  static void stream(void* to, Raw raw) { _mm_stream_si128(static_cast<__m128i*>(to), raw); }
  static void fence() { _mm_sfence(); }
  static Raw load_tail(const void* from, std::size_t bytes) {
    Raw raw = _mm_setzero_si128();
    std::memcpy(&raw, from, bytes);
    return raw;
  }
  static void store_tail(void* to, Raw raw, std::size_t bytes) { std::memcpy(to, &raw, bytes); }
  static Raw splat(const Scalar& scalar) {
    return _mm256_castsi256_si128(Raw256<kElement>::splat(scalar));
  }
};

template <class T>
struct IntegerElement : Raw256<sizeof(T)> {
  using Value = __m256i;
  using Integer = T;
  static Value decode(__m256i raw) { return raw; }
  static __m256i encode(Value value) { return value; }
};

struct Bytes8 {
  static __m256i add(__m256i a, __m256i b) { return _mm256_add_epi8(a, b); }
  // Products of the even and of the odd bytes, each in the low half of 16 bits.
  static __m256i mul(__m256i a, __m256i b) {
    const __m256i even = _mm256_mullo_epi16(a, b);
    const __m256i odd = _mm256_mullo_epi16(_mm256_srli_epi16(a, 8), _mm256_srli_epi16(b, 8));
    return _mm256_or_si256(_mm256_and_si256(even, _mm256_set1_epi16(0xff)),
                           _mm256_slli_epi16(odd, 8));
  }
};

struct Words32 {
  static __m256i add(__m256i a, __m256i b) { return _mm256_add_epi32(a, b); }
  static __m256i mul(__m256i a, __m256i b) { return _mm256_mullo_epi32(a, b); }
};

struct Words64 {
  static __m256i add(__m256i a, __m256i b) { return _mm256_add_epi64(a, b); }
  // low * low + ((low * high + high * low) << 32)
  static __m256i mul(__m256i a, __m256i b) {
    const __m256i crossed = _mm256_mullo_epi32(a, _mm256_shuffle_epi32(b, _MM_SHUFFLE(2, 3, 0, 1)));
    const __m256i sum = _mm256_add_epi32(crossed, _mm256_slli_epi64(crossed, 32));
    const __m256i high = _mm256_and_si256(sum, _mm256_set1_epi64x(-0x100000000));
    return _mm256_add_epi64(_mm256_mul_epu32(a, b), high);
  }
  static __m256i signed_max(__m256i a, __m256i b) {
    return _mm256_blendv_epi8(b, a, _mm256_cmpgt_epi64(a, b));
  }
  static __m256i signed_min(__m256i a, __m256i b) {
    return _mm256_blendv_epi8(a, b, _mm256_cmpgt_epi64(a, b));
  }
  static __m256i biased(__m256i a) { return _mm256_xor_si256(a, _mm256_set1_epi64x(INT64_MIN)); }
};

struct Floats32 {
  using Value = __m256;
  static Value add(Value a, Value b) { return _mm256_add_ps(a, b); }
  static Value mul(Value a, Value b) { return _mm256_mul_ps(a, b); }
  // The instruction gives its second operand for NaNs and for zeros of any sign, so both orders are
  // taken: they differ in zeros, where AND has the sign of max, and OR that of min. All bits set is
  // NaN.
  static Value max(Value a, Value b) {
    const Value greater = _mm256_and_ps(_mm256_max_ps(a, b), _mm256_max_ps(b, a));
    return _mm256_or_ps(greater, _mm256_cmp_ps(a, b, _CMP_UNORD_Q));
  }
  static Value min(Value a, Value b) {
    const Value lesser = _mm256_or_ps(_mm256_min_ps(a, b), _mm256_min_ps(b, a));
    return _mm256_or_ps(lesser, _mm256_cmp_ps(a, b, _CMP_UNORD_Q));
  }
  static Value canonical(Value value) {
    const Value nan = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fc00000));
    return _mm256_blendv_ps(value, nan, _mm256_cmp_ps(value, value, _CMP_UNORD_Q));
  }
};

struct Floats64 {
  using Value = __m256d;
  static Value add(Value a, Value b) { return _mm256_add_pd(a, b); }
  static Value mul(Value a, Value b) { return _mm256_mul_pd(a, b); }
  static Value max(Value a, Value b) {
    const Value greater = _mm256_and_pd(_mm256_max_pd(a, b), _mm256_max_pd(b, a));
    return _mm256_or_pd(greater, _mm256_cmp_pd(a, b, _CMP_UNORD_Q));
  }
  static Value min(Value a, Value b) {
    const Value lesser = _mm256_or_pd(_mm256_min_pd(a, b), _mm256_min_pd(b, a));
    return _mm256_or_pd(lesser, _mm256_cmp_pd(a, b, _CMP_UNORD_Q));
  }
  static Value canonical(Value value) {
    const Value nan = _mm256_castsi256_pd(_mm256_set1_epi64x(0x7ff8000000000000));
    return _mm256_blendv_pd(value, nan, _mm256_cmp_pd(value, value, _CMP_UNORD_Q));
  }
};

// Eight floats to the codes of an 8-bit float, in 32-bit lanes; SmallFloat::encode of convert.h.
template <int kMantissaBits, int kBias, int kLargestCode, int kNanCode>
struct SmallCode {
  static __m256i of(__m256 value) {
    constexpr int kShift = 23 - kMantissaBits;
    constexpr int kRebias = 127 - kBias;
    const __m256i bits = _mm256_castps_si256(value);
    const __m256i magnitude = _mm256_and_si256(bits, _mm256_set1_epi32(0x7fffffff));
    const __m256i sign = _mm256_and_si256(_mm256_srli_epi32(bits, 24), _mm256_set1_epi32(0x80));

    const __m256i magic = _mm256_set1_epi32((kRebias + 1 + kShift) << 23);
    const __m256i denormal =
        _mm256_sub_epi32(_mm256_castps_si256(_mm256_add_ps(_mm256_castsi256_ps(magnitude),
                                                           _mm256_castsi256_ps(magic))),
                         magic);

    const __m256i odd =
        _mm256_and_si256(_mm256_srli_epi32(magnitude, kShift), _mm256_set1_epi32(1));
    // Rebiasing ahead of the shift saves an instruction: it is a multiple of the shift's unit.
    const __m256i bias = _mm256_set1_epi32((1 << (kShift - 1)) - 1 - (kRebias << 23));
    const __m256i normal =
        _mm256_srai_epi32(_mm256_add_epi32(_mm256_add_epi32(magnitude, bias), odd), kShift);

    const __m256i is_denormal =
        _mm256_cmpgt_epi32(_mm256_set1_epi32((kRebias + 1) << 23), magnitude);
    const __m256i code = _mm256_min_epi32(_mm256_blendv_epi8(normal, denormal, is_denormal),
                                          _mm256_set1_epi32(kLargestCode));
    const __m256i is_nan = _mm256_cmpgt_epi32(magnitude, _mm256_set1_epi32(0x7f800000));
    return _mm256_blendv_epi8(_mm256_or_si256(code, sign), _mm256_set1_epi32(kNanCode), is_nan);
  }
};

// Sixteen codes in two vectors of 32-bit lanes to bytes in order.
__m128i narrowed(__m256i first, __m256i second) {
  const __m256i words = _mm256_permute4x64_epi64(_mm256_packus_epi32(first, second), 0xd8);
  return _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
}

template <DataType>
struct Element;

template <>
struct Element<DataType::kInt8> : IntegerElement<std::int8_t>, Bytes8 {
  static Value max(Value a, Value b) { return _mm256_max_epi8(a, b); }
  static Value min(Value a, Value b) { return _mm256_min_epi8(a, b); }
};

template <>
struct Element<DataType::kUint8> : IntegerElement<std::uint8_t>, Bytes8 {
  static Value max(Value a, Value b) { return _mm256_max_epu8(a, b); }
  static Value min(Value a, Value b) { return _mm256_min_epu8(a, b); }
};

template <>
struct Element<DataType::kInt32> : IntegerElement<std::int32_t>, Words32 {
  static Value max(Value a, Value b) { return _mm256_max_epi32(a, b); }
  static Value min(Value a, Value b) { return _mm256_min_epi32(a, b); }
};

template <>
struct Element<DataType::kUint32> : IntegerElement<std::uint32_t>, Words32 {
  static Value max(Value a, Value b) { return _mm256_max_epu32(a, b); }
  static Value min(Value a, Value b) { return _mm256_min_epu32(a, b); }
};

template <>
struct Element<DataType::kInt64> : IntegerElement<std::int64_t>, Words64 {
  static Value max(Value a, Value b) { return signed_max(a, b); }
  static Value min(Value a, Value b) { return signed_min(a, b); }
};

template <>
struct Element<DataType::kUint64> : IntegerElement<std::uint64_t>, Words64 {
  static Value max(Value a, Value b) { return biased(signed_max(biased(a), biased(b))); }
  static Value min(Value a, Value b) { return biased(signed_min(biased(a), biased(b))); }
};

template <>
struct Element<DataType::kFloat32> : Raw256<4>, Floats32 {
  static Value decode(Raw raw) { return _mm256_castsi256_ps(raw); }
  static Raw encode(Value value) { return _mm256_castps_si256(canonical(value)); }
};

template <>
struct Element<DataType::kFloat64> : Raw256<8>, Floats64 {
  static Value decode(Raw raw) { return _mm256_castsi256_pd(raw); }
  static Raw encode(Value value) { return _mm256_castpd_si256(canonical(value)); }
};

template <>
struct Element<DataType::kFloat16> : Raw128<2>, Floats32, Converted {
  static Value decode(Raw raw) { return _mm256_cvtph_ps(raw); }
  static Raw encode(Value value) {
    return _mm256_cvtps_ph(canonical(value), _MM_FROUND_TO_NEAREST_INT);
  }
};

// `first` has the even elements and `second` the odd ones: both are in place for a mask or a shift.
template <>
struct Element<DataType::kBfloat16> : Raw256<2>, Paired<Floats32> {
  static constexpr int kUnroll = 2;
  static Value decode(Raw raw) {
    return {_mm256_castsi256_ps(_mm256_slli_epi32(raw, 16)),
            _mm256_castsi256_ps(_mm256_and_si256(raw, _mm256_set1_epi32(-0x10000)))};
  }
  // Rounds in the upper half; what is left in the lower half is garbage.
  static __m256i rounded(__m256 value) {
    const __m256i bits = _mm256_castps_si256(Floats32::canonical(value));
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    return _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd);
  }
  static Raw encode(Value value) {
    return _mm256_blend_epi16(_mm256_srli_epi32(rounded(value.first), 16), rounded(value.second),
                              0xaa);
  }
};

// Both 8-bit floats are widened by way of half, which has the range of e5m2, and 2^-8 that of e4m3.
template <>
struct Element<DataType::kFloat8e4m3> : Raw128<1>, Paired<Floats32> {
  using Code = SmallCode<3, 7, 0x7e, 0x7f>;
  static Value decode(Raw raw) {
    const __m256i wide = _mm256_cvtepu8_epi16(raw);
    const __m256i magnitude = _mm256_and_si256(wide, _mm256_set1_epi16(0x7f));
    const __m256i sign = _mm256_slli_epi16(_mm256_xor_si256(wide, magnitude), 8);
    const __m256i nan = _mm256_cmpeq_epi16(magnitude, _mm256_set1_epi16(0x7f));
    const __m256i half =
        _mm256_or_si256(_mm256_or_si256(_mm256_slli_epi16(magnitude, 7), sign), nan);
    const __m256 rebias = _mm256_set1_ps(256.0f);
    return {_mm256_mul_ps(_mm256_cvtph_ps(_mm256_castsi256_si128(half)), rebias),
            _mm256_mul_ps(_mm256_cvtph_ps(_mm256_extracti128_si256(half, 1)), rebias)};
  }
  static Raw encode(Value value) { return narrowed(Code::of(value.first), Code::of(value.second)); }
};

template <>
struct Element<DataType::kFloat8e5m2> : Raw128<1>, Paired<Floats32> {
  using Code = SmallCode<2, 15, 0x7b, 0x7e>;
  static Value decode(Raw raw) {
    const __m256i half = _mm256_slli_epi16(_mm256_cvtepu8_epi16(raw), 8);
    return {_mm256_cvtph_ps(_mm256_castsi256_si128(half)),
            _mm256_cvtph_ps(_mm256_extracti128_si256(half, 1))};
  }
  static Raw encode(Value value) { return narrowed(Code::of(value.first), Code::of(value.second)); }
};

}  // namespace

constinit const KernelTable kAvx2Table = make_table<Element>();

}  // namespace catenary::kernels
