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

// Elements as they lie in memory.
using Packed = std::vector<std::byte>;

Packed packed(DataType type, const std::vector<Pattern>& elements) {
  const std::size_t width = element_bytes(type);
  Packed bytes(elements.size() * width);
  for (std::size_t i = 0; i < elements.size(); ++i) {
    std::memcpy(bytes.data() + i * width, &elements[i], width);
  }
  return bytes;
}

// The first `bytes` of some elements at some misalignment between guard bytes.
class Operand {
 public:
  Operand(const Packed& elements, std::size_t bytes, std::size_t offset)
      : bytes_(bytes), memory_(2 * kGuard + bytes, kGuardByte) {
    const auto address = reinterpret_cast<std::uintptr_t>(memory_.data());
    begin_ = 128 - address % 64 + offset;
    std::copy_n(elements.begin(), bytes, memory_.begin() + static_cast<std::ptrdiff_t>(begin_));
  }
  std::byte* data() { return memory_.data() + begin_; }

  ::testing::AssertionResult holds(const Packed& expected) const {
    static const Packed guard(3 * kGuard, kGuardByte);
    const std::byte* begin = memory_.data() + begin_;
    if (bytes_ != 0 && std::memcmp(begin, expected.data(), bytes_) != 0) {
      const auto differs = std::mismatch(begin, begin + bytes_, expected.data());
      return ::testing::AssertionFailure()
             << "byte " << differs.first - begin << " of " << bytes_ << " is "
             << std::to_integer<int>(*differs.first) << ", expected "
             << std::to_integer<int>(*differs.second);
    }
    if (std::memcmp(memory_.data(), guard.data(), begin_) != 0) {
      return ::testing::AssertionFailure() << "wrote before the first element";
    }
    if (std::memcmp(begin + bytes_, guard.data(), memory_.size() - begin_ - bytes_) != 0) {
      return ::testing::AssertionFailure() << "wrote after the last element";
    }
    return ::testing::AssertionSuccess();
  }

 private:
  static constexpr std::size_t kGuard = 256;  // of which alignment and offset take up to 192
  static constexpr std::byte kGuardByte{0xa5};
  std::size_t bytes_;
  std::size_t begin_ = 0;
  Packed memory_;
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
  const Packed packed_a_ = packed(type_, a_);
  const Packed packed_b_ = packed(type_, b_);

  // One expected element from the arithmetic and an index.
  template <class Compute>
  Packed expected(Compute compute, std::size_t count = kMaxCount) const {
    return packed(type_, reference::with_arithmetic(type_, [&](auto arithmetic) {
                    std::vector<Pattern> result(count);
                    for (std::size_t i = 0; i < count; ++i) result[i] = compute(arithmetic, i);
                    return result;
                  }));
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
  void expect_everywhere(const Binary& run, const Packed& result) {
    for (const std::size_t count : kCounts) {
      SCOPED_TRACE(count);
      const std::size_t bytes = count * element_bytes(type_);
      for (const Offsets& offsets : kOffsets) {
        Operand out(packed_b_, bytes, offsets.out);
        Operand a(packed_a_, bytes, offsets.a), b(packed_b_, bytes, offsets.b);
        run(out.data(), a.data(), b.data(), count);
        ASSERT_TRUE(out.holds(result));
        ASSERT_TRUE(a.holds(packed_a_));
        ASSERT_TRUE(b.holds(packed_b_));
        Operand a_again(packed_a_, bytes, offsets.out);
        run(a_again.data(), a_again.data(), b.data(), count);
        ASSERT_TRUE(a_again.holds(result)) << "in place of a";
        run(b.data(), a.data(), b.data(), count);
        ASSERT_TRUE(b.holds(result)) << "in place of b";
      }
    }
  }

  // Runs both folds of these sources, with `out` apart at some places and as the last source.
  void expect_fold(std::span<const Packed> inputs, std::size_t count, const Packed& result) {
    const std::size_t bytes = count * element_bytes(type_);
    const int nsources = static_cast<int>(inputs.size());
    std::vector<Operand> sources;
    std::vector<const void*> pointers;
    for (const Packed& input : inputs) sources.emplace_back(input, bytes, sources.size() * 5);
    for (Operand& source : sources) pointers.push_back(source.data());
    for (const std::size_t offset : {0, 3, 8, 48}) {
      Operand out(packed_a_, bytes, offset), streamed(packed_a_, bytes, offset);
      kernels_.fold(out.data(), pointers.data(), nsources, count);
      ASSERT_TRUE(out.holds(result));
      kernels_.fold_streaming(streamed.data(), pointers.data(), nsources, count);
      ASSERT_TRUE(streamed.holds(result)) << "streaming, at " << offset;
    }
    Operand& last = sources.back();
    kernels_.fold(last.data(), pointers.data(), nsources, count);
    ASSERT_TRUE(last.holds(result)) << "in place of the last source";
  }
};

TEST_P(ReduceKernelsTest, reduce_agrees_with_the_reference) {
  expect_everywhere(kernels_.reduce, expected([&](auto arithmetic, std::size_t i) {
                      return arithmetic.fold(op_, {a_[i], b_[i]});
                    }));
}

// Apart, in place of either operand, and each of the two past the caches or not, where both can be
// stored so and where only one can.
TEST_P(ReduceKernelsTest, reduce_twice_stores_the_same_in_two_places) {
  const Packed result = expected([&](auto arithmetic, std::size_t i) {
    return arithmetic.fold(op_, {a_[i], b_[i]});
  });
  for (const TwinStores stores :
       {TwinStores::kCached, TwinStores::kTwinStreaming, TwinStores::kBothStreaming}) {
    for (const std::size_t twin_offset : {std::size_t{0}, std::size_t{8}, std::size_t{33}}) {
      expect_everywhere(
          [&](void* out, const void* a, const void* b, std::size_t count) {
            Operand twin(packed_b_, count * element_bytes(type_), twin_offset);
            kernels_.reduce_twice(out, twin.data(), a, b, count, stores);
            ASSERT_TRUE(twin.holds(result)) << "the twin at " << twin_offset;
          },
          result);
    }
  }
  const std::size_t bytes = kMaxCount * element_bytes(type_);
  Operand a(packed_a_, bytes, 0), b(packed_b_, bytes, 0);
  kernels_.reduce_twice(a.data(), b.data(), a.data(), b.data(), kMaxCount, TwinStores::kCached);
  EXPECT_TRUE(a.holds(result) && b.holds(result)) << "in place of both";
  Operand c(packed_a_, bytes, 0), d(packed_b_, bytes, 0);
  kernels_.reduce_twice(c.data(), d.data(), c.data(), d.data(), kMaxCount,
                        TwinStores::kBothStreaming);
  EXPECT_TRUE(c.holds(result) && d.holds(result)) << "in place of both, past the caches";
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
  std::vector<Packed> packed_inputs;
  for (unsigned seed = 1; seed <= kMaxSources; ++seed) {
    inputs.push_back(patterns(type_, seed));
    packed_inputs.push_back(packed(type_, inputs.back()));
  }
  for (std::size_t nsources = 1; nsources <= kMaxSources; ++nsources) {
    const Counts counts = nsources <= 2 ? Counts(kCounts) : Counts(kFewCounts);
    const auto element = [&](auto arithmetic, std::size_t i) {
      std::vector<Pattern> elements(nsources);
      for (std::size_t k = 0; k < nsources; ++k) elements[k] = inputs[k][i];
      return arithmetic.fold(op_, elements);
    };
    const Packed result = expected(element, counts.back());
    for (const std::size_t count : counts) {
      SCOPED_TRACE(::testing::Message() << nsources << " sources, count " << count);
      ASSERT_NO_FATAL_FAILURE(expect_fold({packed_inputs.data(), nsources}, count, result));
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

// Two halves are added and multiplied as such by one instruction set, and as floats by the others.
// Every one with some, in all signs and magnitudes.
TEST(Halves, of_two_have_the_same_bits_by_every_instruction_set) {
  constexpr std::size_t kAll = 65536;
  constexpr unsigned kStep = 1009;
  std::vector<std::uint16_t> all(kAll), one(kAll), best(kAll), plain(kAll);
  for (std::size_t i = 0; i < kAll; ++i) all[i] = static_cast<std::uint16_t>(i);
  for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kProd, ReduceOp::kMax, ReduceOp::kMin}) {
    const ReduceKernels& kernels = reduce_kernels(DataType::kFloat16, op, best_isa());
    const ReduceKernels& scalar = reduce_kernels(DataType::kFloat16, op, Isa::kScalar);
    for (unsigned bits = 0; bits < kAll; bits += kStep) {
      std::ranges::fill(one, static_cast<std::uint16_t>(bits));
      kernels.reduce(best.data(), all.data(), one.data(), kAll);
      scalar.reduce(plain.data(), all.data(), one.data(), kAll);
      ASSERT_EQ(best, plain) << "with " << bits;
    }
  }
}

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
    const std::string what = error.what();
    EXPECT_NE(what.find("scalar, avx2, avx512 or avx512fp16"), std::string::npos);
  }
}

}  // namespace
}  // namespace catenary::kernels
