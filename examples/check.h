/*
 * What every example needs: calls that must succeed, and a verdict. A failed call prints where and
 * why and ends the process; ncclGetLastError says it in full, with ranks and remedy.
 */
#ifndef EXAMPLES_CHECK_H_
#define EXAMPLES_CHECK_H_

#include <cuda_runtime.h>
#include <nccl.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK_CUDA(call)                                            \
  do {                                                              \
    const cudaError_t check_result = (call);                        \
    if (check_result != cudaSuccess) {                              \
      fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, \
              cudaGetErrorString(check_result));                    \
      exit(1);                                                      \
    }                                                               \
  } while (0)

#define CHECK_NCCL(call)                                                 \
  do {                                                                   \
    const ncclResult_t check_result = (call);                            \
    if (check_result != ncclSuccess) {                                   \
      fprintf(stderr, "%s:%d: %s: %s (%s)\n", __FILE__, __LINE__, #call, \
              ncclGetErrorString(check_result), ncclGetLastError(NULL)); \
      exit(1);                                                           \
    }                                                                    \
  } while (0)

/* Copies `count` floats from the device and compares each with `expected`; exits if one differs. */
static inline void check_values(const char* what, const float* device_values, size_t count,
                                float expected) {
  float* values = (float*)malloc(count * sizeof(float));
  if (values == NULL) exit(1);
  CHECK_CUDA(cudaMemcpy(values, device_values, count * sizeof(float), cudaMemcpyDeviceToHost));
  for (size_t i = 0; i < count; ++i) {
    if (values[i] != expected) {
      fprintf(stderr, "%s: element %zu is %g, expected %g\n", what, i, (double)values[i],
              (double)expected);
      exit(1);
    }
  }
  free(values);
}

/* Device memory with `count` floats, all `value`. */
static inline float* device_floats(size_t count, float value) {
  float* values = (float*)malloc(count * sizeof(float));
  float* device_values = NULL;
  if (values == NULL) exit(1);
  for (size_t i = 0; i < count; ++i) values[i] = value;
  CHECK_CUDA(cudaMalloc((void**)&device_values, count * sizeof(float)));
  CHECK_CUDA(cudaMemcpy(device_values, values, count * sizeof(float), cudaMemcpyHostToDevice));
  free(values);
  return device_values;
}

#endif
