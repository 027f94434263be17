#include "bench/perf/team.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>

namespace catenary::perf {
namespace {

double combine_all(const std::vector<double>& values, Combine how) {
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  switch (how) {
    case Combine::kFirst: return values.front();
    case Combine::kMean: return sum / static_cast<double>(values.size());
    case Combine::kMin: return *std::min_element(values.begin(), values.end());
    case Combine::kMax: return *std::max_element(values.begin(), values.end());
    case Combine::kSum: return sum;
  }
  throw std::logic_error("unknown way to combine");
}

}  // namespace

void Meeting::arrive_and_wait() {
  std::unique_lock lock(mutex_);
  const std::uint64_t time = times_;
  if (++here_ == threads_) {
    here_ = 0;
    ++times_;
    all_came_.notify_all();
  } else {
    all_came_.wait(lock, [&] { return times_ != time; });
  }
}

Team::Team(Launcher& launcher, int threads)
    : launcher_(launcher),
      threads_(threads),
      meeting_(threads),
      values_(static_cast<std::size_t>(threads)),
      lists_(static_cast<std::size_t>(threads)) {}

void Team::barrier(int thread) {
  meeting_.arrive_and_wait();
  if (thread == 0) launcher_.barrier();
  meeting_.arrive_and_wait();
}

double Team::combine(int thread, double value, Combine how) {
  values_[static_cast<std::size_t>(thread)] = value;
  meeting_.arrive_and_wait();
  if (thread == 0) result_ = combine_all(all_gather<double>(launcher_, values_), how);
  meeting_.arrive_and_wait();
  const double result = result_;
  meeting_.arrive_and_wait();  // nobody writes result_ again before all have read it
  return result;
}

std::vector<std::vector<double>> Team::process_maxima(int thread,
                                                      const std::vector<double>& values) {
  lists_[static_cast<std::size_t>(thread)] = values;
  meeting_.arrive_and_wait();
  if (thread == 0) {
    std::vector<double> maxima = values;
    for (const auto& list : lists_) {
      for (std::size_t i = 0; i < maxima.size(); ++i) maxima[i] = std::max(maxima[i], list[i]);
    }
    const std::vector<double> flat = all_gather<double>(launcher_, maxima);
    rows_.clear();
    for (auto at = flat.begin(); at != flat.end();
         at += static_cast<std::ptrdiff_t>(maxima.size())) {
      rows_.emplace_back(at, at + static_cast<std::ptrdiff_t>(maxima.size()));
    }
  }
  meeting_.arrive_and_wait();
  std::vector<std::vector<double>> result = rows_;
  meeting_.arrive_and_wait();
  return result;
}

}  // namespace catenary::perf
