#include "src/collective/select.h"

#include <algorithm>
#include <set>
#include <string>

#include "src/base/error.h"

namespace catenary {
namespace {

// Where the times of two algorithms cross depends on the machine. These were seen between 2 to 8
// ranks that share two cores; to move one, run the benchmark with either algorithm forced
// (CATENARY_ALGO) and compare the times around it.

// One shot writes nranks^2 times the bytes in all, so it is that product that must be small.
constexpr std::size_t kOneShotTotalBytes = 256 * 1024;
// Up to here hops cost more than the ring's even load on wires and caches gains.
constexpr std::size_t kDirectBytes = 1024 * 1024;
// With more ranks than cores the slots of all pairs fall out of the caches sooner.
constexpr std::size_t kCrowdedDirectBytes = 128 * 1024;
// The root of a direct broadcast or reduce does all the work alone: worth it for short messages
// only.
constexpr std::size_t kDirectRootedBytes = 32 * 1024;
// Direct all-to-all has a message for everybody under way at once, as long as caches hold them.
constexpr std::size_t kDirectAllToAllBytes = 1024 * 1024;
// A link to every peer costs memory for its slots. Above this, only what cannot do without has one.
constexpr int kMostDirectRanks = 64;

bool goes_direct(std::size_t bytes, std::size_t direct_bytes, int nranks,
                 const MachineFacts& machine) {
  if (nranks > kMostDirectRanks) return false;
  const bool crowded = machine.local_ranks > machine.cores;
  return bytes <= (crowded ? kCrowdedDirectBytes : direct_bytes);
}

std::string_view best_name(Collective collective, std::size_t bytes, int nranks,
                           const MachineFacts& machine) {
  const auto ranks = static_cast<std::size_t>(nranks);
  switch (collective) {
    case Collective::kAllReduce:
      if (nranks <= kMostDirectRanks && bytes <= kOneShotTotalBytes / (ranks * ranks)) {
        return "one_shot";
      }
      return goes_direct(bytes, kDirectBytes, nranks, machine) ? "direct" : "ring";
    case Collective::kAllGather:
    case Collective::kReduceScatter:
    case Collective::kAllGatherV:
    case Collective::kReduceScatterV:
      return goes_direct(bytes, kDirectBytes, nranks, machine) ? "direct" : "ring";
    case Collective::kBroadcast:
    case Collective::kReduce:
      return goes_direct(bytes, kDirectRootedBytes, nranks, machine) ? "direct" : "chain";
    case Collective::kAllToAll:
      return bytes <= kDirectAllToAllBytes || machine.local_ranks > machine.cores ? "direct"
                                                                                  : "pairwise";
    // Ranks know their own counts only, so the choice must not depend on bytes.
    case Collective::kAllToAllV: return "direct";
    case Collective::kBarrier:
      return nranks <= kMostDirectRanks ? "one_shot" : "recursive_doubling";
    case Collective::kGather:
    case Collective::kScatter:
    case Collective::kSend:
    case Collective::kRecv: return "direct";
  }
  throw_error(ErrorCode::kInternal, "no algorithm for collective %d", static_cast<int>(collective));
}

bool is_known(std::string_view name) {
  const auto has_name = [name](const Algorithm& algorithm) { return algorithm.name == name; };
  return std::ranges::any_of(algorithms(), has_name);
}

[[noreturn]] void refuse(std::string_view name) {
  std::set<std::string> known;
  for (const Algorithm& algorithm : algorithms()) known.emplace(algorithm.name);
  std::string list;
  for (const std::string& entry : known) list += (list.empty() ? "" : ", ") + entry;
  throw_error(ErrorCode::kInvalidArgument, "there is no algorithm \"%s\"; the known ones are %s",
              std::string(name).c_str(), list.c_str());
}

}  // namespace

Selection select(Collective collective, std::size_t bytes, int nranks, const MachineFacts& machine,
                 std::string_view forced) {
  if (!forced.empty()) {
    const Algorithm* wish = find_algorithm(collective, forced);
    if (wish != nullptr && wish->runs_on({.ranks = nranks, .box = machine.box})) {
      return {wish, wish->lanes};
    }
    if (!is_known(forced)) refuse(forced);
  }
  const std::string_view name = best_name(collective, bytes, nranks, machine);
  const Algorithm* best = find_algorithm(collective, name);
  if (best == nullptr) {
    throw_error(ErrorCode::kInternal, "%s has no algorithm \"%s\"",
                std::string(name_of(collective)).c_str(), std::string(name).c_str());
  }
  return {best, best->lanes};
}

}  // namespace catenary
