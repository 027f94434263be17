/*
 * Holds include/nccl.h against facts.inc while it is compiled; it is never run. Compiled as C and
 * as C++, with nothing before nccl.h, after the compat headers, and after somebody else's CUDA
 * header.
 */
#include <limits.h>
#include <nccl.h>
#include <stddef.h>

#ifdef __cplusplus
#define CHECK(condition, text) static_assert(condition, text)
#else
#define CHECK(condition, text) _Static_assert(condition, text)
#endif

#define VALUE(name, value) CHECK((long long)(name) == (long long)(value), #name);
#define BYTES(type, bytes) CHECK(sizeof(type) == (bytes), "bytes of " #type);
#define FIELD(type, field, offset, bytes)                                  \
  CHECK(offsetof(type, field) == (offset), "offset of " #type "." #field); \
  CHECK(sizeof(((type*)0)->field) == (bytes), "bytes of " #type "." #field);
/* A pointer of the type that the facts give; a declaration of another type does not compile. */
#define FUNCTION(result, name, parameters)                      \
  result(*const points_to_nccl##name) parameters = &nccl##name; \
  result(*const points_to_pnccl##name) parameters = &pnccl##name;

#include "facts.inc"

#ifdef PLANTED_MISTAKE /* proves that a wrong fact is noticed */
VALUE(ncclMaxRedOp, 0x7ffffffe)
#endif

/* The initializers must be usable wherever a constant is. */
static const ncclConfig_t kConfig = NCCL_CONFIG_INITIALIZER;
static const ncclSimInfo_t kSimInfo = NCCL_SIM_INFO_INITIALIZER;
const void* const used[] = {&kConfig, &kSimInfo, NCCL_COMM_NULL, NCCL_CONFIG_UNDEF_PTR};
const float undefined_float = NCCL_UNDEF_FLOAT;
