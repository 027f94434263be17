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
      selector_({.nranks = nranks,
                 .machine = facts.machine,
                 .parameters = facts.parameters,
                 .cut = longest},
                rules) {
  if (rank != 0 || nranks == 1) return;
  const std::string passed_over = rules.passed_over({.ranks = nranks, .box = box_});
  if (!passed_over.empty()) log_notice(-1, passed_over);
}

const PlanCache::Entry& PlanCache::look_up(const Question& question) {
  const Selection& selected = selector_.select(question.kind, bytes_of(question));
  const Entry*& last = last_[static_cast<std::size_t>(question.kind)][size_class(question)];
  if (last == nullptr) tell(question, selected);
  const int window = window_for(*selected.algorithm, selected.cut, question);
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const auto& entry) {
    return entry->algorithm == selected.algorithm && entry->root == question.root &&
           entry->window == window && entry->scaled == question.scaled &&
           entry->cut == selected.cut && static_cast<int>(entry->lanes.size()) == selected.lanes;
  });
  last = found != entries_.end() ? found->get() : &add(question, selected, window);
  return *last;
}

const PlanCache::Entry& PlanCache::add(const Question& question, const Selection& selected,
                                       int window) {
  auto entry = std::make_unique<Entry>(
      Entry{selected.algorithm, question.root, window, question.scaled, selected.cut, {}});
  for (int lane = 0; lane < selected.lanes; ++lane) {
    const Place at{.rank = rank_,
                   .ranks = nranks_,
                   .root = question.root,
                   .box = box_,
                   .lane = lane,
                   .window = window};
    const Schedule schedule = schedule_of(*selected.algorithm, at);
    entry->lanes.push_back(compile(schedule, lendings(*selected.algorithm, at, schedule), rank_,
                                   collective_channel(lane), question.scaled, links_));
  }
  entries_.push_back(std::move(entry));
  return *entries_.back();
}

// The same for all lanes, of which the first is the longest.
int PlanCache::counted_window(const Algorithm& algorithm, const Cut& cut,
                              const Question& question) const {
  const int chunks = algorithm.chunks({.rank = rank_, .ranks = nranks_, .box = box_});
  const Partition partition = partition_for(question.kind, question.count, question.element_bytes,
                                            chunks, 0, algorithm.lanes);
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
void PlanCache::tell(const Question& question, const Selection& selected) {
  const bool traces = log_enabled(LogLevel::kTrace, Subsystem::kTuning);
  if (!traces && (rank_ != 0 || !log_enabled(LogLevel::kInfo, Subsystem::kTuning))) return;
  const std::string not_ruled = selector_.rules().not_ruled(question.kind);
  if (!not_ruled.empty() && !said_not_ruled_[static_cast<std::size_t>(question.kind)]) {
    said_not_ruled_.set(static_cast<std::size_t>(question.kind));
    log_info(Subsystem::kTuning, -1, not_ruled);
  }
  if (question.kind == Collective::kAllToAllV) {
    log_info(Subsystem::kTuning, -1,
             format("AlltoAllv: any size -> Algo %s proto SIMPLE, time by the parts, slices of %zu "
                    "Bytes",
                    std::string(selected.algorithm->name).c_str(), selected.cut.slice_bytes));
    return;
  }
  const std::size_t bytes = bytes_of(question);
  const std::string what =
      format("%s: %zu Bytes -> ", std::string(name_of(question.kind)).c_str(), bytes);
  const double ns = selector_.estimate_ns(question.kind, bytes);
  log_info(Subsystem::kTuning, -1, what + describe(selected, ns));
  if (!traces) return;
  for (const Selection& candidate : selector_.candidates(question.kind, bytes)) {
    log_trace(Subsystem::kTuning, -1, what + "candidate " + describe(candidate, candidate.time_ns));
  }
}

}  // namespace catenary
