#include "src/proof/fingerprint.h"

#include "src/base/error.h"

namespace catenary::proof {

using fingerprint_detail::scrambled;

void Fingerprints::make(int ranks, std::size_t elements) {
  while (ranks_.size() <= static_cast<std::size_t>(ranks)) {
    const std::uint64_t i = ranks_.size();
    const std::uint64_t before = i == 0 ? 0 : ranks_.back().before + ranks_.back().number;
    ranks_.push_back({scrambled(3 * i), scrambled(3 * i + 1) | 1, before});
  }
  numbers_.reserve(elements);
  while (numbers_.size() < elements) {
    numbers_.push_back(scrambled(3 * numbers_.size() + 2) | 1);  // odd: none maps two sums to one
  }
}

std::string Fingerprints::text(const Fingerprint& value, int ranks, std::size_t element) const {
  if (value == kUndefined) return "undefined";
  if (value.sum == finished({whole(ranks, element), 0}).sum) {
    return format("the finished reduction of element %zu", element);
  }
  std::string text = text_of_leaf(value.sum, ranks);
  if (text.empty()) text = text_of_sum(value.sum, ranks, element);
  return text.empty() ? "a mixture that is no part of it" : text;
}

// A reduction of the element that is whole, or nearly so. Empty if it is neither.
std::string Fingerprints::text_of_sum(std::uint64_t sum, int ranks, std::size_t element) const {
  const auto leaf_sum = [&](int rank) { return leaf(rank, element).sum; };
  const std::uint64_t missing = whole(ranks, element) - sum;
  if (missing == 0) return format("the unfinished reduction of element %zu", element);
  // What one rank gave twice, and what another did not.
  for (int twice = 0; twice <= ranks; ++twice) {
    for (int never = 0; never <= ranks; ++never) {
      const std::uint64_t lacks = never == ranks ? 0 : leaf_sum(never);
      const std::uint64_t doubles = twice == ranks ? 0 : leaf_sum(twice);
      if (missing != lacks - doubles || never == twice) continue;
      std::string text = format("a reduction of element %zu", element);
      if (never < ranks) text += format(" without rank %d's part", never);
      if (twice < ranks)
        text += format("%s rank %d's twice", never < ranks ? " and with" : " with", twice);
      return text;
    }
  }
  // The parts of ranks that follow each other.
  for (int first = 0; first < ranks; ++first) {
    std::uint64_t run = 0;
    for (int i = 0; i < ranks; ++i) {
      run += leaf_sum((first + i) % ranks);
      if (run != sum) continue;
      return format("a reduction of element %zu over ranks %d to %d only", element, first,
                    (first + i) % ranks);
    }
  }
  return "";
}

std::string Fingerprints::text_of_leaf(std::uint64_t sum, int ranks) const {
  for (std::size_t element = 0; element < numbers_.size(); ++element) {
    if (sum == finished({whole(ranks, element), 0}).sum) {
      return format("the finished reduction of element %zu", element);
    }
    for (int rank = 0; rank < ranks; ++rank) {
      if (sum == leaf(rank, element).sum) return format("rank %d's element %zu", rank, element);
    }
  }
  return "";
}

}  // namespace catenary::proof
