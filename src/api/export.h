// How a function gets out of the library: as pncclX, strong, and as ncclX, a weak alias of it, so
// that profilers can put their own ncclX in between and still call ours.
#pragma once

#include "nccl.h"

#define CATENARY_EXPORT extern "C" __attribute__((visibility("default")))

// CATENARY_NCCL(ncclResult_t, GroupStart, (void)) { ... }
#define CATENARY_NCCL(result, name, parameters)                                             \
  CATENARY_EXPORT __attribute__((weak, alias("pnccl" #name))) result nccl##name parameters; \
  CATENARY_EXPORT result pnccl##name parameters
