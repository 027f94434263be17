#include "src/comm/plan_cache.h"

#include <algorithm>

#include "src/base/error.h"
#include "src/base/log.h"
#include "src/collective/partition.h"

namespace catenary {
namespace {

std::string describe(const Selection& selection, double ns) {
  return format("Algo %s proto SIMPLE channel{Lo..Hi}={0..%d} time %.2f us, slices of %zu Bytes",
                std::string(selection.algorithm->name).c_str(), selection.lanes - 1, ns / 1000,
                selection.cut.slice_bytes);
}

}  // namespace

PlanCache::PlanCache(int rank, int nranks, LinkTable& links, const AgreedFacts& facts,
                     const Cut& longest, const AlgorithmRules& rules)
    : rank_(rank),
      nranks_(nranks),
      box_(facts.machine.box),
      links_(links),
      selector_(nranks, facts.machine, facts.parameters, longest, rules) {
  if (rank != 0 || nranks == 1) return;
  const std::string passed_over = rules.passed_over({.ranks = nranks, .box = box_});
  if (!passed_over.empty()) log_notice(-1, passed_over);
}

const PlanCache::Entry& PlanCache::look_up(const Wanted& wanted) {
  const Selection& selected = selector_.select(wanted.kind, bytes_of(wanted));
  const Entry*& last = last_[static_cast<std::size_t>(wanted.kind)][size_class(wanted)];
  if (last == nullptr) tell(wanted, selected);
  const int window = window_for(*selected.algorithm, selected.cut, wanted);
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const auto& entry) {
    return entry->algorithm == selected.algorithm && entry->root == wanted.root &&
           entry->window == window && entry->scaled == wanted.scaled &&
           entry->cut == selected.cut && static_cast<int>(entry->lanes.size()) == selected.lanes;
  });
  last = found != entries_.end() ? found->get() : &add(wanted, selected, window);
  return *last;
}

const PlanCache::Entry& PlanCache::add(const Wanted& wanted, const Selection& selected,
                                       int window) {
  auto entry = std::make_unique<Entry>(
      Entry{selected.algorithm, wanted.root, window, wanted.scaled, selected.cut, {}});
  for (int lane = 0; lane < selected.lanes; ++lane) {
    const Place at{.rank = rank_,
                   .ranks = nranks_,
                   .root = wanted.root,
                   .box = box_,
                   .lane = lane,
                   .window = window};
    const Schedule schedule = schedule_of(*selected.algorithm, at);
    entry->lanes.push_back(compile(schedule, lendings(*selected.algorithm, at, schedule), rank_,
                                   collective_channel(lane), wanted.scaled, links_));
  }
  entries_.push_back(std::move(entry));
  return *entries_.back();
}

// The same for all lanes, of which the first is the longest.
int PlanCache::counted_window(const Algorithm& algorithm, const Cut& cut,
                              const Wanted& wanted) const {
  const int chunks = algorithm.chunks({.rank = rank_, .ranks = nranks_, .box = box_});
  const Partition partition =
      partition_for(wanted.kind, wanted.count, wanted.element_bytes, chunks, 0, algorithm.lanes);
  return Slicing(partition, cut.slice_bytes, cut.slots - 1).window();
}

const Cut& PlanCache::first_message_cut(std::size_t bytes) {
  const Cut& cut = selector_.message_cut(bytes);
  if (log_enabled(LogLevel::kInfo, Subsystem::kTuning)) {
    const double ns = selector_.estimate_ns(Collective::kSend, bytes);
    log_info(Subsystem::kTuning, -1,
             format("Send/Recv: %zu Bytes -> Algo direct proto SIMPLE time %.2f us, slices of %zu "
                    "Bytes",
                    bytes, ns / 1000, cut.slice_bytes));
  }
  return cut;
}

// Once for each size class that is met. All ranks choose alike, so one of them tells those who do
// not trace.
void PlanCache::tell(const Wanted& wanted, const Selection& selected) {
  const bool traces = log_enabled(LogLevel::kTrace, Subsystem::kTuning);
  if (!traces && (rank_ != 0 || !log_enabled(LogLevel::kInfo, Subsystem::kTuning))) return;
  const std::string not_ruled = selector_.rules().not_ruled(wanted.kind);
  if (!not_ruled.empty() && !said_not_ruled_[static_cast<std::size_t>(wanted.kind)]) {
    said_not_ruled_.set(static_cast<std::size_t>(wanted.kind));
    log_info(Subsystem::kTuning, -1, not_ruled);
  }
  if (wanted.kind == Collective::kAllToAllV) {
    log_info(Subsystem::kTuning, -1,
             format("AlltoAllv: any size -> Algo %s proto SIMPLE, time by the parts, slices of %zu "
                    "Bytes",
                    std::string(selected.algorithm->name).c_str(), selected.cut.slice_bytes));
    return;
  }
  const std::size_t bytes = bytes_of(wanted);
  const std::string what =
      format("%s: %zu Bytes -> ", std::string(name_of(wanted.kind)).c_str(), bytes);
  const double ns = selector_.estimate_ns(wanted.kind, bytes);
  log_info(Subsystem::kTuning, -1, what + describe(selected, ns));
  if (!traces) return;
  for (const Selection& candidate : selector_.candidates(wanted.kind, bytes)) {
    log_trace(Subsystem::kTuning, -1, what + "candidate " + describe(candidate, candidate.time_ns));
  }
}

}  // namespace catenary
