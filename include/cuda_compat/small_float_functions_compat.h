/*
 * The functions of one and of two small floats that cuda_fp16.h and cuda_bf16.h have under the same
 * names: arithmetic that rounds once, comparisons, conversions from and to integers.
 */
#ifndef CATENARY_CUDA_COMPAT_SMALL_FLOAT_FUNCTIONS_COMPAT_H_
#define CATENARY_CUDA_COMPAT_SMALL_FLOAT_FUNCTIONS_COMPAT_H_

#include "small_floats_compat.h"
#include "vector_types.h"

#ifdef __cplusplus

#include <cmath>
#include <limits>

/* a + b, rounded to odd if it is inexact; see catenaryStickyFloat. */
static inline double catenaryStickySum(double a, double b) {
  const double sum = a + b;
  const double b_taken = sum - a;
  const double lost = (a - (sum - b_taken)) + (b - b_taken);
  if (lost == 0 || lost != lost) return sum;
  unsigned long long bits;
  memcpy(&bits, &sum, sizeof bits);
  if ((lost < 0) != (sum < 0)) --bits;
  bits |= 1u;
  double result;
  memcpy(&result, &bits, sizeof result);
  return result;
}

/* The nearest integer in range; 0 for NaN, as CUDA has it. */
template <typename Integer>
static inline Integer catenaryToInteger(float value) {
  if (value != value) return 0;
  if (value <= static_cast<float>(std::numeric_limits<Integer>::min())) {
    return std::numeric_limits<Integer>::min();
  }
  if (value >= static_cast<float>(std::numeric_limits<Integer>::max())) {
    return std::numeric_limits<Integer>::max();
  }
  return static_cast<Integer>(value);
}

/* Which of two, neither of them NaN, or else the one that is not. Zeros are ordered by their sign.
 */
template <typename T>
static inline T catenaryExtreme(T a, T b, bool largest) {
  const float x = a;
  const float y = b;
  if (x != x) return y != y ? T(x) : b;
  if (y != y) return a;
  if (x == y) a.__x = static_cast<unsigned short>(largest ? a.__x & b.__x : a.__x | b.__x);
  return x == y || (x > y) == largest ? a : b;
}

#define CATENARY_SMALL_FLOAT_COMPARISON(Type, name, operation) \
  static inline bool __h##name(Type a, Type b) {               \
    const float x = a, y = b;                                  \
    return x == x && y == y && x operation y;                  \
  }                                                            \
  /* The unordered one holds if either is NaN. */              \
  static inline bool __h##name##u(Type a, Type b) {            \
    const float x = a, y = b;                                  \
    return x != x || y != y || x operation y;                  \
  }

#define CATENARY_SMALL_FLOAT_INTEGER(Type, suffix, Integer, short_name)                    \
  static inline Type __##short_name##2##suffix##_rn(Integer value) { return Type(value); } \
  static inline Integer __##suffix##2##short_name##_rn(Type value) {                       \
    return catenaryToInteger<Integer>(std::nearbyint(float(value)));                       \
  }                                                                                        \
  static inline Integer __##suffix##2##short_name##_rz(Type value) {                       \
    return catenaryToInteger<Integer>(std::trunc(float(value)));                           \
  }

/* Sums, products and quotients are computed in double, of which one more rounding is harmless. */
#define CATENARY_SMALL_FLOAT_FUNCTIONS(Type, suffix)                                      \
  static inline Type __hadd(Type a, Type b) { return Type(double(a) + double(b)); }       \
  static inline Type __hsub(Type a, Type b) { return Type(double(a) - double(b)); }       \
  static inline Type __hmul(Type a, Type b) { return Type(double(a) * double(b)); }       \
  static inline Type __hdiv(Type a, Type b) { return Type(double(a) / double(b)); }       \
  static inline Type __hfma(Type a, Type b, Type c) {                                     \
    return Type(catenaryStickySum(double(a) * double(b), double(c)));                     \
  }                                                                                       \
  static inline Type __hneg(Type a) {                                                     \
    a.__x = static_cast<unsigned short>(a.__x ^ 0x8000u);                                 \
    return a;                                                                             \
  }                                                                                       \
  static inline Type __habs(Type a) {                                                     \
    a.__x = static_cast<unsigned short>(a.__x & 0x7fffu);                                 \
    return a;                                                                             \
  }                                                                                       \
  static inline Type __hmax(Type a, Type b) { return catenaryExtreme(a, b, true); }       \
  static inline Type __hmin(Type a, Type b) { return catenaryExtreme(a, b, false); }      \
  CATENARY_SMALL_FLOAT_COMPARISON(Type, eq, ==)                                           \
  CATENARY_SMALL_FLOAT_COMPARISON(Type, ne, !=)                                           \
  CATENARY_SMALL_FLOAT_COMPARISON(Type, lt, <)                                            \
  CATENARY_SMALL_FLOAT_COMPARISON(Type, le, <=)                                           \
  CATENARY_SMALL_FLOAT_COMPARISON(Type, gt, >)                                            \
  CATENARY_SMALL_FLOAT_COMPARISON(Type, ge, >=)                                           \
  static inline bool __hisnan(Type a) { return float(a) != float(a); }                    \
  static inline int __hisinf(Type a) {                                                    \
    if (float(a) == std::numeric_limits<float>::infinity()) return 1;                     \
    return float(a) == -std::numeric_limits<float>::infinity() ? -1 : 0;                  \
  }                                                                                       \
  static inline short __##suffix##_as_short(Type a) { return static_cast<short>(a.__x); } \
  static inline Type __short_as_##suffix(short bits) {                                    \
    Type a;                                                                               \
    a.__x = static_cast<unsigned short>(bits);                                            \
    return a;                                                                             \
  }                                                                                       \
  CATENARY_SMALL_FLOAT_INTEGER(Type, suffix, short, short)                                \
  CATENARY_SMALL_FLOAT_INTEGER(Type, suffix, unsigned short, ushort)                      \
  CATENARY_SMALL_FLOAT_INTEGER(Type, suffix, int, int)                                    \
  CATENARY_SMALL_FLOAT_INTEGER(Type, suffix, unsigned int, uint)                          \
  CATENARY_SMALL_FLOAT_INTEGER(Type, suffix, long long, ll)                               \
  CATENARY_SMALL_FLOAT_INTEGER(Type, suffix, unsigned long long, ull)

#define CATENARY_SMALL_FLOAT_PAIR_FUNCTIONS(Type, Pair)                                       \
  static inline Pair __hadd2(Pair a, Pair b) { return {__hadd(a.x, b.x), __hadd(a.y, b.y)}; } \
  static inline Pair __hsub2(Pair a, Pair b) { return {__hsub(a.x, b.x), __hsub(a.y, b.y)}; } \
  static inline Pair __hmul2(Pair a, Pair b) { return {__hmul(a.x, b.x), __hmul(a.y, b.y)}; } \
  static inline Pair __h2div(Pair a, Pair b) { return {__hdiv(a.x, b.x), __hdiv(a.y, b.y)}; } \
  static inline Pair __hmax2(Pair a, Pair b) { return {__hmax(a.x, b.x), __hmax(a.y, b.y)}; } \
  static inline Pair __hmin2(Pair a, Pair b) { return {__hmin(a.x, b.x), __hmin(a.y, b.y)}; } \
  static inline Pair __hneg2(Pair a) { return {__hneg(a.x), __hneg(a.y)}; }                   \
  static inline Pair __habs2(Pair a) { return {__habs(a.x), __habs(a.y)}; }                   \
  static inline Pair __hfma2(Pair a, Pair b, Pair c) {                                        \
    return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)};                                    \
  }                                                                                           \
  static inline float __low2float(Pair a) { return float(a.x); }                              \
  static inline float __high2float(Pair a) { return float(a.y); }

#endif

#endif /* CATENARY_CUDA_COMPAT_SMALL_FLOAT_FUNCTIONS_COMPAT_H_ */
