#include "src/transport/slot_writer.h"

#include <algorithm>
#include <cstring>

#include "src/base/copy.h"
#include "src/base/fence.h"

namespace catenary {
namespace {

// What is measured, and how long it may take. Plain stores take 0.02 to 0.15 ns a byte where the
// cores share a cache, and 0.19 to 0.55 where they do not.
constexpr std::size_t kSampleBytes = SlotWriter::kLeastStreamedBytes;
constexpr std::int64_t kSlowSampleNs = 370;
// One write in so many is measured: to look at the clock takes as long as to copy a kilobyte. Fewer
// and fewer, while they say what is known.
constexpr std::uint32_t kWritesPerSample = 8;
constexpr std::uint32_t kStreamedWritesPerSample = 16;
constexpr std::uint32_t kMostWritesPerSample = 64;
// A slow sample may be an interrupt, or a page that is touched for the first time, as all slots of
// a new link may be: 16 of them, as by default, are two samples.
constexpr std::uint32_t kDoubtsToChange = 3;

void store(std::byte* at, ByteView data, bool streams) {
  if (streams) {
    copy_streaming(at, data.data(), data.size());
  } else if (!data.empty()) {
    std::memcpy(at, data.data(), data.size());
  }
}

// What is copied may have to come from memory, which says nothing of where it goes.
void bring_in(const std::byte* from) {
  for (std::size_t at = 0; at < kSampleBytes; at += 64) {
    static_cast<void>(*static_cast<const volatile std::byte*>(from + at));
  }
}

}  // namespace

SlotWriter::SlotWriter(Clock clock) : clock_(clock), per_sample_(kWritesPerSample) {}

void SlotWriter::write(std::byte* at, ByteView data) noexcept {
  if (!kCanStream || data.size() < kLeastStreamedBytes || !wants_to_know()) {
    return store(at, data, streams(data.size()));
  }
  const bool is_slow = plain_is_slow(at, data.data());
  learn(is_slow);
  store(at + kSampleBytes, data.subspan(kSampleBytes), is_slow);
}

bool SlotWriter::wants_to_know() noexcept {
  if (++writes_ < per_sample_) return false;
  writes_ = 0;
  return true;
}

bool SlotWriter::plain_is_slow(std::byte* at, const std::byte* from) const noexcept {
  bring_in(from);
  finish_stores();  // of what was done before
  const std::int64_t first = clock_();
  const std::int64_t before = clock_();
  std::memcpy(at, from, kSampleBytes);
  finish_stores();  // a core's buffers take as much without having a line of it
  return clock_() - before - (before - first) > kSlowSampleNs;
}

void SlotWriter::learn(bool is_slow) noexcept {
  if (is_slow == streams_) {
    doubts_ = 0;
    per_sample_ = std::min(2 * per_sample_, kMostWritesPerSample);
    return;
  }
  if (++doubts_ == kDoubtsToChange) {
    streams_ = is_slow;
    doubts_ = 0;
  }
  per_sample_ = streams_ ? kStreamedWritesPerSample : kWritesPerSample;
}

}  // namespace catenary
