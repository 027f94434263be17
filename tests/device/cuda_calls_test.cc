// Calls of CUDA that programs make beside their collectives: rows, pools, limits, graphs that are
// none, and the driver's calls.
#include <cuda.h>
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace {

TEST(CudaCapture, exchanges_the_mode_of_the_thread) {
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  ASSERT_EQ(cudaThreadExchangeStreamCaptureMode(&mode), cudaSuccess);
  EXPECT_EQ(mode, cudaStreamCaptureModeGlobal);
  std::thread([] {
    cudaStreamCaptureMode other = cudaStreamCaptureModeThreadLocal;
    EXPECT_EQ(cudaThreadExchangeStreamCaptureMode(&other), cudaSuccess);
    EXPECT_EQ(other, cudaStreamCaptureModeGlobal);
  }).join();
  ASSERT_EQ(cudaThreadExchangeStreamCaptureMode(&mode), cudaSuccess);
  EXPECT_EQ(mode, cudaStreamCaptureModeRelaxed);
  mode = static_cast<cudaStreamCaptureMode>(3);
  EXPECT_EQ(cudaThreadExchangeStreamCaptureMode(&mode), cudaErrorInvalidValue);
  EXPECT_EQ(cudaThreadExchangeStreamCaptureMode(nullptr), cudaErrorInvalidValue);
}

TEST(CudaCapture, is_never_going_on) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusActive;
  unsigned long long id = 0;
  cudaGraph_t graph = nullptr;
  const cudaGraphNode_t* dependencies = nullptr;
  std::size_t count = 0;
  EXPECT_EQ(cudaStreamGetCaptureInfo(nullptr, &status, &id, &graph, &dependencies, &count),
            cudaSuccess);
  EXPECT_EQ(status, cudaStreamCaptureStatusNone);
  status = cudaStreamCaptureStatusActive;
  EXPECT_EQ(cudaStreamGetCaptureInfo_v2(nullptr, &status), cudaSuccess);
  EXPECT_EQ(status, cudaStreamCaptureStatusNone);
  EXPECT_EQ(cudaStreamGetCaptureInfo(nullptr, nullptr), cudaErrorInvalidValue);
  EXPECT_EQ(cudaStreamGetCaptureInfo(reinterpret_cast<cudaStream_t>(&id), &status),
            cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaStreamUpdateCaptureDependencies(nullptr, nullptr, 0), cudaErrorNotSupported);
}

TEST(CudaGraph, cannot_be_had_and_leaves_no_handles) {
  int something = 0;
  auto graph = reinterpret_cast<cudaGraph_t>(&something);
  auto executable = reinterpret_cast<cudaGraphExec_t>(&something);
  auto node = reinterpret_cast<cudaGraphNode_t>(&something);
  auto object = reinterpret_cast<cudaUserObject_t>(&something);
  const auto destroy = [](void* data) { ++*static_cast<int*>(data); };
  EXPECT_EQ(cudaUserObjectCreate(&object, &something, destroy, 1, cudaUserObjectNoDestructorSync),
            cudaErrorNotSupported);
  EXPECT_EQ(cudaGraphRetainUserObject(graph, object, 1, cudaGraphUserObjectMove),
            cudaErrorNotSupported);
  EXPECT_EQ(cudaUserObjectRetain(object), cudaErrorNotSupported);
  EXPECT_EQ(cudaUserObjectRelease(object), cudaErrorNotSupported);
  EXPECT_EQ(cudaGraphReleaseUserObject(graph, object), cudaErrorNotSupported);
  EXPECT_EQ(cudaGraphAddEmptyNode(&node, graph, nullptr, 0), cudaErrorNotSupported);
  EXPECT_EQ(
      cudaGraphInstantiateWithFlags(&executable, graph, cudaGraphInstantiateFlagAutoFreeOnLaunch),
      cudaErrorNotSupported);
  EXPECT_EQ(cudaGraphUpload(executable, nullptr), cudaErrorNotSupported);
  cudaGraphExecUpdateResultInfo update;
  EXPECT_EQ(cudaGraphExecUpdate(executable, graph, &update), cudaErrorNotSupported);
  EXPECT_EQ(cudaGraphCreate(&graph, 0), cudaErrorNotSupported);
  EXPECT_EQ(graph, nullptr);
  EXPECT_EQ(executable, nullptr);
  EXPECT_EQ(node, nullptr);
  EXPECT_EQ(object, nullptr);
  EXPECT_EQ(something, 0);
}

__global__ void kernel(int*) {}

TEST(CudaKernel, has_no_attributes) {
  cudaFuncAttributes attributes;
  EXPECT_EQ(cudaFuncGetAttributes(&attributes, kernel), cudaErrorNotSupported);
  EXPECT_EQ(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 1024),
            cudaErrorNotSupported);
}

TEST(CudaRows, are_copied_and_filled_apart_from_what_lies_between) {
  char* memory = nullptr;
  std::size_t pitch = 0;
  ASSERT_EQ(cudaMallocPitch(&memory, &pitch, 5, 3), cudaSuccess);
  ASSERT_EQ(pitch, 256u);
  std::vector<char> from = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  std::vector<char> to(9);
  ASSERT_EQ(cudaMemset(memory, 7, pitch * 3), cudaSuccess);
  ASSERT_EQ(cudaMemcpy2D(memory, pitch, from.data(), 3, 3, 3, cudaMemcpyHostToDevice), cudaSuccess);
  EXPECT_EQ(memory[pitch + 2], 6);
  EXPECT_EQ(memory[pitch + 3], 7);
  ASSERT_EQ(cudaMemset2D(memory, pitch, 0, 1, 2), cudaSuccess);
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cudaMemset2DAsync(memory + 1, pitch, 20, 1, 3, stream), cudaSuccess);
  ASSERT_EQ(cudaMemcpy2DAsync(to.data(), 3, memory, pitch, 3, 3, cudaMemcpyDeviceToHost, stream),
            cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(to, (std::vector<char>{0, 20, 3, 0, 20, 6, 7, 20, 9}));
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
}

TEST(CudaRows, must_not_overlap_their_pitch_or_reach_nowhere) {
  char byte = 0;
  const auto kind = cudaMemcpyDefault;
  EXPECT_EQ(cudaMemcpy2D(&byte, 1, &byte, 2, 2, 1, kind), cudaErrorInvalidPitchValue);
  EXPECT_EQ(cudaMemcpy2DAsync(&byte, 2, &byte, 1, 2, 1, kind), cudaErrorInvalidPitchValue);
  EXPECT_EQ(cudaMemset2D(&byte, 1, 0, 2, 1), cudaErrorInvalidPitchValue);
  EXPECT_STREQ(cudaGetErrorName(cudaGetLastError()), "cudaErrorInvalidPitchValue");
  const auto no_kind = static_cast<cudaMemcpyKind>(5);
  EXPECT_EQ(cudaMemcpy2D(&byte, 1, &byte, 1, 1, 1, no_kind), cudaErrorInvalidMemcpyDirection);
  EXPECT_EQ(cudaMemcpy2D(nullptr, 1, &byte, 1, 1, 1, kind), cudaErrorInvalidValue);
  const std::size_t half = ~std::size_t{0} / 2;
  EXPECT_EQ(cudaMemset2DAsync(&byte, half, 0, 1, 3), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy2D(nullptr, 1, nullptr, 1, 0, 4, kind), cudaSuccess);
  EXPECT_EQ(cudaMemset2D(nullptr, 1, 0, 1, 0), cudaSuccess);
  std::size_t pitch = 0;
  void* memory = nullptr;
  EXPECT_EQ(cudaMallocPitch(&memory, &pitch, half, 3), cudaErrorMemoryAllocation);
}

TEST(CudaPool, is_one_for_each_device_and_gives_memory_of_it) {
  cudaMemPool_t pool = nullptr;
  cudaMemPool_t same = nullptr;
  cudaMemPool_t other = nullptr;
  ASSERT_EQ(cudaDeviceGetDefaultMemPool(&pool, 1), cudaSuccess);
  ASSERT_EQ(cudaDeviceGetMemPool(&same, 1), cudaSuccess);
  ASSERT_EQ(cudaDeviceGetMemPool(&other, 0), cudaSuccess);
  EXPECT_EQ(pool, same);
  EXPECT_NE(pool, other);
  EXPECT_EQ(cudaDeviceSetMemPool(1, pool), cudaSuccess);
  EXPECT_EQ(cudaDeviceSetMemPool(1, other), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemPoolTrimTo(pool, 0), cudaSuccess);
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  float* memory = nullptr;
  ASSERT_EQ(cudaMallocFromPoolAsync(&memory, 64, pool, nullptr), cudaSuccess);
  cudaPointerAttributes attributes;
  ASSERT_EQ(cudaPointerGetAttributes(&attributes, memory), cudaSuccess);
  EXPECT_EQ(attributes.device, 1);
  int current = -1;
  ASSERT_EQ(cudaGetDevice(&current), cudaSuccess);
  EXPECT_EQ(current, 0);
  EXPECT_EQ(cudaFreeAsync(memory, nullptr), cudaSuccess);
  EXPECT_EQ(cudaMallocAsync(&memory, 64, other, nullptr), cudaSuccess);
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
  EXPECT_EQ(cudaMallocFromPoolAsync(&memory, 64, nullptr, nullptr), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemPoolTrimTo(reinterpret_cast<cudaMemPool_t>(&memory), 0), cudaErrorInvalidValue);
}

TEST(CudaPool, keeps_its_attributes) {
  cudaMemPool_t pool = nullptr;
  cudaMemPool_t other = nullptr;
  ASSERT_EQ(cudaDeviceGetDefaultMemPool(&pool, 1), cudaSuccess);
  ASSERT_EQ(cudaDeviceGetDefaultMemPool(&other, 0), cudaSuccess);
  unsigned long long threshold = ~0ull;
  const auto attribute = cudaMemPoolAttrReleaseThreshold;
  ASSERT_EQ(cudaMemPoolSetAttribute(pool, attribute, &threshold), cudaSuccess);
  threshold = 1;
  ASSERT_EQ(cudaMemPoolGetAttribute(pool, attribute, &threshold), cudaSuccess);
  EXPECT_EQ(threshold, ~0ull);
  ASSERT_EQ(cudaMemPoolGetAttribute(other, attribute, &threshold), cudaSuccess);
  EXPECT_EQ(threshold, 0u);
  int reuse[2] = {1, 5};
  ASSERT_EQ(cudaMemPoolSetAttribute(pool, cudaMemPoolReuseAllowOpportunistic, reuse), cudaSuccess);
  reuse[0] = 0;
  ASSERT_EQ(cudaMemPoolGetAttribute(pool, cudaMemPoolReuseAllowOpportunistic, reuse), cudaSuccess);
  EXPECT_EQ(reuse[0], 1);
  EXPECT_EQ(reuse[1], 5);
  EXPECT_EQ(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &threshold),
            cudaErrorNotSupported);
  EXPECT_EQ(cudaMemPoolGetAttribute(pool, static_cast<cudaMemPoolAttr>(9), &threshold),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemPoolSetAttribute(pool, attribute, nullptr), cudaErrorInvalidValue);
}

TEST(CudaMemory, takes_advice_and_checks_it) {
  int memory = 0;
  const int no_device = 1 << 20;
  EXPECT_EQ(cudaMemAdvise(&memory, 4, cudaMemAdviseSetPreferredLocation, cudaCpuDeviceId),
            cudaSuccess);
  EXPECT_EQ(cudaMemAdvise(&memory, 4, cudaMemAdviseSetAccessedBy, 0), cudaSuccess);
  EXPECT_EQ(cudaMemAdvise(&memory, 4, cudaMemAdviseSetReadMostly, no_device), cudaSuccess);
  EXPECT_EQ(cudaMemAdvise(&memory, 4, cudaMemAdviseSetAccessedBy, no_device),
            cudaErrorInvalidDevice);
  EXPECT_EQ(cudaMemAdvise(nullptr, 4, cudaMemAdviseSetReadMostly, 0), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemAdvise(&memory, 0, cudaMemAdviseSetReadMostly, 0), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemAdvise(&memory, 4, static_cast<cudaMemoryAdvise>(7), 0), cudaErrorInvalidValue);
}

TEST(CudaDevice, keeps_flags_and_limits_until_it_is_reset) {
  ASSERT_EQ(cudaSetDevice(2), cudaSuccess);
  unsigned int flags = 9;
  ASSERT_EQ(cudaGetDeviceFlags(&flags), cudaSuccess);
  EXPECT_EQ(flags, 0u);
  ASSERT_EQ(cudaSetDeviceFlags(cudaDeviceScheduleYield), cudaSuccess);
  ASSERT_EQ(cudaDeviceSetLimit(cudaLimitStackSize, 4096), cudaSuccess);
  ASSERT_EQ(cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, 1), cudaSuccess);
  ASSERT_EQ(cudaGetDeviceFlags(&flags), cudaSuccess);
  EXPECT_EQ(flags, static_cast<unsigned>(cudaDeviceScheduleYield));
  std::size_t limit = 0;
  ASSERT_EQ(cudaDeviceGetLimit(&limit, cudaLimitStackSize), cudaSuccess);
  EXPECT_EQ(limit, 4096u);
  ASSERT_EQ(cudaDeviceGetLimit(&limit, cudaLimitMallocHeapSize), cudaSuccess);
  EXPECT_EQ(limit, 0u);
  ASSERT_EQ(cudaDeviceReset(), cudaSuccess);
  ASSERT_EQ(cudaDeviceGetLimit(&limit, cudaLimitStackSize), cudaSuccess);
  EXPECT_EQ(limit, 0u);
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  ASSERT_EQ(cudaInitDevice(2, cudaDeviceScheduleSpin, cudaInitDeviceFlagsAreValid), cudaSuccess);
  ASSERT_EQ(cudaInitDevice(2, 0, 0), cudaSuccess);
  ASSERT_EQ(cudaGetDeviceFlags(&flags), cudaSuccess);
  EXPECT_EQ(flags, 0u);
  ASSERT_EQ(cudaSetDevice(2), cudaSuccess);
  ASSERT_EQ(cudaGetDeviceFlags(&flags), cudaSuccess);
  EXPECT_EQ(flags, static_cast<unsigned>(cudaDeviceScheduleSpin));
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  EXPECT_EQ(cudaInitDevice(2, 0, 8), cudaErrorInvalidValue);
  EXPECT_EQ(cudaInitDevice(-1, 0, 0), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaDeviceSetLimit(static_cast<cudaLimit>(7), 1), cudaErrorInvalidValue);
  EXPECT_EQ(cudaDeviceGetLimit(nullptr, cudaLimitStackSize), cudaErrorInvalidValue);
}

TEST(CudaDevice, answers_what_programs_ask_of_it) {
  int value = -1;
  EXPECT_EQ(cudaDeviceGetAttribute(&value, cudaDevAttrClockRate, 0), cudaSuccess);
  EXPECT_EQ(value, 0);
  EXPECT_EQ(cudaDeviceGetAttribute(&value, cudaDevAttrMaxBlockDimZ, 0), cudaSuccess);
  EXPECT_EQ(value, 1);
  EXPECT_EQ(cudaDeviceGetAttribute(&value, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0),
            cudaSuccess);
  EXPECT_EQ(value, 0);
  EXPECT_EQ(cudaDeviceGetAttribute(&value, cudaDevAttrHostRegisterSupported, 0), cudaSuccess);
  EXPECT_EQ(value, 1);
  EXPECT_EQ(cudaDeviceGetAttribute(&value, static_cast<cudaDeviceAttr>(127), 0),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaDeviceGetP2PAttribute(&value, cudaDevP2PAttrAccessSupported, 0, 1), cudaSuccess);
  EXPECT_EQ(value, 1);
  EXPECT_EQ(cudaDeviceGetP2PAttribute(&value, cudaDevP2PAttrPerformanceRank, 0, 1), cudaSuccess);
  EXPECT_EQ(value, 0);
  EXPECT_EQ(cudaDeviceGetP2PAttribute(&value, cudaDevP2PAttrAccessSupported, 1, 1),
            cudaErrorInvalidDevice);
}

TEST(CudaStream, knows_its_device_and_number) {
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  int device = -1;
  EXPECT_EQ(cudaStreamGetDevice(stream, &device), cudaSuccess);
  EXPECT_EQ(device, 1);
  unsigned long long id = 0;
  unsigned long long of_default = 0;
  EXPECT_EQ(cudaStreamGetId(stream, &id), cudaSuccess);
  EXPECT_EQ(cudaStreamGetId(nullptr, &of_default), cudaSuccess);
  EXPECT_NE(id, of_default);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  EXPECT_EQ(cudaStreamGetId(stream, &id), cudaErrorInvalidResourceHandle);
}

TEST(CudaDriver, copies_memory_in_the_order_of_a_stream) {
  CUdeviceptr memory = 0;
  CUstream stream = nullptr;
  CUevent event = nullptr;
  ASSERT_EQ(cuMemAlloc(&memory, 8), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  ASSERT_EQ(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
  const int from[2] = {3, 4};
  int to[2] = {};
  ASSERT_EQ(cuMemcpyHtoDAsync(memory, from, sizeof from, stream), CUDA_SUCCESS);
  ASSERT_EQ(cuMemsetD8Async(memory, 0, 4, stream), CUDA_SUCCESS);
  ASSERT_EQ(cuMemcpyDtoHAsync(to, memory, sizeof to, stream), CUDA_SUCCESS);
  ASSERT_EQ(cuEventRecord(event, stream), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
  EXPECT_EQ(cuEventQuery(event), CUDA_SUCCESS);
  EXPECT_EQ(to[0], 0);
  EXPECT_EQ(to[1], 4);
  EXPECT_EQ(cuEventDestroy(event), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamDestroy(stream), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamDestroy(stream), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuMemFree(memory), CUDA_SUCCESS);
  EXPECT_EQ(cuMemAlloc(&memory, 0), CUDA_ERROR_INVALID_VALUE);
}

TEST(CudaDriver, names_its_errors_and_attributes) {
  const char* name = nullptr;
  EXPECT_EQ(cuGetErrorName(CUDA_ERROR_NOT_READY, &name), CUDA_SUCCESS);
  EXPECT_STREQ(name, "CUDA_ERROR_NOT_READY");
  EXPECT_EQ(cuGetErrorName(static_cast<CUresult>(1000), &name), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(name, nullptr);
  int value = -1;
  EXPECT_EQ(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0),
            CUDA_SUCCESS);
  EXPECT_EQ(value, 9);
  EXPECT_EQ(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, 0), CUDA_SUCCESS);
  EXPECT_EQ(value, 0);
  EXPECT_NE(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, -1),
            CUDA_SUCCESS);
  std::size_t bytes = 0;
  EXPECT_EQ(cuDeviceTotalMem(&bytes, 0), CUDA_SUCCESS);
  EXPECT_GT(bytes, 0u);
}

TEST(CudaDriver, finds_its_calls_by_their_names) {
  void* found = nullptr;
  CUdriverProcAddressQueryResult result = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  ASSERT_EQ(cuGetProcAddress("cuDeviceGetCount", &found, 12000, 0, &result), CUDA_SUCCESS);
  EXPECT_EQ(result, CU_GET_PROC_ADDRESS_SUCCESS);
  int count = 0;
  ASSERT_EQ(reinterpret_cast<CUresult (*)(int*)>(found)(&count), CUDA_SUCCESS);
  EXPECT_GT(count, 0);
  EXPECT_EQ(cuGetProcAddress("cuMulticastCreate", &found, 12000, 0, &result), CUDA_SUCCESS);
  EXPECT_EQ(result, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  EXPECT_EQ(found, nullptr);
  EXPECT_EQ(cuGetProcAddress("cuMulticastCreate", &found, 12000, 0, nullptr), CUDA_ERROR_NOT_FOUND);

  cudaDriverEntryPointQueryResult status = cudaDriverEntryPointSymbolNotFound;
  EXPECT_EQ(cudaGetDriverEntryPoint("cuInit", &found, cudaEnableDefault, &status), cudaSuccess);
  EXPECT_EQ(status, cudaDriverEntryPointSuccess);
  EXPECT_NE(found, nullptr);
  EXPECT_EQ(cudaGetDriverEntryPointByVersion("cuNothing", &found, 12000, 0, &status), cudaSuccess);
  EXPECT_EQ(status, cudaDriverEntryPointSymbolNotFound);
  EXPECT_EQ(found, nullptr);
  EXPECT_EQ(cudaGetDriverEntryPoint("cuNothing", &found, 0), cudaErrorSymbolNotFound);
  EXPECT_EQ(cudaGetDriverEntryPoint(nullptr, &found, 0), cudaErrorInvalidValue);
}

}  // namespace
