// Kernels in plain C++, for any processor: the reference that the vector files must agree with.
#include <bit>

#include "src/kernels/convert.h"
#include "src/kernels/loops.h"

namespace catenary::kernels {
namespace {

template <class T>
struct OneElement {
  using Raw = T;
  static constexpr std::size_t kElementBytes = sizeof(T);
  static constexpr int kUnroll = 1;
  static T load(const void* from) {
    T raw;
    std::memcpy(&raw, from, sizeof(T));
    return raw;
  }
  static void store(void* to, T raw) { std::memcpy(to, &raw, sizeof(T)); }
  static T splat(const Scalar& scalar) { return load(scalar.bits); }
};

template <class T>
struct IntegerElement : OneElement<T> {
  using Value = T;
  using Integer = T;
  using Wide = std::uint64_t;  // unsigned, so that overflow wraps
  static T decode(T raw) { return raw; }
  static T encode(T value) { return value; }
  static T add(T a, T b) { return static_cast<T>(static_cast<Wide>(a) + static_cast<Wide>(b)); }
  static T mul(T a, T b) { return static_cast<T>(static_cast<Wide>(a) * static_cast<Wide>(b)); }
  static T max(T a, T b) { return a > b ? a : b; }
  static T min(T a, T b) { return a < b ? a : b; }
};

template <class T>
struct FloatArithmetic {
  using Value = T;
  static constexpr T kNan = std::bit_cast<T>(
      static_cast<std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>(
          sizeof(T) == 4 ? 0x7fc00000u : 0x7ff8000000000000u));
  static T canonical(T value) { return value != value ? kNan : value; }
  static bool is_negative(T value) { return __builtin_signbit(value) != 0; }
  static T add(T a, T b) { return a + b; }
  static T mul(T a, T b) { return a * b; }
  static T max(T a, T b) {
    if (a != a || b != b) return kNan;
    if (a == b) return is_negative(a) ? b : a;
    return a > b ? a : b;
  }
  static T min(T a, T b) {
    if (a != a || b != b) return kNan;
    if (a == b) return is_negative(a) ? a : b;
    return a < b ? a : b;
  }
};

template <class T>
struct FloatElement : OneElement<T>, FloatArithmetic<T> {
  static T decode(T raw) { return raw; }
  static T encode(T value) { return FloatElement::canonical(value); }
};

template <class Bits, float (*kToFloat)(Bits), Bits (*kFromFloat)(float)>
struct SmallFloatElement : OneElement<Bits>, FloatArithmetic<float> {
  static float decode(Bits raw) { return kToFloat(raw); }
  static Bits encode(float value) { return kFromFloat(value); }
};

template <DataType>
struct Element;
template <>
struct Element<DataType::kInt8> : IntegerElement<std::int8_t> {};
template <>
struct Element<DataType::kUint8> : IntegerElement<std::uint8_t> {};
template <>
struct Element<DataType::kInt32> : IntegerElement<std::int32_t> {};
template <>
struct Element<DataType::kUint32> : IntegerElement<std::uint32_t> {};
template <>
struct Element<DataType::kInt64> : IntegerElement<std::int64_t> {};
template <>
struct Element<DataType::kUint64> : IntegerElement<std::uint64_t> {};
template <>
struct Element<DataType::kFloat32> : FloatElement<float> {};
template <>
struct Element<DataType::kFloat64> : FloatElement<double> {};
template <>
struct Element<DataType::kFloat16>
    : SmallFloatElement<std::uint16_t, half_to_float, float_to_half> {};
template <>
struct Element<DataType::kBfloat16>
    : SmallFloatElement<std::uint16_t, bfloat16_to_float, float_to_bfloat16> {};
template <>
struct Element<DataType::kFloat8e4m3>
    : SmallFloatElement<std::uint8_t, e4m3_to_float, float_to_e4m3> {};
template <>
struct Element<DataType::kFloat8e5m2>
    : SmallFloatElement<std::uint8_t, e5m2_to_float, float_to_e5m2> {};

}  // namespace

constinit const KernelTable kScalarTable = make_table<Element>();

}  // namespace catenary::kernels
