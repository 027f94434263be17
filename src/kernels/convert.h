// Small floats to float and back, an element at a time: the reference for every vector conversion.
//
// Values only. To float is exact. From float rounds to nearest even; NaN stays NaN (canonical:
// positive, quiet, no payload); half and bfloat16 overflow to infinity, the 8-bit floats saturate
// to their largest finite value, 448 and 57344, and so do infinities.
#pragma once

#include <bit>
#include <cstdint>

namespace catenary::kernels {

// A float format of one sign bit, an exponent and kMantissaBits, with the exponents of half or
// less.
template <int kMantissaBits, int kBias, std::uint32_t kLargestCode, std::uint32_t kNanCode,
          std::uint32_t kSignCode>
struct SmallFloat {
  static constexpr int kShift = 23 - kMantissaBits;
  static constexpr std::uint32_t kRebias = static_cast<std::uint32_t>(127 - kBias);
  static constexpr std::uint32_t kLeastNormal = (kRebias + 1) << 23;  // as bits of a float
  // Adding this float rounds a denormal's magnitude to an integer count of the least denormal.
  static constexpr std::uint32_t kDenormalMagic = (kRebias + 1 + static_cast<std::uint32_t>(kShift))
                                                  << 23;

  static constexpr std::uint32_t encode(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return kNanCode;
    const std::uint32_t sign = (bits >> 31) != 0 ? kSignCode : 0;
    if (magnitude < kLeastNormal) {
      const float counted = std::bit_cast<float>(magnitude) + std::bit_cast<float>(kDenormalMagic);
      return sign | (std::bit_cast<std::uint32_t>(counted) - kDenormalMagic);
    }
    const std::uint32_t nearly_half = (1u << (kShift - 1)) - 1;
    const std::uint32_t odd = (magnitude >> kShift) & 1;
    const std::uint32_t code =
        ((magnitude + nearly_half + odd) >> kShift) - (kRebias << kMantissaBits);
    return sign | (code < kLargestCode ? code : kLargestCode);
  }

  // `first_special` is the least code that is not finite.
  static constexpr float decode(std::uint32_t code, std::uint32_t first_special,
                                bool has_infinity) {
    const std::uint32_t sign = (code & kSignCode) != 0 ? 0x80000000u : 0;
    const std::uint32_t magnitude = code & (kSignCode - 1);
    if (magnitude >= first_special) {
      const bool infinite = has_infinity && magnitude == first_special;
      return std::bit_cast<float>(infinite ? sign | 0x7f800000u : 0x7fc00000u);
    }
    if ((magnitude >> kMantissaBits) == 0) {
      const float unit = std::bit_cast<float>((kRebias + 1 - kMantissaBits) << 23);
      const float value = static_cast<float>(magnitude) * unit;
      return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) | sign);
    }
    return std::bit_cast<float>(sign | ((magnitude << kShift) + (kRebias << 23)));
  }
};

using HalfFormat = SmallFloat<10, 15, 0x7c00, 0x7e00, 0x8000>;
using E4m3Format = SmallFloat<3, 7, 0x7e, 0x7f, 0x80>;  // "fn": no infinity, one NaN
using E5m2Format = SmallFloat<2, 15, 0x7b, 0x7e, 0x80>;

constexpr float half_to_float(std::uint16_t bits) { return HalfFormat::decode(bits, 0x7c00, true); }
constexpr std::uint16_t float_to_half(float value) {
  return static_cast<std::uint16_t>(HalfFormat::encode(value));
}

constexpr float e4m3_to_float(std::uint8_t bits) { return E4m3Format::decode(bits, 0x7f, false); }
constexpr std::uint8_t float_to_e4m3(float value) {
  return static_cast<std::uint8_t>(E4m3Format::encode(value));
}

constexpr float e5m2_to_float(std::uint8_t bits) { return E5m2Format::decode(bits, 0x7c, true); }
constexpr std::uint8_t float_to_e5m2(float value) {
  return static_cast<std::uint8_t>(E5m2Format::encode(value));
}

constexpr float bfloat16_to_float(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}
constexpr std::uint16_t float_to_bfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fc0;
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1)) >> 16);
}

}  // namespace catenary::kernels
