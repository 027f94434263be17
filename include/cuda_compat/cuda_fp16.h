/* Half-precision numbers on the host, with CUDA's names. */
#ifndef CATENARY_CUDA_COMPAT_CUDA_FP16_H_
#define CATENARY_CUDA_COMPAT_CUDA_FP16_H_

#include "host_defines.h"
#include "small_float_functions_compat.h"
#include "small_floats_compat.h"

#define __CUDA_FP16_TYPES_EXIST__

typedef struct __half_raw {
  unsigned short x;
} __half_raw;

#ifdef __cplusplus

struct __half {
  CATENARY_SMALL_FLOAT_MEMBERS(__half, catenaryFp16)
  __half(const __half_raw& raw) : __x(raw.x) {}
  operator __half_raw() const { return {__x}; }

  unsigned short __x;
};
typedef __half half;
struct __half2 {
  __half x, y;
};
typedef __half2 half2;

static inline __half catenaryMakeHalf(unsigned int bits) {
  return __half(__half_raw{static_cast<unsigned short>(bits)});
}
static inline unsigned short __half_as_ushort(__half value) { return value.__x; }
static inline __half __ushort_as_half(unsigned short bits) { return catenaryMakeHalf(bits); }

#else

typedef __half_raw __half;
static inline __half catenaryMakeHalf(unsigned int bits) {
  const __half value = {(unsigned short)bits};
  return value;
}
static inline unsigned short __half_as_ushort(__half value) { return value.x; }
static inline __half __ushort_as_half(unsigned short bits) { return catenaryMakeHalf(bits); }

#endif

static inline __half __float2half(float value) {
  return catenaryMakeHalf(catenaryToSmall(value, catenaryFp16, 0));
}
static inline __half __float2half_rn(float value) { return __float2half(value); }
static inline __half __double2half(double value) {
  return catenaryMakeHalf(catenaryToSmall(catenaryStickyFloat(value), catenaryFp16, 0));
}
static inline float __half2float(__half value) {
  return catenaryFromSmall(__half_as_ushort(value), catenaryFp16);
}

#ifdef __cplusplus

CATENARY_SMALL_FLOAT_FUNCTIONS(__half, half)
CATENARY_SMALL_FLOAT_PAIR_FUNCTIONS(__half, __half2)

static inline __half2 __halves2half2(__half low, __half high) { return {low, high}; }
static inline __half2 __half2half2(__half value) { return {value, value}; }
static inline __half2 __float2half2_rn(float value) { return {value, value}; }
static inline __half2 __floats2half2_rn(float low, float high) { return {low, high}; }
static inline __half2 __float22half2_rn(float2 value) { return {value.x, value.y}; }
static inline float2 __half22float2(__half2 pair) { return {pair.x, pair.y}; }
static inline __half __low2half(__half2 pair) { return pair.x; }
static inline __half __high2half(__half2 pair) { return pair.y; }

#endif

#endif /* CATENARY_CUDA_COMPAT_CUDA_FP16_H_ */
