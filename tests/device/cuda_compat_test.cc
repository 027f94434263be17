// The C boundary of devices, through the names of CUDA, from C++ and from C.
#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <thread>
#include <vector>

extern "C" int run_cuda_program(void);

namespace {

__global__ void kernel(int*) {}

TEST(CudaCompat, runs_a_program_written_in_c) { EXPECT_EQ(run_cuda_program(), 0); }

TEST(CudaCompat, takes_typed_pointers) {
  float* device = nullptr;
  double* pinned = nullptr;
  int* managed = nullptr;
  char* mapped = nullptr;
  ASSERT_EQ(cudaMalloc(&device, 100), cudaSuccess);
  ASSERT_EQ(cudaMallocHost(&pinned, 100), cudaSuccess);
  ASSERT_EQ(cudaMallocManaged(&managed, 100), cudaSuccess);
  ASSERT_EQ(cudaHostAlloc(&mapped, 100, cudaHostAllocMapped), cudaSuccess);
  cudaPointerAttributes attributes;
  EXPECT_EQ(cudaPointerGetAttributes(&attributes, device + 3), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeDevice);
  EXPECT_EQ(cudaPointerGetAttributes(&attributes, pinned), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeHost);
  EXPECT_EQ(cudaPointerGetAttributes(&attributes, &attributes), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeUnregistered);
  EXPECT_EQ(cudaFree(device), cudaSuccess);
  EXPECT_EQ(cudaFree(managed), cudaSuccess);
  EXPECT_EQ(cudaFreeHost(pinned), cudaSuccess);
  EXPECT_EQ(cudaFreeHost(mapped), cudaSuccess);
  EXPECT_EQ(cudaFree(nullptr), cudaSuccess);
}

TEST(CudaCompat, answers_not_ready_and_does_not_keep_it) {
  cudaGetLastError();
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cudaEventCreate(&event, cudaEventDisableTiming), cudaSuccess);
  std::atomic<bool> leave{false};
  ASSERT_EQ(cudaLaunchHostFunc(
                stream,
                [](void* data) {
                  while (!*static_cast<std::atomic<bool>*>(data)) std::this_thread::yield();
                },
                &leave),
            cudaSuccess);
  ASSERT_EQ(cudaEventRecord(event, stream), cudaSuccess);
  EXPECT_EQ(cudaStreamQuery(stream), cudaErrorNotReady);
  EXPECT_EQ(cudaEventQuery(event), cudaErrorNotReady);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  leave = true;
  while (cudaStreamQuery(stream) == cudaErrorNotReady) std::this_thread::yield();
  EXPECT_EQ(cudaEventQuery(event), cudaSuccess);
  EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

TEST(CudaCompat, tells_handles_that_are_none) {
  int something = 0;
  auto* stream = reinterpret_cast<cudaStream_t>(&something);
  auto* event = reinterpret_cast<cudaEvent_t>(&something);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaStreamDestroy(nullptr), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaEventRecord(event, nullptr), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaEventSynchronize(nullptr), cudaErrorInvalidResourceHandle);
  ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  EXPECT_EQ(cudaStreamQuery(stream), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaStreamSynchronize(cudaStreamLegacy), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(cudaStreamPerThread), cudaSuccess);
}

TEST(CudaCompat, gives_each_thread_a_stream_of_its_own) {
  std::atomic<bool> may_end{false};
  const auto wait = [](void* flag) {
    while (!static_cast<std::atomic<bool>*>(flag)->load()) std::this_thread::yield();
  };
  ASSERT_EQ(cudaLaunchHostFunc(cudaStreamPerThread, wait, &may_end), cudaSuccess);
  EXPECT_EQ(cudaStreamQuery(cudaStreamPerThread), cudaErrorNotReady);
  std::thread([] {
    EXPECT_EQ(cudaStreamQuery(cudaStreamPerThread), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(cudaStreamPerThread), cudaErrorInvalidResourceHandle);
  }).join();
  may_end = true;
  EXPECT_EQ(cudaStreamSynchronize(cudaStreamPerThread), cudaSuccess);
  EXPECT_EQ(cudaStreamQuery(cudaStreamPerThread), cudaSuccess);
}

TEST(CudaCompat, makes_a_threads_stream_again_after_a_reset) {
  ASSERT_EQ(cudaStreamSynchronize(cudaStreamPerThread), cudaSuccess);
  ASSERT_EQ(cudaDeviceReset(), cudaSuccess);
  int value = 1;
  ASSERT_EQ(cudaMemsetAsync(&value, 0, sizeof value, cudaStreamPerThread), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(cudaStreamPerThread), cudaSuccess);
  EXPECT_EQ(value, 0);
}

TEST(CudaCompat, keeps_the_last_error_of_a_thread_and_its_story) {
  int local = 0;
  cudaGetLastError();
  EXPECT_EQ(cudaFree(&local), cudaErrorInvalidValue);
  EXPECT_NE(std::string(catGetLastErrorMessage()).find("not the start of a block"),
            std::string::npos);
  EXPECT_EQ(cudaSetDevice(-1), cudaErrorInvalidDevice);
  std::thread([] { EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess); }).join();
  EXPECT_EQ(cudaPeekAtLastError(), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_STREQ(cudaGetErrorName(cudaErrorNotReady), "cudaErrorNotReady");
  EXPECT_STREQ(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory");
}

TEST(CudaCompat, refuses_null_pointers_and_unknown_flags) {
  EXPECT_EQ(cudaGetDeviceCount(nullptr), cudaErrorInvalidValue);
  EXPECT_EQ(cudaStreamCreate(nullptr), cudaErrorInvalidValue);
  cudaStream_t stream = nullptr;
  EXPECT_EQ(cudaStreamCreateWithFlags(&stream, 64), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(nullptr, nullptr, 4, cudaMemcpyDefault), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(nullptr, nullptr, 0, cudaMemcpyDefault), cudaSuccess);
  EXPECT_EQ(cudaMemset(nullptr, 0, 4), cudaErrorInvalidValue);
  EXPECT_EQ(cudaLaunchHostFunc(nullptr, nullptr, nullptr), cudaErrorInvalidValue);
  const auto no_kind = static_cast<cudaMemcpyKind>(5);
  EXPECT_EQ(cudaMemcpy(&stream, &stream, 0, no_kind), cudaErrorInvalidMemcpyDirection);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidMemcpyDirection);
}

TEST(CudaCompat, says_so_where_it_cannot) {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  EXPECT_EQ(cudaLaunchKernel(kernel, dim3(1), dim3(32), nullptr), cudaErrorNotSupported);
  EXPECT_EQ(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeGlobal), cudaErrorNotSupported);
  EXPECT_EQ(cudaStreamEndCapture(nullptr, &graph), cudaErrorNotSupported);
  EXPECT_EQ(cudaGraphInstantiate(&executable, graph, nullptr, nullptr, 0), cudaErrorNotSupported);
  EXPECT_EQ(cudaGraphInstantiate(&executable, graph), cudaErrorNotSupported);
  EXPECT_EQ(cudaGraphLaunch(executable, nullptr), cudaErrorNotSupported);
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusActive;
  EXPECT_EQ(cudaStreamIsCapturing(nullptr, &status), cudaSuccess);
  EXPECT_EQ(status, cudaStreamCaptureStatusNone);
}

TEST(CudaCompat, describes_its_devices) {
  cudaDeviceProp properties;
  ASSERT_EQ(cudaGetDeviceProperties(&properties, 1), cudaSuccess);
  EXPECT_STREQ(properties.name, "Catenary simulated device");
  EXPECT_GT(properties.totalGlobalMem, 0u);
  int bus = 0;
  ASSERT_EQ(cudaDeviceGetAttribute(&bus, cudaDevAttrPciBusId, 1), cudaSuccess);
  EXPECT_EQ(bus, properties.pciBusID);
  char id[16];
  ASSERT_EQ(cudaDeviceGetPCIBusId(id, sizeof id, 0), cudaSuccess);
  int device = -1;
  ASSERT_EQ(cudaDeviceGetByPCIBusId(&device, id), cudaSuccess);
  EXPECT_EQ(device, 0);
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  ASSERT_EQ(cudaMemGetInfo(&free_bytes, &total_bytes), cudaSuccess);
  EXPECT_LE(free_bytes, total_bytes);
}

TEST(CudaCompat, copies_wait_for_blocking_streams) {
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
  int source = 1;
  int target = 0;
  cudaLaunchHostFunc(
      stream,
      [](void* data) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
        *static_cast<int*>(data) = 2;
      },
      &source);
  ASSERT_EQ(cudaMemcpy(&target, &source, sizeof target, cudaMemcpyDefault), cudaSuccess);
  EXPECT_EQ(target, 2);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

TEST(Half, converts_every_value_and_rounds_to_even) {
  for (unsigned bits = 0; bits < 65536; ++bits) {
    const auto code = static_cast<unsigned short>(bits);
    const float value = __half2float(__ushort_as_half(code));
    if (std::isnan(value)) continue;
    EXPECT_EQ(__half_as_ushort(__float2half(value)), code);
    EXPECT_EQ(static_cast<float>(half(value)), value);
  }
  EXPECT_TRUE(std::isnan(__half2float(__float2half(std::nanf("")))));
  EXPECT_EQ(__half2float(__float2half(65504.f)), 65504.f);
  EXPECT_TRUE(std::isinf(__half2float(__float2half(65520.f))));
  EXPECT_EQ(__half2float(__float2half(65519.f)), 65504.f);
  EXPECT_EQ(__half2float(__float2half(0x1p-25f)), 0.f);         // a tie, to even
  EXPECT_EQ(__half2float(__float2half(0x1.8p-25f)), 0x1p-24f);  // above the tie
  EXPECT_EQ(__half2float(__float2half(1.f + 0x1p-11f)), 1.f);   // a tie, to even
  EXPECT_EQ(__half2float(__float2half(1.f + 0x3p-11f)), 1.f + 0x1p-9f);
}

TEST(Bfloat16, converts_every_value_and_rounds_to_even) {
  for (unsigned bits = 0; bits < 65536; ++bits) {
    const auto code = static_cast<unsigned short>(bits);
    const float value = __bfloat162float(__ushort_as_bfloat16(code));
    if (std::isnan(value)) continue;
    const unsigned wide = bits << 16;
    float expected = 0;
    std::memcpy(&expected, &wide, sizeof expected);
    EXPECT_EQ(value, expected);
    EXPECT_EQ(__bfloat16_as_ushort(__float2bfloat16(value)), code);
  }
  EXPECT_EQ(__bfloat162float(__float2bfloat16(1.f + 0x1p-8f)), 1.f);
  EXPECT_EQ(__bfloat162float(__float2bfloat16(1.f + 0x3p-8f)), 1.f + 0x1p-6f);
  __nv_bfloat16 sum = 1.5f;
  sum += 2;
  EXPECT_EQ(static_cast<float>(sum), 3.5f);
}

template <typename Fp8>
void check_every_code() {
  for (unsigned bits = 0; bits < 256; ++bits) {
    Fp8 code;
    code.__x = static_cast<__nv_fp8_storage_t>(bits);
    const float value = static_cast<float>(code);
    if (std::isnan(value) || std::isinf(value)) continue;
    EXPECT_EQ(Fp8(value).__x, code.__x);
  }
}

TEST(Fp8, converts_every_value_and_saturates) {
  check_every_code<__nv_fp8_e4m3>();
  check_every_code<__nv_fp8_e5m2>();
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(static_cast<float>(__nv_fp8_e4m3(1e9f)), 448.f);
  EXPECT_EQ(static_cast<float>(__nv_fp8_e4m3(-infinity)), -448.f);
  EXPECT_EQ(static_cast<float>(__nv_fp8_e5m2(infinity)), 57344.f);
  EXPECT_EQ(__nv_cvt_float_to_fp8(1e9f, __NV_NOSAT, __NV_E4M3), 0x7f);
  EXPECT_EQ(__nv_cvt_float_to_fp8(1e9f, __NV_NOSAT, __NV_E5M2), 0x7c);
  EXPECT_TRUE(std::isnan(static_cast<float>(__nv_fp8_e4m3(std::nanf("")))));
  EXPECT_EQ(static_cast<float>(__nv_fp8_e4m3(0x1p-9f)), 0x1p-9f);
  EXPECT_EQ(static_cast<float>(__nv_fp8_e4m3(17.f)), 16.f);
  EXPECT_EQ(static_cast<float>(__nv_fp8_e4m3(19.f)), 20.f);
}

TEST(CudaCompat, has_a_context_for_each_device) {
  ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
  CUcontext context = nullptr;
  ASSERT_EQ(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
  EXPECT_NE(context, nullptr);
  EXPECT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
  CUcontext current = nullptr;
  CUdevice device = -1;
  EXPECT_EQ(cuCtxGetCurrent(&current), CUDA_SUCCESS);
  EXPECT_EQ(current, context);
  EXPECT_EQ(cuCtxGetDevice(&device), CUDA_SUCCESS);
  EXPECT_EQ(device, 0);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_EQ(cuDevicePrimaryCtxRelease(0), CUDA_SUCCESS);

  EXPECT_EQ(cuCtxSetCurrent(nullptr), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(cuCtxSetCurrent(reinterpret_cast<CUcontext>(&device)), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_NE(cuDevicePrimaryCtxRetain(&context, 1 << 30), CUDA_SUCCESS);
  EXPECT_EQ(cuDevicePrimaryCtxRetain(nullptr, 0), CUDA_ERROR_INVALID_VALUE);
}

TEST(CudaCompat, tells_of_pointers_through_the_driver_interface) {
  void* memory = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, 64), cudaSuccess);
  const auto pointer = reinterpret_cast<CUdeviceptr>(memory);
  unsigned int type = 0;
  int device = -1;
  EXPECT_EQ(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, pointer), CUDA_SUCCESS);
  EXPECT_EQ(type, CU_MEMORYTYPE_DEVICE);
  EXPECT_EQ(cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, pointer),
            CUDA_SUCCESS);
  int current = -1;
  ASSERT_EQ(cudaGetDevice(&current), cudaSuccess);
  EXPECT_EQ(device, current);
  EXPECT_EQ(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                  reinterpret_cast<CUdeviceptr>(&type)),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuPointerGetAttribute(nullptr, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, pointer),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
}

}  // namespace
