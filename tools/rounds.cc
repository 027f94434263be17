#include "tools/rounds.h"

#include <algorithm>
#include <cmath>

namespace catenary {
namespace {

// Variants that take this much longer than the best are out of the running.
constexpr double kFar = 1.25;

}  // namespace

double quantile(std::vector<double> values, double part) {
  const auto at = static_cast<std::ptrdiff_t>(part * static_cast<double>(values.size() - 1) + 0.5);
  std::nth_element(values.begin(), values.begin() + at, values.end());
  return values[static_cast<std::size_t>(at)];
}

double Runner::typical(double part) const {
  double sum = 0;
  for (std::size_t replica = 0; replica < kReplicas; ++replica) {
    std::vector<double> own;
    for (std::size_t i = replica; i < ns.size(); i += kReplicas) own.push_back(ns[i]);
    sum += quantile(own, part);
  }
  return sum / kReplicas;
}

bool is_clear(const Runner& one, const Runner& other, double close) {
  const std::size_t rounds = std::min(one.ns.size(), other.ns.size());
  std::vector<double> ratios(rounds);
  for (std::size_t i = 0; i < rounds; ++i) ratios[i] = one.ns[i] / other.ns[i];
  std::sort(ratios.begin(), ratios.end());
  const double middle = (static_cast<double>(rounds) - 1) / 2;
  const double sideways = std::sqrt(static_cast<double>(rounds));
  if (middle < sideways) return false;
  return ratios[static_cast<std::size_t>(middle - sideways)] > close ||
         ratios[static_cast<std::size_t>(middle + sideways + 0.5)] <= close;
}

std::size_t best_of(const std::vector<Runner>& runners) {
  std::size_t best = runners.size();
  for (std::size_t i = 0; i < runners.size(); ++i) {
    if (!runners[i].is_algorithm || runners[i].is_out) continue;
    if (best == runners.size() || runners[i].median() < runners[best].median()) best = i;
  }
  return best;
}

void start_again(std::vector<Runner>& runners, std::size_t judged) {
  constexpr int kRivals = 2;
  std::vector<std::size_t> these;
  for (std::size_t i = 0; i < runners.size(); ++i) {
    if (!runners[i].is_algorithm || i == judged) these.push_back(i);
  }
  for (const std::size_t i : these) runners[i].is_out = runners[i].is_algorithm;
  for (int rival = 0; rival < kRivals && best_of(runners) < runners.size(); ++rival) {
    these.push_back(best_of(runners));
    runners[these.back()].is_out = true;
  }
  for (Runner& runner : runners) runner.is_out = true;
  for (const std::size_t i : these) {
    runners[i].is_out = false;
    runners[i].ns.clear();
  }
}

bool sift(std::vector<Runner>& runners, std::size_t judged, double close) {
  const std::size_t best = best_of(runners);
  const double far = kFar * runners[best].median();
  for (std::size_t i = 0; i < runners.size(); ++i) {
    Runner& runner = runners[i];
    if (runner.is_algorithm && i != judged && runner.median() > far) runner.is_out = true;
  }
  return best == judged || is_clear(runners[judged], runners[best], close);
}

}  // namespace catenary
