// How a run begins: what it is made of, and what it copies before its first step.
#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>

#include "src/base/rounding.h"
#include "src/engine/schedule_run.h"

namespace catenary {
namespace {

// Of what is not scaled first.
Combination combination_of(const RunSpec& spec) {
  const Descriptor& operation = spec.descriptor;
  return {.reduce = spec.kernels->reduce,
          .fold_streaming = spec.kernels->fold_streaming,
          .element_bytes = element_bytes(operation.type),
          .name = combination_name(operation.type, operation.reduction)};
}

}  // namespace

void ScheduleRun::begin(const RunSpec& spec, const void* input, void* output,
                        std::uint32_t sequence) {
  if (spec.stamp == 0 || spec.stamp != spec_.stamp) adopt(spec);
  spec_.input = static_cast<const std::byte*>(input);
  spec_.output = static_cast<std::byte*>(output);
  spec_.past_caches = spec.past_caches;
  spec_.descriptor.sequence = expected_.sequence = sequence;
  pass_ = step_ = slice_ = 0;
  started_ = borrowed_ = copies_input_ = false;
  input_copy_.reset();
  staged_ = {};
  own_part_ = {};
  waits_for_ = kNobody;
  awaited_ = nullptr;
  copying_ = nullptr;
}

void ScheduleRun::adopt(const RunSpec& spec) {
  spec_ = spec;
  element_bytes_ = element_bytes(spec.descriptor.type);
  element_shift_ = std::countr_zero(element_bytes_);
  scaled_ = spec.scaling.from != Scaling::From::kNothing;
  expected_ = spec.descriptor;
  const Slicing& slicing = spec_.slicing;
  // An operation on nothing still tells its peers so.
  passes_ = std::max<std::size_t>(slicing.passes(), 1);
  const std::size_t longest = slicing.partition().longest_chunk() * element_bytes_;
  const std::size_t least_helped =
      spec.kernels != nullptr ? RecvLink::kLeastCombinedTogether : RecvLink::kLeastCopiedTogether;
  helps_ = spec_.least_loan != SIZE_MAX && longest >= least_helped;
  combination_ =
      helps_ && spec.kernels != nullptr && !scaled_ ? combination_of(spec) : Combination();
  is_lone_ = spec_.plan->chunk_count == 1 && spec_.parts == nullptr && passes_ == 1;
  if (!is_lone_) return;
  const Range whole = slicing.partition().chunk(0);
  is_lone_ = slicing.slices(whole) <= 1;
  lone_ = {whole.offset * element_bytes_, whole.count * element_bytes_};
}

void ScheduleRun::take_input() {
  input_copy_ = std::make_unique_for_overwrite<std::byte[]>(spec_.copied_input);
  const auto copy_part = [this](std::size_t offset, std::size_t bytes) {
    std::memcpy(input_copy_.get() + offset, spec_.input + offset, bytes);
  };
  if (spec_.parts == nullptr) {
    copy_part(0, spec_.copied_input);
  } else {  // what lies between parts need not be memory of the caller's
    for (const Range& part : spec_.parts->input)
      copy_part(part.offset * element_bytes_, part.count * element_bytes_);
  }
  spec_.input = input_copy_.get();
}

void ScheduleRun::take_scalar() {
  std::memcpy(spec_.scaling.value.bits, spec_.scaling.memory, element_bytes_);
}

// For one pass at a time: passes are disjoint and follow each other.
void ScheduleRun::take_scratch() {
  constexpr std::size_t kAlignment = ScratchMemory::kAlignment;
  const std::size_t longest = spec_.slicing.longest_part() * element_bytes_;
  scratch_stride_ = round_up(longest, kAlignment);
  scratch_ = spec_.scratch->at_least(static_cast<std::size_t>(spec_.plan->scratch_count) *
                                     scratch_stride_);
}

}  // namespace catenary
