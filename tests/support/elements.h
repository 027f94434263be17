// Elements of any data type made from small integers, bit by bit and by definition, without the
// library's conversions: what tests compare against must not come from what they test.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "nccl.h"

namespace catenary::testing {

inline std::size_t element_bytes(ncclDataType_t type) {
  constexpr std::size_t kBytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
  return kBytes[type];
}

// The bits of `value` in a binary float format, for values that it holds exactly.
inline std::uint64_t float_bits(double value, int exponent_bits, int mantissa_bits) {
  if (value == 0) return 0;
  const std::uint64_t sign = value < 0 ? 1 : 0;
  double magnitude = value < 0 ? -value : value;
  int exponent = 0;
  while (magnitude >= 2) magnitude /= 2, ++exponent;
  while (magnitude < 1) magnitude *= 2, --exponent;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const auto mantissa =
      static_cast<std::uint64_t>((magnitude - 1) * static_cast<double>(1ull << mantissa_bits));
  return (sign << (exponent_bits + mantissa_bits)) |
         (static_cast<std::uint64_t>(exponent + bias) << mantissa_bits) | mantissa;
}

// Writes `value`, which the type must hold exactly, as one element.
inline void put_element(void* to, ncclDataType_t type, double value) {
  std::uint64_t bits = 0;
  switch (type) {
    case ncclFloat16: bits = float_bits(value, 5, 10); break;
    case ncclBfloat16: bits = float_bits(value, 8, 7); break;
    case ncclFloat8e4m3: bits = float_bits(value, 4, 3); break;
    case ncclFloat8e5m2: bits = float_bits(value, 5, 2); break;
    case ncclFloat32: bits = float_bits(value, 8, 23); break;
    case ncclFloat64: bits = float_bits(value, 11, 52); break;
    default: bits = static_cast<std::uint64_t>(static_cast<std::int64_t>(value)); break;
  }
  std::memcpy(to, &bits, element_bytes(type));
}

inline bool is_float(ncclDataType_t type) { return type >= ncclFloat16; }
inline bool is_unsigned(ncclDataType_t type) {
  return type == ncclUint8 || type == ncclUint32 || type == ncclUint64;
}

}  // namespace catenary::testing
