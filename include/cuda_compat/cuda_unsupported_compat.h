/*
 * What has no meaning without a GPU: kernels, memory handles of CUDA. Programs that name these
 * calls compile, and learn by cudaErrorNotSupported that they cannot have them. A part of
 * cuda_runtime_api.h, which includes it.
 */
#ifndef CATENARY_CUDA_COMPAT_CUDA_UNSUPPORTED_COMPAT_H_
#define CATENARY_CUDA_COMPAT_CUDA_UNSUPPORTED_COMPAT_H_

/* The arguments are named in the calls' signatures only for the reader. */
#define CATENARY_UNUSED2(a, b) ((void)(a), (void)(b))
#define CATENARY_UNUSED3(a, b, c) ((void)(a), (void)(b), (void)(c))

CATENARY_CUDART_CALL cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block,
                                                  void** arguments, size_t shared_bytes,
                                                  cudaStream_t stream) {
  CATENARY_UNUSED3(function, grid, block);
  CATENARY_UNUSED3(arguments, shared_bytes, stream);
  return catenaryFail(cudaErrorNotSupported);
}

/* No function is one of a device. */
CATENARY_CUDART_CALL cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes* attributes,
                                                       const void* function) {
  CATENARY_UNUSED2(attributes, function);
  return catenaryFail(cudaErrorNotSupported);
}
CATENARY_CUDART_CALL cudaError_t cudaFuncSetAttribute(const void* function,
                                                      enum cudaFuncAttribute attribute, int value) {
  CATENARY_UNUSED3(function, attribute, value);
  return catenaryFail(cudaErrorNotSupported);
}
CATENARY_CUDART_CALL cudaError_t cudaFuncSetCacheConfig(const void* function,
                                                        enum cudaFuncCache config) {
  CATENARY_UNUSED2(function, config);
  return catenaryFail(cudaErrorNotSupported);
}
CATENARY_CUDART_CALL cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(
    int* blocks, const void* function, int block_size, size_t shared_bytes) {
  CATENARY_UNUSED2(blocks, function);
  CATENARY_UNUSED2(block_size, shared_bytes);
  return catenaryFail(cudaErrorNotSupported);
}

CATENARY_CUDART_CALL cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* memory) {
  CATENARY_UNUSED2(handle, memory);
  return catenaryFail(cudaErrorNotSupported);
}
CATENARY_CUDART_CALL cudaError_t cudaIpcOpenMemHandle(void** memory, cudaIpcMemHandle_t handle,
                                                      unsigned int flags) {
  CATENARY_UNUSED3(memory, handle, flags);
  return catenaryFail(cudaErrorNotSupported);
}
CATENARY_CUDART_CALL cudaError_t cudaIpcCloseMemHandle(void* memory) {
  (void)memory;
  return catenaryFail(cudaErrorNotSupported);
}
CATENARY_CUDART_CALL cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t* handle,
                                                       cudaEvent_t event) {
  CATENARY_UNUSED2(handle, event);
  return catenaryFail(cudaErrorNotSupported);
}
CATENARY_CUDART_CALL cudaError_t cudaIpcOpenEventHandle(cudaEvent_t* event,
                                                        cudaIpcEventHandle_t handle) {
  CATENARY_UNUSED2(event, handle);
  return catenaryFail(cudaErrorNotSupported);
}

#endif /* CATENARY_CUDA_COMPAT_CUDA_UNSUPPORTED_COMPAT_H_ */
