// What ranks can do together, and the few facts about each that do not depend on how it is done.
// Values only.
#pragma once

#include <cstdint>
#include <string_view>

namespace catenary {

enum class Collective : std::uint8_t {
  kAllReduce,
  kBroadcast,
  kReduce,
  kAllGather,
  kReduceScatter,
  kAllToAll,
  kGather,
  kScatter,
  kSend,
  kRecv,
};
inline constexpr int kCollectiveCount = 10;

// As users know them, for messages and traces.
constexpr std::string_view name_of(Collective collective) {
  constexpr std::string_view kNames[] = {"AllReduce",     "Broadcast", "Reduce", "AllGather",
                                         "ReduceScatter", "AlltoAll",  "Gather", "Scatter",
                                         "Send",          "Recv"};
  return kNames[static_cast<int>(collective)];
}

constexpr bool reduces(Collective collective) {
  return collective == Collective::kAllReduce || collective == Collective::kReduce ||
         collective == Collective::kReduceScatter;
}

// Whether the longer of its buffers holds `count` elements for each rank. Otherwise both buffers
// hold `count` elements in all.
constexpr bool holds_part_per_rank(Collective collective) {
  return collective == Collective::kAllGather || collective == Collective::kReduceScatter ||
         collective == Collective::kAllToAll || collective == Collective::kGather ||
         collective == Collective::kScatter;
}

constexpr bool is_point_to_point(Collective collective) {
  return collective == Collective::kSend || collective == Collective::kRecv;
}

// Whether it has a root, or a peer in its place.
constexpr bool has_root(Collective collective) {
  return collective == Collective::kBroadcast || collective == Collective::kReduce ||
         collective == Collective::kGather || collective == Collective::kScatter ||
         is_point_to_point(collective);
}

}  // namespace catenary
