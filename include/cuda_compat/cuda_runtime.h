/*
 * The CUDA runtime on Catenary's simulated devices; see cuda_runtime_api.h. For C++ this adds the
 * overloads that take typed pointers.
 */
#ifndef CATENARY_CUDA_COMPAT_CUDA_RUNTIME_H_
#define CATENARY_CUDA_COMPAT_CUDA_RUNTIME_H_

#include "cuda_runtime_api.h"
#include "library_types.h"
#include "vector_functions.h"

#ifdef __cplusplus

template <typename T>
static inline cudaError_t cudaMalloc(T** memory, size_t bytes) {
  return cudaMalloc(reinterpret_cast<void**>(memory), bytes);
}
template <typename T>
static inline cudaError_t cudaMallocHost(T** memory, size_t bytes, unsigned int flags = 0) {
  return cudaHostAlloc(reinterpret_cast<void**>(memory), bytes, flags);
}
template <typename T>
static inline cudaError_t cudaHostAlloc(T** memory, size_t bytes, unsigned int flags) {
  return cudaHostAlloc(reinterpret_cast<void**>(memory), bytes, flags);
}
template <typename T>
static inline cudaError_t cudaMallocManaged(T** memory, size_t bytes,
                                            unsigned int flags = cudaMemAttachGlobal) {
  return cudaMallocManaged(reinterpret_cast<void**>(memory), bytes, flags);
}
template <typename T>
static inline cudaError_t cudaMallocAsync(T** memory, size_t bytes, cudaStream_t stream) {
  return cudaMallocAsync(reinterpret_cast<void**>(memory), bytes, stream);
}
template <typename T>
static inline cudaError_t cudaHostGetDevicePointer(T** device_pointer, void* memory,
                                                   unsigned int flags) {
  return cudaHostGetDevicePointer(reinterpret_cast<void**>(device_pointer), memory, flags);
}
static inline cudaError_t cudaEventCreate(cudaEvent_t* event, unsigned int flags) {
  return cudaEventCreateWithFlags(event, flags);
}
template <typename Function>
static inline cudaError_t cudaLaunchKernel(Function* function, dim3 grid, dim3 block,
                                           void** arguments, size_t shared_bytes = 0,
                                           cudaStream_t stream = nullptr) {
  return cudaLaunchKernel(reinterpret_cast<const void*>(function), grid, block, arguments,
                          shared_bytes, stream);
}
template <typename T>
static inline cudaError_t cudaMallocPitch(T** memory, size_t* pitch, size_t width, size_t height) {
  return cudaMallocPitch(reinterpret_cast<void**>(memory), pitch, width, height);
}
template <typename T>
static inline cudaError_t cudaMallocFromPoolAsync(T** memory, size_t bytes, cudaMemPool_t pool,
                                                  cudaStream_t stream) {
  return cudaMallocFromPoolAsync(reinterpret_cast<void**>(memory), bytes, pool, stream);
}
/* The same by the name that the pool only adds to. */
template <typename T>
static inline cudaError_t cudaMallocAsync(T** memory, size_t bytes, cudaMemPool_t pool,
                                          cudaStream_t stream) {
  return cudaMallocFromPoolAsync(reinterpret_cast<void**>(memory), bytes, pool, stream);
}
template <typename Function>
static inline cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes,
                                                Function* function) {
  return cudaFuncGetAttributes(attributes, reinterpret_cast<const void*>(function));
}
template <typename Function>
static inline cudaError_t cudaFuncSetAttribute(Function* function, cudaFuncAttribute attribute,
                                               int value) {
  return cudaFuncSetAttribute(reinterpret_cast<const void*>(function), attribute, value);
}
/* The form of CUDA 11. */
static inline cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                               cudaGraphNode_t* error_node, char* log,
                                               size_t log_bytes) {
  CATENARY_UNUSED3(error_node, log, log_bytes);
  return cudaGraphInstantiate(executable, graph, 0ull);
}

#endif /* __cplusplus */

#endif /* CATENARY_CUDA_COMPAT_CUDA_RUNTIME_H_ */
