// Headers of CUDA beside the runtime: short vectors, complex numbers, threads of kernels,
// what tools are told.
#include <cuComplex.h>
#include <device_launch_parameters.h>
#include <gtest/gtest.h>
#include <library_types.h>
#include <nvToolsExt.h>
#include <nvtx3/nvToolsExtCudaRt.h>
#include <vector_functions.h>

namespace {

TEST(CudaVectors, are_made_and_aligned_as_with_cuda) {
  const int2 pair = make_int2(1, 2);
  const double4 four = make_double4(1, 2, 3, 4);
  const uchar3 three = make_uchar3(1, 2, 3);
  EXPECT_EQ(pair.x + pair.y, 3);
  EXPECT_EQ(four.w, 4);
  EXPECT_EQ(three.z, 3);
  static_assert(alignof(int2) == 8 && alignof(float4) == 16 && alignof(double4) == 16);
  static_assert(sizeof(uchar3) == 3 && sizeof(ulonglong2) == 16 && alignof(char4) == 4);
  EXPECT_EQ(static_cast<int>(CUDA_R_16BF), 14);
}

TEST(CudaComplex, is_multiplied_and_divided) {
  const cuDoubleComplex a = make_cuDoubleComplex(1, 2);
  const cuDoubleComplex b = make_cuDoubleComplex(-3, 4);
  const cuDoubleComplex product = cuCmul(a, b);
  EXPECT_EQ(cuCreal(product), -11);
  EXPECT_EQ(cuCimag(product), -2);
  EXPECT_DOUBLE_EQ(cuCdiv(product, b).x, 1);
  EXPECT_DOUBLE_EQ(cuCdiv(product, b).y, 2);
  EXPECT_DOUBLE_EQ(cuCdiv(product, a).x, -3);
  EXPECT_EQ(cuCabs(b), 5);
  const cuDoubleComplex huge = make_cuDoubleComplex(1e300, 1e300);
  EXPECT_DOUBLE_EQ(cuCdiv(huge, huge).x, 1);
  EXPECT_EQ(cuConjf(make_cuComplex(1, 2)).y, -2.f);
  EXPECT_EQ(cuCfmaf(make_cuComplex(0, 1), make_cuComplex(0, 1), make_cuComplex(1, 0)).x, 0.f);
}

__global__ void kernel(int* where) { *where = static_cast<int>(threadIdx.x + blockDim.x); }

TEST(CudaKernel, is_a_function_that_one_thread_runs) {
  int where = -1;
  kernel(&where);
  EXPECT_EQ(where, 1);
  EXPECT_EQ(gridDim.x * static_cast<unsigned>(warpSize) + blockIdx.y, 1u);
}

TEST(Nvtx, says_that_nobody_watches) {
  nvtxInitialize(nullptr);
  const nvtxDomainHandle_t domain = nvtxDomainCreateA("test");
  nvtxEventAttributes_t event = {};
  event.version = NVTX_VERSION;
  event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  event.colorType = NVTX_COLOR_ARGB;
  event.color = 0xff00ff00;
  event.payloadType = NVTX_PAYLOAD_TYPE_INT64;
  event.payload.llValue = -1;
  event.messageType = NVTX_MESSAGE_TYPE_ASCII;
  event.message.ascii = "range";
  EXPECT_EQ(nvtxRangePush("outer"), NVTX_NO_PUSH_POP_TRACKING);
  EXPECT_EQ(nvtxRangePushEx(&event), NVTX_NO_PUSH_POP_TRACKING);
  EXPECT_EQ(nvtxDomainRangePushEx(domain, &event), NVTX_NO_PUSH_POP_TRACKING);
  EXPECT_EQ(nvtxDomainRangePop(domain), NVTX_NO_PUSH_POP_TRACKING);
  EXPECT_EQ(nvtxRangePop(), NVTX_NO_PUSH_POP_TRACKING);
  EXPECT_EQ(nvtxRangePushW(L"wide"), NVTX_NO_PUSH_POP_TRACKING);
  nvtxRangeEnd(nvtxRangeStartEx(&event));
  nvtxMark("mark");
  nvtxMarkEx(&event);
  nvtxNameOsThread(1, "thread");
  nvtxNameCudaStream(nullptr, "stream");
  nvtxDomainDestroy(domain);
  EXPECT_EQ(sizeof event, 48u);
}

}  // namespace
