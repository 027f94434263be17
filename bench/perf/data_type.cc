#include "bench/perf/data_type.h"

#include <array>

namespace catenary::perf {
namespace {

// In the order that "-d all" and "-o all" follow.
constexpr std::array kDataTypes = {
    DataType{"int8", ncclInt8, 1, true, {}},
    DataType{"uint8", ncclUint8, 1, false, {}},
    DataType{"int32", ncclInt32, 4, true, {}},
    DataType{"uint32", ncclUint32, 4, false, {}},
    DataType{"int64", ncclInt64, 8, true, {}},
    DataType{"uint64", ncclUint64, 8, false, {}},
    DataType{"half", ncclFloat16, 2, true, {5, 10, false}},
    DataType{"float", ncclFloat32, 4, true, {8, 23, false}},
    DataType{"double", ncclFloat64, 8, true, {11, 52, false}},
    DataType{"bfloat16", ncclBfloat16, 2, true, {8, 7, false}},
    DataType{"f8e4m3", ncclFloat8e4m3, 1, true, {4, 3, true}},
    DataType{"f8e5m2", ncclFloat8e5m2, 1, true, {5, 2, false}},
};

constexpr std::array kReductions = {
    ReductionName{"sum", Reduction::kSum}, ReductionName{"prod", Reduction::kProd},
    ReductionName{"min", Reduction::kMin}, ReductionName{"max", Reduction::kMax},
    ReductionName{"avg", Reduction::kAvg}, ReductionName{"mulsum", Reduction::kMulSum},
};

}  // namespace

std::span<const DataType> data_types() { return kDataTypes; }
std::span<const ReductionName> reductions() { return kReductions; }

const DataType* find_data_type(const std::string& name) {
  for (const DataType& type : kDataTypes) {
    if (name == type.name) return &type;
  }
  return nullptr;
}

const ReductionName* find_reduction(const std::string& name) {
  for (const ReductionName& entry : kReductions) {
    if (name == entry.name) return &entry;
  }
  return nullptr;
}

}  // namespace catenary::perf
