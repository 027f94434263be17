/*
 * More of devices: attributes, flags, limits, peers, entry points of the driver. A part of
 * cuda_runtime_api.h, which includes it.
 */
#ifndef CATENARY_CUDA_COMPAT_CUDA_DEVICE_COMPAT_H_
#define CATENARY_CUDA_COMPAT_CUDA_DEVICE_COMPAT_H_

/* ---- Attributes. ---- */

/* What says how large kernels may be and how fast the chip is. Zeros are true: there is no shared
 * memory, no register and no clock of a GPU. 0 if it is none of these attributes. */
static inline int catenaryChipAttribute(int* value, const struct cudaDeviceProp* prop,
                                        enum cudaDeviceAttr attr) {
  switch (attr) {
    case cudaDevAttrMaxThreadsPerBlock: *value = prop->maxThreadsPerBlock; return 1;
    case cudaDevAttrMaxBlockDimX:
    case cudaDevAttrMaxBlockDimY:
    case cudaDevAttrMaxBlockDimZ:
      *value = prop->maxThreadsDim[attr - cudaDevAttrMaxBlockDimX];
      return 1;
    case cudaDevAttrMaxGridDimX:
    case cudaDevAttrMaxGridDimY:
    case cudaDevAttrMaxGridDimZ:
      *value = prop->maxGridSize[attr - cudaDevAttrMaxGridDimX];
      return 1;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
      *value = prop->maxThreadsPerMultiProcessor;
      return 1;
    case cudaDevAttrMaxBlocksPerMultiprocessor: *value = prop->maxBlocksPerMultiProcessor; return 1;
    case cudaDevAttrMultiProcessorCount: *value = prop->multiProcessorCount; return 1;
    case cudaDevAttrWarpSize: *value = prop->warpSize; return 1;
    case cudaDevAttrMaxPitch: *value = (int)prop->memPitch; return 1;
    case cudaDevAttrMaxSharedMemoryPerBlock:
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
    case cudaDevAttrReservedSharedMemoryPerBlock:
    case cudaDevAttrMaxRegistersPerBlock:
    case cudaDevAttrMaxRegistersPerMultiprocessor:
    case cudaDevAttrTotalConstantMemory:
    case cudaDevAttrTextureAlignment:
    case cudaDevAttrClockRate:
    case cudaDevAttrMemoryClockRate:
    case cudaDevAttrGlobalMemoryBusWidth:
    case cudaDevAttrL2CacheSize:
    case cudaDevAttrMaxPersistingL2CacheSize:
    case cudaDevAttrMaxAccessPolicyWindowSize:
    case cudaDevAttrSingleToDoublePrecisionPerfRatio:
    case cudaDevAttrKernelExecTimeout:
    case cudaDevAttrEccEnabled:
    case cudaDevAttrTccDriver:
    case cudaDevAttrIsMultiGpuBoard:
    case cudaDevAttrMultiGpuBoardGroupID:
    case cudaDevAttrComputePreemptionSupported:
    case cudaDevAttrClusterLaunch: *value = 0; return 1;
    default: return 0;
  }
}

CATENARY_CUDART_CALL cudaError_t cudaDeviceGetAttribute(int* value, enum cudaDeviceAttr attr,
                                                        int device) {
  struct cudaDeviceProp prop;
  const cudaError_t error = cudaGetDeviceProperties(&prop, device);
  if (error != cudaSuccess) return error;
  if (value == NULL) return catenaryFail(cudaErrorInvalidValue);
  if (catenaryChipAttribute(value, &prop, attr)) return cudaSuccess;
  switch (attr) {
    case cudaDevAttrIntegrated: *value = prop.integrated; break;
    case cudaDevAttrCanMapHostMemory: *value = prop.canMapHostMemory; break;
    case cudaDevAttrComputeMode: *value = prop.computeMode; break;
    case cudaDevAttrConcurrentKernels: *value = prop.concurrentKernels; break;
    case cudaDevAttrPciBusId: *value = prop.pciBusID; break;
    case cudaDevAttrPciDeviceId: *value = prop.pciDeviceID; break;
    case cudaDevAttrPciDomainId: *value = prop.pciDomainID; break;
    case cudaDevAttrGpuOverlap:
    case cudaDevAttrAsyncEngineCount: *value = prop.asyncEngineCount; break;
    case cudaDevAttrUnifiedAddressing: *value = prop.unifiedAddressing; break;
    case cudaDevAttrComputeCapabilityMajor: *value = prop.major; break;
    case cudaDevAttrComputeCapabilityMinor: *value = prop.minor; break;
    case cudaDevAttrStreamPrioritiesSupported: *value = prop.streamPrioritiesSupported; break;
    case cudaDevAttrManagedMemory: *value = prop.managedMemory; break;
    case cudaDevAttrPageableMemoryAccess: *value = prop.pageableMemoryAccess; break;
    case cudaDevAttrConcurrentManagedAccess: *value = prop.concurrentManagedAccess; break;
    case cudaDevAttrCooperativeLaunch: *value = prop.cooperativeLaunch; break;
    case cudaDevAttrHostNativeAtomicSupported: *value = prop.hostNativeAtomicSupported; break;
    case cudaDevAttrCanUseHostPointerForRegisteredMem:
      *value = prop.canUseHostPointerForRegisteredMem;
      break;
    case cudaDevAttrHostRegisterSupported:
    case cudaDevAttrHostRegisterReadOnlySupported: *value = prop.hostRegisterSupported; break;
    case cudaDevAttrPageableMemoryAccessUsesHostPageTables:
      *value = prop.pageableMemoryAccessUsesHostPageTables;
      break;
    case cudaDevAttrDirectManagedMemAccessFromHost:
      *value = prop.directManagedMemAccessFromHost;
      break;
    /* There is the pool that every device has, but none can be made. */
    case cudaDevAttrMemoryPoolsSupported:
    case cudaDevAttrMemoryPoolSupportedHandleTypes:
    case cudaDevAttrGPUDirectRDMASupported: *value = 0; break;
    default: return catenaryFail(cudaErrorInvalidValue);
  }
  return cudaSuccess;
}

/* ---- What is kept with a device, in the notes of include/catenary/device.h. ---- */

enum catenaryNote {
  catenaryNoteFlags = 0,
  catenaryNotePool = 1,  /* and the places up to 4: one for each attribute that can be set */
  catenaryNoteLimits = 5 /* and the places up to 11: one for each limit */
};

/* Flags choose how to wait; the library sees to that itself. They are kept for who asks. */
CATENARY_CUDART_CALL cudaError_t cudaSetDeviceFlags(unsigned int flags) {
  int device;
  cudaError_t error;
  if (flags > 0x1f) return catenaryFail(cudaErrorInvalidValue);
  error = cudaGetDevice(&device);
  if (error != cudaSuccess) return error;
  return catenaryToCuda(catDeviceSetNote(device, catenaryNoteFlags, flags));
}
CATENARY_CUDART_CALL cudaError_t cudaGetDeviceFlags(unsigned int* flags) {
  int device;
  unsigned long long note;
  cudaError_t error = cudaGetDevice(&device);
  if (error != cudaSuccess) return error;
  if (flags == NULL) return catenaryFail(cudaErrorInvalidValue);
  error = catenaryToCuda(catDeviceGetNote(&note, device, catenaryNoteFlags));
  if (error == cudaSuccess) *flags = (unsigned int)note;
  return error;
}
/* Makes the device, as the first use of it would, and leaves the current one as it is. */
CATENARY_CUDART_CALL cudaError_t cudaInitDevice(int device, unsigned int device_flags,
                                                unsigned int flags) {
  unsigned long long note;
  if (device_flags > 0x1f || (flags & ~(unsigned int)cudaInitDeviceFlagsAreValid) != 0) {
    return catenaryFail(cudaErrorInvalidValue);
  }
  if (flags == 0) return catenaryToCuda(catDeviceGetNote(&note, device, catenaryNoteFlags));
  return catenaryToCuda(catDeviceSetNote(device, catenaryNoteFlags, device_flags));
}

/* Limits are for kernels: kept for who asks, 0 before they are set, and nothing to be held to. */
static inline cudaError_t catenaryPlaceOfLimit(int* device, int* place, enum cudaLimit limit) {
  if ((unsigned int)limit > (unsigned int)cudaLimitPersistingL2CacheSize) {
    return catenaryFail(cudaErrorInvalidValue);
  }
  *place = catenaryNoteLimits + (int)limit;
  return cudaGetDevice(device);
}
CATENARY_CUDART_CALL cudaError_t cudaDeviceSetLimit(enum cudaLimit limit, size_t value) {
  int device = 0, place = 0;
  const cudaError_t error = catenaryPlaceOfLimit(&device, &place, limit);
  if (error != cudaSuccess) return error;
  return catenaryToCuda(catDeviceSetNote(device, place, value));
}
CATENARY_CUDART_CALL cudaError_t cudaDeviceGetLimit(size_t* value, enum cudaLimit limit) {
  int device = 0, place = 0;
  unsigned long long note;
  cudaError_t error = catenaryPlaceOfLimit(&device, &place, limit);
  if (error != cudaSuccess) return error;
  if (value == NULL) return catenaryFail(cudaErrorInvalidValue);
  error = catenaryToCuda(catDeviceGetNote(&note, device, place));
  if (error == cudaSuccess) *value = (size_t)note;
  return error;
}

/* ---- Peers. ---- */

CATENARY_CUDART_CALL cudaError_t cudaDeviceGetP2PAttribute(int* value, enum cudaDeviceP2PAttr attr,
                                                           int device, int peer) {
  catDeviceProperties known;
  cudaError_t error = catenaryToCuda(catGetDeviceProperties(&known, device));
  if (error == cudaSuccess) error = catenaryToCuda(catGetDeviceProperties(&known, peer));
  if (error != cudaSuccess) return error;
  if (device == peer) return catenaryFail(cudaErrorInvalidDevice);
  if (value == NULL) return catenaryFail(cudaErrorInvalidValue);
  switch (attr) {
    /* All pairs are alike, and the first rank is the best. */
    case cudaDevP2PAttrPerformanceRank: *value = 0; return cudaSuccess;
    case cudaDevP2PAttrAccessSupported:
    case cudaDevP2PAttrNativeAtomicSupported: *value = 1; return cudaSuccess;
    case cudaDevP2PAttrCudaArrayAccessSupported: *value = 0; return cudaSuccess;
  }
  return catenaryFail(cudaErrorInvalidValue);
}

/* ---- Calls of the driver. ---- */

/* Knows none: programs that include cuda.h, where these calls are, get one that does. */
CATENARY_CUDART_CALL cudaError_t cudaGetDriverEntryPointByVersion(
    const char* symbol, void** function, unsigned int version, unsigned long long flags,
    enum cudaDriverEntryPointQueryResult* result CATENARY_DEFAULT(NULL)) {
  (void)version;
  if (symbol == NULL || function == NULL || flags > cudaEnablePerThreadDefaultStream) {
    return catenaryFail(cudaErrorInvalidValue);
  }
  *function = NULL;
  if (result == NULL) return catenaryFail(cudaErrorSymbolNotFound);
  *result = cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}
CATENARY_CUDART_CALL cudaError_t
cudaGetDriverEntryPoint(const char* symbol, void** function, unsigned long long flags,
                        enum cudaDriverEntryPointQueryResult* result CATENARY_DEFAULT(NULL)) {
  return cudaGetDriverEntryPointByVersion(symbol, function, CUDART_VERSION, flags, result);
}

#endif /* CATENARY_CUDA_COMPAT_CUDA_DEVICE_COMPAT_H_ */
