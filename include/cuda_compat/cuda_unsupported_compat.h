/*
 * What has no meaning without a GPU: kernels, graphs, memory handles of CUDA. Programs that name
 * these calls compile, and learn by cudaErrorNotSupported that they cannot have them. A part of
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

/* Nothing is ever being captured. */
CATENARY_CUDART_CALL cudaError_t cudaStreamIsCapturing(cudaStream_t stream,
                                                       enum cudaStreamCaptureStatus* status) {
  unsigned int flags = 0;
  if (status == NULL) return catenaryFail(cudaErrorInvalidValue);
  *status = cudaStreamCaptureStatusNone;
  return catenaryToCuda(catStreamGetFlags(stream, &flags));
}
CATENARY_CUDART_CALL cudaError_t cudaStreamBeginCapture(cudaStream_t stream,
                                                        enum cudaStreamCaptureMode mode) {
  CATENARY_UNUSED2(stream, mode);
  return catenaryFail(cudaErrorNotSupported);
}
CATENARY_CUDART_CALL cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  (void)stream;
  if (graph != NULL) *graph = NULL;
  return catenaryFail(cudaErrorNotSupported);
}
CATENARY_CUDART_CALL cudaError_t cudaGraphInstantiate(
    cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long flags CATENARY_DEFAULT(0)) {
  CATENARY_UNUSED2(graph, flags);
  if (executable != NULL) *executable = NULL;
  return catenaryFail(cudaErrorNotSupported);
}
CATENARY_CUDART_CALL cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  CATENARY_UNUSED2(executable, stream);
  return catenaryFail(cudaErrorNotSupported);
}
CATENARY_CUDART_CALL cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  (void)executable;
  return catenaryFail(cudaErrorNotSupported);
}
CATENARY_CUDART_CALL cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  (void)graph;
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
