// The functions of cuda_fp16.h and cuda_bf16.h, against the definition of a correctly rounded
// result.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <gtest/gtest.h>

#include <climits>
#include <cmath>
#include <cstdint>
#include <limits>

#include "tests/kernels/reference.h"

namespace catenary {
namespace {

using reference::Pattern;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr int kManyStep = 67;  // of the codes, for every pair of two that are tried

struct Half {
  using Type = __half;
  static constexpr DataType kType = DataType::kFloat16;
};
struct Bfloat16 {
  using Type = __nv_bfloat16;
  static constexpr DataType kType = DataType::kBfloat16;
};

template <typename Kind>
class SmallFloat : public ::testing::Test {
 protected:
  using Type = typename Kind::Type;
  static reference::Format format() { return reference::format_of(Kind::kType); }
  static Type make(unsigned bits) {
    Type value;
    value.__x = static_cast<unsigned short>(bits);
    return value;
  }
  // NaNs are alike.
  static bool is(Type value, double exact) {
    if (std::isnan(exact)) return __hisnan(value);
    return value.__x == format().encode(exact);
  }
};
using Kinds = ::testing::Types<Half, Bfloat16>;
TYPED_TEST_SUITE(SmallFloat, Kinds);

TYPED_TEST(SmallFloat, arithmetic_rounds_once) {
  for (unsigned i = 0; i < 65536; i += kManyStep) {
    for (unsigned j = 0; j < 65536; j += kManyStep) {
      const auto a = this->make(i);
      const auto b = this->make(j);
      const double x = this->format().decode(i);
      const double y = this->format().decode(j);
      ASSERT_TRUE(this->is(__hadd(a, b), x + y)) << x << " + " << y;
      ASSERT_TRUE(this->is(__hsub(a, b), x - y)) << x << " - " << y;
      ASSERT_TRUE(this->is(__hmul(a, b), x * y)) << x << " * " << y;
      ASSERT_TRUE(this->is(__hdiv(a, b), x / y)) << x << " / " << y;
    }
  }
}

TYPED_TEST(SmallFloat, comparisons_are_false_of_nan_and_the_unordered_ones_true) {
  for (unsigned i = 0; i < 65536; i += kManyStep) {
    for (unsigned j = 0; j < 65536; j += kManyStep) {
      const auto a = this->make(i);
      const auto b = this->make(j);
      const double x = this->format().decode(i);
      const double y = this->format().decode(j);
      const bool unordered = std::isnan(x) || std::isnan(y);
      ASSERT_EQ(__heq(a, b), !unordered && x == y);
      ASSERT_EQ(__hne(a, b), !unordered && x != y);
      ASSERT_EQ(__hlt(a, b), !unordered && x < y);
      ASSERT_EQ(__hle(a, b), !unordered && x <= y);
      ASSERT_EQ(__hgt(a, b), !unordered && x > y);
      ASSERT_EQ(__hge(a, b), !unordered && x >= y);
      ASSERT_EQ(__hequ(a, b), unordered || x == y);
      ASSERT_EQ(__hneu(a, b), unordered || x != y);
      ASSERT_EQ(__hltu(a, b), unordered || x < y);
      ASSERT_EQ(__hgeu(a, b), unordered || x >= y);
      const auto larger = __hmax(a, b);
      const auto smaller = __hmin(a, b);
      ASSERT_TRUE(this->is(larger, std::fmax(x, y)) || (x == 0 && y == 0));
      ASSERT_TRUE(this->is(smaller, std::fmin(x, y)) || (x == 0 && y == 0));
    }
  }
  const auto plus = this->make(0);
  const auto minus = this->make(0x8000);
  for (const auto& largest : {__hmax(plus, minus), __hmax(minus, plus)}) EXPECT_EQ(largest.__x, 0);
  for (const auto& least : {__hmin(plus, minus), __hmin(minus, plus)}) {
    EXPECT_EQ(least.__x, 0x8000);
  }
}

TYPED_TEST(SmallFloat, signs_and_classes) {
  for (unsigned i = 0; i < 65536; ++i) {
    const auto a = this->make(i);
    const double x = this->format().decode(i);
    ASSERT_EQ(__hneg(a).__x, i ^ 0x8000u);
    ASSERT_EQ(__habs(a).__x, i & 0x7fffu);
    ASSERT_EQ(__hisnan(a), std::isnan(x));
    ASSERT_EQ(__hisinf(a), std::isinf(x) ? (x > 0 ? 1 : -1) : 0);
  }
  EXPECT_EQ(__hisinf(typename TypeParam::Type(-kInfinity)), -1);
}

// Products that lie just between two numbers of the type, and an addend that is far too small to
// show in a double: it decides.
TEST(FusedMultiplyAdd, rounds_once) {
  const reference::Format format = reference::format_of(DataType::kBfloat16);
  const double tiny = std::ldexp(1.0, -100);
  int ties = 0;
  for (int i = 128; i < 256; ++i) {
    for (int j = 128; j < 256; ++j) {
      const double product = i * j / 16384.0;
      const int unit = i * j < 32768 ? 128 : 256;  // of 16384ths
      if (i * j % unit != unit / 2) continue;
      ++ties;
      const __nv_bfloat16 a = i / 128.0;
      const __nv_bfloat16 b = j / 128.0;
      const double down = (i * j - unit / 2) / 16384.0;
      const double up = (i * j + unit / 2) / 16384.0;
      ASSERT_EQ(static_cast<float>(__hfma(a, b, __nv_bfloat16(tiny))), up);
      ASSERT_EQ(static_cast<float>(__hfma(a, b, __nv_bfloat16(-tiny))), down);
      ASSERT_EQ(static_cast<float>(__hfma(__hneg(a), b, __nv_bfloat16(tiny))), -down);
      ASSERT_EQ(__hfma(a, b, __nv_bfloat16(0)).__x, format.encode(product));
    }
  }
  EXPECT_GT(ties, 20);
  EXPECT_TRUE(__hisnan(__hfma(__half(kInfinity), __half(0), __half(1))));
  EXPECT_EQ(__hisinf(__hfma(__half(60000.f), __half(60000.f), __half(-1))), 1);
  EXPECT_EQ(static_cast<float>(__hfma(__half(3), __half(4), __half(5))), 17.f);
}

// A double or an integer just above a tie would become one on its way through float.
TEST(SmallFloatConversion, of_wide_numbers_rounds_once) {
  const double above = 1 + 0x1p-11 + 0x1p-40;
  EXPECT_EQ(__half2float(__double2half(above)), 1 + 0x1p-10f);
  EXPECT_EQ(__half2float(__half(above)), 1 + 0x1p-10f);
  EXPECT_EQ(__half2float(__double2half(1 + 0x1p-11)), 1.f);
  EXPECT_EQ(__half2float(__double2half(-above)), -1 - 0x1p-10f);
  EXPECT_EQ(__half2float(__double2half(1e300)), kInfinity);
  EXPECT_EQ(__half2float(__double2half(1e-300)), 0.f);
  EXPECT_EQ(__half2float(__double2half(0x1p-25 + 0x1p-60)), 0x1p-24f);
  EXPECT_TRUE(__hisnan(__double2half(std::nan(""))));
  EXPECT_EQ(__bfloat162float(__double2bfloat16(1 + 0x1p-8 + 0x1p-50)), 1 + 0x1p-7f);
  const unsigned long long wide = (1ull << 63) + (1ull << 55);
  EXPECT_EQ(__bfloat162float(__ull2bfloat16_rn(wide)), 0x1p63f);
  EXPECT_EQ(__bfloat162float(__ull2bfloat16_rn(wide + 1)), 0x1p63f + 0x1p56f);
  EXPECT_EQ(__bfloat162float(__ll2bfloat16_rn(-(1ll << 40) - (1ll << 32) - 1)), -0x1.02p40f);
  EXPECT_EQ(__bfloat162float(__ll2bfloat16_rn(LLONG_MIN)), -0x1p63f);
  EXPECT_EQ(static_cast<float>(__nv_fp8_e5m2(1.125 + 0x1p-40)), 1.25f);
  EXPECT_EQ(static_cast<float>(__nv_fp8_e5m2(1.125)), 1.f);
}

TEST(SmallFloatConversion, to_integers_rounds_and_saturates) {
  EXPECT_EQ(__half2int_rn(__half(2.5f)), 2);
  EXPECT_EQ(__half2int_rn(__half(3.5f)), 4);
  EXPECT_EQ(__half2int_rz(__half(-3.75f)), -3);
  EXPECT_EQ(__half2uint_rn(__half(-3.75f)), 0u);
  EXPECT_EQ(__half2int_rn(__half(kInfinity)), INT_MAX);
  EXPECT_EQ(__half2short_rn(__half(-65504.f)), SHRT_MIN);
  EXPECT_EQ(__half2ll_rn(__half(std::nanf(""))), 0);
  EXPECT_EQ(__bfloat162ull_rz(__nv_bfloat16(0x1p63f)), 1ull << 63);
  EXPECT_EQ(__bfloat162ull_rz(__nv_bfloat16(0x1p70f)), ULLONG_MAX);
  EXPECT_EQ(__bfloat162int_rz(__nv_bfloat16(-0x1p40f)), INT_MIN);
  EXPECT_EQ(__half2float(__ull2half_rn(65519)), 65504.f);
  EXPECT_EQ(__half2float(__ull2half_rn(65520)), kInfinity);
  EXPECT_EQ(__half2float(__int2half_rn(-2049)), -2048.f);
  EXPECT_EQ(__half_as_short(__half(-0.f)), SHRT_MIN);
  EXPECT_EQ(static_cast<float>(__short_as_bfloat16(0x3f80)), 1.f);
}

TEST(SmallFloatPair, works_on_both_parts) {
  const __half2 a = __floats2half2_rn(1.5f, -2);
  const __half2 b = __halves2half2(__half(3), __half(4));
  const float2 sum = __half22float2(__hadd2(a, b));
  EXPECT_EQ(sum.x, 4.5f);
  EXPECT_EQ(sum.y, 2.f);
  EXPECT_EQ(__low2float(__hmul2(a, b)), 4.5f);
  EXPECT_EQ(__high2float(__hfma2(a, b, __half2half2(__half(1)))), -7.f);
  EXPECT_EQ(static_cast<float>(__high2half(__hneg2(a))), 2.f);
  const __nv_bfloat162 c = __hsub2(__float2bfloat162_rn(1), __floats2bfloat162_rn(2, 3));
  EXPECT_EQ(__bfloat1622float2(c).y, -2.f);
  EXPECT_EQ(static_cast<float>(__low2bfloat16(__hmax2(c, __bfloat162bfloat162(0)))), 0.f);
}

}  // namespace
}  // namespace catenary
