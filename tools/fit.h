// Finds the parameters with which the model of time comes closest to what was measured.
//
// Pure; nothing waits or fails.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "src/collective/algorithms.h"
#include "src/collective/cost.h"

namespace catenary {

struct Sample {
  const Algorithm* algorithm = nullptr;
  std::size_t bytes = 0;
  int nranks = 2;
  MachineFacts machine;
  Cut cut;  // as it was when measured
  double measured_ns = 0;
};

double predicted_ns(const Sample& sample, const CostParameters& parameters);

// The mean of |ln(predicted / measured)|: 0.1 is about 10 %.
double mean_error(std::span<const Sample> samples, const CostParameters& parameters);

// How wrong the parameters are for choosing: how much longer the algorithms take that they choose
// than the best ones, mean errors, and how differently wrong those are that compete in a point, the
// more the closer they come to the best. Samples of a point are neighbours.
double loss(std::span<const Sample> samples, const CostParameters& parameters);

// The parameters of least loss. Changes those of these names only.
CostParameters fit(std::span<const Sample> samples, CostParameters start,
                   const std::vector<std::string>& free);

}  // namespace catenary
