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

// One parameter at a time, in steps that shrink when none of them helps any more. The model is
// nearly linear in each, so this does not get lost.
CostParameters fit(std::span<const Sample> samples, CostParameters start,
                   const std::vector<std::string>& free) {
  CostParameters best = start;
  double best_error = mean_error(samples, best);
  for (double step = 2; step > 1.005;) {
    bool better = false;
    for (const Parameter& parameter : cost_parameter_table()) {
      if (std::find(free.begin(), free.end(), parameter.name) == free.end()) continue;
      for (const double factor : {step, 1 / step}) {
        CostParameters tried = best;
        double& value = parameter.of(tried);
        value = std::clamp(value * factor, parameter.least, parameter.most);
        const double error = mean_error(samples, tried);
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
