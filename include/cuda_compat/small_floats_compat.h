/*
 * Conversions between float and the small floating-point formats, bit by bit, for the cuda_fp16.h,
 * cuda_bf16.h and cuda_fp8.h beside it. Rounding is to nearest, ties to even.
 */
#ifndef CATENARY_CUDA_COMPAT_SMALL_FLOATS_COMPAT_H_
#define CATENARY_CUDA_COMPAT_SMALL_FLOATS_COMPAT_H_

#include <string.h>

/* A sign bit, then `exponent` bits, then `mantissa` bits. */
typedef struct catenarySmallFormat {
  int exponent;
  int mantissa;
  int has_infinity; /* if not, the topmost code is the only NaN */
} catenarySmallFormat;

static const catenarySmallFormat catenaryFp16 = {5, 10, 1};
static const catenarySmallFormat catenaryBf16 = {8, 7, 1};
static const catenarySmallFormat catenaryFp8E4m3 = {4, 3, 0};
static const catenarySmallFormat catenaryFp8E5m2 = {5, 2, 1};

static inline unsigned int catenaryFloatBits(float value) {
  unsigned int bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}
static inline float catenaryBitsFloat(unsigned int bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* `saturate`: what is too large becomes the largest finite value, infinity included. */
static inline unsigned int catenaryToSmall(float value, catenarySmallFormat format, int saturate) {
  const unsigned int bits = catenaryFloatBits(value);
  const unsigned int sign = (bits >> 31) << (format.exponent + format.mantissa);
  const unsigned int magnitude = bits & 0x7fffffffu;
  const unsigned int every = (1u << (format.exponent + format.mantissa)) - 1u;
  const unsigned int infinity = every - ((1u << format.mantissa) - 1u);
  const unsigned int largest = format.has_infinity ? infinity - 1u : every - 1u;
  const int bias = (1 << (format.exponent - 1)) - 1;
  const int exponent = magnitude < 0x800000u ? -126 : (int)(magnitude >> 23) - 127;
  const unsigned int fraction = (magnitude & 0x7fffffu) | (magnitude < 0x800000u ? 0u : 0x800000u);
  const int below = exponent < 1 - bias ? 1 - bias - exponent : 0; /* steps into the subnormals */
  const int shift = 23 - format.mantissa + below;
  unsigned int code;
  if (magnitude > 0x7f800000u) return every; /* NaN */
  if (shift > 24) {
    code = 0;
  } else {
    const unsigned int rest = fraction & ((1u << shift) - 1u);
    const unsigned int half = 1u << (shift - 1);
    code = fraction >> shift;
    if (rest > half || (rest == half && (code & 1u) != 0)) ++code;
    /* The leading one of a normal number is not stored; a carry moves on to the next exponent. */
    if (below == 0) code += (unsigned int)(exponent + bias - 1) << format.mantissa;
  }
  if (magnitude == 0x7f800000u || code > largest) {
    code = saturate ? largest : format.has_infinity ? infinity : every;
  }
  return sign | code;
}

/* Rounds so that rounding once more, to a small format, is right: toward zero, and to odd if that
 * is inexact, so that nothing that was above or below a tie becomes one. */
static inline float catenaryStickyFloat(double value) {
  const float near = (float)value;
  const double magnitude = value < 0 ? -value : value;
  unsigned int bits = catenaryFloatBits(near);
  if ((double)near == value || value != value) return near;
  if ((double)catenaryBitsFloat(bits & 0x7fffffffu) > magnitude) --bits;
  return catenaryBitsFloat(bits | 1u);
}

static inline float catenaryFromSmall(unsigned int bits, catenarySmallFormat format) {
  const unsigned int every = (1u << (format.exponent + format.mantissa)) - 1u;
  const unsigned int sign = ((bits >> (format.exponent + format.mantissa)) & 1u) << 31;
  const unsigned int magnitude = bits & every;
  const unsigned int exponent = magnitude >> format.mantissa;
  const unsigned int fraction = magnitude & ((1u << format.mantissa) - 1u);
  const int bias = (1 << (format.exponent - 1)) - 1;
  const int is_top = exponent == (1u << format.exponent) - 1u;
  if (format.has_infinity ? is_top : magnitude == every) {
    if (format.has_infinity && fraction == 0) return catenaryBitsFloat(sign | 0x7f800000u);
    return catenaryBitsFloat(sign | 0x7fc00000u | (fraction << (23 - format.mantissa)));
  }
  if (exponent == 0) { /* fraction * 2^(1 - bias - mantissa), made of two exact factors */
    const float unit = catenaryBitsFloat((unsigned int)(128 - bias) << 23);
    const float step = catenaryBitsFloat((unsigned int)(127 - format.mantissa) << 23);
    const float result = (float)fraction * step * unit;
    return catenaryBitsFloat(sign | catenaryFloatBits(result));
  }
  return catenaryBitsFloat(sign | (unsigned int)((int)exponent - bias + 127) << 23 |
                           fraction << (23 - format.mantissa));
}

#ifdef __cplusplus
#include <type_traits>

template <typename T>
static inline float catenaryStickyOf(T value, std::true_type /* is a float */) {
  return catenaryStickyFloat(static_cast<double>(value));
}
/* The magnitude of an integer has up to 64 bits, of which a double takes 53. */
template <typename T>
static inline float catenaryStickyOf(T value, std::false_type) {
  const bool negative = !(value > T(0)) && value != T(0);
  const unsigned long long whole = static_cast<unsigned long long>(value);
  const unsigned long long magnitude = negative ? 0 - whole : whole;
  const unsigned long long lost = magnitude >> 53 != 0 ? magnitude & 0x7ffu : 0;
  const unsigned long long kept = lost != 0 ? (magnitude - lost) | 0x800u : magnitude;
  const float result = catenaryStickyFloat(static_cast<double>(kept));
  return negative ? -result : result;
}

/* What __half and __nv_bfloat16 can do: be made from any number, be read as a float, be assigned to
 * by arithmetic. Arithmetic itself happens in float. */
#define CATENARY_SMALL_FLOAT_MEMBERS(Type, format)                                                \
  Type() = default;                                                                               \
  template <typename T, typename = typename std::enable_if<std::is_arithmetic<T>::value>::type>   \
  Type(T value)                                                                                   \
      : __x(static_cast<unsigned short>(                                                          \
            catenaryToSmall(catenaryStickyOf(value, std::is_floating_point<T>()), format, 0))) {} \
  operator float() const { return catenaryFromSmall(__x, format); }                               \
  Type& operator+=(const Type& other) { return *this = Type(float(*this) + float(other)); }       \
  Type& operator-=(const Type& other) { return *this = Type(float(*this) - float(other)); }       \
  Type& operator*=(const Type& other) { return *this = Type(float(*this) * float(other)); }       \
  Type& operator/=(const Type& other) { return *this = Type(float(*this) / float(other)); }
#endif

#endif /* CATENARY_CUDA_COMPAT_SMALL_FLOATS_COMPAT_H_ */
