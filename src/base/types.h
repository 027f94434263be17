// The words that every room shares: element types, reductions, runs of bytes, and who is nobody.
// Values only; nothing here waits, allocates or fails.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace catenary {

using Bytes = std::vector<std::byte>;
using ByteView = std::span<const std::byte>;
using ByteSpan = std::span<std::byte>;

// In place of a rank.
inline constexpr int kNobody = -1;

// The order is NCCL's, so that the C boundary only has to check the range.
enum class DataType : std::uint8_t {
  kInt8,
  kUint8,
  kInt32,
  kUint32,
  kInt64,
  kUint64,
  kFloat16,
  kFloat32,
  kFloat64,
  kBfloat16,
  kFloat8e4m3,
  kFloat8e5m2,
};
inline constexpr int kDataTypeCount = 12;

// What combines two elements. Averages and premultiplied sums are kSum with a scale on the way in
// (floats) or a division on the way out (integer averages), so kernels know only these four.
enum class ReduceOp : std::uint8_t { kSum, kProd, kMax, kMin };
inline constexpr int kReduceOpCount = 4;

constexpr std::size_t element_bytes(DataType type) {
  switch (type) {
    case DataType::kInt8:
    case DataType::kUint8:
    case DataType::kFloat8e4m3:
    case DataType::kFloat8e5m2: return 1;
    case DataType::kFloat16:
    case DataType::kBfloat16: return 2;
    case DataType::kInt32:
    case DataType::kUint32:
    case DataType::kFloat32: return 4;
    case DataType::kInt64:
    case DataType::kUint64:
    case DataType::kFloat64: return 8;
  }
  return 0;
}

constexpr bool is_integer(DataType type) { return type <= DataType::kUint64; }

constexpr std::string_view name_of(DataType type) {
  constexpr std::string_view kNames[] = {"int8", "uint8", "int32",  "uint32",   "int64",  "uint64",
                                         "half", "float", "double", "bfloat16", "f8e4m3", "f8e5m2"};
  return kNames[static_cast<int>(type)];
}

constexpr std::string_view name_of(ReduceOp op) {
  constexpr std::string_view kNames[] = {"sum", "prod", "max", "min"};
  return kNames[static_cast<int>(op)];
}

// One scalar of some data type, kept as its bits in the low bytes.
struct Scalar {
  alignas(8) std::byte bits[8] = {};
};

}  // namespace catenary
