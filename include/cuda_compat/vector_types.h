/* The short vectors that programs for CUDA expect, with CUDA's alignments. */
#ifndef CATENARY_CUDA_COMPAT_VECTOR_TYPES_H_
#define CATENARY_CUDA_COMPAT_VECTOR_TYPES_H_

#include "host_defines.h"

/* NAME1 to NAME4 of TYPE. Three are aligned as one is; two and four as a machine loads them. */
#define CATENARY_VECTORS(NAME, TYPE, ALIGN2, ALIGN4) \
  typedef struct NAME##1 {                           \
    TYPE x;                                          \
  }                                                  \
  NAME##1;                                           \
  typedef struct __align__(ALIGN2) NAME##2 {         \
    TYPE x, y;                                       \
  }                                                  \
  NAME##2;                                           \
  typedef struct NAME##3 {                           \
    TYPE x, y, z;                                    \
  }                                                  \
  NAME##3;                                           \
  typedef struct __align__(ALIGN4) NAME##4 {         \
    TYPE x, y, z, w;                                 \
  }                                                  \
  NAME##4;

CATENARY_VECTORS(char, signed char, 2, 4)
CATENARY_VECTORS(uchar, unsigned char, 2, 4)
CATENARY_VECTORS(short, short, 4, 8)
CATENARY_VECTORS(ushort, unsigned short, 4, 8)
CATENARY_VECTORS(int, int, 8, 16)
CATENARY_VECTORS(uint, unsigned int, 8, 16)
CATENARY_VECTORS(long, long, 16, 16)
CATENARY_VECTORS(ulong, unsigned long, 16, 16)
CATENARY_VECTORS(longlong, long long, 16, 16)
CATENARY_VECTORS(ulonglong, unsigned long long, 16, 16)
CATENARY_VECTORS(float, float, 8, 16)
CATENARY_VECTORS(double, double, 16, 16)

typedef struct dim3 {
  unsigned int x, y, z;
#ifdef __cplusplus
  constexpr dim3(unsigned int x_ = 1, unsigned int y_ = 1, unsigned int z_ = 1)
      : x(x_), y(y_), z(z_) {}
  constexpr dim3(uint3 size) : x(size.x), y(size.y), z(size.z) {}
  constexpr operator uint3() const { return uint3{x, y, z}; }
#endif
} dim3;

#endif /* CATENARY_CUDA_COMPAT_VECTOR_TYPES_H_ */
