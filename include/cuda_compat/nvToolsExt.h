/* NVTX under the name of its second version. */
#ifndef CATENARY_CUDA_COMPAT_NV_TOOLS_EXT_H_
#define CATENARY_CUDA_COMPAT_NV_TOOLS_EXT_H_

#include "nvtx3/nvToolsExt.h"

#endif /* CATENARY_CUDA_COMPAT_NV_TOOLS_EXT_H_ */
