/* The short vectors that programs for CUDA expect. */
#ifndef CATENARY_CUDA_COMPAT_VECTOR_TYPES_H_
#define CATENARY_CUDA_COMPAT_VECTOR_TYPES_H_

typedef struct uint3 {
  unsigned int x, y, z;
} uint3;
typedef struct int2 {
  int x, y;
} int2;
typedef struct int4 {
  int x, y, z, w;
} int4;
typedef struct uint2 {
  unsigned int x, y;
} uint2;
typedef struct uint4 {
  unsigned int x, y, z, w;
} uint4;
typedef struct float2 {
  float x, y;
} float2;
typedef struct float4 {
  float x, y, z, w;
} float4;
typedef struct double2 {
  double x, y;
} double2;

typedef struct dim3 {
  unsigned int x, y, z;
#ifdef __cplusplus
  constexpr dim3(unsigned int x_ = 1, unsigned int y_ = 1, unsigned int z_ = 1)
      : x(x_), y(y_), z(z_) {}
#endif
} dim3;

#endif /* CATENARY_CUDA_COMPAT_VECTOR_TYPES_H_ */
