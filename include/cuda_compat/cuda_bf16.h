/* bfloat16 numbers on the host, with CUDA's names. */
#ifndef CATENARY_CUDA_COMPAT_CUDA_BF16_H_
#define CATENARY_CUDA_COMPAT_CUDA_BF16_H_

#include "cuda_fp16.h"
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
  return __float2bfloat16((float)value);
}
static inline float __bfloat162float(__nv_bfloat16 value) {
  return catenaryFromSmall(__bfloat16_as_ushort(value), catenaryBf16);
}

#endif /* CATENARY_CUDA_COMPAT_CUDA_BF16_H_ */
