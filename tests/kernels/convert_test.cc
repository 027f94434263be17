// The conversions of small floats, exhaustively: every pattern, and every boundary between two.
#include "src/kernels/convert.h"

#include <gtest/gtest.h>

#include <functional>

#include "tests/kernels/reference.h"

namespace catenary::kernels {
namespace {

using reference::Pattern;

struct Conversion {
  DataType type;
  std::function<float(Pattern)> to_float;
  std::function<Pattern(float)> from_float;
};

std::vector<Conversion> conversions() {
  return {
      {DataType::kFloat16, [](Pattern p) { return half_to_float(static_cast<std::uint16_t>(p)); },
       float_to_half},
      {DataType::kBfloat16,
       [](Pattern p) { return bfloat16_to_float(static_cast<std::uint16_t>(p)); },
       float_to_bfloat16},
      {DataType::kFloat8e4m3, [](Pattern p) { return e4m3_to_float(static_cast<std::uint8_t>(p)); },
       float_to_e4m3},
      {DataType::kFloat8e5m2, [](Pattern p) { return e5m2_to_float(static_cast<std::uint8_t>(p)); },
       float_to_e5m2},
  };
}

TEST(Convert, every_pattern_has_the_value_of_its_fields) {
  for (const Conversion& conversion : conversions()) {
    const reference::Format format = reference::format_of(conversion.type);
    for (Pattern bits = 0; bits < 2 * format.sign_bit(); ++bits) {
      const float value = conversion.to_float(bits);
      const auto expected = static_cast<float>(format.decode(bits));
      if (std::isnan(expected)) {
        ASSERT_TRUE(std::isnan(value)) << name_of(conversion.type) << " " << bits;
      } else {
        ASSERT_EQ(reference::to_pattern(value), reference::to_pattern(expected))
            << name_of(conversion.type) << " " << bits;
      }
    }
  }
}

TEST(Convert, every_pattern_survives_the_way_to_float_and_back) {
  for (const Conversion& conversion : conversions()) {
    const reference::Format format = reference::format_of(conversion.type);
    for (Pattern bits = 0; bits < 2 * format.sign_bit(); ++bits) {
      const Pattern magnitude = bits & (format.sign_bit() - 1);
      Pattern expected = bits;
      if (magnitude > format.largest()) {
        const bool infinite = format.ieee_specials && magnitude == format.infinity();
        expected = !infinite ? format.nan : format.saturates ? bits - 1 : bits;
      }
      ASSERT_EQ(conversion.from_float(conversion.to_float(bits)), expected)
          << name_of(conversion.type) << " " << bits;
    }
  }
}

TEST(Convert, rounds_to_the_nearer_neighbour_and_a_tie_to_the_even_one) {
  for (const Conversion& conversion : conversions()) {
    const reference::Format format = reference::format_of(conversion.type);
    for (Pattern below = 0; below < format.largest(); ++below) {
      const auto middle = static_cast<float>((format.decode(below) + format.decode(below + 1)) / 2);
      for (const Pattern sign : {Pattern{0}, format.sign_bit()}) {
        const auto encoded = [&](float value) {
          return conversion.from_float(sign != 0 ? -value : value);
        };
        ASSERT_EQ(encoded(std::nextafterf(middle, 0.0f)), sign | below);
        ASSERT_EQ(encoded(middle), sign | (below + (below & 1)));
        ASSERT_EQ(encoded(std::nextafterf(middle, INFINITY)), sign | (below + 1));
      }
    }
  }
}

TEST(Convert, half_and_bfloat16_overflow_to_infinity_where_rounding_says) {
  EXPECT_EQ(float_to_half(std::nextafterf(65520.0f, 0.0f)), 0x7bff);
  EXPECT_EQ(float_to_half(65520.0f), 0x7c00);
  EXPECT_EQ(float_to_half(-1e30f), 0xfc00);
  EXPECT_EQ(float_to_half(INFINITY), 0x7c00);
  EXPECT_EQ(float_to_bfloat16(std::numeric_limits<float>::max()), 0x7f80);
  EXPECT_EQ(float_to_bfloat16(-INFINITY), 0xff80);
}

TEST(Convert, eight_bit_floats_saturate) {
  for (const float value : {465.0f, 1e30f, INFINITY}) {
    EXPECT_EQ(float_to_e4m3(value), 0x7e);
    EXPECT_EQ(float_to_e4m3(-value), 0xfe);
  }
  for (const float value : {61441.0f, 65536.0f, 1e30f, INFINITY}) {
    EXPECT_EQ(float_to_e5m2(value), 0x7b);
    EXPECT_EQ(float_to_e5m2(-value), 0xfb);
  }
}

TEST(Convert, every_nan_becomes_the_canonical_one) {
  for (const Conversion& conversion : conversions()) {
    const Pattern nan = reference::format_of(conversion.type).nan;
    for (const std::uint32_t bits :
         {0x7f800001u, 0x7fc00000u, 0x7fffffffu, 0xff800001u, 0xffffffffu}) {
      EXPECT_EQ(conversion.from_float(std::bit_cast<float>(bits)), nan) << name_of(conversion.type);
    }
  }
}

}  // namespace
}  // namespace catenary::kernels
