#include "src/comm/reductions.h"

#include <gtest/gtest.h>

#include "src/base/error.h"

namespace catenary {
namespace {

constexpr int kAvg = 4;

ErrorCode code_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode::kInternal;
}

TEST(Reductions, average_divides_integers_and_scales_floats) {
  const Reductions reductions(4);
  const ResolvedReduction of_integers = reductions.resolve(kAvg, DataType::kInt32);
  EXPECT_EQ(of_integers.divisor, 4);
  EXPECT_EQ(of_integers.scaling.from, Scaling::From::kNothing);
  const ResolvedReduction of_floats = reductions.resolve(kAvg, DataType::kFloat32);
  EXPECT_EQ(of_floats.divisor, 1);
  EXPECT_EQ(of_floats.scaling.from, Scaling::From::kValue);
}

TEST(Reductions, average_of_one_rank_does_nothing) {
  const ResolvedReduction resolved = Reductions(1).resolve(kAvg, DataType::kFloat16);
  EXPECT_EQ(resolved.divisor, 1);
  EXPECT_EQ(resolved.scaling.from, Scaling::From::kNothing);
}

TEST(Reductions, made_by_the_user_are_for_their_type_until_destroyed) {
  Reductions reductions(2);
  const int value =
      reductions.create_pre_mul_sum(DataType::kFloat32, {Scaling::From::kValue, {}, nullptr});
  EXPECT_EQ(reductions.resolve(value, DataType::kFloat32).name, Reduction::kPreMulSum);
  EXPECT_EQ(code_of([&] { reductions.resolve(value, DataType::kFloat64); }),
            ErrorCode::kInvalidArgument);
  reductions.destroy(value);
  EXPECT_EQ(code_of([&] { reductions.resolve(value, DataType::kFloat32); }),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of([&] { reductions.destroy(value); }), ErrorCode::kInvalidArgument);
}

TEST(Reductions, values_are_used_again_and_stay_apart) {
  Reductions reductions(2);
  const Scaling scaling{Scaling::From::kValue, {}, nullptr};
  const int first = reductions.create_pre_mul_sum(DataType::kInt8, scaling);
  const int second = reductions.create_pre_mul_sum(DataType::kInt8, scaling);
  EXPECT_NE(first, second);
  reductions.destroy(first);
  EXPECT_EQ(reductions.create_pre_mul_sum(DataType::kUint8, scaling), first);
}

TEST(Reductions, unknown_values_are_refused) {
  const Reductions reductions(2);
  for (const int value : {-1, 5, 1000}) {
    EXPECT_EQ(code_of([&] { reductions.resolve(value, DataType::kInt8); }),
              ErrorCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace catenary
