/*
 * The driver interface, as far as host programs touch it: its types, and the few calls that have a
 * meaning without a GPU.
 */
#ifndef CATENARY_CUDA_COMPAT_CUDA_H_
#define CATENARY_CUDA_COMPAT_CUDA_H_

#include <stddef.h>

#include "cuda_runtime_api.h"

#define CUDA_VERSION 12020

typedef enum cudaError_enum {
  CUDA_SUCCESS = 0,
  CUDA_ERROR_INVALID_VALUE = 1,
  CUDA_ERROR_OUT_OF_MEMORY = 2,
  CUDA_ERROR_NOT_INITIALIZED = 3,
  CUDA_ERROR_NO_DEVICE = 100,
  CUDA_ERROR_INVALID_DEVICE = 101,
  CUDA_ERROR_OPERATING_SYSTEM = 304,
  CUDA_ERROR_INVALID_HANDLE = 400,
  CUDA_ERROR_NOT_READY = 600,
  CUDA_ERROR_NOT_PERMITTED = 800,
  CUDA_ERROR_NOT_SUPPORTED = 801,
  CUDA_ERROR_UNKNOWN = 999
} CUresult;

typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st* CUcontext;
typedef struct CUstream_st* CUstream;
typedef struct CUevent_st* CUevent;

static inline CUresult cuInit(unsigned int flags) {
  return flags == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
static inline CUresult cuDriverGetVersion(int* version) {
  return (CUresult)cudaDriverGetVersion(version);
}
static inline CUresult cuDeviceGetCount(int* count) { return (CUresult)cudaGetDeviceCount(count); }
static inline CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  catDeviceProperties known;
  const CUresult result = (CUresult)catGetDeviceProperties(&known, ordinal);
  if (result == CUDA_SUCCESS) *device = ordinal;
  return result;
}
static inline CUresult cuDeviceGetName(char* name, int capacity, CUdevice device) {
  catDeviceProperties known;
  const CUresult result = (CUresult)catGetDeviceProperties(&known, device);
  if (result != CUDA_SUCCESS) return result;
  if (name == NULL || capacity <= 0) return CUDA_ERROR_INVALID_VALUE;
  snprintf(name, (size_t)capacity, "%s", known.name);
  return CUDA_SUCCESS;
}
static inline CUresult cuGetErrorString(CUresult error, const char** text) {
  *text = catGetErrorString((catError_t)error);
  return CUDA_SUCCESS;
}

#endif /* CATENARY_CUDA_COMPAT_CUDA_H_ */
