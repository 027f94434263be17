/* The words that mark device code, which mean nothing on a host. */
#ifndef CATENARY_CUDA_COMPAT_HOST_DEFINES_H_
#define CATENARY_CUDA_COMPAT_HOST_DEFINES_H_

#define __host__
#define __device__
#define __global__
#define __shared__
#define __constant__
#define __managed__
#define __launch_bounds__(...)
#define __forceinline__ inline __attribute__((always_inline))
#define __align__(n) __attribute__((aligned(n)))
#define CUDARTAPI
#define CUDART_CB

#endif /* CATENARY_CUDA_COMPAT_HOST_DEFINES_H_ */
