#include "tools/fit.h"

#include <algorithm>
#include <cmath>

#include "src/collective/tuning.h"

namespace catenary {

double predicted_ns(const Sample& sample, const CostParameters& parameters) {
  return time_ns(*sample.algorithm, sample.bytes, sample.nranks, sample.cut, sample.machine,
                 parameters);
}

double mean_error(std::span<const Sample> samples, const CostParameters& parameters) {
  double sum = 0;
  for (const Sample& sample : samples) {
    sum += std::abs(std::log(predicted_ns(sample, parameters) / sample.measured_ns));
  }
  return sum / static_cast<double>(std::max<std::size_t>(samples.size(), 1));
}

namespace {

bool same_point(const Sample& a, const Sample& b) {
  return a.algorithm->collective == b.algorithm->collective && a.bytes == b.bytes &&
         a.nranks == b.nranks;
}

}  // namespace

// Samples of a point are neighbours.
double loss(std::span<const Sample> samples, const CostParameters& parameters) {
  double sum = 0;
  for (std::size_t first = 0; first < samples.size();) {
    std::size_t end = first;
    std::size_t best = first;
    for (; end < samples.size() && same_point(samples[first], samples[end]); ++end) {
      if (samples[end].measured_ns < samples[best].measured_ns) best = end;
    }
    const auto error = [&](std::size_t i) {
      return std::log(predicted_ns(samples[i], parameters) / samples[i].measured_ns);
    };
    const double error_of_best = error(best);
    for (std::size_t i = first; i < end; ++i) {
      const double closeness = samples[best].measured_ns / samples[i].measured_ns;
      const double own = error(i);
      sum += 0.5 * std::abs(own) + closeness * std::abs(own - error_of_best);
    }
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
