#include "src/comm/reductions.h"

#include <atomic>
#include <climits>
#include <cstdint>

#include "src/base/error.h"
#include "src/kernels/reduce.h"

namespace catenary {

namespace {

constexpr int kBuiltIn = 5;  // ncclNumOps
constexpr int kSlots = 1 << 16;
constexpr int kRanges = INT_MAX / kSlots - 1;

// Communicators number their operations in ranges of their own, so that one's operation is not
// taken for another's.
int next_first_value() {
  static std::atomic<unsigned> made{0};
  const unsigned range = made.fetch_add(1, std::memory_order_relaxed) % kRanges;
  return kBuiltIn + static_cast<int>(range) * kSlots;
}

}  // namespace

Reductions::Reductions(int nranks) : nranks_(nranks), first_value_(next_first_value()) {}

// Beyond every slot for values that are not operations of this communicator.
std::size_t Reductions::slot_of(int value) const {
  return value < first_value_
             ? SIZE_MAX
             : static_cast<std::size_t>(value) - static_cast<std::size_t>(first_value_);
}

int Reductions::create_pre_mul_sum(DataType type, const Scaling& scaling) {
  const std::lock_guard lock(mutex_);
  std::size_t slot = 0;
  while (slot < user_ops_.size() && user_ops_[slot].alive) ++slot;
  if (slot == kSlots) {
    throw_error(ErrorCode::kInvalidUsage,
                "ncclRedOpCreatePreMulSum : %d operations of one communicator; destroy some",
                kSlots);
  }
  if (slot == user_ops_.size()) user_ops_.emplace_back();
  user_ops_[slot] = {.alive = true, .type = type, .scaling = scaling};
  return first_value_ + static_cast<int>(slot);
}

void Reductions::destroy(int value) {
  const std::lock_guard lock(mutex_);
  const std::size_t slot = slot_of(value);
  if (slot >= user_ops_.size() || !user_ops_[slot].alive) {
    throw_error(
        ErrorCode::kInvalidArgument,
        "ncclRedOpDestroy : operator %d is not one that ncclRedOpCreatePreMulSum made for this "
        "communicator",
        value);
  }
  user_ops_[slot].alive = false;
}

ResolvedReduction Reductions::resolve(int value, DataType type) const {
  switch (value) {
    case 0: return {Reduction::kSum, ReduceOp::kSum, {}, 1};
    case 1: return {Reduction::kProd, ReduceOp::kProd, {}, 1};
    case 2: return {Reduction::kMax, ReduceOp::kMax, {}, 1};
    case 3: return {Reduction::kMin, ReduceOp::kMin, {}, 1};
    case 4: return average(type);
    default: break;
  }
  const std::lock_guard lock(mutex_);
  const std::size_t slot = slot_of(value);
  if (slot >= user_ops_.size() || !user_ops_[slot].alive) {
    throw_error(ErrorCode::kInvalidArgument, "invalid reduction operation %d", value);
  }
  const UserOp& user_op = user_ops_[slot];
  if (user_op.type != type) {
    throw_error(
        ErrorCode::kInvalidArgument,
        "Data type supplied to user-created ncclRedOp_t does not match type given to reduction "
        "operation (%s, made for %s)",
        std::string(name_of(type)).c_str(), std::string(name_of(user_op.type)).c_str());
  }
  return {Reduction::kPreMulSum, ReduceOp::kSum, user_op.scaling, 1};
}

// As NCCL defines it: integers are summed and then divided, floats are multiplied by 1/n, rounded
// to the type, and then summed.
ResolvedReduction Reductions::average(DataType type) const {
  ResolvedReduction resolved{Reduction::kAvg, ReduceOp::kSum, {}, 1};
  if (nranks_ == 1) return resolved;
  if (is_integer(type)) {
    resolved.divisor = nranks_;
  } else {
    resolved.scaling = {Scaling::From::kValue, kernels::scalar_one_over(type, nranks_), nullptr};
  }
  return resolved;
}

}  // namespace catenary
