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
// less. Both ways compute every case and then choose: branches on values would be mispredicted.
template <int kMantissaBits, int kBias, std::int32_t kLargestCode, std::int32_t kNanCode,
          std::int32_t kFirstSpecialCode, std::int32_t kSignCode>
struct SmallFloat {
  static constexpr int kShift = 23 - kMantissaBits;
  static constexpr std::int32_t kRebias = 127 - kBias;
  static constexpr std::int32_t kLeastNormal = (kRebias + 1) << 23;  // as bits of a float

  static constexpr std::int32_t encode(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const auto magnitude = static_cast<std::int32_t>(bits & 0x7fffffffu);
    const std::int32_t sign = (bits >> 31) != 0 ? kSignCode : 0;

    // Adding this float rounds a denormal's magnitude to a whole count of the least denormal.
    constexpr std::int32_t kMagic = (kRebias + 1 + kShift) << 23;
    const float counted = std::bit_cast<float>(magnitude) + std::bit_cast<float>(kMagic);
    const std::int32_t denormal = std::bit_cast<std::int32_t>(counted) - kMagic;

    constexpr std::int32_t kBias23 = (1 << (kShift - 1)) - 1 - (kRebias << 23);
    const std::int32_t odd = (magnitude >> kShift) & 1;
    const std::int32_t normal = (magnitude + kBias23 + odd) >> kShift;
    const std::int32_t saturated = normal < kLargestCode ? normal : kLargestCode;

    const std::int32_t code = magnitude < kLeastNormal ? denormal : saturated;
    return magnitude > 0x7f800000 ? kNanCode : sign | code;
  }

  static constexpr float decode(std::int32_t code) {
    const std::uint32_t sign = (code & kSignCode) != 0 ? 0x80000000u : 0;
    const std::int32_t magnitude = code & (kSignCode - 1);
    const std::int32_t normal = (magnitude << kShift) + (kRebias << 23);
    const float unit = std::bit_cast<float>((kRebias + 1 - kMantissaBits) << 23);
    const auto denormal = std::bit_cast<std::int32_t>(static_cast<float>(magnitude) * unit);
    const std::int32_t finite = (magnitude >> kMantissaBits) == 0 ? denormal : normal;
    // The first special code is infinity where it leaves codes for NaN, that is, has no mantissa.
    constexpr bool kHasInfinity = (kFirstSpecialCode & ((1 << kMantissaBits) - 1)) == 0;
    const std::int32_t special =
        kHasInfinity && magnitude == kFirstSpecialCode ? 0x7f800000 : 0x7fc00000;
    const std::int32_t bits = magnitude >= kFirstSpecialCode ? special : finite;
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) | sign);
  }
};

using HalfFormat = SmallFloat<10, 15, 0x7c00, 0x7e00, 0x7c00, 0x8000>;
using E4m3Format = SmallFloat<3, 7, 0x7e, 0x7f, 0x7f, 0x80>;  // "fn": no infinity, one NaN
using E5m2Format = SmallFloat<2, 15, 0x7b, 0x7e, 0x7c, 0x80>;

constexpr float half_to_float(std::uint16_t bits) { return HalfFormat::decode(bits); }
constexpr std::uint16_t float_to_half(float value) {
  return static_cast<std::uint16_t>(HalfFormat::encode(value));
}

constexpr float e4m3_to_float(std::uint8_t bits) { return E4m3Format::decode(bits); }
constexpr std::uint8_t float_to_e4m3(float value) {
  return static_cast<std::uint8_t>(E4m3Format::encode(value));
}

constexpr float e5m2_to_float(std::uint8_t bits) { return E5m2Format::decode(bits); }
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
