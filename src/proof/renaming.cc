#include "src/proof/renaming.h"

#include "src/proof/fingerprint.h"

namespace catenary::proof {
namespace {

using fingerprint_detail::ordered;

constexpr int kStepKinds = 128;  // the buffers that a step may use, and which operand comes first

std::uint64_t pair_of(int high, int low) {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(high)) << 32 |
         static_cast<std::uint32_t>(low);
}

// The new numbers, given as ranks turn up.
class Names {
 public:
  Names(int ranks, int first) : names_(static_cast<std::size_t>(ranks) + 1, kNone) {
    name_of(kNobody) = kNobody;
    of(first);
  }

  // kNobody for itself; of others only if they fit.
  int of(int rank) {
    int& name = name_of(rank);
    if (name == kNone) {
      name = static_cast<int>(ranks_.size());
      ranks_.push_back(rank);
    }
    return name;
  }
  bool fits(int rank) const { return index_of(rank) < names_.size(); }
  // Whoever nobody deals with turns up when there is no other left.
  int rank_named(int name) {
    for (int rank = 0; name == static_cast<int>(ranks_.size()); ++rank) of(rank);
    return ranks_[static_cast<std::size_t>(name)];
  }

 private:
  static constexpr int kNone = kNobody - 1;
  static std::size_t index_of(int rank) { return static_cast<unsigned>(rank) + 1u; }
  int& name_of(int rank) { return names_[index_of(rank)]; }

  std::vector<int> names_;  // by rank, that of nobody first
  std::vector<int> ranks_;  // by name
};

// One multiplication a step, as there are hundreds of millions of them. Neither factor is zero, but
// by a chance of one in 2^64.
std::uint64_t hash_with(std::uint64_t hash, const Step& step, Names& names) {
  const int from = names.of(step.recv_from);
  const int to = names.of(step.send_to);
  const auto buffers = static_cast<int>(step.src.buffer) * 8 + static_cast<int>(step.dst.buffer);
  const int kind = buffers * 2 + (step.received_first ? 1 : 0);
  constexpr std::uint64_t kFarFromIndexes = 0x9e3779b97f4a7c15;
  const auto product =
      static_cast<unsigned __int128>(hash ^ pair_of(from * kStepKinds + kind, to)) *
      (kFarFromIndexes ^ pair_of(step.src.index, step.dst.index));
  return static_cast<std::uint64_t>(product >> 64) ^ static_cast<std::uint64_t>(product);
}

// Of what the cut makes of the buffers.
std::uint64_t hash_of(const Cut& cut, const ProofCase& which, int chunks) {
  const Slicing slicing = slicing_of(which, chunks);
  std::uint64_t hash = ordered(cut.slots, cut.count);
  for (int chunk = 0; chunk < chunks; ++chunk) {
    hash = ordered(hash, slicing.partition().chunk(chunk).count);
  }
  return hash;
}

// Of all steps, and of what each rank says of itself.
std::optional<std::uint64_t> hash_of_steps(const StepSource& source, const ProofCase& which,
                                           Names& names) {
  std::uint64_t hash = 0;
  for (int name = 0; name < which.ranks; ++name) {
    const Place at = place_of(which, names.rank_named(name));
    const int chunks = source.chunks(at);
    hash = ordered(hash, pair_of(chunks, source.scratch(at)));
    std::uint32_t left = most_steps(which, chunks);
    for (const Step& step : source.steps(at)) {
      if (!names.fits(step.recv_from) || !names.fits(step.send_to)) return std::nullopt;
      if (left-- == 0) return std::nullopt;
      hash = hash_with(hash, step, names);
    }
  }
  if (!is_point_to_point(which.collective)) return hash;
  return ordered(hash, static_cast<std::uint64_t>(names.of(which.receiver)));
}

}  // namespace

std::set<int> windows_of(const Algorithm& algorithm, ProofCase which,
                         const std::vector<Cut>& cuts) {
  if (!algorithm.sends_ahead) return {1};
  std::set<int> windows;
  for (const Cut& cut : cuts) {
    which.slots = cut.slots;
    which.count = cut.count;
    windows.insert(window_of(algorithm, which));
  }
  return windows;
}

std::optional<std::uint64_t> hash_but_for_names(const Algorithm& algorithm, ProofCase which,
                                                const std::vector<Cut>& cuts) {
  const int chunks = algorithm.chunks(place_of(which, 0));
  std::uint64_t hash = 0;
  for (const Cut& cut : cuts) {
    which.slots = cut.slots;
    which.count = cut.count;
    hash = ordered(hash, hash_of(cut, which, chunks));
  }
  Names names(which.ranks, which.root);  // the same under all windows
  for (const int window : windows_of(algorithm, which, cuts)) {
    const std::optional<std::uint64_t> steps =
        hash_of_steps(source_with(algorithm, which, window), which, names);
    if (!steps) return std::nullopt;
    hash = ordered(hash, *steps);
  }
  return hash;
}

}  // namespace catenary::proof
