#include "src/collective/cost.h"

#include <algorithm>

#include "src/base/rounding.h"
#include "src/base/size_literals.h"
#include "src/collective/fan_out.h"

namespace catenary {
namespace {

struct Rates {
  const CostParameters& machine;
  WireCost wires[2];  // by Reach
  // Of what goes to several ranks of a box: whether enough moves in a pass to be copied once.
  bool fans_out = false;
  bool fans_out_exchanged = false;
};

// `part`: bytes of a chunk that move in a pass.
Rates rates_of(const Setting& setting, std::size_t part) {
  const MachineFacts& machine = setting.machine;
  const CostParameters& parameters = setting.parameters;
  const bool is_staged = machine.near != Wire::kNetwork;
  return {parameters,
          {parameters.wires[static_cast<std::size_t>(machine.near)],
           parameters.wires[static_cast<std::size_t>(machine.far)]},
          is_staged && part >= least_fanned_out(FanOut::kOneWay),
          is_staged && part >= least_fanned_out(FanOut::kExchanged)};
}

// Of a core that several ranks share: many a message is for a rank of the same one.
Rates crowded_rates(Rates rates, const Setting& setting) {
  const Wire wires[2] = {setting.machine.near, setting.machine.far};
  for (int i = 0; i < 2; ++i) {
    if (wires[i] != Wire::kNetwork) rates.wires[i].byte_ns = setting.parameters.crowded_byte_ns;
  }
  return rates;
}

double fixed_ns(const Work& work, const Rates& rates) {
  double ns = work.steps * rates.machine.step_ns;
  for (int i = 0; i < 2; ++i) ns += work.messages[i] * rates.wires[i].message_ns;
  return ns;
}

double hops_ns(const Work& work, const Rates& rates) {
  return work.hops[0] * rates.wires[0].hop_ns + work.hops[1] * rates.wires[1].hop_ns;
}

// Copies into slots, because one is enough.
double spared(const Work& work, const Rates& rates) {
  return (rates.fans_out ? work.fanned_out : 0) + (rates.fans_out_exchanged ? work.exchanged : 0);
}

double byte_ns(const Work& work, const Rates& rates) {
  double ns = work.local * rates.machine.local_byte_ns;
  ns += work.reduced * rates.machine.reduced_byte_ns;
  for (int i = 0; i < 2; ++i) ns += work.wired[i] * rates.wires[i].byte_ns;
  return ns - spared(work, rates) * rates.wires[0].byte_ns;
}

double longest_ns(const std::array<Work, 3>& paths, double slice, const Rates& rates) {
  double longest = 0;
  for (const Work& work : paths) {
    longest = std::max(longest,
                       hops_ns(work, rates) + fixed_ns(work, rates) + slice * byte_ns(work, rates));
  }
  return longest;
}

double hops(const Work& work) { return work.hops[0] + work.hops[1]; }

// Which part of the bytes misses a cache through which `footprint` bytes pass again and again.
double missing(double footprint, double cache) {
  return footprint > cache ? 1 - cache / footprint : 0;
}

// What a rank has in its buffers.
double buffer_bytes(Collective collective, double bytes, int nranks) {
  switch (collective) {
    case Collective::kAllReduce:
    case Collective::kAllToAll: return 2 * bytes;
    case Collective::kAllGather:
    case Collective::kReduceScatter: return bytes + bytes / nranks;
    default: return bytes;
  }
}

// Of one rank, which only copies. Of more, what fits a choice best leaves hardly anything to own
// copies, so these are priced as the two halves of a message.
double alone_ns(double bytes, const CostParameters& parameters) {
  const double byte_ns = parameters.wires[static_cast<std::size_t>(Wire::kThreads)].byte_ns;
  const double missed = missing(2 * bytes, parameters.shared_cache_bytes);
  return parameters.operation_ns + 2 * bytes * (byte_ns + missed * parameters.memory_byte_ns);
}

}  // namespace

std::size_t chunk_bytes(const Algorithm& algorithm, std::size_t bytes, const Place& at) {
  const int parts = holds_part_per_rank(algorithm.collective) ? at.ranks : algorithm.chunks(at);
  const auto pieces = static_cast<std::size_t>(parts * algorithm.lanes);
  return bytes / pieces + (bytes % pieces != 0 ? 1 : 0);
}

// A link holds as many messages for an algorithm that may send ahead as Slicing::window() has it.
Place place_of(const Algorithm& algorithm, std::size_t bytes, const Setting& setting) {
  Place at{.ranks = setting.nranks, .box = setting.machine.box};
  const bool one_slice = chunk_bytes(algorithm, bytes, at) <= setting.cut.slice_bytes;
  at.window = one_slice ? static_cast<int>(setting.cut.slots) - 1 : 1;
  return at;
}

double time_ns(const Algorithm& algorithm, std::size_t bytes, const Setting& setting) {
  const Place at = place_of(algorithm, bytes, setting);
  return time_ns(shape_of(algorithm, at), algorithm, bytes, setting);
}

double time_ns(const Shape& shape, const Algorithm& algorithm, std::size_t bytes,
               const Setting& setting) {
  const auto& [nranks, machine, parameters, cut] = setting;
  if (nranks == 1) return alone_ns(static_cast<double>(bytes), parameters);
  const Place at = place_of(algorithm, bytes, setting);
  const std::size_t chunk = chunk_bytes(algorithm, bytes, at);
  const std::size_t pass = cut.slices_per_pass();
  const Rates rates = rates_of(setting, std::min(chunk, pass * cut.slice_bytes));
  const auto whole = static_cast<double>(chunk);
  const double slice = static_cast<double>(std::min(chunk, cut.slice_bytes));
  const auto slices = static_cast<double>(divide_up(chunk, cut.slice_bytes));
  const auto passes =
      std::max(static_cast<double>(divide_up(static_cast<std::size_t>(slices), pass)), 1.0);

  // The first slice of each pass goes all the way, the others follow it through the busiest rank.
  // Passes follow each other as closely as ranks may begin one before others are done.
  const double first = longest_ns(shape.paths, slice, rates);
  const double slice_work = fixed_ns(shape.busiest, rates) + slice * byte_ns(shape.busiest, rates);
  const double again = std::max(longest_ns(shape.two_passes, slice, rates) - first, slice_work);
  double ns = parameters.operation_ns + first + (passes - 1) * again;
  ns += std::max(slices - passes, 0.0) * fixed_ns(shape.busiest, rates) +
        std::max(whole - passes * slice, 0.0) * byte_ns(shape.busiest, rates);

  const double ranks = machine.local_ranks;
  const double cores = machine.cores;
  if (ranks > cores) {
    const Rates crowd = crowded_rates(rates, setting);
    const auto work_ns = [&](const Work& work) {
      return std::max(slices, 1.0) * fixed_ns(work, crowd) + whole * byte_ns(work, crowd);
    };
    // The busiest one, and as many others as share a core with it.
    const double most = work_ns(shape.busiest);
    const double others = std::max(nranks * work_ns(shape.average) - most, 0.0) / (nranks - 1);
    const double core_work =
        most + (ranks / cores - 1) * others +
        ranks / cores * (parameters.operation_ns + passes * shape.waits * parameters.switch_ns);
    const double more_hops = std::max(hops(shape.two_passes[0]) - hops(shape.paths[0]), 0.0);
    const double turns = hops(shape.paths[0]) + (passes - 1) * more_hops;
    ns = std::max(ns, core_work + turns * parameters.turn_ns);
  }

  // Slots are used one after the other, so all of a link's slots pass through the caches.
  const double wired = shape.average.wired[0] + shape.average.wired[1];
  const double in_slots = wired > 0 ? 1 - spared(shape.average, rates) / (wired / 2) : 0;
  const double slots = ranks * shape.links * cut.slots * slice * in_slots;
  const double buffers =
      ranks * buffer_bytes(algorithm.collective, static_cast<double>(bytes), nranks);
  const double cache = parameters.shared_cache_bytes;
  const double missed = (wired - spared(shape.average, rates)) * missing(slots, cache) +
                        shape.average.local * missing(slots + buffers, cache);
  return ns + ranks * whole * missed * parameters.memory_byte_ns;
}

// What chose best among the times of `catenary tune --report` for 2, 4 and 8 ranks as processes on
// a virtual machine of two cores (docs/decisions/0013-choice-by-cost.md); threads as it found them
// long before. The network is TCP between two hosts, with most of the time in the calls at both
// ends: a core that ranks share has to pay for those. They are what fits a choice best, not what
// each part costs by itself: hop, messages and operation can hardly be told apart, and the fit
// divides them.
CostParameters default_parameters() {
  return {
      .operation_ns = 50,
      .step_ns = 1,
      .switch_ns = 540,
      .turn_ns = 2750,
      .crowded_byte_ns = 0.026,
      .local_byte_ns = 5e-4,
      .reduced_byte_ns = 1.2e-4,
      .memory_byte_ns = 0.03,
      .shared_cache_bytes = 15_MB,
      .wires = {{{.hop_ns = 40, .message_ns = 25, .byte_ns = 0.03},
                 {.hop_ns = 30, .message_ns = 85, .byte_ns = 0.0387},
                 {.hop_ns = 2200, .message_ns = 2500, .byte_ns = 0.25}}},
  };
}

}  // namespace catenary
