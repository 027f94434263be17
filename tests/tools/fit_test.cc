// Whether the fit finds the parameters that times were made from, and what it holds to be wrong.
#include "tools/fit.h"

#include <gtest/gtest.h>

#include <cmath>

namespace catenary {
namespace {

const std::vector<std::string> kWire = {"processes_hop_ns", "processes_message_ns",
                                        "processes_byte_ns"};

CostParameters another_machine() {
  CostParameters parameters = default_parameters();
  parameters.wires[static_cast<int>(Wire::kProcesses)] = {
      .hop_ns = 400, .message_ns = 30, .byte_ns = 0.1};
  return parameters;
}

// Every algorithm of some collectives and sizes, as the model times them with those parameters.
std::vector<Sample> samples_of(const CostParameters& parameters) {
  std::vector<Sample> samples;
  for (const int nranks : {2, 4}) {
    for (const Collective collective : {Collective::kAllReduce, Collective::kAllGather}) {
      for (const std::size_t bytes : {64u, 4096u, 262144u, 4194304u}) {
        for (const Algorithm& algorithm : algorithms()) {
          if (algorithm.collective != collective || !algorithm.inside.empty()) continue;
          MachineFacts machine;
          machine.local_ranks = machine.cores = machine.box = nranks;
          samples.push_back({&algorithm, bytes, nranks, machine, Cut{}, 0});
          samples.back().measured_ns = predicted_ns(samples.back(), parameters);
        }
      }
    }
  }
  return samples;
}

TEST(Fit, finds_what_times_were_made_from) {
  const std::vector<Sample> samples = samples_of(another_machine());
  ASSERT_GT(mean_error(samples, default_parameters()), 0.2);
  const CostParameters found = fit(samples, default_parameters(), kWire);
  EXPECT_LT(mean_error(samples, found), 0.02);
  EXPECT_LT(loss(samples, found), 0.05);
}

TEST(Fit, changes_nothing_that_is_not_free) {
  const CostParameters before = default_parameters();
  const CostParameters found = fit(samples_of(another_machine()), before, {"processes_byte_ns"});
  constexpr int kProcesses = static_cast<int>(Wire::kProcesses);
  EXPECT_NE(found.wires[kProcesses].byte_ns, before.wires[kProcesses].byte_ns);
  EXPECT_EQ(found.wires[kProcesses].hop_ns, before.wires[kProcesses].hop_ns);
  EXPECT_EQ(found.operation_ns, before.operation_ns);
  EXPECT_EQ(found.wires[static_cast<int>(Wire::kThreads)].byte_ns,
            before.wires[static_cast<int>(Wire::kThreads)].byte_ns);
}

TEST(Fit, leaves_alone_what_is_right) {
  const std::vector<Sample> samples = samples_of(default_parameters());
  EXPECT_EQ(loss(samples, default_parameters()), 0);
  const CostParameters found = fit(samples, default_parameters(), kWire);
  EXPECT_EQ(found.wires[static_cast<int>(Wire::kProcesses)].byte_ns,
            default_parameters().wires[static_cast<int>(Wire::kProcesses)].byte_ns);
}

// Two algorithms in a point, each said to take a fifth more or less than it does: so that the right
// one is chosen, or the wrong one.
TEST(Fit, a_wrong_choice_is_worse_than_a_wrong_time) {
  std::vector<Sample> samples = samples_of(default_parameters());
  samples.resize(2);
  ASSERT_EQ(samples[0].bytes, samples[1].bytes);
  const auto loss_with = [&](double first, double second) {
    std::vector<Sample> measured = samples;
    measured[0].measured_ns = first * predicted_ns(samples[0], default_parameters());
    measured[1].measured_ns = second * predicted_ns(samples[1], default_parameters());
    return loss(measured, default_parameters());
  };
  const double one = predicted_ns(samples[0], default_parameters());
  const double other = predicted_ns(samples[1], default_parameters());
  ASSERT_NE(one, other);
  const double apart = std::abs(std::log(one / other));
  // By the same factor: it brings the two nearer, past each other, or farther apart.
  const double factor = std::exp(apart + 0.2);
  const double slower_chosen = one < other ? loss_with(factor, 1) : loss_with(1, factor);
  const double faster_chosen = one < other ? loss_with(1, factor) : loss_with(factor, 1);
  EXPECT_GT(slower_chosen, faster_chosen + 0.3);
}

}  // namespace
}  // namespace catenary
