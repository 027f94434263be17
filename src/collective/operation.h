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
  kAllToAllV,
  kAllGatherV,
  kReduceScatterV,
  kBarrier,
};
inline constexpr int kCollectiveCount = 14;

// As users know them, for messages and traces.
constexpr std::string_view name_of(Collective collective) {
  constexpr std::string_view kNames[] = {"AllReduce",      "Broadcast", "Reduce",    "AllGather",
                                         "ReduceScatter",  "AlltoAll",  "Gather",    "Scatter",
                                         "Send",           "Recv",      "AlltoAllv", "AllGatherv",
                                         "ReduceScatterv", "Barrier"};
  return kNames[static_cast<int>(collective)];
}

constexpr bool reduces(Collective collective) {
  return collective == Collective::kAllReduce || collective == Collective::kReduce ||
         collective == Collective::kReduceScatter || collective == Collective::kReduceScatterV;
}

// Whether its parts have lengths and places of their own. `count` is then their sum.
constexpr bool is_uneven(Collective collective) {
  return collective == Collective::kAllToAllV || collective == Collective::kAllGatherV ||
         collective == Collective::kReduceScatterV;
}

// What an uneven collective is where all its parts are alike, and a barrier if it had elements.
constexpr Collective twin_of(Collective collective) {
  switch (collective) {
    case Collective::kAllToAllV: return Collective::kAllToAll;
    case Collective::kAllGatherV: return Collective::kAllGather;
    case Collective::kReduceScatterV: return Collective::kReduceScatter;
    case Collective::kBarrier: return Collective::kAllReduce;
    default: return collective;
  }
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
