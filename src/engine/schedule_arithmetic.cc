// The arithmetic of a run: what one slice does to bytes.
#include <algorithm>
#include <array>

#include "src/base/copy.h"
#include "src/base/size_literals.h"
#include "src/engine/schedule_run.h"

namespace catenary {
namespace {

// Where a result is both kept and passed on, it is made and copied in blocks that stay in the
// first-level cache between the two.
constexpr std::size_t kBlockBytes = 8_KB;

// The operands in the order that the step says: the bits may depend on it.
std::array<const std::byte*, 2> in_order(const PlannedStep& step, const std::byte* received,
                                         const std::byte* own) {
  if (step.received_first) return {received, own};
  return {own, received};
}

}  // namespace

// `received` and `own` are operands (either may be null).
void ScheduleRun::apply(const PlannedStep& step, const std::byte* received, const std::byte* own,
                        bool own_is_input, const Places& to, std::size_t bytes) {
  if (computes(received, own, own_is_input)) {
    return compute(step, received, own, own_is_input, to, bytes);
  }
  const std::byte* from = received != nullptr ? received : own;
  const bool streams = to.past_caches && to.kept != nullptr && to.kept != from;
  if (!streams) {
    if (to.passed_on != nullptr) step.send->write(to.passed_on, {from, bytes});
    if (to.kept == nullptr || to.kept == from) return;
    if (from == received) return step.recv->read(to.kept, {from, bytes});
    return copy(to.kept, from, bytes);
  }
  if (to.passed_on == nullptr) return copy_streaming_and_fetch(to.kept, from, bytes, to.soon);
  // Both in one go, but for a first block by which the link finds out how its stores are quickest.
  const std::size_t first = std::min(bytes, kBlockBytes);
  step.send->write(to.passed_on, {from, first});
  const std::size_t rest = bytes - first;
  if (step.send->writes_past_caches(rest)) {
    step.send->write(to.passed_on + first, {from + first, rest});
    return copy_streaming(to.kept, from, bytes);
  }
  copy_streaming(to.kept, from, first);
  copy_streaming_and_copy(to.kept + first, to.passed_on + first, from + first, rest);
}

void ScheduleRun::compute(const PlannedStep& step, const std::byte* received, const std::byte* own,
                          bool own_is_input, const Places& to, std::size_t bytes) {
  const bool scale_own = scaled_ && own_is_input && own != nullptr;
  const bool is_plain = received != nullptr && !scale_own && spec_.divisor == 1;
  // What is read where it is written is in the caches already.
  if (is_plain && to.past_caches && to.kept != nullptr && to.kept != own) {
    return sum_past_caches(step, received, own, to, bytes);
  }
  alignas(64) std::array<std::byte, kBlockBytes> elsewhere;
  const bool is_written =
      to.passed_on != nullptr && (to.kept != nullptr || step.send->writes_past_caches(bytes));
  const std::size_t block = is_written ? kBlockBytes : bytes;
  for (std::size_t at = 0; at < bytes; at += block) {
    const std::size_t now = std::min(block, bytes - at);
    const std::size_t count = elements_in(now);
    std::byte* out = to.kept != nullptr ? to.kept + at
                     : is_written       ? elsewhere.data()
                                        : to.passed_on + at;
    if (received == nullptr) {
      spec_.kernels->scale(out, own + at, spec_.scaling.value, count);
    } else {
      combine(step, out, received + at, own + at, scale_own, count);
    }
    if (received != nullptr && step.dst.buffer == Buffer::kOutput) finish_average(out, now);
    if (is_written) step.send->write(to.passed_on + at, {out, now});
  }
}

// What is kept goes past the caches.
void ScheduleRun::sum_past_caches(const PlannedStep& step, const std::byte* received,
                                  const std::byte* own, const Places& to, std::size_t bytes) {
  const auto [a, b] = in_order(step, received, own);
  if (to.passed_on == nullptr) {
    const std::array<const void*, 2> sources = {a, b};
    return spec_.kernels->fold_streaming(to.kept, sources.data(), 2, elements_in(bytes));
  }
  alignas(64) std::array<std::byte, kBlockBytes> block;
  // The first block tells the link how its stores are quickest; if those go past the caches, too,
  // all others are like it.
  std::size_t at = 0;
  while (at < bytes && (at == 0 || step.send->writes_past_caches(bytes - at))) {
    const std::size_t now = std::min(kBlockBytes, bytes - at);
    spec_.kernels->reduce(block.data(), a + at, b + at, elements_in(now));
    step.send->write(to.passed_on + at, {block.data(), now});
    copy_streaming(to.kept + at, block.data(), now);
    at += now;
  }
  if (at == bytes) return;
  spec_.kernels->reduce_twice(to.passed_on + at, to.kept + at, a + at, b + at,
                              elements_in(bytes - at), kernels::TwinStores::kTwinStreaming);
}

inline void ScheduleRun::combine(const PlannedStep& step, std::byte* out, const std::byte* received,
                                 const std::byte* own, bool scale_own, std::size_t count) {
  if (!scale_own) {
    const auto [a, b] = in_order(step, received, own);
    spec_.kernels->reduce(out, a, b, count);
  } else if (!step.received_first) {
    spec_.kernels->reduce_scaled(out, received, own, spec_.scaling.value, count);
  } else {
    spec_.kernels->scale(out, own, spec_.scaling.value, count);
    spec_.kernels->reduce(out, received, out, count);
  }
}

void ScheduleRun::finish_average(std::byte* at, std::size_t bytes) {
  if (spec_.divisor == 1) return;
  spec_.kernels->divide(at, at, spec_.divisor, elements_in(bytes));
}

// With a peer that wants the result in its own memory, too.
void ScheduleRun::compute_for_both(const PlannedStep& step, const std::byte* received,
                                   const std::byte* own, std::byte* kept, std::byte* result,
                                   std::size_t bytes) {
  alignas(64) std::array<std::byte, kBlockBytes> elsewhere;
  const bool scale_own = scaled_ && step.src.buffer == Buffer::kInput;
  const bool past_caches = spec_.past_caches && step.for_good;
  const bool is_plain = kept != nullptr && !scale_own && spec_.divisor == 1;
  // Block by block, as many as the link needs to find out how its stores are quickest.
  const std::size_t in_blocks = !is_plain ? bytes : past_caches ? 0 : kBlockBytes;
  for (std::size_t at = 0; at < std::min(bytes, in_blocks); at += kBlockBytes) {
    const std::size_t now = std::min(kBlockBytes, bytes - at);
    std::byte* const out = kept != nullptr && !past_caches ? kept + at : elsewhere.data();
    combine(step, out, received + at, own + at, scale_own, elements_in(now));
    if (step.dst.buffer == Buffer::kOutput) finish_average(out, now);
    step.recv->write_result(result + at, {out, now}, past_caches);
    if (kept != nullptr && out != kept + at) copy_streaming(kept + at, out, now);
  }
  if (in_blocks >= bytes) return;
  const std::size_t rest = bytes - in_blocks;
  const auto stores = past_caches                        ? kernels::TwinStores::kBothStreaming
                      : step.recv->streams_results(rest) ? kernels::TwinStores::kTwinStreaming
                                                         : kernels::TwinStores::kCached;
  const auto [a, b] = in_order(step, received, own);
  spec_.kernels->reduce_twice(kept + in_blocks, result + in_blocks, a + in_blocks, b + in_blocks,
                              elements_in(rest), stores);
}

}  // namespace catenary
