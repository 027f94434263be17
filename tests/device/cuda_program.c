/* A C program for CUDA, as people write them; part of cuda_compat_test. */
#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_profiler_api.h>
#include <cuda_runtime.h>
#include <nvtx3/nvToolsExt.h>
#include <string.h>

#define CHECK(call)                            \
  do {                                         \
    const cudaError_t error = (call);          \
    if (error != cudaSuccess) return __LINE__; \
  } while (0)

static void add_one(void* data) { ++*(int*)data; }

static void on_stream(cudaStream_t stream, cudaError_t status, void* data) {
  if (stream != NULL && status == cudaSuccess) ++*(int*)data;
}

/* Calls that have other forms in C++. */
static int use_rows_and_pools(void) {
  char* memory = NULL;
  size_t pitch = 0;
  cudaMemPool_t pool = NULL;
  unsigned long long threshold = 5;
  enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusActive;
  struct cudaFuncAttributes attributes;
  const int2 pair = make_int2(1, 2);
  void* found = NULL;
  CHECK(cudaMallocPitch((void**)&memory, &pitch, 3, 2));
  CHECK(cudaMemset2DAsync(memory, pitch, pair.y, 3, 2, NULL));
  CHECK(cudaDeviceSynchronize());
  if (memory[pitch + 2] != 2) return __LINE__;
  CHECK(cudaFree(memory));
  CHECK(cudaDeviceGetDefaultMemPool(&pool, 0));
  CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
  CHECK(cudaMallocFromPoolAsync((void**)&memory, 16, pool, NULL));
  CHECK(cudaFreeAsync(memory, NULL));
  CHECK(cudaStreamGetCaptureInfo(NULL, &status, NULL, NULL, NULL, NULL));
  if (status != cudaStreamCaptureStatusNone) return __LINE__;
  if (cudaFuncGetAttributes(&attributes, NULL) != cudaErrorNotSupported) return __LINE__;
  CHECK(cudaGetDriverEntryPoint("cuInit", &found, cudaEnableDefault, NULL));
  if (found == NULL) return __LINE__;
  return 0;
}

/* 0, or the line that went wrong. */
int run_cuda_program(void);
int run_cuda_program(void) {
  enum { kCount = 100000 };
  static float from[kCount], to[kCount];
  float* memory = NULL;
  int* pinned = NULL;
  float ms = -1;
  int devices = 0;
  cudaStream_t stream = NULL;
  CHECK(cudaProfilerStart());
  CHECK(cudaProfilerStop());
  cudaEvent_t start, stop;
  cudaDeviceProp properties;
  const int line = use_rows_and_pools();
  if (line != 0) return line;
  nvtxRangePush("copies");
  for (int i = 0; i < kCount; ++i) from[i] = (float)i;
  CHECK(cudaGetDeviceCount(&devices));
  CHECK(cudaSetDevice(0));
  CHECK(cudaGetDeviceProperties(&properties, 0));
  CHECK(cudaMalloc((void**)&memory, sizeof from));
  CHECK(cudaMallocHost((void**)&pinned, sizeof(int)));
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CHECK(cudaEventCreate(&start));
  CHECK(cudaEventCreateWithFlags(&stop, cudaEventDefault));
  *pinned = 0;
  CHECK(cudaEventRecord(start, stream));
  CHECK(cudaMemcpyAsync(memory, from, sizeof from, cudaMemcpyHostToDevice, stream));
  CHECK(cudaMemcpyAsync(to, memory, sizeof from, cudaMemcpyDeviceToHost, stream));
  CHECK(cudaLaunchHostFunc(stream, add_one, pinned));
  CHECK(cudaStreamAddCallback(stream, on_stream, pinned, 0));
  CHECK(cudaEventRecord(stop, stream));
  CHECK(cudaStreamSynchronize(stream));
  CHECK(cudaEventElapsedTime(&ms, start, stop));
  if (memcmp(from, to, sizeof from) != 0 || *pinned != 2 || ms < 0) return __LINE__;
  CHECK(cudaMemset(memory, 0, sizeof from));
  CHECK(cudaMemcpy(to, memory, sizeof from, cudaMemcpyDefault));
  if (to[kCount - 1] != 0) return __LINE__;
  if (__half2float(__float2half(1.5f)) != 1.5f) return __LINE__;
  if (__bfloat162float(__float2bfloat16(-2.0f)) != -2.0f) return __LINE__;
  CHECK(cudaEventDestroy(start));
  CHECK(cudaEventDestroy(stop));
  CHECK(cudaStreamDestroy(stream));
  CHECK(cudaFree(memory));
  CHECK(cudaFreeHost(pinned));
  nvtxRangePop();
  CHECK(cudaDeviceSynchronize());
  return 0;
}
