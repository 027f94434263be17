/*
 * The CUDA runtime, as far as programs without kernels use it, on Catenary's simulated devices.
 *
 * Put include/cuda_compat before anything else on the include path, and such a program builds with
 * a plain C or C++ compiler. All memory is host memory, so the kinds of copies are all the same.
 * What cannot work here (kernels, graphs, handles for other processes) returns
 * cudaErrorNotSupported; nothing pretends.
 */
#ifndef CATENARY_CUDA_COMPAT_CUDA_RUNTIME_API_H_
#define CATENARY_CUDA_COMPAT_CUDA_RUNTIME_API_H_

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../catenary/device.h"
#include "driver_types.h"

#define CUDART_VERSION 12020

/* The library for programs that link with -lcudart makes symbols of these calls. */
#ifndef CATENARY_CUDART_CALL
#define CATENARY_CUDART_CALL static inline
#endif

/* ---- Errors. ---- */

static inline cudaError_t catenaryToCuda(catError_t error) { return (cudaError_t)error; }

static inline cudaError_t catenaryFail(cudaError_t error) {
  return catenaryToCuda(catSetLastError((catError_t)error));
}

CATENARY_CUDART_CALL cudaError_t cudaGetLastError(void) {
  return catenaryToCuda(catGetLastError());
}
CATENARY_CUDART_CALL cudaError_t cudaPeekAtLastError(void) {
  return catenaryToCuda(catPeekAtLastError());
}
CATENARY_CUDART_CALL const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaErrorInvalidPitchValue: return "invalid pitch argument";
    case cudaErrorSymbolNotFound: return "no call of this name";
    case cudaErrorInvalidMemcpyDirection: return "invalid copy direction for memcpy";
    default: return catGetErrorString((catError_t)error);
  }
}
CATENARY_CUDART_CALL const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaSuccess: return "cudaSuccess";
    case cudaErrorInvalidValue: return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation: return "cudaErrorMemoryAllocation";
    case cudaErrorInitializationError: return "cudaErrorInitializationError";
    case cudaErrorInvalidPitchValue: return "cudaErrorInvalidPitchValue";
    case cudaErrorInvalidMemcpyDirection: return "cudaErrorInvalidMemcpyDirection";
    case cudaErrorNoDevice: return "cudaErrorNoDevice";
    case cudaErrorInvalidDevice: return "cudaErrorInvalidDevice";
    case cudaErrorOperatingSystem: return "cudaErrorOperatingSystem";
    case cudaErrorInvalidResourceHandle: return "cudaErrorInvalidResourceHandle";
    case cudaErrorSymbolNotFound: return "cudaErrorSymbolNotFound";
    case cudaErrorNotReady: return "cudaErrorNotReady";
    case cudaErrorNotPermitted: return "cudaErrorNotPermitted";
    case cudaErrorNotSupported: return "cudaErrorNotSupported";
    case cudaErrorUnknown: return "cudaErrorUnknown";
    default: return "unrecognized error code";
  }
}

/* ---- Versions. ---- */

CATENARY_CUDART_CALL cudaError_t cudaRuntimeGetVersion(int* version) {
  if (version == NULL) return catenaryFail(cudaErrorInvalidValue);
  *version = CUDART_VERSION;
  return cudaSuccess;
}
CATENARY_CUDART_CALL cudaError_t cudaDriverGetVersion(int* version) {
  return cudaRuntimeGetVersion(version);
}

/* ---- Devices. ---- */

CATENARY_CUDART_CALL cudaError_t cudaGetDeviceCount(int* count) {
  return catenaryToCuda(catGetDeviceCount(count));
}
CATENARY_CUDART_CALL cudaError_t cudaSetDevice(int device) {
  return catenaryToCuda(catSetDevice(device));
}
CATENARY_CUDART_CALL cudaError_t cudaGetDevice(int* device) {
  return catenaryToCuda(catGetDevice(device));
}
CATENARY_CUDART_CALL cudaError_t cudaDeviceSynchronize(void) {
  return catenaryToCuda(catDeviceSynchronize());
}
CATENARY_CUDART_CALL cudaError_t cudaDeviceReset(void) { return catenaryToCuda(catDeviceReset()); }

/* 9.0, so that programs which ask before they use bf16 and fp8 do use them. */
#define CATENARY_COMPUTE_CAPABILITY_MAJOR 9
#define CATENARY_COMPUTE_CAPABILITY_MINOR 0

CATENARY_CUDART_CALL cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp* prop, int device) {
  catDeviceProperties known;
  const cudaError_t error = catenaryToCuda(catGetDeviceProperties(&known, device));
  if (error != cudaSuccess) return error;
  if (prop == NULL) return catenaryFail(cudaErrorInvalidValue);
  memset(prop, 0, sizeof *prop);
  memcpy(prop->name, known.name, sizeof prop->name);
  memcpy(prop->uuid.bytes, &device, sizeof device);
  prop->totalGlobalMem = known.totalGlobalMem;
  prop->warpSize = 1;
  prop->maxThreadsPerBlock = 1;
  prop->maxThreadsPerMultiProcessor = 1;
  prop->maxBlocksPerMultiProcessor = 1;
  for (int i = 0; i < 3; ++i) prop->maxThreadsDim[i] = prop->maxGridSize[i] = 1;
  prop->major = CATENARY_COMPUTE_CAPABILITY_MAJOR;
  prop->minor = CATENARY_COMPUTE_CAPABILITY_MINOR;
  prop->multiProcessorCount = known.multiProcessorCount;
  prop->integrated = 1;
  prop->canMapHostMemory = 1;
  prop->pciBusID = known.pciBusID;
  prop->pciDeviceID = known.pciDeviceID;
  prop->pciDomainID = known.pciDomainID;
  prop->asyncEngineCount = 1;
  prop->unifiedAddressing = 1;
  prop->managedMemory = 1;
  prop->pageableMemoryAccess = 1;
  prop->concurrentManagedAccess = 1;
  prop->hostNativeAtomicSupported = 1;
  prop->canUseHostPointerForRegisteredMem = 1;
  prop->pageableMemoryAccessUsesHostPageTables = 1;
  prop->directManagedMemAccessFromHost = 1;
  prop->hostRegisterSupported = 1;
  prop->memPitch = 0x7fffffff;
  return cudaSuccess;
}

CATENARY_CUDART_CALL cudaError_t cudaDeviceGetPCIBusId(char* id, int capacity, int device) {
  catDeviceProperties known;
  const cudaError_t error = catenaryToCuda(catGetDeviceProperties(&known, device));
  if (error != cudaSuccess) return error;
  if (id == NULL || capacity < 13) return catenaryFail(cudaErrorInvalidValue);
  snprintf(id, (size_t)capacity, "%04x:%02x:%02x.0", (unsigned)known.pciDomainID & 0xffffu,
           (unsigned)known.pciBusID & 0xffu, (unsigned)known.pciDeviceID & 0xffu);
  return cudaSuccess;
}

CATENARY_CUDART_CALL cudaError_t cudaDeviceGetByPCIBusId(int* device, const char* id) {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess) return error;
  if (device == NULL || id == NULL) return catenaryFail(cudaErrorInvalidValue);
  for (int i = 0; i < count; ++i) {
    char known[16];
    if (cudaDeviceGetPCIBusId(known, (int)sizeof known, i) != cudaSuccess) continue;
    if (strcmp(known, id) != 0) continue;
    *device = i;
    return cudaSuccess;
  }
  return catenaryFail(cudaErrorInvalidDevice);
}

/* All devices of a process share its memory. */
CATENARY_CUDART_CALL cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  if (can == NULL) return catenaryFail(cudaErrorInvalidValue);
  *can = device != peer;
  return cudaSuccess;
}
CATENARY_CUDART_CALL cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned int flags) {
  return peer >= 0 && flags == 0 ? cudaSuccess : catenaryFail(cudaErrorInvalidValue);
}
CATENARY_CUDART_CALL cudaError_t cudaDeviceDisablePeerAccess(int peer) {
  return peer >= 0 ? cudaSuccess : catenaryFail(cudaErrorInvalidDevice);
}
CATENARY_CUDART_CALL cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  if (least != NULL) *least = 0;
  if (greatest != NULL) *greatest = 0;
  return cudaSuccess;
}

/* ---- Streams. ---- */

CATENARY_CUDART_CALL cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return catenaryToCuda(catStreamCreate(stream));
}
CATENARY_CUDART_CALL cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream,
                                                           unsigned int flags) {
  return catenaryToCuda(catStreamCreateWithFlags(stream, flags));
}
/* There is one priority, see cudaDeviceGetStreamPriorityRange; CUDA clamps others too. */
CATENARY_CUDART_CALL cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream,
                                                              unsigned int flags, int priority) {
  (void)priority;
  return cudaStreamCreateWithFlags(stream, flags);
}
CATENARY_CUDART_CALL cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority) {
  unsigned int flags = 0;
  if (priority == NULL) return catenaryFail(cudaErrorInvalidValue);
  *priority = 0;
  return catenaryToCuda(catStreamGetFlags(stream, &flags));
}
CATENARY_CUDART_CALL cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned int* flags) {
  return catenaryToCuda(catStreamGetFlags(stream, flags));
}
CATENARY_CUDART_CALL cudaError_t cudaStreamGetDevice(cudaStream_t stream, int* device) {
  return catenaryToCuda(catStreamGetDevice(stream, device));
}
CATENARY_CUDART_CALL cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long* id) {
  return catenaryToCuda(catStreamGetId(stream, id));
}
CATENARY_CUDART_CALL cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return catenaryToCuda(catStreamDestroy(stream));
}
CATENARY_CUDART_CALL cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return catenaryToCuda(catStreamSynchronize(stream));
}
CATENARY_CUDART_CALL cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return catenaryToCuda(catStreamQuery(stream));
}
CATENARY_CUDART_CALL cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t fn,
                                                    void* userData) {
  return catenaryToCuda(catLaunchHostFunc(stream, fn, userData));
}

typedef struct catenaryCallback {
  cudaStream_t stream;
  cudaStreamCallback_t callback;
  void* user_data;
} catenaryCallback;
static inline void catenaryRunCallback(void* data) {
  const catenaryCallback call = *(catenaryCallback*)data;
  free(data);
  call.callback(call.stream, cudaSuccess, call.user_data);
}
CATENARY_CUDART_CALL cudaError_t cudaStreamAddCallback(cudaStream_t stream,
                                                       cudaStreamCallback_t callback,
                                                       void* userData, unsigned int flags) {
  catenaryCallback* call;
  cudaError_t error;
  if (callback == NULL || flags != 0) return catenaryFail(cudaErrorInvalidValue);
  call = (catenaryCallback*)malloc(sizeof *call);
  if (call == NULL) return catenaryFail(cudaErrorMemoryAllocation);
  call->stream = stream;
  call->callback = callback;
  call->user_data = userData;
  error = cudaLaunchHostFunc(stream, catenaryRunCallback, call);
  if (error != cudaSuccess) free(call);
  return error;
}

/* ---- Events. ---- */

CATENARY_CUDART_CALL cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return catenaryToCuda(catEventCreate(event));
}
CATENARY_CUDART_CALL cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int flags) {
  if ((flags & cudaEventInterprocess) != 0) return catenaryFail(cudaErrorNotSupported);
  return catenaryToCuda(catEventCreateWithFlags(event, flags));
}
CATENARY_CUDART_CALL cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return catenaryToCuda(catEventDestroy(event));
}
CATENARY_CUDART_CALL cudaError_t cudaEventQuery(cudaEvent_t event) {
  return catenaryToCuda(catEventQuery(event));
}
CATENARY_CUDART_CALL cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return catenaryToCuda(catEventSynchronize(event));
}
CATENARY_CUDART_CALL cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t start,
                                                      cudaEvent_t end) {
  return catenaryToCuda(catEventElapsedTime(ms, start, end));
}

/* ---- Calls whose last arguments have defaults in C++. ---- */

#ifdef __cplusplus
#define CATENARY_DEFAULT(value) = value
#else
#define CATENARY_DEFAULT(value)
#endif

CATENARY_CUDART_CALL cudaError_t cudaEventRecord(cudaEvent_t event,
                                                 cudaStream_t stream CATENARY_DEFAULT(0)) {
  return catenaryToCuda(catEventRecord(event, stream));
}
CATENARY_CUDART_CALL cudaError_t cudaEventRecordWithFlags(cudaEvent_t event,
                                                          cudaStream_t stream CATENARY_DEFAULT(0),
                                                          unsigned int flags CATENARY_DEFAULT(0)) {
  if (flags != cudaEventRecordDefault) return catenaryFail(cudaErrorNotSupported);
  return cudaEventRecord(event, stream);
}
CATENARY_CUDART_CALL cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event,
                                                     unsigned int flags CATENARY_DEFAULT(0)) {
  return catenaryToCuda(catStreamWaitEvent(stream, event, flags));
}

#include "cuda_device_compat.h"
#include "cuda_memory_compat.h"
#include "cuda_pools_compat.h"
#include "cuda_unsupported_compat.h"
/* These come after what they use. */
#include "cuda_graphs_compat.h"

#endif /* CATENARY_CUDA_COMPAT_CUDA_RUNTIME_API_H_ */
