/* 8-bit floats on the host, with CUDA's names. Constructors saturate, as CUDA's do. */
#ifndef CATENARY_CUDA_COMPAT_CUDA_FP8_H_
#define CATENARY_CUDA_COMPAT_CUDA_FP8_H_

#include "cuda_bf16.h"
#include "cuda_fp16.h"
#include "small_floats_compat.h"

#define __CUDA_FP8_TYPES_EXIST__

typedef unsigned char __nv_fp8_storage_t;
typedef enum __nv_saturation_t { __NV_NOSAT, __NV_SATFINITE } __nv_saturation_t;
typedef enum __nv_fp8_interpretation_t { __NV_E4M3, __NV_E5M2 } __nv_fp8_interpretation_t;

static inline __nv_fp8_storage_t __nv_cvt_double_to_fp8(double value, __nv_saturation_t saturate,
                                                        __nv_fp8_interpretation_t kind) {
  return (__nv_fp8_storage_t)catenaryToSmall(catenaryStickyFloat(value),
                                             kind == __NV_E4M3 ? catenaryFp8E4m3 : catenaryFp8E5m2,
                                             saturate == __NV_SATFINITE);
}
static inline __nv_fp8_storage_t __nv_cvt_float_to_fp8(float value, __nv_saturation_t saturate,
                                                       __nv_fp8_interpretation_t kind) {
  return __nv_cvt_double_to_fp8(value, saturate, kind);
}

#ifdef __cplusplus

/* From any number, or from anything that converts to double. */
#define CATENARY_FP8_MEMBERS(Type, format, kind)                                                   \
  Type() = default;                                                                                \
  template <typename T, typename = typename std::enable_if<std::is_convertible<T, float>::value && \
                                                           !std::is_same<T, Type>::value>::type>   \
  explicit Type(const T& value)                                                                    \
      : __x(__nv_cvt_double_to_fp8(static_cast<double>(value), __NV_SATFINITE, kind)) {}           \
  explicit operator float() const { return catenaryFromSmall(__x, format); }                       \
  explicit operator double() const { return catenaryFromSmall(__x, format); }                      \
  explicit operator __half() const { return __half(catenaryFromSmall(__x, format)); }              \
  explicit operator __nv_bfloat16() const { return __nv_bfloat16(catenaryFromSmall(__x, format)); }

struct __nv_fp8_e4m3 {
  CATENARY_FP8_MEMBERS(__nv_fp8_e4m3, catenaryFp8E4m3, __NV_E4M3)
  __nv_fp8_storage_t __x;
};
struct __nv_fp8_e5m2 {
  CATENARY_FP8_MEMBERS(__nv_fp8_e5m2, catenaryFp8E5m2, __NV_E5M2)
  __nv_fp8_storage_t __x;
};

#else

typedef struct __nv_fp8_e4m3 {
  __nv_fp8_storage_t __x;
} __nv_fp8_e4m3;
typedef struct __nv_fp8_e5m2 {
  __nv_fp8_storage_t __x;
} __nv_fp8_e5m2;

#endif

#endif /* CATENARY_CUDA_COMPAT_CUDA_FP8_H_ */
