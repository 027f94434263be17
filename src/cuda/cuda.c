/* libcuda.so: the calls of cuda.h as symbols, for builds that link with -lcuda. */
#define CATENARY_CUDA_CALL __attribute__((visibility("default")))

#include "cuda.h"
