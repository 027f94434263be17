/* CUDA's types in one, under the name that some programs know. */
#ifndef CATENARY_CUDA_COMPAT_BUILTIN_TYPES_H_
#define CATENARY_CUDA_COMPAT_BUILTIN_TYPES_H_

#include "driver_types.h"
#include "library_types.h"
#include "vector_types.h"

#endif /* CATENARY_CUDA_COMPAT_BUILTIN_TYPES_H_ */
