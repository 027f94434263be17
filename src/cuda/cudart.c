/* libcudart.so: the calls of include/cuda_compat as symbols, for builds that link with -lcudart. */
#define CATENARY_CUDART_CALL __attribute__((visibility("default")))

#include "cuda_profiler_api.h"
#include "cuda_runtime_api.h"
