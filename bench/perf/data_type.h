// The data types and reductions as the command line, the table and the wire know them.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "include/nccl.h"

namespace catenary::perf {

// How a floating-point type lays out its bits; exponent_bits == 0 for integers.
struct FloatFormat {
  int exponent_bits = 0;
  int mantissa_bits = 0;
  // The largest exponent field holds ordinary numbers too (as f8e4m3 does), not Inf and NaN only.
  bool finite_only = false;
};

struct DataType {
  const char* name;
  ncclDataType_t id;
  std::size_t bytes;
  bool is_signed;
  FloatFormat format;

  bool is_float() const { return format.exponent_bits != 0; }
};

enum class Reduction { kSum, kProd, kMin, kMax, kAvg, kMulSum };

struct ReductionName {
  const char* name;
  Reduction reduction;
};

std::span<const DataType> data_types();
std::span<const ReductionName> reductions();

// nullptr if there is no such name.
const DataType* find_data_type(const std::string& name);
const ReductionName* find_reduction(const std::string& name);

}  // namespace catenary::perf
