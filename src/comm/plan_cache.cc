#include "src/comm/plan_cache.h"

#include "src/base/error.h"
#include "src/base/log.h"
#include "src/collective/partition.h"

namespace catenary {

PlanCache::PlanCache(int rank, int nranks, LinkTable& links, const MachineFacts& machine,
                     Slots slots, std::string forced)
    : rank_(rank),
      nranks_(nranks),
      links_(links),
      machine_(machine),
      slots_(slots),
      forced_(std::move(forced)) {
  select(Collective::kAllReduce, 0, nranks_, machine_, forced_);  // refuses an unknown name now
}

const PlanCache::Entry& PlanCache::find(const Wanted& wanted) {
  const auto parts = static_cast<std::size_t>(holds_part_per_rank(wanted.kind) ? nranks_ : 1);
  const std::size_t bytes = wanted.count * wanted.element_bytes * parts;
  const Selection selected = select(wanted.kind, bytes, nranks_, machine_, forced_);
  const int window = window_for(*selected.algorithm, wanted, selected.lanes);
  for (const auto& entry : entries_) {
    const auto lanes = static_cast<int>(entry->lanes.size());
    if (entry->algorithm == selected.algorithm && entry->root == wanted.root &&
        entry->window == window && entry->scaled == wanted.scaled && lanes == selected.lanes)
      return *entry;
  }
  log_info(Subsystem::kTuning, -1,
           format("%s: %zu Bytes -> Algo %s", std::string(name_of(wanted.kind)).c_str(), bytes,
                  std::string(selected.algorithm->name).c_str()));
  return add(wanted, selected, window);
}

const PlanCache::Entry& PlanCache::add(const Wanted& wanted, const Selection& selected,
                                       int window) {
  const Algorithm& algorithm = *selected.algorithm;
  auto entry = std::make_unique<Entry>(Entry{&algorithm, wanted.root, window, wanted.scaled, {}});
  for (int lane = 0; lane < selected.lanes; ++lane) {
    const Channel channel =
        is_point_to_point(wanted.kind) ? Channel::kPointToPoint : collective_channel(lane);
    const Place at{.rank = rank_,
                   .ranks = nranks_,
                   .root = wanted.root,
                   .box = machine_.box,
                   .lane = lane,
                   .window = window};
    entry->lanes.push_back(
        compile(schedule_of(algorithm, at), rank_, channel, wanted.scaled, links_));
  }
  entries_.push_back(std::move(entry));
  return *entries_.back();
}

// The same for all lanes, of which the first is the longest.
int PlanCache::window_for(const Algorithm& algorithm, const Wanted& wanted, int lanes) const {
  if (!algorithm.sends_ahead) return 1;
  const int chunks = algorithm.chunks({.rank = rank_, .ranks = nranks_, .box = machine_.box});
  const Partition partition =
      partition_for(wanted.kind, wanted.count, wanted.element_bytes, chunks, 0, lanes);
  return Slicing(partition, slots_.bytes, slots_.count - 1).window();
}

}  // namespace catenary
