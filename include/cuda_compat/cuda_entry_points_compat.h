/* The driver's calls by their names. A part of cuda.h, which includes it. */
#ifndef CATENARY_CUDA_COMPAT_CUDA_ENTRY_POINTS_COMPAT_H_
#define CATENARY_CUDA_COMPAT_CUDA_ENTRY_POINTS_COMPAT_H_

#include <stdint.h>

typedef uint64_t cuuint64_t;
typedef enum CUdriverProcAddressQueryResult_enum {
  CU_GET_PROC_ADDRESS_SUCCESS = 0,
  CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND = 1,
  CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT = 2
} CUdriverProcAddressQueryResult;
#define CU_GET_PROC_ADDRESS_DEFAULT 0
#define CU_GET_PROC_ADDRESS_LEGACY_STREAM 1
#define CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM 2

/* Flags choose nothing: what is found takes the stream that it is given. */
CATENARY_CUDA_CALL CUresult cuGetProcAddress(const char* symbol, void** function, int version,
                                             cuuint64_t flags,
                                             CUdriverProcAddressQueryResult* result);

typedef void (*catenaryAnyCall)(void);
typedef struct catenaryEntryPoint {
  const char* name;
  catenaryAnyCall call;
} catenaryEntryPoint;

static inline catenaryAnyCall catenaryCallOfName(const char* name) {
#define CATENARY_ENTRY(call) \
  { #call, (catenaryAnyCall)call }
  static const catenaryEntryPoint known[] = {
      CATENARY_ENTRY(cuCtxGetCurrent),
      CATENARY_ENTRY(cuCtxGetDevice),
      CATENARY_ENTRY(cuCtxSetCurrent),
      CATENARY_ENTRY(cuCtxSynchronize),
      CATENARY_ENTRY(cuDeviceCanAccessPeer),
      CATENARY_ENTRY(cuDeviceGet),
      CATENARY_ENTRY(cuDeviceGetAttribute),
      CATENARY_ENTRY(cuDeviceGetCount),
      CATENARY_ENTRY(cuDeviceGetName),
      CATENARY_ENTRY(cuDeviceGetPCIBusId),
      CATENARY_ENTRY(cuDeviceGetUuid),
      CATENARY_ENTRY(cuDevicePrimaryCtxRelease),
      CATENARY_ENTRY(cuDevicePrimaryCtxRetain),
      CATENARY_ENTRY(cuDeviceTotalMem),
      CATENARY_ENTRY(cuDriverGetVersion),
      CATENARY_ENTRY(cuEventCreate),
      CATENARY_ENTRY(cuEventDestroy),
      CATENARY_ENTRY(cuEventElapsedTime),
      CATENARY_ENTRY(cuEventQuery),
      CATENARY_ENTRY(cuEventRecord),
      CATENARY_ENTRY(cuEventSynchronize),
      CATENARY_ENTRY(cuGetErrorName),
      CATENARY_ENTRY(cuGetErrorString),
      CATENARY_ENTRY(cuGetProcAddress),
      CATENARY_ENTRY(cuInit),
      CATENARY_ENTRY(cuLaunchHostFunc),
      CATENARY_ENTRY(cuMemAlloc),
      CATENARY_ENTRY(cuMemFree),
      CATENARY_ENTRY(cuMemFreeHost),
      CATENARY_ENTRY(cuMemGetInfo),
      CATENARY_ENTRY(cuMemHostAlloc),
      CATENARY_ENTRY(cuMemcpy),
      CATENARY_ENTRY(cuMemcpyAsync),
      CATENARY_ENTRY(cuMemcpyDtoD),
      CATENARY_ENTRY(cuMemcpyDtoDAsync),
      CATENARY_ENTRY(cuMemcpyDtoH),
      CATENARY_ENTRY(cuMemcpyDtoHAsync),
      CATENARY_ENTRY(cuMemcpyHtoD),
      CATENARY_ENTRY(cuMemcpyHtoDAsync),
      CATENARY_ENTRY(cuMemsetD8),
      CATENARY_ENTRY(cuMemsetD8Async),
      CATENARY_ENTRY(cuPointerGetAttribute),
      CATENARY_ENTRY(cuStreamCreate),
      CATENARY_ENTRY(cuStreamCreateWithPriority),
      CATENARY_ENTRY(cuStreamDestroy),
      CATENARY_ENTRY(cuStreamQuery),
      CATENARY_ENTRY(cuStreamSynchronize),
      CATENARY_ENTRY(cuStreamWaitEvent),
  };
#undef CATENARY_ENTRY
  for (size_t i = 0; i < sizeof known / sizeof known[0]; ++i) {
    if (strcmp(known[i].name, name) == 0) return known[i].call;
  }
  return NULL;
}

CATENARY_CUDA_CALL CUresult cuGetProcAddress(const char* symbol, void** function, int version,
                                             cuuint64_t flags,
                                             CUdriverProcAddressQueryResult* result) {
  catenaryAnyCall call;
  (void)version;
  if (symbol == NULL || function == NULL || flags > CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  call = catenaryCallOfName(symbol);
  *function = NULL;
  memcpy(function, &call, sizeof call);
  if (result != NULL) {
    *result = call != NULL ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  }
  return call != NULL || result != NULL ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

/* The runtime's calls for the same, which know the driver's from here on. */
static inline cudaError_t catenaryDriverEntryPointByVersion(
    const char* symbol, void** function, unsigned int version, unsigned long long flags,
    enum cudaDriverEntryPointQueryResult* result CATENARY_DEFAULT(NULL)) {
  CUdriverProcAddressQueryResult found;
  const CUresult error = cuGetProcAddress(symbol, function, (int)version, flags, &found);
  if (error != CUDA_SUCCESS) return catenaryFail((cudaError_t)error);
  if (result != NULL) *result = (enum cudaDriverEntryPointQueryResult)found;
  if (result != NULL || found == CU_GET_PROC_ADDRESS_SUCCESS) return cudaSuccess;
  return catenaryFail(cudaErrorSymbolNotFound);
}
static inline cudaError_t catenaryDriverEntryPoint(
    const char* symbol, void** function, unsigned long long flags,
    enum cudaDriverEntryPointQueryResult* result CATENARY_DEFAULT(NULL)) {
  return catenaryDriverEntryPointByVersion(symbol, function, CUDART_VERSION, flags, result);
}
#define cudaGetDriverEntryPointByVersion catenaryDriverEntryPointByVersion
#define cudaGetDriverEntryPoint catenaryDriverEntryPoint

#endif /* CATENARY_CUDA_COMPAT_CUDA_ENTRY_POINTS_COMPAT_H_ */
