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
  const Algorithm& algorithm = select(kind, bytes, nranks_, machine_, forced_);
  for (const auto& entry : entries_) {
    if (entry->algorithm == &algorithm && entry->root == root && entry->scaled == scaled)
      return *entry;
  }
  const Channel channel = is_point_to_point(kind) ? Channel::kPointToPoint : Channel::kCollective;
  const Schedule schedule = algorithm.schedule(rank_, nranks_, root);
  auto plan = std::make_unique<const Plan>(compile(schedule, rank_, channel, scaled, links_));
  log_info(Subsystem::kTuning, -1,
           format("%s: %zu Bytes -> Algo %s", std::string(name_of(kind)).c_str(), bytes,
                  std::string(algorithm.name).c_str()));
  entries_.push_back(std::make_unique<Entry>(Entry{&algorithm, root, scaled, std::move(plan)}));
  return *entries_.back();
}

}  // namespace catenary
