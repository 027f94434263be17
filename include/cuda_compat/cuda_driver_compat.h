/*
 * More of the driver interface: attributes, memory, streams, events, and its calls by their names.
 * A part of cuda.h, which includes it.
 */
#ifndef CATENARY_CUDA_COMPAT_CUDA_DRIVER_COMPAT_H_
#define CATENARY_CUDA_COMPAT_CUDA_DRIVER_COMPAT_H_

/* ---- Devices. ---- */

/* The numbers are those of enum cudaDeviceAttr. */
typedef enum CUdevice_attribute_enum {
  CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK = cudaDevAttrMaxThreadsPerBlock,
  CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X = cudaDevAttrMaxBlockDimX,
  CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y = cudaDevAttrMaxBlockDimY,
  CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z = cudaDevAttrMaxBlockDimZ,
  CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X = cudaDevAttrMaxGridDimX,
  CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y = cudaDevAttrMaxGridDimY,
  CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z = cudaDevAttrMaxGridDimZ,
  CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK = cudaDevAttrMaxSharedMemoryPerBlock,
  CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY = cudaDevAttrTotalConstantMemory,
  CU_DEVICE_ATTRIBUTE_WARP_SIZE = cudaDevAttrWarpSize,
  CU_DEVICE_ATTRIBUTE_MAX_PITCH = cudaDevAttrMaxPitch,
  CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK = cudaDevAttrMaxRegistersPerBlock,
  CU_DEVICE_ATTRIBUTE_CLOCK_RATE = cudaDevAttrClockRate,
  CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT = cudaDevAttrTextureAlignment,
  CU_DEVICE_ATTRIBUTE_GPU_OVERLAP = cudaDevAttrGpuOverlap,
  CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = cudaDevAttrMultiProcessorCount,
  CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT = cudaDevAttrKernelExecTimeout,
  CU_DEVICE_ATTRIBUTE_INTEGRATED = cudaDevAttrIntegrated,
  CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY = cudaDevAttrCanMapHostMemory,
  CU_DEVICE_ATTRIBUTE_COMPUTE_MODE = cudaDevAttrComputeMode,
  CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS = cudaDevAttrConcurrentKernels,
  CU_DEVICE_ATTRIBUTE_ECC_ENABLED = cudaDevAttrEccEnabled,
  CU_DEVICE_ATTRIBUTE_PCI_BUS_ID = cudaDevAttrPciBusId,
  CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID = cudaDevAttrPciDeviceId,
  CU_DEVICE_ATTRIBUTE_TCC_DRIVER = cudaDevAttrTccDriver,
  CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE = cudaDevAttrMemoryClockRate,
  CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH = cudaDevAttrGlobalMemoryBusWidth,
  CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE = cudaDevAttrL2CacheSize,
  CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR = cudaDevAttrMaxThreadsPerMultiProcessor,
  CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT = cudaDevAttrAsyncEngineCount,
  CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING = cudaDevAttrUnifiedAddressing,
  CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID = cudaDevAttrPciDomainId,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = cudaDevAttrComputeCapabilityMajor,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = cudaDevAttrComputeCapabilityMinor,
  CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED = cudaDevAttrStreamPrioritiesSupported,
  CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY = cudaDevAttrManagedMemory,
  CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED = cudaDevAttrHostNativeAtomicSupported,
  CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS = cudaDevAttrPageableMemoryAccess,
  CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS = cudaDevAttrConcurrentManagedAccess,
  CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH = cudaDevAttrCooperativeLaunch,
  CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = cudaDevAttrMaxSharedMemoryPerBlockOptin,
  /* What the runtime does not ask: addresses without memory, and the ways to hand memory out. */
  CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED = 102,
  CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED = 103,
  CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED = cudaDevAttrMemoryPoolsSupported,
  CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED = cudaDevAttrGPUDirectRDMASupported,
  CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED = 124,
  CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED = 128,
  CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED = 132
} CUdevice_attribute;

CATENARY_CUDA_CALL CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute,
                                                 CUdevice device) {
  CUdevice known;
  CUresult result;
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED:
      result = cuDeviceGet(&known, device);
      if (value == NULL) return CUDA_ERROR_INVALID_VALUE;
      if (result == CUDA_SUCCESS) *value = 0;
      return result;
    default: return (CUresult)cudaDeviceGetAttribute(value, (enum cudaDeviceAttr)attribute, device);
  }
}
CATENARY_CUDA_CALL CUresult cuDeviceTotalMem(size_t* bytes, CUdevice device) {
  catDeviceProperties known;
  const CUresult result = (CUresult)catGetDeviceProperties(&known, device);
  if (result != CUDA_SUCCESS) return result;
  if (bytes == NULL) return CUDA_ERROR_INVALID_VALUE;
  *bytes = known.totalGlobalMem;
  return CUDA_SUCCESS;
}
typedef struct CUuuid_st CUuuid;
CATENARY_CUDA_CALL CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
  struct cudaDeviceProp prop;
  const CUresult result = (CUresult)cudaGetDeviceProperties(&prop, device);
  if (result != CUDA_SUCCESS) return result;
  if (uuid == NULL) return CUDA_ERROR_INVALID_VALUE;
  *uuid = prop.uuid;
  return CUDA_SUCCESS;
}
CATENARY_CUDA_CALL CUresult cuDeviceGetPCIBusId(char* id, int capacity, CUdevice device) {
  return (CUresult)cudaDeviceGetPCIBusId(id, capacity, device);
}
CATENARY_CUDA_CALL CUresult cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer) {
  return (CUresult)cudaDeviceCanAccessPeer(can, device, peer);
}

/* ---- Memory. An address is a number here, and means the same memory. ---- */

static inline void* catenaryAtAddress(CUdeviceptr address) { return (void*)(size_t)address; }

CATENARY_CUDA_CALL CUresult cuMemAlloc(CUdeviceptr* address, size_t bytes) {
  void* memory = NULL;
  CUresult result;
  if (address == NULL || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  result = (CUresult)cudaMalloc(&memory, bytes);
  if (result == CUDA_SUCCESS) *address = (CUdeviceptr)(size_t)memory;
  return result;
}
CATENARY_CUDA_CALL CUresult cuMemFree(CUdeviceptr address) {
  return (CUresult)cudaFree(catenaryAtAddress(address));
}
CATENARY_CUDA_CALL CUresult cuMemHostAlloc(void** memory, size_t bytes, unsigned int flags) {
  return (CUresult)cudaHostAlloc(memory, bytes, flags);
}
CATENARY_CUDA_CALL CUresult cuMemFreeHost(void* memory) { return (CUresult)cudaFreeHost(memory); }
CATENARY_CUDA_CALL CUresult cuMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  return (CUresult)cudaMemGetInfo(free_bytes, total_bytes);
}
CATENARY_CUDA_CALL CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return (CUresult)catMemcpy(catenaryAtAddress(to), catenaryAtAddress(from), bytes);
}
CATENARY_CUDA_CALL CUresult cuMemcpyHtoD(CUdeviceptr to, const void* from, size_t bytes) {
  return (CUresult)catMemcpy(catenaryAtAddress(to), from, bytes);
}
CATENARY_CUDA_CALL CUresult cuMemcpyDtoH(void* to, CUdeviceptr from, size_t bytes) {
  return (CUresult)catMemcpy(to, catenaryAtAddress(from), bytes);
}
CATENARY_CUDA_CALL CUresult cuMemcpyDtoD(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return cuMemcpy(to, from, bytes);
}
CATENARY_CUDA_CALL CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes,
                                          CUstream stream) {
  return (CUresult)catMemcpyAsync(catenaryAtAddress(to), catenaryAtAddress(from), bytes, stream);
}
CATENARY_CUDA_CALL CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void* from, size_t bytes,
                                              CUstream stream) {
  return (CUresult)catMemcpyAsync(catenaryAtAddress(to), from, bytes, stream);
}
CATENARY_CUDA_CALL CUresult cuMemcpyDtoHAsync(void* to, CUdeviceptr from, size_t bytes,
                                              CUstream stream) {
  return (CUresult)catMemcpyAsync(to, catenaryAtAddress(from), bytes, stream);
}
CATENARY_CUDA_CALL CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes,
                                              CUstream stream) {
  return cuMemcpyAsync(to, from, bytes, stream);
}
/* Only a byte can be repeated: catMemset knows no wider value. */
CATENARY_CUDA_CALL CUresult cuMemsetD8(CUdeviceptr to, unsigned char value, size_t bytes) {
  return (CUresult)catMemset(catenaryAtAddress(to), value, bytes);
}
CATENARY_CUDA_CALL CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t bytes,
                                            CUstream stream) {
  return (CUresult)catMemsetAsync(catenaryAtAddress(to), value, bytes, stream);
}

/* ---- Streams and events: those of the runtime. ---- */

#define CU_STREAM_DEFAULT 0x0
#define CU_STREAM_NON_BLOCKING 0x1
#define CU_STREAM_LEGACY ((CUstream)0x1)
#define CU_STREAM_PER_THREAD ((CUstream)0x2)
#define CU_EVENT_DEFAULT 0x0
#define CU_EVENT_BLOCKING_SYNC 0x1
#define CU_EVENT_DISABLE_TIMING 0x2
typedef cudaHostFn_t CUhostFn;

CATENARY_CUDA_CALL CUresult cuStreamCreate(CUstream* stream, unsigned int flags) {
  return (CUresult)cudaStreamCreateWithFlags(stream, flags);
}
CATENARY_CUDA_CALL CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned int flags,
                                                       int priority) {
  return (CUresult)cudaStreamCreateWithPriority(stream, flags, priority);
}
CATENARY_CUDA_CALL CUresult cuStreamDestroy(CUstream stream) {
  return (CUresult)cudaStreamDestroy(stream);
}
CATENARY_CUDA_CALL CUresult cuStreamSynchronize(CUstream stream) {
  return (CUresult)cudaStreamSynchronize(stream);
}
CATENARY_CUDA_CALL CUresult cuStreamQuery(CUstream stream) {
  return (CUresult)cudaStreamQuery(stream);
}
CATENARY_CUDA_CALL CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags) {
  return (CUresult)cudaStreamWaitEvent(stream, event, flags);
}
CATENARY_CUDA_CALL CUresult cuLaunchHostFunc(CUstream stream, CUhostFn fn, void* data) {
  return (CUresult)cudaLaunchHostFunc(stream, fn, data);
}
CATENARY_CUDA_CALL CUresult cuEventCreate(CUevent* event, unsigned int flags) {
  return (CUresult)cudaEventCreateWithFlags(event, flags);
}
CATENARY_CUDA_CALL CUresult cuEventDestroy(CUevent event) {
  return (CUresult)cudaEventDestroy(event);
}
CATENARY_CUDA_CALL CUresult cuEventRecord(CUevent event, CUstream stream) {
  return (CUresult)cudaEventRecord(event, stream);
}
CATENARY_CUDA_CALL CUresult cuEventQuery(CUevent event) { return (CUresult)cudaEventQuery(event); }
CATENARY_CUDA_CALL CUresult cuEventSynchronize(CUevent event) {
  return (CUresult)cudaEventSynchronize(event);
}
CATENARY_CUDA_CALL CUresult cuEventElapsedTime(float* ms, CUevent start, CUevent end) {
  return (CUresult)cudaEventElapsedTime(ms, start, end);
}

/* ---- Errors. ---- */

CATENARY_CUDA_CALL CUresult cuGetErrorName(CUresult error, const char** name) {
  if (name == NULL) return CUDA_ERROR_INVALID_VALUE;
  *name = NULL;
  switch (error) {
    case CUDA_SUCCESS: *name = "CUDA_SUCCESS"; break;
    case CUDA_ERROR_INVALID_VALUE: *name = "CUDA_ERROR_INVALID_VALUE"; break;
    case CUDA_ERROR_OUT_OF_MEMORY: *name = "CUDA_ERROR_OUT_OF_MEMORY"; break;
    case CUDA_ERROR_NOT_INITIALIZED: *name = "CUDA_ERROR_NOT_INITIALIZED"; break;
    case CUDA_ERROR_NO_DEVICE: *name = "CUDA_ERROR_NO_DEVICE"; break;
    case CUDA_ERROR_INVALID_DEVICE: *name = "CUDA_ERROR_INVALID_DEVICE"; break;
    case CUDA_ERROR_INVALID_CONTEXT: *name = "CUDA_ERROR_INVALID_CONTEXT"; break;
    case CUDA_ERROR_OPERATING_SYSTEM: *name = "CUDA_ERROR_OPERATING_SYSTEM"; break;
    case CUDA_ERROR_INVALID_HANDLE: *name = "CUDA_ERROR_INVALID_HANDLE"; break;
    case CUDA_ERROR_NOT_FOUND: *name = "CUDA_ERROR_NOT_FOUND"; break;
    case CUDA_ERROR_NOT_READY: *name = "CUDA_ERROR_NOT_READY"; break;
    case CUDA_ERROR_NOT_PERMITTED: *name = "CUDA_ERROR_NOT_PERMITTED"; break;
    case CUDA_ERROR_NOT_SUPPORTED: *name = "CUDA_ERROR_NOT_SUPPORTED"; break;
    case CUDA_ERROR_UNKNOWN: *name = "CUDA_ERROR_UNKNOWN"; break;
  }
  return *name != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

#endif /* CATENARY_CUDA_COMPAT_CUDA_DRIVER_COMPAT_H_ */
