#include "src/comm/plan_cache.h"

#include "src/base/error.h"
#include "src/base/log.h"

namespace catenary {

PlanCache::PlanCache(int rank, int nranks, LinkTable& links, const MachineFacts& machine,
                     std::string forced)
    : rank_(rank), nranks_(nranks), links_(links), machine_(machine), forced_(std::move(forced)) {
  select(Collective::kAllReduce, 0, nranks_, machine_, forced_);  // refuses an unknown name now
}

const PlanCache::Entry& PlanCache::find(Collective kind, std::size_t bytes, int root, bool scaled) {
  const Selection selected = select(kind, bytes, nranks_, machine_, forced_);
  const Algorithm& algorithm = *selected.algorithm;
  for (const auto& entry : entries_) {
    const auto lanes = static_cast<int>(entry->lanes.size());
    if (entry->algorithm == &algorithm && entry->root == root && entry->scaled == scaled &&
        lanes == selected.lanes)
      return *entry;
  }
  auto entry = std::make_unique<Entry>(Entry{&algorithm, root, scaled, {}});
  for (int lane = 0; lane < selected.lanes; ++lane) {
    const Channel channel =
        is_point_to_point(kind) ? Channel::kPointToPoint : collective_channel(lane);
    const Place at{.rank = rank_, .ranks = nranks_, .root = root, .lane = lane};
    entry->lanes.push_back(compile(schedule_of(algorithm, at), rank_, channel, scaled, links_));
  }
  log_info(Subsystem::kTuning, -1,
           format("%s: %zu Bytes -> Algo %s", std::string(name_of(kind)).c_str(), bytes,
                  std::string(algorithm.name).c_str()));
  entries_.push_back(std::move(entry));
  return *entries_.back();
}

}  // namespace catenary
