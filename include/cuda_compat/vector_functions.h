/* What makes short vectors: make_int2(x, y) and the like. */
#ifndef CATENARY_CUDA_COMPAT_VECTOR_FUNCTIONS_H_
#define CATENARY_CUDA_COMPAT_VECTOR_FUNCTIONS_H_

#include "vector_types.h"

#define CATENARY_MAKE_VECTORS(NAME, TYPE)                                \
  static inline NAME##1 make_##NAME##1(TYPE x) {                         \
    NAME##1 made = {x};                                                  \
    return made;                                                         \
  }                                                                      \
  static inline NAME##2 make_##NAME##2(TYPE x, TYPE y) {                 \
    NAME##2 made = {x, y};                                               \
    return made;                                                         \
  }                                                                      \
  static inline NAME##3 make_##NAME##3(TYPE x, TYPE y, TYPE z) {         \
    NAME##3 made = {x, y, z};                                            \
    return made;                                                         \
  }                                                                      \
  static inline NAME##4 make_##NAME##4(TYPE x, TYPE y, TYPE z, TYPE w) { \
    NAME##4 made = {x, y, z, w};                                         \
    return made;                                                         \
  }

CATENARY_MAKE_VECTORS(char, signed char)
CATENARY_MAKE_VECTORS(uchar, unsigned char)
CATENARY_MAKE_VECTORS(short, short)
CATENARY_MAKE_VECTORS(ushort, unsigned short)
CATENARY_MAKE_VECTORS(int, int)
CATENARY_MAKE_VECTORS(uint, unsigned int)
CATENARY_MAKE_VECTORS(long, long)
CATENARY_MAKE_VECTORS(ulong, unsigned long)
CATENARY_MAKE_VECTORS(longlong, long long)
CATENARY_MAKE_VECTORS(ulonglong, unsigned long long)
CATENARY_MAKE_VECTORS(float, float)
CATENARY_MAKE_VECTORS(double, double)

#endif /* CATENARY_CUDA_COMPAT_VECTOR_FUNCTIONS_H_ */
