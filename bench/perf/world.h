// World: the processes of a run, the groups they form (NCCL_TESTS_SPLIT), and the ranks of each.
#pragma once

#include <vector>

#include "bench/perf/launcher.h"
#include "bench/perf/options.h"
#include "bench/perf/rank.h"
#include "bench/perf/result.h"

namespace catenary::perf {

// How processes are told apart into groups, e.g. "MOD 2" or "&0x7".
class Split {
 public:
  // From NCCL_TESTS_SPLIT or NCCL_TESTS_SPLIT_MASK; one group if neither is set.
  static Split from_environment();
  // Throws UsageError.
  static Split parse(const std::string& text);

  int color(int process) const;

 private:
  char operation_ = '\0';  // one of & | % /, or none
  int value_ = 0;
};

class World {
 public:
  World(Launcher& launcher, const Options& options);

  const Place& place() const { return place_; }
  int group() const { return group_; }
  // Ranks of this process's group.
  int nranks() const { return nranks_; }
  // The `index`-th rank of this process.
  RankPlace rank_place(int index) const;

  // One id for each group, made by its first process.
  ncclUniqueId exchange_id() const;
  // A line for every rank of the run; complete on every process.
  std::vector<DeviceLine> device_lines() const;

 private:
  Launcher& launcher_;
  const Options& options_;
  Place place_;
  std::vector<int> colors_;  // of each process
  int group_ = 0;
  int nranks_ = 0;
  int first_rank_ = 0;  // of this process, within its group
  int first_device_ = 0;
};

}  // namespace catenary::perf
