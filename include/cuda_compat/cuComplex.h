/* Complex numbers, as pairs of a real and an imaginary part. */
#ifndef CATENARY_CUDA_COMPAT_CU_COMPLEX_H_
#define CATENARY_CUDA_COMPAT_CU_COMPLEX_H_

#include <math.h>

#include "vector_types.h"

typedef float2 cuFloatComplex;
typedef double2 cuDoubleComplex;
typedef cuFloatComplex cuComplex;

static inline cuFloatComplex make_cuFloatComplex(float re, float im) {
  cuFloatComplex made = {re, im};
  return made;
}
static inline cuComplex make_cuComplex(float re, float im) { return make_cuFloatComplex(re, im); }
static inline cuDoubleComplex make_cuDoubleComplex(double re, double im) {
  cuDoubleComplex made = {re, im};
  return made;
}
static inline cuDoubleComplex cuComplexFloatToDouble(cuFloatComplex a) {
  return make_cuDoubleComplex(a.x, a.y);
}
static inline cuFloatComplex cuComplexDoubleToFloat(cuDoubleComplex a) {
  return make_cuFloatComplex((float)a.x, (float)a.y);
}

static inline float cuCrealf(cuFloatComplex a) { return a.x; }
static inline float cuCimagf(cuFloatComplex a) { return a.y; }
static inline float cuCabsf(cuFloatComplex a) { return hypotf(a.x, a.y); }
static inline cuFloatComplex cuConjf(cuFloatComplex a) { return make_cuFloatComplex(a.x, -a.y); }
static inline cuFloatComplex cuCaddf(cuFloatComplex a, cuFloatComplex b) {
  return make_cuFloatComplex(a.x + b.x, a.y + b.y);
}
static inline cuFloatComplex cuCsubf(cuFloatComplex a, cuFloatComplex b) {
  return make_cuFloatComplex(a.x - b.x, a.y - b.y);
}
static inline cuFloatComplex cuCmulf(cuFloatComplex a, cuFloatComplex b) {
  return make_cuFloatComplex(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}

static inline double cuCreal(cuDoubleComplex a) { return a.x; }
static inline double cuCimag(cuDoubleComplex a) { return a.y; }
static inline double cuCabs(cuDoubleComplex a) { return hypot(a.x, a.y); }
static inline cuDoubleComplex cuConj(cuDoubleComplex a) { return make_cuDoubleComplex(a.x, -a.y); }
static inline cuDoubleComplex cuCadd(cuDoubleComplex a, cuDoubleComplex b) {
  return make_cuDoubleComplex(a.x + b.x, a.y + b.y);
}
static inline cuDoubleComplex cuCsub(cuDoubleComplex a, cuDoubleComplex b) {
  return make_cuDoubleComplex(a.x - b.x, a.y - b.y);
}
static inline cuDoubleComplex cuCmul(cuDoubleComplex a, cuDoubleComplex b) {
  return make_cuDoubleComplex(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}
/* Divides by the larger part of b first, so that squares neither overflow nor vanish. */
static inline cuDoubleComplex cuCdiv(cuDoubleComplex a, cuDoubleComplex b) {
  if (fabs(b.x) >= fabs(b.y)) {
    const double ratio = b.y / b.x, whole = b.x + b.y * ratio;
    return make_cuDoubleComplex((a.x + a.y * ratio) / whole, (a.y - a.x * ratio) / whole);
  } else {
    const double ratio = b.x / b.y, whole = b.x * ratio + b.y;
    return make_cuDoubleComplex((a.x * ratio + a.y) / whole, (a.y * ratio - a.x) / whole);
  }
}
static inline cuFloatComplex cuCdivf(cuFloatComplex a, cuFloatComplex b) {
  return cuComplexDoubleToFloat(cuCdiv(cuComplexFloatToDouble(a), cuComplexFloatToDouble(b)));
}
/* a * b + c */
static inline cuFloatComplex cuCfmaf(cuFloatComplex a, cuFloatComplex b, cuFloatComplex c) {
  return cuCaddf(cuCmulf(a, b), c);
}
static inline cuDoubleComplex cuCfma(cuDoubleComplex a, cuDoubleComplex b, cuDoubleComplex c) {
  return cuCadd(cuCmul(a, b), c);
}

#endif /* CATENARY_CUDA_COMPAT_CU_COMPLEX_H_ */
