/*
 * Graphs: nothing is ever being captured, which is told as it is, and there are none to be made or
 * run, which the calls say by cudaErrorNotSupported. A part of cuda_runtime_api.h, which includes
 * it.
 */
#ifndef CATENARY_CUDA_COMPAT_CUDA_GRAPHS_COMPAT_H_
#define CATENARY_CUDA_COMPAT_CUDA_GRAPHS_COMPAT_H_

/* ---- Capturing. ---- */

CATENARY_CUDART_CALL cudaError_t cudaStreamIsCapturing(cudaStream_t stream,
                                                       enum cudaStreamCaptureStatus* status) {
  unsigned int flags = 0;
  if (status == NULL) return catenaryFail(cudaErrorInvalidValue);
  *status = cudaStreamCaptureStatusNone;
  return catenaryToCuda(catStreamGetFlags(stream, &flags));
}
CATENARY_CUDART_CALL cudaError_t cudaStreamGetCaptureInfo(
    cudaStream_t stream, enum cudaStreamCaptureStatus* status,
    unsigned long long* id CATENARY_DEFAULT(0), cudaGraph_t* graph CATENARY_DEFAULT(0),
    const cudaGraphNode_t** dependencies CATENARY_DEFAULT(0),
    size_t* dependency_count CATENARY_DEFAULT(0)) {
  /* Of a stream that captures nothing there is no more to tell, with CUDA neither. */
  CATENARY_UNUSED2(id, graph);
  CATENARY_UNUSED2(dependencies, dependency_count);
  return cudaStreamIsCapturing(stream, status);
}
/* The name that programs of CUDA 11 call it by. */
#define cudaStreamGetCaptureInfo_v2 cudaStreamGetCaptureInfo

/* What the thread forbids itself while others capture: kept for it, and without effect, since none
 * of them does. */
CATENARY_CUDART_CALL cudaError_t
cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode* mode) {
  unsigned long long note;
  cudaError_t error;
  if (mode == NULL || (unsigned int)*mode > (unsigned int)cudaStreamCaptureModeRelaxed) {
    return catenaryFail(cudaErrorInvalidValue);
  }
  note = (unsigned long long)*mode;
  error = catenaryToCuda(catThreadExchangeNote(&note));
  if (error == cudaSuccess) *mode = (enum cudaStreamCaptureMode)note;
  return error;
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
CATENARY_CUDART_CALL cudaError_t
cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t* dependencies,
                                    size_t count, unsigned int flags CATENARY_DEFAULT(0)) {
  CATENARY_UNUSED2(stream, dependencies);
  CATENARY_UNUSED2(count, flags);
  return catenaryFail(cudaErrorNotSupported);
}

/* ---- Making graphs. ---- */

CATENARY_CUDART_CALL cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned int flags) {
  (void)flags;
  if (graph != NULL) *graph = NULL;
  return catenaryFail(cudaErrorNotSupported);
}
CATENARY_CUDART_CALL cudaError_t cudaGraphClone(cudaGraph_t* clone, cudaGraph_t graph) {
  (void)graph;
  if (clone != NULL) *clone = NULL;
  return catenaryFail(cudaErrorNotSupported);
}
CATENARY_CUDART_CALL cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                                       const cudaGraphNode_t* dependencies,
                                                       size_t count) {
  CATENARY_UNUSED3(graph, dependencies, count);
  if (node != NULL) *node = NULL;
  return catenaryFail(cudaErrorNotSupported);
}
CATENARY_CUDART_CALL cudaError_t cudaGraphAddHostNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                                      const cudaGraphNode_t* dependencies,
                                                      size_t count,
                                                      const struct cudaHostNodeParams* parameters) {
  CATENARY_UNUSED2(graph, dependencies);
  CATENARY_UNUSED2(count, parameters);
  if (node != NULL) *node = NULL;
  return catenaryFail(cudaErrorNotSupported);
}
CATENARY_CUDART_CALL cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t* node,
                                                            cudaGraph_t graph,
                                                            const cudaGraphNode_t* dependencies,
                                                            size_t count, cudaGraph_t child) {
  CATENARY_UNUSED2(graph, dependencies);
  CATENARY_UNUSED2(count, child);
  if (node != NULL) *node = NULL;
  return catenaryFail(cudaErrorNotSupported);
}
CATENARY_CUDART_CALL cudaError_t cudaGraphAddEventRecordNode(cudaGraphNode_t* node,
                                                             cudaGraph_t graph,
                                                             const cudaGraphNode_t* dependencies,
                                                             size_t count, cudaEvent_t event) {
  CATENARY_UNUSED2(graph, dependencies);
  CATENARY_UNUSED2(count, event);
  if (node != NULL) *node = NULL;
  return catenaryFail(cudaErrorNotSupported);
}
CATENARY_CUDART_CALL cudaError_t cudaGraphAddEventWaitNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                                           const cudaGraphNode_t* dependencies,
                                                           size_t count, cudaEvent_t event) {
  CATENARY_UNUSED2(graph, dependencies);
  CATENARY_UNUSED2(count, event);
  if (node != NULL) *node = NULL;
  return catenaryFail(cudaErrorNotSupported);
}
CATENARY_CUDART_CALL cudaError_t cudaGraphAddDependencies(cudaGraph_t graph,
                                                          const cudaGraphNode_t* from,
                                                          const cudaGraphNode_t* to, size_t count) {
  CATENARY_UNUSED2(graph, from);
  CATENARY_UNUSED2(to, count);
  return catenaryFail(cudaErrorNotSupported);
}
CATENARY_CUDART_CALL cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes,
                                                   size_t* count) {
  CATENARY_UNUSED3(graph, nodes, count);
  return catenaryFail(cudaErrorNotSupported);
}
CATENARY_CUDART_CALL cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t* nodes,
                                                       size_t* count) {
  CATENARY_UNUSED3(graph, nodes, count);
  return catenaryFail(cudaErrorNotSupported);
}
CATENARY_CUDART_CALL cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node,
                                                      enum cudaGraphNodeType* type) {
  CATENARY_UNUSED2(node, type);
  return catenaryFail(cudaErrorNotSupported);
}
CATENARY_CUDART_CALL cudaError_t cudaGraphDestroyNode(cudaGraphNode_t node) {
  (void)node;
  return catenaryFail(cudaErrorNotSupported);
}
CATENARY_CUDART_CALL cudaError_t cudaGraphDebugDotPrint(cudaGraph_t graph, const char* path,
                                                        unsigned int flags) {
  CATENARY_UNUSED3(graph, path, flags);
  return catenaryFail(cudaErrorNotSupported);
}

/* ---- What graphs keep alive. ---- */

CATENARY_CUDART_CALL cudaError_t cudaUserObjectCreate(cudaUserObject_t* object, void* data,
                                                      cudaHostFn_t destroy, unsigned int references,
                                                      unsigned int flags) {
  CATENARY_UNUSED2(data, destroy);
  CATENARY_UNUSED2(references, flags);
  if (object != NULL) *object = NULL;
  return catenaryFail(cudaErrorNotSupported);
}
CATENARY_CUDART_CALL cudaError_t cudaUserObjectRetain(cudaUserObject_t object,
                                                      unsigned int references CATENARY_DEFAULT(1)) {
  CATENARY_UNUSED2(object, references);
  return catenaryFail(cudaErrorNotSupported);
}
CATENARY_CUDART_CALL cudaError_t
cudaUserObjectRelease(cudaUserObject_t object, unsigned int references CATENARY_DEFAULT(1)) {
  CATENARY_UNUSED2(object, references);
  return catenaryFail(cudaErrorNotSupported);
}
CATENARY_CUDART_CALL cudaError_t cudaGraphRetainUserObject(
    cudaGraph_t graph, cudaUserObject_t object, unsigned int references CATENARY_DEFAULT(1),
    unsigned int flags CATENARY_DEFAULT(0)) {
  CATENARY_UNUSED2(graph, object);
  CATENARY_UNUSED2(references, flags);
  return catenaryFail(cudaErrorNotSupported);
}
CATENARY_CUDART_CALL cudaError_t cudaGraphReleaseUserObject(
    cudaGraph_t graph, cudaUserObject_t object, unsigned int references CATENARY_DEFAULT(1)) {
  CATENARY_UNUSED3(graph, object, references);
  return catenaryFail(cudaErrorNotSupported);
}

/* ---- Running graphs. ---- */

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
CATENARY_CUDART_CALL cudaError_t cudaGraphInstantiateWithFlags(
    cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long flags CATENARY_DEFAULT(0)) {
  return cudaGraphInstantiate(executable, graph, flags);
}
CATENARY_CUDART_CALL cudaError_t cudaGraphUpload(cudaGraphExec_t executable, cudaStream_t stream) {
  CATENARY_UNUSED2(executable, stream);
  return catenaryFail(cudaErrorNotSupported);
}
CATENARY_CUDART_CALL cudaError_t cudaGraphExecUpdate(cudaGraphExec_t executable, cudaGraph_t graph,
                                                     cudaGraphExecUpdateResultInfo* result) {
  CATENARY_UNUSED3(executable, graph, result);
  return catenaryFail(cudaErrorNotSupported);
}
CATENARY_CUDART_CALL cudaError_t cudaGraphExecGetFlags(cudaGraphExec_t executable,
                                                       unsigned long long* flags) {
  CATENARY_UNUSED2(executable, flags);
  return catenaryFail(cudaErrorNotSupported);
}

#endif /* CATENARY_CUDA_COMPAT_CUDA_GRAPHS_COMPAT_H_ */
