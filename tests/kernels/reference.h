// What a kernel must compute, an element at a time and by definition: elements as bit patterns,
// small floats as sign * significand * 2^exponent in double. Shares nothing with src/kernels.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "src/base/types.h"

namespace catenary::reference {

using Pattern = std::uint64_t;  // the bits of one element, in the low bytes

// A float format narrower than 32 bits.
struct Format {
  int mantissa_bits;
  int bias;
  int exponent_bits;
  bool ieee_specials;  // the top exponent is infinity and NaN; else only all ones is NaN
  bool saturates;      // overflow gives the largest finite value; else infinity
  Pattern nan;

  Pattern sign_bit() const { return Pattern{1} << (mantissa_bits + exponent_bits); }
  Pattern infinity() const { return sign_bit() - (Pattern{1} << mantissa_bits); }
  Pattern largest() const { return ieee_specials ? infinity() - 1 : sign_bit() - 2; }

  double decode(Pattern bits) const {
    const double sign = (bits & sign_bit()) != 0 ? -1.0 : 1.0;
    const Pattern magnitude = bits & (sign_bit() - 1);
    if (magnitude > largest()) {
      const bool infinite = ieee_specials && magnitude == infinity();
      return infinite ? sign * std::numeric_limits<double>::infinity()
                      : std::numeric_limits<double>::quiet_NaN();
    }
    const int exponent = static_cast<int>(magnitude >> mantissa_bits);
    const Pattern fraction = magnitude & ((Pattern{1} << mantissa_bits) - 1);
    const Pattern hidden = exponent == 0 ? 0 : Pattern{1} << mantissa_bits;
    return sign * std::ldexp(static_cast<double>(fraction + hidden),
                             std::max(exponent, 1) - bias - mantissa_bits);
  }

  Pattern encode(double value) const {
    if (std::isnan(value)) return nan;
    const Pattern sign = std::signbit(value) ? sign_bit() : 0;
    const Pattern overflow = saturates ? largest() : infinity();
    const double magnitude = std::fabs(value);
    if (std::isinf(value)) return sign | overflow;
    if (magnitude == 0) return sign;
    const int exponent = std::max(std::ilogb(magnitude), 1 - bias);
    // In units of the last place, nearbyint is the rounding to nearest even.
    const double units = std::nearbyint(std::ldexp(magnitude, mantissa_bits - exponent));
    // The hidden bit adds itself to the exponent; a denormal has none.
    const auto code =
        static_cast<Pattern>(units) + (static_cast<Pattern>(exponent + bias - 1) << mantissa_bits);
    return sign | (code > largest() ? overflow : code);
  }
};

inline Format format_of(DataType type) {
  switch (type) {
    case DataType::kFloat16: return {10, 15, 5, true, false, 0x7e00};
    case DataType::kBfloat16: return {7, 127, 8, true, false, 0x7fc0};
    case DataType::kFloat8e4m3: return {3, 7, 4, false, true, 0x7f};
    case DataType::kFloat8e5m2: return {2, 15, 5, true, true, 0x7e};
    default: return {};
  }
}

template <class T>
T from_pattern(Pattern bits) {
  T value;
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}

template <class T>
Pattern to_pattern(T value) {
  Pattern bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  return bits;
}

template <class T>
T combine_floats(ReduceOp op, T a, T b) {
  if (op == ReduceOp::kSum) return a + b;
  if (op == ReduceOp::kProd) return a * b;
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<T>::quiet_NaN();
  // Orders zeros by their sign.
  const bool a_less = a < b || (a == b && std::signbit(a) && !std::signbit(b));
  return a_less == (op == ReduceOp::kMax) ? b : a;
}

template <class T>
T combine_integers(ReduceOp op, T a, T b) {
  // All of the wrapped bits of a sum or a product are in its low 64.
  if (op == ReduceOp::kSum)
    return static_cast<T>(static_cast<Pattern>(a) + static_cast<Pattern>(b));
  if (op == ReduceOp::kProd)
    return static_cast<T>(static_cast<Pattern>(a) * static_cast<Pattern>(b));
  return (a < b) == (op == ReduceOp::kMax) ? b : a;
}

// One type's arithmetic: patterns in, pattern out. T is what it is computed in.
template <class T>
struct Arithmetic {
  DataType type;

  T decode(Pattern bits) const {
    if constexpr (std::is_same_v<T, float>) {
      if (type != DataType::kFloat32) return static_cast<float>(format_of(type).decode(bits));
    }
    return from_pattern<T>(bits);
  }
  Pattern encode(T value) const {
    if constexpr (std::is_floating_point_v<T>) {
      if (std::isnan(value)) value = std::numeric_limits<T>::quiet_NaN();
    }
    if constexpr (std::is_same_v<T, float>) {
      if (type != DataType::kFloat32) return format_of(type).encode(static_cast<double>(value));
    }
    return to_pattern(value);
  }
  T combine(ReduceOp op, T a, T b) const {
    if constexpr (std::is_floating_point_v<T>) {
      return combine_floats(op, a, b);
    } else {
      return combine_integers(op, a, b);
    }
  }

  Pattern fold(ReduceOp op, const std::vector<Pattern>& sources) const {
    T result = decode(sources[0]);
    for (std::size_t i = 1; i < sources.size(); ++i)
      result = combine(op, result, decode(sources[i]));
    return encode(result);
  }
  Pattern scaled(Pattern factor, Pattern value) const {
    return encode(combine(ReduceOp::kProd, decode(factor), decode(value)));
  }
  Pattern divided(Pattern value, std::int64_t divisor) const {
    if constexpr (std::is_same_v<T, std::uint64_t>) return value / static_cast<Pattern>(divisor);
    if constexpr (std::is_floating_point_v<T>) return 0;
    return to_pattern(static_cast<T>(static_cast<std::int64_t>(decode(value)) / divisor));
  }
};

// Calls `visit` with the Arithmetic of the type.
template <class Visit>
auto with_arithmetic(DataType type, Visit visit) {
  switch (type) {
    case DataType::kInt8: return visit(Arithmetic<std::int8_t>{type});
    case DataType::kUint8: return visit(Arithmetic<std::uint8_t>{type});
    case DataType::kInt32: return visit(Arithmetic<std::int32_t>{type});
    case DataType::kUint32: return visit(Arithmetic<std::uint32_t>{type});
    case DataType::kInt64: return visit(Arithmetic<std::int64_t>{type});
    case DataType::kUint64: return visit(Arithmetic<std::uint64_t>{type});
    case DataType::kFloat64: return visit(Arithmetic<double>{type});
    case DataType::kFloat32:
    case DataType::kFloat16:
    case DataType::kBfloat16:
    case DataType::kFloat8e4m3:
    case DataType::kFloat8e5m2: break;
  }
  return visit(Arithmetic<float>{type});
}

}  // namespace catenary::reference
