// Every row of the table, bit by bit against the naive reference, and what is written beside it.
#include "src/kernels/reduce.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <span>
#include <string>
#include <tuple>

#include "src/base/config.h"
#include "src/base/error.h"
#include "tests/kernels/reference.h"

namespace catenary::kernels {
namespace {

using reference::Pattern;

constexpr int kMaxSources = 9;
constexpr std::size_t kMaxCount = 4099;
// Around the widths of vectors and unrolled loops for elements of 1 to 8 bytes, and primes.
constexpr std::size_t kCounts[] = {
    0,  1,  2,  3,  4,  5,  7,   8,   9,   13,  15,  16,  17,  23,  31,  32,  33,  47,   61,
    63, 64, 65, 95, 96, 97, 127, 128, 129, 191, 193, 255, 256, 257, 263, 321, 509, 1021, kMaxCount};

using Counts = std::span<const std::size_t>;
constexpr std::size_t kFewCounts[] = {1, 15, 63, 64, 65, 257, 321, 1021};

// Where the operands begin, in bytes after a multiple of 64.
struct Offsets {
  std::size_t out, a, b;
};
constexpr Offsets kOffsets[] = {{0, 0, 0}, {1, 2, 3}, {8, 40, 16}, {63, 0, 61}};

// Patterns with all that is special: NaNs of any payload, infinities, zeros, denormals, extremes;
// values near one, so that sums and products stay in range; and random bits.
std::vector<Pattern> patterns(DataType type, unsigned seed) {
  std::mt19937_64 random(seed);
  const int bits = static_cast<int>(element_bytes(type)) * 8;
  const Pattern mask = ~Pattern{0} >> (64 - bits);
  const Pattern top = Pattern{1} << (bits - 1);
  const Pattern one = reference::with_arithmetic(type, [](auto arithmetic) {
    return arithmetic.encode(static_cast<decltype(arithmetic.decode(0))>(1));
  });
  const Pattern infinity = type == DataType::kFloat32   ? 0x7f800000u
                           : type == DataType::kFloat64 ? 0x7ff0000000000000u
                           : is_integer(type)           ? top - 1
                                                        : reference::format_of(type).infinity();
  const Pattern special[] = {0,
                             1,
                             2,
                             top,
                             top + 1,
                             top - 1,
                             mask,
                             infinity,
                             infinity + 1,
                             infinity - 1,
                             infinity | top,
                             one,
                             one | top};
  std::vector<Pattern> result(kMaxCount);
  for (Pattern& pattern : result) {
    switch (random() % 4) {
      case 0: pattern = special[random() % std::size(special)]; break;
      case 1: pattern = one + (random() % 64) - 32 + (random() % 2) * top; break;
      default: pattern = random(); break;
    }
    pattern &= mask;
  }
  return result;
}

// Elements at some misalignment between guard bytes.
class Operand {
 public:
  Operand(DataType type, const std::vector<Pattern>& elements, std::size_t count,
          std::size_t offset)
      : width_(element_bytes(type)), bytes_(2 * kGuard + count * width_, std::byte{0xa5}) {
    const auto address = reinterpret_cast<std::uintptr_t>(bytes_.data());
    begin_ = 128 - address % 64 + offset;
    for (std::size_t i = 0; i < count; ++i) {
      std::memcpy(bytes_.data() + begin_ + i * width_, &elements[i], width_);
    }
  }
  std::byte* data() { return bytes_.data() + begin_; }

  // Fails at the first element that differs, and if a guard byte does.
  ::testing::AssertionResult holds(const std::vector<Pattern>& expected, std::size_t count) const {
    for (std::size_t i = 0; i < count; ++i) {
      Pattern found = 0;
      std::memcpy(&found, bytes_.data() + begin_ + i * width_, width_);
      if (found != expected[i]) {
        return ::testing::AssertionFailure() << std::hex << "element " << std::dec << i << " is 0x"
                                             << std::hex << found << ", expected 0x" << expected[i];
      }
    }
    for (std::size_t i = 0; i < bytes_.size(); ++i) {
      const bool inside = i >= begin_ && i < begin_ + count * width_;
      if (!inside && bytes_[i] != std::byte{0xa5}) {
        return ::testing::AssertionFailure() << "wrote " << static_cast<long>(i - begin_)
                                             << " bytes from the first element of " << count;
      }
    }
    return ::testing::AssertionSuccess();
  }

 private:
  static constexpr std::size_t kGuard = 256;  // of which alignment and offset take up to 192
  std::size_t width_;
  std::size_t begin_ = 0;
  std::vector<std::byte> bytes_;
};

Scalar scalar_of(Pattern pattern) {
  Scalar scalar;
  std::memcpy(scalar.bits, &pattern, sizeof(pattern));
  return scalar;
}

using Row = std::tuple<Isa, DataType, ReduceOp>;

std::vector<Row> usable_rows() {
  std::vector<Row> rows;
  for (int isa = 0; isa < kIsaCount; ++isa) {
    if (!is_usable(static_cast<Isa>(isa))) continue;
    for (int type = 0; type < kDataTypeCount; ++type) {
      for (int op = 0; op < kReduceOpCount; ++op) {
        rows.emplace_back(static_cast<Isa>(isa), static_cast<DataType>(type),
                          static_cast<ReduceOp>(op));
      }
    }
  }
  return rows;
}

class ReduceKernelsTest : public ::testing::TestWithParam<Row> {
 protected:
  const Isa isa_ = std::get<0>(GetParam());
  const DataType type_ = std::get<1>(GetParam());
  const ReduceOp op_ = std::get<2>(GetParam());
  const ReduceKernels& kernels_ = reduce_kernels(type_, op_, isa_);
  const std::vector<Pattern> a_ = patterns(type_, 1);
  const std::vector<Pattern> b_ = patterns(type_, 2);

  // One expected element from the arithmetic and an index.
  template <class Compute>
  std::vector<Pattern> expected(Compute compute) const {
    return reference::with_arithmetic(type_, [&](auto arithmetic) {
      std::vector<Pattern> result(kMaxCount);
      for (std::size_t i = 0; i < kMaxCount; ++i) result[i] = compute(arithmetic, i);
      return result;
    });
  }

  // A third, its complement (negative; and a scalar's unused bytes are not zero), and any bits.
  std::vector<Pattern> factors() const {
    const Pattern third = reference::with_arithmetic(type_, [](auto arithmetic) {
      return arithmetic.encode(static_cast<decltype(arithmetic.decode(0))>(1.0 / 3));
    });
    const auto random = std::find_if(a_.begin(), a_.end(), [](Pattern p) { return p % 64 == 37; });
    return {third, ~third, *random};
  }

  // Runs a kernel of two operands at all counts and places, with `out` apart and as each operand.
  using Binary = std::function<void(void* out, const void* a, const void* b, std::size_t count)>;
  void expect_everywhere(const Binary& run, const std::vector<Pattern>& result) {
    for (const std::size_t count : kCounts) {
      for (const Offsets& offsets : kOffsets) {
        SCOPED_TRACE(count);
        Operand out(type_, b_, count, offsets.out);
        Operand a(type_, a_, count, offsets.a), b(type_, b_, count, offsets.b);
        run(out.data(), a.data(), b.data(), count);
        ASSERT_TRUE(out.holds(result, count));
        ASSERT_TRUE(a.holds(a_, count));
        ASSERT_TRUE(b.holds(b_, count));
        Operand a_again(type_, a_, count, offsets.out);
        run(a_again.data(), a_again.data(), b.data(), count);
        ASSERT_TRUE(a_again.holds(result, count)) << "in place of a";
        run(b.data(), a.data(), b.data(), count);
        ASSERT_TRUE(b.holds(result, count)) << "in place of b";
      }
    }
  }
};

TEST_P(ReduceKernelsTest, reduce_agrees_with_the_reference) {
  expect_everywhere(kernels_.reduce, expected([&](auto arithmetic, std::size_t i) {
                      return arithmetic.fold(op_, {a_[i], b_[i]});
                    }));
}

TEST_P(ReduceKernelsTest, reduce_scaled_rounds_the_product_before_it_reduces) {
  for (const Pattern scale : factors()) {
    expect_everywhere(
        [&](void* out, const void* a, const void* b, std::size_t count) {
          kernels_.reduce_scaled(out, a, b, scalar_of(scale), count);
        },
        expected([&](auto arithmetic, std::size_t i) {
          return arithmetic.fold(op_, {a_[i], arithmetic.scaled(scale, b_[i])});
        }));
  }
}

TEST_P(ReduceKernelsTest, fold_combines_in_order_and_rounds_once) {
  std::vector<std::vector<Pattern>> inputs;
  for (unsigned seed = 1; seed <= kMaxSources; ++seed) inputs.push_back(patterns(type_, seed));
  for (int nsources = 1; nsources <= kMaxSources; ++nsources) {
    const auto result = expected([&](auto arithmetic, std::size_t i) {
      std::vector<Pattern> elements;
      for (int k = 0; k < nsources; ++k) elements.push_back(inputs[static_cast<std::size_t>(k)][i]);
      return arithmetic.fold(op_, elements);
    });
    for (const std::size_t count : nsources <= 2 ? Counts(kCounts) : Counts(kFewCounts)) {
      SCOPED_TRACE(::testing::Message() << nsources << " sources, count " << count);
      std::vector<Operand> sources;
      std::vector<const void*> pointers;
      for (int k = 0; k < nsources; ++k) {
        const auto offset = static_cast<std::size_t>(k * 5 % 64);
        sources.emplace_back(type_, inputs[static_cast<std::size_t>(k)], count, offset);
      }
      for (Operand& source : sources) pointers.push_back(source.data());
      for (const std::size_t offset : {0, 3, 8, 48}) {
        Operand out(type_, a_, count, offset), streamed(type_, a_, count, offset);
        kernels_.fold(out.data(), pointers.data(), nsources, count);
        ASSERT_TRUE(out.holds(result, count));
        kernels_.fold_streaming(streamed.data(), pointers.data(), nsources, count);
        ASSERT_TRUE(streamed.holds(result, count)) << "streaming, at " << offset;
      }
      Operand& last = sources.back();
      kernels_.fold(last.data(), pointers.data(), nsources, count);
      ASSERT_TRUE(last.holds(result, count)) << "in place of the last source";
    }
  }
}

TEST_P(ReduceKernelsTest, scale_multiplies_and_rounds_once) {
  for (const Pattern factor : factors()) {
    expect_everywhere(
        [&](void* out, const void*, const void* b, std::size_t count) {
          kernels_.scale(out, b, scalar_of(factor), count);
        },
        expected([&](auto arithmetic, std::size_t i) { return arithmetic.scaled(factor, b_[i]); }));
  }
}

TEST_P(ReduceKernelsTest, divide_truncates_integers_and_refuses_floats) {
  if (!is_integer(type_)) {
    std::uint64_t element = 0;
    EXPECT_THROW(kernels_.divide(&element, &element, 2, 1), Error);
    return;
  }
  for (const std::int64_t divisor : {1, 2, 3, 7, 100, 127, 1000003, 2147483647}) {
    expect_everywhere([&](void* out, const void*, const void* b,
                          std::size_t count) { kernels_.divide(out, b, divisor, count); },
                      expected([&](auto arithmetic, std::size_t i) {
                        return arithmetic.divided(b_[i], divisor);
                      }));
  }
}

INSTANTIATE_TEST_SUITE_P(Table, ReduceKernelsTest, ::testing::ValuesIn(usable_rows()),
                         [](const ::testing::TestParamInfo<Row>& row) {
                           return std::string(name_of(std::get<0>(row.param))) + "_" +
                                  std::string(catenary::name_of(std::get<1>(row.param))) + "_" +
                                  std::string(catenary::name_of(std::get<2>(row.param)));
                         });

TEST(ScalarOneOver, is_the_nearest_value_of_the_type) {
  for (const DataType type :
       {DataType::kFloat16, DataType::kBfloat16, DataType::kFloat8e4m3, DataType::kFloat8e5m2}) {
    const reference::Format format = reference::format_of(type);
    for (int n = 1; n <= 70000; ++n) {
      Pattern found = 0;
      std::memcpy(&found, scalar_one_over(type, n).bits, sizeof(found));
      // Double is wide enough: no 1/n is so near a tie that rounding it twice would matter.
      ASSERT_EQ(found, format.encode(1.0 / n)) << catenary::name_of(type) << " 1/" << n;
    }
  }
}

TEST(ScalarOneOver, refuses_integers) { EXPECT_THROW(scalar_one_over(DataType::kInt32, 2), Error); }

TEST(Isa, best_one_is_usable_and_scalar_always_is) {
  EXPECT_TRUE(is_usable(Isa::kScalar));
  EXPECT_TRUE(is_usable(best_isa()));
}

TEST(Isa, config_forces_a_usable_one) {
  Config config;
  EXPECT_EQ(isa_from(config), best_isa());
  for (int i = 0; i < kIsaCount; ++i) {
    config.isa = name_of(static_cast<Isa>(i));
    if (is_usable(static_cast<Isa>(i))) {
      EXPECT_EQ(isa_from(config), static_cast<Isa>(i));
    } else {
      EXPECT_THROW(isa_from(config), Error);
    }
  }
}

TEST(Isa, unknown_name_in_config_is_an_error_that_says_what_is_known) {
  Config config;
  config.isa = "sse9";
  try {
    isa_from(config);
    FAIL() << "accepted sse9";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidUsage);
    EXPECT_NE(std::string(error.what()).find("CATENARY_ISA=sse9"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("scalar, avx2 or avx512"), std::string::npos);
  }
}

}  // namespace
}  // namespace catenary::kernels
