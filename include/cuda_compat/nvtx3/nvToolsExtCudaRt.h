/* Names for what the CUDA runtime makes; see nvToolsExt.h. */
#ifndef CATENARY_CUDA_COMPAT_NVTX3_NV_TOOLS_EXT_CUDA_RT_H_
#define CATENARY_CUDA_COMPAT_NVTX3_NV_TOOLS_EXT_CUDA_RT_H_

#include "../driver_types.h"
#include "nvToolsExt.h"

static inline void nvtxNameCudaDeviceA(int device, const char* name) {
  (void)device;
  (void)name;
}
static inline void nvtxNameCudaStreamA(cudaStream_t stream, const char* name) {
  (void)stream;
  (void)name;
}
static inline void nvtxNameCudaEventA(cudaEvent_t event, const char* name) {
  (void)event;
  (void)name;
}
#define nvtxNameCudaDevice nvtxNameCudaDeviceA
#define nvtxNameCudaStream nvtxNameCudaStreamA
#define nvtxNameCudaEvent nvtxNameCudaEventA

#endif /* CATENARY_CUDA_COMPAT_NVTX3_NV_TOOLS_EXT_CUDA_RT_H_ */
