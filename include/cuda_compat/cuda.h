/*
 * The driver interface, as far as host programs touch it: its types, and the few calls that have a
 * meaning without a GPU.
 */
#ifndef CATENARY_CUDA_COMPAT_CUDA_H_
#define CATENARY_CUDA_COMPAT_CUDA_H_

#include <stddef.h>

#include "cuda_runtime_api.h"

#define CUDA_VERSION 12020

/* The library for programs that link with -lcuda makes symbols of these calls. */
#ifndef CATENARY_CUDA_CALL
#define CATENARY_CUDA_CALL static inline
#endif

typedef enum cudaError_enum {
  CUDA_SUCCESS = 0,
  CUDA_ERROR_INVALID_VALUE = 1,
  CUDA_ERROR_OUT_OF_MEMORY = 2,
  CUDA_ERROR_NOT_INITIALIZED = 3,
  CUDA_ERROR_NO_DEVICE = 100,
  CUDA_ERROR_INVALID_DEVICE = 101,
  CUDA_ERROR_INVALID_CONTEXT = 201,
  CUDA_ERROR_OPERATING_SYSTEM = 304,
  CUDA_ERROR_INVALID_HANDLE = 400,
  CUDA_ERROR_NOT_FOUND = 500,
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

CATENARY_CUDA_CALL CUresult cuInit(unsigned int flags) {
  return flags == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CATENARY_CUDA_CALL CUresult cuDriverGetVersion(int* version) {
  return (CUresult)cudaDriverGetVersion(version);
}
CATENARY_CUDA_CALL CUresult cuDeviceGetCount(int* count) {
  return (CUresult)cudaGetDeviceCount(count);
}
CATENARY_CUDA_CALL CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  catDeviceProperties known;
  const CUresult result = (CUresult)catGetDeviceProperties(&known, ordinal);
  if (result == CUDA_SUCCESS) *device = ordinal;
  return result;
}
CATENARY_CUDA_CALL CUresult cuDeviceGetName(char* name, int capacity, CUdevice device) {
  catDeviceProperties known;
  const CUresult result = (CUresult)catGetDeviceProperties(&known, device);
  if (result != CUDA_SUCCESS) return result;
  if (name == NULL || capacity <= 0) return CUDA_ERROR_INVALID_VALUE;
  snprintf(name, (size_t)capacity, "%s", known.name);
  return CUDA_SUCCESS;
}

/* A device has one context, its primary one, which is always there: a handle stands for the device,
 * counted from 1. */
static inline CUcontext catenaryContextOf(CUdevice device) {
  return (CUcontext)((size_t)device + 1);
}
static inline CUresult catenaryDeviceOf(CUcontext context, CUdevice* device) {
  const size_t number = (size_t)context;
  if (number == 0 || number > 0x7fffffff) return CUDA_ERROR_INVALID_CONTEXT;
  return cuDeviceGet(device, (int)(number - 1)) == CUDA_SUCCESS ? CUDA_SUCCESS
                                                                : CUDA_ERROR_INVALID_CONTEXT;
}
CATENARY_CUDA_CALL CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  CUdevice known;
  const CUresult result = cuDeviceGet(&known, device);
  if (context == NULL) return CUDA_ERROR_INVALID_VALUE;
  if (result == CUDA_SUCCESS) *context = catenaryContextOf(known);
  return result;
}
CATENARY_CUDA_CALL CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
  CUdevice known;
  return cuDeviceGet(&known, device);
}
CATENARY_CUDA_CALL CUresult cuCtxSetCurrent(CUcontext context) {
  CUdevice device;
  const CUresult result = catenaryDeviceOf(context, &device);
  return result == CUDA_SUCCESS ? (CUresult)cudaSetDevice(device) : result;
}
CATENARY_CUDA_CALL CUresult cuCtxGetDevice(CUdevice* device) {
  return (CUresult)cudaGetDevice(device);
}
CATENARY_CUDA_CALL CUresult cuCtxGetCurrent(CUcontext* context) {
  CUdevice device;
  const CUresult result = cuCtxGetDevice(&device);
  if (context == NULL) return CUDA_ERROR_INVALID_VALUE;
  if (result == CUDA_SUCCESS) *context = catenaryContextOf(device);
  return result;
}
CATENARY_CUDA_CALL CUresult cuCtxSynchronize(void) { return (CUresult)cudaDeviceSynchronize(); }

typedef enum CUpointer_attribute_enum {
  CU_POINTER_ATTRIBUTE_CONTEXT = 1,
  CU_POINTER_ATTRIBUTE_MEMORY_TYPE = 2,
  CU_POINTER_ATTRIBUTE_DEVICE_POINTER = 3,
  CU_POINTER_ATTRIBUTE_HOST_POINTER = 4,
  CU_POINTER_ATTRIBUTE_IS_MANAGED = 8,
  CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL = 9
} CUpointer_attribute;
typedef enum CUmemorytype_enum { CU_MEMORYTYPE_HOST = 1, CU_MEMORYTYPE_DEVICE = 2 } CUmemorytype;

/* As with CUDA, memory that is not from here is an invalid value. */
CATENARY_CUDA_CALL CUresult cuPointerGetAttribute(void* value, CUpointer_attribute attribute,
                                                  CUdeviceptr pointer) {
  catPointerAttributes known;
  void* const memory = (void*)(size_t)pointer;
  if (value == NULL || catPointerGetAttributes(&known, memory) != catSuccess ||
      known.type == catMemoryTypeUnregistered) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      *(CUcontext*)value = catenaryContextOf(known.device);
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      *(unsigned int*)value =
          known.type == catMemoryTypeHost ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
    case CU_POINTER_ATTRIBUTE_HOST_POINTER: *(void**)value = memory; return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED: *(unsigned char*)value = 0; return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: *(int*)value = known.device; return CUDA_SUCCESS;
  }
  return CUDA_ERROR_NOT_SUPPORTED;
}

CATENARY_CUDA_CALL CUresult cuGetErrorString(CUresult error, const char** text) {
  *text = cudaGetErrorString((cudaError_t)error);
  return CUDA_SUCCESS;
}

#include "cuda_driver_compat.h"
/* Comes last: it lists all calls. */
#include "cuda_entry_points_compat.h"

#endif /* CATENARY_CUDA_COMPAT_CUDA_H_ */
