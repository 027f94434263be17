/*
 * Where a thread of a kernel finds itself. There are no kernels; but code that is shared with them
 * compiles, and a program that calls it as a function is the one thread of the one block.
 */
#ifndef CATENARY_CUDA_COMPAT_DEVICE_LAUNCH_PARAMETERS_H_
#define CATENARY_CUDA_COMPAT_DEVICE_LAUNCH_PARAMETERS_H_

#include "vector_types.h"

#define CATENARY_OF_THREAD static const __attribute__((unused))
CATENARY_OF_THREAD uint3 threadIdx = {0, 0, 0};
CATENARY_OF_THREAD uint3 blockIdx = {0, 0, 0};
CATENARY_OF_THREAD dim3 blockDim = {1, 1, 1};
CATENARY_OF_THREAD dim3 gridDim = {1, 1, 1};
CATENARY_OF_THREAD int warpSize = 1;

#endif /* CATENARY_CUDA_COMPAT_DEVICE_LAUNCH_PARAMETERS_H_ */
