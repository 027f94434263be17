/*
 * The initializers' values, and that every function of facts.inc is really in the library, under
 * both names, and answers from C.
 */
#include <limits.h>
#include <nccl.h>
#include <stdio.h>
#include <string.h>

static int failures = 0;
#define EXPECT(condition)                                         \
  do {                                                            \
    if (!(condition)) {                                           \
      fprintf(stderr, "line %d: not %s\n", __LINE__, #condition); \
      ++failures;                                                 \
    }                                                             \
  } while (0)

static void check_initializers(void) {
  const ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  EXPECT(config.size == sizeof(ncclConfig_t));
  EXPECT(config.magic == 0xcafebeef);
  EXPECT(config.version == NCCL_VERSION_CODE);
  EXPECT(config.blocking == INT_MIN && config.cgaClusterSize == INT_MIN);
  EXPECT(config.minCTAs == INT_MIN && config.maxCTAs == INT_MIN);
  EXPECT(config.netName == NULL && config.commName == NULL);
  EXPECT(config.splitShare == INT_MIN && config.trafficClass == INT_MIN);
  EXPECT(config.collnetEnable == INT_MIN && config.CTAPolicy == INT_MIN);
  EXPECT(config.shrinkShare == INT_MIN && config.nvlsCTAs == INT_MIN);

  const ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
  EXPECT(info.size == sizeof(ncclSimInfo_t));
  EXPECT(info.magic == 0x74685283);
  EXPECT(info.version == NCCL_VERSION_CODE);
  EXPECT(info.estimatedTime == -1.0f);
}

static void check_error_strings(void) {
  static const char* const kTexts[] = {
      "no error",
      "unhandled cuda error (run with NCCL_DEBUG=INFO for details)",
      "unhandled system error (run with NCCL_DEBUG=INFO for details)",
      "internal error", /* and whom to tell, which is not NVIDIA */
      "invalid argument (run with NCCL_DEBUG=WARN for details)",
      "invalid usage (run with NCCL_DEBUG=WARN for details)",
      "remote process exited or there was a network error",
      "NCCL operation in progress",
  };
  for (int code = 0; code < ncclNumResults; ++code) {
    const char* text = ncclGetErrorString((ncclResult_t)code);
    EXPECT(text != NULL && strncmp(text, kTexts[code], strlen(kTexts[code])) == 0);
  }
  EXPECT(strcmp(ncclGetErrorString((ncclResult_t)1000), "unknown result code") == 0);
}

static void check_symbols(void) {
  int count = 0;
#define VALUE(name, value)
#define BYTES(type, bytes)
#define FIELD(type, field, offset, bytes)
#define FUNCTION(result, name, parameters)            \
  {                                                   \
    result(*volatile plain) parameters = &nccl##name; \
    result(*volatile twin) parameters = &pnccl##name; \
    EXPECT(plain != NULL && twin != NULL);            \
    ++count;                                          \
  }
#include "facts.inc"
  EXPECT(count == 40);
}

int main(void) {
  check_initializers();
  check_error_strings();
  check_symbols();
  int version = 0;
  EXPECT(ncclGetVersion(&version) == ncclSuccess && version == NCCL_VERSION_CODE);
  EXPECT(pncclGetVersion(&version) == ncclSuccess && version == NCCL_VERSION_CODE);
  EXPECT(ncclGetVersion(NULL) == ncclInvalidArgument);
  EXPECT(ncclGetLastError(NULL) != NULL);
  return failures != 0;
}
