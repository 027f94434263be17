#include "tools/fit.h"

#include <algorithm>
#include <cmath>

#include "src/collective/tuning.h"

namespace catenary {

double predicted_ns(const Sample& sample, const CostParameters& parameters) {
  const Setting setting{.nranks = sample.nranks,
                        .machine = sample.machine,
                        .parameters = parameters,
                        .cut = sample.cut};
  return time_ns(*sample.algorithm, sample.bytes, setting);
}

double mean_error(std::span<const Sample> samples, const CostParameters& parameters) {
  double sum = 0;
  for (const Sample& sample : samples) {
    sum += std::abs(std::log(predicted_ns(sample, parameters) / sample.measured_ns));
  }
  return sum / static_cast<double>(std::max<std::size_t>(samples.size(), 1));
}

namespace {

// How much a choice that takes longer than the best one counts, beside errors of the model.
constexpr double kRegret = 3;

bool same_point(const Sample& a, const Sample& b) {
  return a.algorithm->collective == b.algorithm->collective && a.bytes == b.bytes &&
         a.nranks == b.nranks;
}

// Of the samples of one point, which are neighbours.
double loss_of_point(std::span<const Sample> point, const CostParameters& parameters) {
  std::vector<double> errors;
  std::size_t best = 0;
  std::size_t chosen = 0;
  double least = 0;
  for (std::size_t i = 0; i < point.size(); ++i) {
    const double predicted = predicted_ns(point[i], parameters);
    errors.push_back(std::log(predicted / point[i].measured_ns));
    if (point[i].measured_ns < point[best].measured_ns) best = i;
    if (i > 0 && predicted >= least) continue;
    chosen = i;
    least = predicted;
  }
  const double regret = std::log(point[chosen].measured_ns / point[best].measured_ns);
  double sum = kRegret * static_cast<double>(point.size()) * regret;
  for (std::size_t i = 0; i < point.size(); ++i) {
    const double closeness = point[best].measured_ns / point[i].measured_ns;
    sum += 0.5 * std::abs(errors[i]) + closeness * std::abs(errors[i] - errors[best]);
  }
  return sum;
}

}  // namespace

double loss(std::span<const Sample> samples, const CostParameters& parameters) {
  double sum = 0;
  for (std::size_t first = 0; first < samples.size();) {
    std::size_t end = first;
    while (end < samples.size() && same_point(samples[first], samples[end])) ++end;
    sum += loss_of_point(samples.subspan(first, end - first), parameters);
    first = end;
  }
  return sum / static_cast<double>(std::max<std::size_t>(samples.size(), 1));
}

// One parameter at a time, in steps that shrink when none of them helps any more. The model is
// nearly linear in each, so this does not get lost.
CostParameters fit(std::span<const Sample> samples, CostParameters start,
                   const std::vector<std::string>& free) {
  CostParameters best = start;
  double best_error = loss(samples, best);
  for (double step = 2; step > 1.005;) {
    bool better = false;
    for (const Parameter& parameter : cost_parameter_table()) {
      if (std::find(free.begin(), free.end(), parameter.name) == free.end()) continue;
      for (const double factor : {step, 1 / step}) {
        CostParameters tried = best;
        double& value = parameter.of(tried);
        value = std::clamp(value * factor, parameter.least, parameter.most);
        const double error = loss(samples, tried);
        if (error >= best_error - 1e-6) continue;
        best = tried;
        best_error = error;
        better = true;
      }
    }
    if (!better) step = std::sqrt(step);
  }
  return best;
}

}  // namespace catenary
