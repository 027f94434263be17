/* Memory and copies: a part of cuda_runtime_api.h, which includes it. */
#ifndef CATENARY_CUDA_COMPAT_CUDA_MEMORY_COMPAT_H_
#define CATENARY_CUDA_COMPAT_CUDA_MEMORY_COMPAT_H_

CATENARY_CUDART_CALL cudaError_t cudaMalloc(void** memory, size_t bytes) {
  return catenaryToCuda(catMalloc(memory, bytes));
}
CATENARY_CUDART_CALL cudaError_t cudaFree(void* memory) { return catenaryToCuda(catFree(memory)); }
/* In CUDA's terms all memory here is pinned, mapped and portable. */
CATENARY_CUDART_CALL cudaError_t cudaHostAlloc(void** memory, size_t bytes, unsigned int flags) {
  if (flags > 0x7) return catenaryFail(cudaErrorInvalidValue);
  return catenaryToCuda(catMallocHost(memory, bytes));
}
#ifndef __cplusplus
CATENARY_CUDART_CALL cudaError_t cudaMallocHost(void** memory, size_t bytes) {
  return catenaryToCuda(catMallocHost(memory, bytes));
}
#endif
CATENARY_CUDART_CALL cudaError_t cudaFreeHost(void* memory) {
  return catenaryToCuda(catFreeHost(memory));
}
CATENARY_CUDART_CALL cudaError_t cudaMallocManaged(
    void** memory, size_t bytes, unsigned int flags CATENARY_DEFAULT(cudaMemAttachGlobal)) {
  if (flags != cudaMemAttachGlobal && flags != cudaMemAttachHost) {
    return catenaryFail(cudaErrorInvalidValue);
  }
  return catenaryToCuda(catMalloc(memory, bytes));
}
/* Allocated at once, and freed when the device is idle: earlier than the one, later than the other
 * that a program may count on. */
CATENARY_CUDART_CALL cudaError_t cudaMallocAsync(void** memory, size_t bytes, cudaStream_t stream) {
  (void)stream;
  return cudaMalloc(memory, bytes);
}
CATENARY_CUDART_CALL cudaError_t cudaFreeAsync(void* memory, cudaStream_t stream) {
  (void)stream;
  return cudaFree(memory);
}

/* The program's own memory needs no registration. */
CATENARY_CUDART_CALL cudaError_t cudaHostRegister(void* memory, size_t bytes, unsigned int flags) {
  (void)flags;
  return memory != NULL && bytes != 0 ? cudaSuccess : catenaryFail(cudaErrorInvalidValue);
}
CATENARY_CUDART_CALL cudaError_t cudaHostUnregister(void* memory) {
  return memory != NULL ? cudaSuccess : catenaryFail(cudaErrorInvalidValue);
}
CATENARY_CUDART_CALL cudaError_t cudaHostGetDevicePointer(void** device_pointer, void* memory,
                                                          unsigned int flags) {
  if (device_pointer == NULL || flags != 0) return catenaryFail(cudaErrorInvalidValue);
  *device_pointer = memory;
  return cudaSuccess;
}

CATENARY_CUDART_CALL cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes* attributes,
                                                          const void* pointer) {
  catPointerAttributes known;
  const cudaError_t error = catenaryToCuda(catPointerGetAttributes(&known, pointer));
  if (error != cudaSuccess) return error;
  if (attributes == NULL) return catenaryFail(cudaErrorInvalidValue);
  attributes->type = (enum cudaMemoryType)known.type;
  attributes->device = known.device < 0 ? cudaInvalidDeviceId : known.device;
  attributes->devicePointer = known.type == catMemoryTypeUnregistered ? NULL : (void*)pointer;
  attributes->hostPointer = (void*)pointer;
  return cudaSuccess;
}

CATENARY_CUDART_CALL cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  return catenaryToCuda(catMemGetInfo(free_bytes, total_bytes));
}

static inline int catenaryKnownKind(enum cudaMemcpyKind kind) {
  return (unsigned int)kind <= (unsigned int)cudaMemcpyDefault;
}
CATENARY_CUDART_CALL cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes,
                                            enum cudaMemcpyKind kind) {
  if (!catenaryKnownKind(kind)) return catenaryFail(cudaErrorInvalidMemcpyDirection);
  return catenaryToCuda(catMemcpy(to, from, bytes));
}
CATENARY_CUDART_CALL cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes,
                                                 enum cudaMemcpyKind kind,
                                                 cudaStream_t stream CATENARY_DEFAULT(0)) {
  if (!catenaryKnownKind(kind)) return catenaryFail(cudaErrorInvalidMemcpyDirection);
  return catenaryToCuda(catMemcpyAsync(to, from, bytes, stream));
}
CATENARY_CUDART_CALL cudaError_t cudaMemcpyPeer(void* to, int to_device, const void* from,
                                                int from_device, size_t bytes) {
  (void)to_device;
  (void)from_device;
  return catenaryToCuda(catMemcpy(to, from, bytes));
}
CATENARY_CUDART_CALL cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from,
                                                     int from_device, size_t bytes,
                                                     cudaStream_t stream CATENARY_DEFAULT(0)) {
  (void)to_device;
  (void)from_device;
  return catenaryToCuda(catMemcpyAsync(to, from, bytes, stream));
}
CATENARY_CUDART_CALL cudaError_t cudaMemset(void* memory, int value, size_t bytes) {
  return catenaryToCuda(catMemset(memory, value, bytes));
}
CATENARY_CUDART_CALL cudaError_t cudaMemsetAsync(void* memory, int value, size_t bytes,
                                                 cudaStream_t stream CATENARY_DEFAULT(0)) {
  return catenaryToCuda(catMemsetAsync(memory, value, bytes, stream));
}

/* Rows of `width` bytes that lie a pitch apart. */
static inline cudaError_t catenaryCheckRows(size_t to_pitch, size_t from_pitch, size_t width,
                                            enum cudaMemcpyKind kind) {
  if (!catenaryKnownKind(kind)) return catenaryFail(cudaErrorInvalidMemcpyDirection);
  if (to_pitch < width || from_pitch < width) return catenaryFail(cudaErrorInvalidPitchValue);
  return cudaSuccess;
}
CATENARY_CUDART_CALL cudaError_t cudaMemcpy2D(void* to, size_t to_pitch, const void* from,
                                              size_t from_pitch, size_t width, size_t height,
                                              enum cudaMemcpyKind kind) {
  const cudaError_t error = catenaryCheckRows(to_pitch, from_pitch, width, kind);
  if (error != cudaSuccess) return error;
  return catenaryToCuda(catMemcpy2D(to, to_pitch, from, from_pitch, width, height));
}
CATENARY_CUDART_CALL cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from,
                                                   size_t from_pitch, size_t width, size_t height,
                                                   enum cudaMemcpyKind kind,
                                                   cudaStream_t stream CATENARY_DEFAULT(0)) {
  const cudaError_t error = catenaryCheckRows(to_pitch, from_pitch, width, kind);
  if (error != cudaSuccess) return error;
  return catenaryToCuda(catMemcpy2DAsync(to, to_pitch, from, from_pitch, width, height, stream));
}
CATENARY_CUDART_CALL cudaError_t cudaMemset2D(void* memory, size_t pitch, int value, size_t width,
                                              size_t height) {
  const cudaError_t error = catenaryCheckRows(pitch, pitch, width, cudaMemcpyDefault);
  if (error != cudaSuccess) return error;
  return catenaryToCuda(catMemset2D(memory, pitch, value, width, height));
}
CATENARY_CUDART_CALL cudaError_t cudaMemset2DAsync(void* memory, size_t pitch, int value,
                                                   size_t width, size_t height,
                                                   cudaStream_t stream CATENARY_DEFAULT(0)) {
  const cudaError_t error = catenaryCheckRows(pitch, pitch, width, cudaMemcpyDefault);
  if (error != cudaSuccess) return error;
  return catenaryToCuda(catMemset2DAsync(memory, pitch, value, width, height, stream));
}
/* Rows begin where blocks may: as far apart as the alignment of catMalloc. */
CATENARY_CUDART_CALL cudaError_t cudaMallocPitch(void** memory, size_t* pitch, size_t width,
                                                 size_t height) {
  const size_t apart = (width + 255) / 256 * 256;
  cudaError_t error;
  if (pitch == NULL) return catenaryFail(cudaErrorInvalidValue);
  if (apart < width || (height != 0 && apart > (size_t)-1 / height)) {
    return catenaryFail(cudaErrorMemoryAllocation);
  }
  error = cudaMalloc(memory, apart * height);
  if (error == cudaSuccess) *pitch = apart;
  return error;
}

/* A hint, and the memory is where it should be. */
CATENARY_CUDART_CALL cudaError_t cudaMemPrefetchAsync(const void* memory, size_t bytes, int device,
                                                      cudaStream_t stream CATENARY_DEFAULT(0)) {
  (void)bytes;
  (void)device;
  (void)stream;
  return memory != NULL ? cudaSuccess : catenaryFail(cudaErrorInvalidValue);
}
/* Advice, which may be without effect: there is one place for memory, and all devices reach it. */
CATENARY_CUDART_CALL cudaError_t cudaMemAdvise(const void* memory, size_t bytes,
                                               enum cudaMemoryAdvise advice, int device) {
  catDeviceProperties known;
  if (memory == NULL || bytes == 0 || advice < cudaMemAdviseSetReadMostly ||
      advice > cudaMemAdviseUnsetAccessedBy) {
    return catenaryFail(cudaErrorInvalidValue);
  }
  /* These are not about a device. */
  if (advice == cudaMemAdviseSetReadMostly || advice == cudaMemAdviseUnsetReadMostly ||
      advice == cudaMemAdviseUnsetPreferredLocation || device == cudaCpuDeviceId) {
    return cudaSuccess;
  }
  return catenaryToCuda(catGetDeviceProperties(&known, device));
}

#endif /* CATENARY_CUDA_COMPAT_CUDA_MEMORY_COMPAT_H_ */
