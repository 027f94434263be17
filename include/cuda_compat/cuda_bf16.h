/* bfloat16 numbers on the host, with CUDA's names. */
#ifndef CATENARY_CUDA_COMPAT_CUDA_BF16_H_
#define CATENARY_CUDA_COMPAT_CUDA_BF16_H_

#include "cuda_fp16.h"
#include "small_float_functions_compat.h"
#include "small_floats_compat.h"

#define __CUDA_BF16_TYPES_EXIST__

typedef struct __nv_bfloat16_raw {
  unsigned short x;
} __nv_bfloat16_raw;

#ifdef __cplusplus

struct __nv_bfloat16 {
  CATENARY_SMALL_FLOAT_MEMBERS(__nv_bfloat16, catenaryBf16)
  __nv_bfloat16(const __nv_bfloat16_raw& raw) : __x(raw.x) {}
  operator __nv_bfloat16_raw() const { return {__x}; }

  unsigned short __x;
};
typedef __nv_bfloat16 nv_bfloat16;
struct __nv_bfloat162 {
  __nv_bfloat16 x, y;
};
typedef __nv_bfloat162 nv_bfloat162;

static inline __nv_bfloat16 catenaryMakeBfloat16(unsigned int bits) {
  return __nv_bfloat16(__nv_bfloat16_raw{static_cast<unsigned short>(bits)});
}
static inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 value) { return value.__x; }

#else

typedef __nv_bfloat16_raw __nv_bfloat16;
static inline __nv_bfloat16 catenaryMakeBfloat16(unsigned int bits) {
  const __nv_bfloat16 value = {(unsigned short)bits};
  return value;
}
static inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 value) { return value.x; }

#endif

static inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short bits) {
  return catenaryMakeBfloat16(bits);
}
static inline __nv_bfloat16 __float2bfloat16(float value) {
  return catenaryMakeBfloat16(catenaryToSmall(value, catenaryBf16, 0));
}
static inline __nv_bfloat16 __float2bfloat16_rn(float value) { return __float2bfloat16(value); }
static inline __nv_bfloat16 __double2bfloat16(double value) {
  return catenaryMakeBfloat16(catenaryToSmall(catenaryStickyFloat(value), catenaryBf16, 0));
}
static inline float __bfloat162float(__nv_bfloat16 value) {
  return catenaryFromSmall(__bfloat16_as_ushort(value), catenaryBf16);
}

#ifdef __cplusplus

CATENARY_SMALL_FLOAT_FUNCTIONS(__nv_bfloat16, bfloat16)
CATENARY_SMALL_FLOAT_PAIR_FUNCTIONS(__nv_bfloat16, __nv_bfloat162)

static inline __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 low, __nv_bfloat16 high) {
  return {low, high};
}
static inline __nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16 value) { return {value, value}; }
static inline __nv_bfloat162 __float2bfloat162_rn(float value) { return {value, value}; }
static inline __nv_bfloat162 __floats2bfloat162_rn(float low, float high) { return {low, high}; }
static inline __nv_bfloat162 __float22bfloat162_rn(float2 value) { return {value.x, value.y}; }
static inline float2 __bfloat1622float2(__nv_bfloat162 pair) { return {pair.x, pair.y}; }
static inline __nv_bfloat16 __low2bfloat16(__nv_bfloat162 pair) { return pair.x; }
static inline __nv_bfloat16 __high2bfloat16(__nv_bfloat162 pair) { return pair.y; }

#endif

#endif /* CATENARY_CUDA_COMPAT_CUDA_BF16_H_ */
