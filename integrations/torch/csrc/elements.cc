#include "elements.h"

#include <optional>

namespace catenary_torch {
namespace {

using c10d::ReduceOp;

std::optional<ncclDataType_t> known(at::ScalarType type) {
  switch (type) {
    case at::kChar: return ncclInt8;
    case at::kByte: return ncclUint8;
    case at::kInt: return ncclInt32;
    case at::kUInt32: return ncclUint32;
    case at::kLong: return ncclInt64;
    case at::kUInt64: return ncclUint64;
    case at::kHalf: return ncclFloat16;
    case at::kFloat: return ncclFloat32;
    case at::kDouble: return ncclFloat64;
    case at::kBFloat16: return ncclBfloat16;
    case at::kFloat8_e4m3fn: return ncclFloat8e4m3;
    case at::kFloat8_e5m2: return ncclFloat8e5m2;
    default: return std::nullopt;
  }
}

bool is_bitwise(ReduceOp::RedOpType op) {
  return op == ReduceOp::BAND || op == ReduceOp::BOR || op == ReduceOp::BXOR;
}

[[noreturn]] void refuse(ReduceOp::RedOpType op, at::ScalarType type) {
  TORCH_CHECK(false, "Cannot use ReduceOp.", name_of(op), " with ", at::toString(type),
              " tensors on backend catenary");
}

Reduced of_bools(ReduceOp::RedOpType op) {
  Reduced how{false, at::kBool, ncclUint8, ncclMax};
  switch (op) {
    case ReduceOp::SUM:
    case ReduceOp::MAX:
    case ReduceOp::BOR: return how;
    case ReduceOp::PRODUCT:
    case ReduceOp::MIN:
    case ReduceOp::BAND: how.op = ncclMin; return how;
    case ReduceOp::BXOR: how.folded = true; return how;
    default: refuse(op, at::kBool);
  }
}

ncclRedOp_t in_words_of_nccl(ReduceOp::RedOpType op, at::ScalarType type) {
  switch (op) {
    case ReduceOp::SUM: return ncclSum;
    case ReduceOp::AVG: return ncclAvg;
    case ReduceOp::PRODUCT: return ncclProd;
    case ReduceOp::MIN: return ncclMin;
    case ReduceOp::MAX: return ncclMax;
    case ReduceOp::PREMUL_SUM: return ncclNumOps;
    default: refuse(op, type);
  }
}

}  // namespace

const char* name_of(ReduceOp::RedOpType op) {
  constexpr const char* kNames[] = {"SUM",  "AVG", "PRODUCT", "MIN",       "MAX",
                                    "BAND", "BOR", "BXOR",    "PREMUL_SUM"};
  return op < ReduceOp::UNUSED ? kNames[op] : "an unknown ReduceOp";
}

Moved moved(at::ScalarType type) {
  if (const std::optional<ncclDataType_t> same = known(type)) return {*same, 1};
  return {ncclUint8, c10::elementSize(type)};
}

Reduced reduced(const ReduceOp& reduce_op, at::ScalarType type) {
  const auto op = static_cast<ReduceOp::RedOpType>(reduce_op);
  if (type == at::kBool) return of_bools(op);
  if (is_bitwise(op)) {
    if (!at::isIntegralType(type, false)) refuse(op, type);
    return {true, type, moved(type).type, ncclSum};
  }
  if (const auto same = known(type)) return {false, type, *same, in_words_of_nccl(op, type)};
  at::ScalarType wider = at::kInt;
  if (type == at::kFloat8_e4m3fnuz || type == at::kFloat8_e5m2fnuz) {
    wider = at::kFloat;
  } else if (type != at::kShort && type != at::kUInt16) {
    refuse(op, type);
  }
  return {false, wider, *known(wider), in_words_of_nccl(op, type)};
}

at::Tensor fold(const at::Tensor& gathered, const ReduceOp& op) {
  at::Tensor result = gathered[0].clone();
  for (std::int64_t row = 1; row < gathered.size(0); ++row) {
    switch (static_cast<ReduceOp::RedOpType>(op)) {
      case ReduceOp::BAND: result.bitwise_and_(gathered[row]); break;
      case ReduceOp::BOR: result.bitwise_or_(gathered[row]); break;
      default: result.bitwise_xor_(gathered[row]);
    }
  }
  return result;
}

ScopedOp::ScopedOp(const Reduced& how, const ReduceOp& op, Communicator& communicator)
    : op_(how.op) {
  if (how.op != ncclNumOps) return;
  const auto* factor = dynamic_cast<const c10d::PreMulSumSupplement*>(op.supplement_.get());
  TORCH_CHECK(factor != nullptr, "ReduceOp.PREMUL_SUM without a factor");
  const at::Tensor given = factor->tensor_factor.defined()
                               ? factor->tensor_factor
                               : at::scalar_tensor(factor->double_factor, at::kDouble);
  TORCH_CHECK(!given.is_complex() && given.numel() == 1,
              "backend catenary: ReduceOp.PREMUL_SUM takes one factor, which is not complex");
  at::Tensor scalar = given.to(at::kCPU, how.computed_as).contiguous();
  TORCH_CHECK(
      !at::isIntegralType(how.computed_as, true) || scalar.item<double>() == given.item<double>(),
      "backend catenary: ReduceOp.PREMUL_SUM of whole numbers takes a whole factor, not ",
      given.item<double>());
  ncclComm_t comm = communicator.get();
  communicator.require(
      ncclRedOpCreatePreMulSum(&op_, scalar.data_ptr(), how.type, ncclScalarHostImmediate, comm),
      "ncclRedOpCreatePreMulSum");
  made_on_ = comm;
}

ScopedOp::~ScopedOp() {
  if (made_on_ != nullptr) ncclRedOpDestroy(op_, made_on_);
}

}  // namespace catenary_torch
