// Descriptor: what an operation is, in the few bytes that travel with the first message on each
// link so that ranks which do not agree find out instead of hanging. A value; no threads, no
// waiting.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "src/base/error.h"
#include "src/base/size_literals.h"
#include "src/base/types.h"
#include "src/collective/operation.h"
#include "src/collective/partition.h"

namespace catenary {

// How the inputs are combined, as users name it.
enum class Reduction : std::uint8_t { kSum, kProd, kMax, kMin, kAvg, kPreMulSum, kNone };

std::string_view name_of(Reduction reduction);

// What two ranks call it that they combine elements of a type so (combination.h), which each reads
// in the other's memory. 0 means none, and is nobody's name.
constexpr std::uint32_t combination_name(DataType type, Reduction reduction) {
  return 1 + static_cast<std::uint32_t>(type) * 256 + static_cast<std::uint32_t>(reduction);
}

struct Descriptor {
  std::uint32_t sequence = 0;  // n-th collective of the communicator, or n-th message of the pair
  Collective kind = Collective::kAllReduce;
  DataType type = DataType::kInt8;
  Reduction reduction = Reduction::kNone;
  std::uint8_t algorithm = 0;  // ranks that choose differently would hang just as well
  std::int32_t root = 0;       // or what tells apart those that have none: see below
  std::uint32_t mark = 0;      // the caller's own, of a collective
  std::uint64_t count = 0;

  // There is no padding, so words do for the members.
  bool operator==(const Descriptor& other) const {
    using Words = std::array<std::uint64_t, 3>;
    return std::bit_cast<Words>(*this) == std::bit_cast<Words>(other);
  }
};
static_assert(sizeof(Descriptor) == 24);

// What AllGatherv and ReduceScatterv have for a root: a number that is another one for other
// lengths of parts, almost surely.
std::int32_t digest_of(const std::vector<Range>& parts);

// The ranks of an AlltoAllv know of each other only what they exchange. The opening of a message
// tells its sender and how many elements the message has in all; whole() knows nothing of that.
Descriptor opening_of(const Descriptor& all_to_all_v, int sender, std::uint64_t count);
Descriptor whole(const Descriptor& descriptor);

// "AllReduce number 7 (count 100, float, sum)".
std::string describe(const Descriptor& descriptor);

// What users read when a peer's operation is not what this rank runs.
Error disagreement(int rank, const Descriptor& mine, int peer, const Descriptor& theirs);

// The same as it is thrown where a message shows it. If ours is of another number than theirs, who
// remembers ours of that number can say more.
class Disagreement final : public Error {
 public:
  Disagreement(int rank, const Descriptor& mine, int sender, const Descriptor& sent)
      : Error(disagreement(rank, mine, sender, sent)),
        peer(sender),
        theirs(sent),
        is_about_ours(mine.sequence == sent.sequence) {}

  const int peer;
  const Descriptor theirs;
  const bool is_about_ours;
};

// Where data starts in a message of `bytes` that opens with a descriptor. While both lie in the
// head of a slot (slot_ring.h), right after it, so that no more cache lines move than need be; or,
// where there are many lines, at the next one: there are eight bytes of the slot's own before them.
// What is longer begins with a line in slots, and so does its data. Links of other kinds carry the
// same, whatever it does for them.
inline constexpr std::size_t kDescriptorBytes = sizeof(Descriptor);
inline constexpr std::size_t kPaddedDescriptorBytes = 64;
inline constexpr std::size_t kHeadDescriptorBytes = kPaddedDescriptorBytes - 8;
inline constexpr std::size_t kCompactDataBytes = 640;
inline constexpr std::size_t kHeadDataBytes = 1_KB;
// As much as fits one cache line with the descriptor and the slot's own words.
inline constexpr std::size_t kOneLineDataBytes = 32;
constexpr std::size_t opening_bytes(std::size_t data_bytes) {
  if (data_bytes <= kCompactDataBytes) return kDescriptorBytes;
  return data_bytes <= kHeadDataBytes ? kHeadDescriptorBytes : kPaddedDescriptorBytes;
}
// Of the whole message.
constexpr std::size_t opened_bytes(std::size_t data_bytes) {
  return opening_bytes(data_bytes) + data_bytes;
}

}  // namespace catenary
