/* The switch of CUDA's profilers. As with CUDA where none is attached, it switches nothing. */
#ifndef CATENARY_CUDA_COMPAT_CUDA_PROFILER_API_H_
#define CATENARY_CUDA_COMPAT_CUDA_PROFILER_API_H_

#include "cuda_runtime_api.h"

CATENARY_CUDART_CALL cudaError_t cudaProfilerStart(void) { return cudaSuccess; }
CATENARY_CUDART_CALL cudaError_t cudaProfilerStop(void) { return cudaSuccess; }

#endif /* CATENARY_CUDA_COMPAT_CUDA_PROFILER_API_H_ */
