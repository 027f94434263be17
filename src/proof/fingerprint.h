// What the checker computes with instead of bytes: a fingerprint of constant size for the value
// that one element has on its way through a schedule.
//
//   sum     of one random number for each (rank, element) that has been added, so it tells which
//           contributions are in it and how often, not in which order
//   order   a hash of the tree of reductions that made it, so equal orders mean equal bits
//
// A wrong multiset has the right sum by an accident of about 2^-64 only; the numbers are the same
// on every run. A finished value is a complete reduction as it is written to output, where integer
// averages divide: it equals no unfinished one, and whoever reduces it further gets nonsense.
//
// Values; one thread at a time.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace catenary::proof {

struct Fingerprint {
  std::uint64_t sum = 0;
  std::uint64_t order = 0;
  bool operator==(const Fingerprint&) const = default;
};

// What undefined memory holds.
inline constexpr Fingerprint kUndefined = {};

namespace fingerprint_detail {
constexpr std::uint64_t scrambled(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}
constexpr std::uint64_t ordered(std::uint64_t left, std::uint64_t right) {
  std::uint64_t x = left * 0xff51afd7ed558ccdu + std::rotl(right, 29) * 0xc4ceb9fe1a85ec53u;
  x ^= x >> 32;
  x *= 0x9fb21c651e98df25u;
  return x ^ (x >> 29);
}
}  // namespace fingerprint_detail

// Of two operands, `left` first.
constexpr Fingerprint reduced(const Fingerprint& left, const Fingerprint& right) {
  return {left.sum + right.sum, fingerprint_detail::ordered(left.order, right.order)};
}

// A fold is one reduction of many operands: begins with this and takes them one by one. Its bits
// need not be those of reductions of two.
inline constexpr Fingerprint kEmptyFold = {0, 0x2545f4914f6cdd1du};
constexpr Fingerprint folded(const Fingerprint& fold, const Fingerprint& operand) {
  return {fold.sum + operand.sum,
          fingerprint_detail::ordered(fold.order ^ 0x5851f42d4c957f2du, operand.order)};
}

constexpr Fingerprint finished(const Fingerprint& whole) {
  return {whole.sum * 0xd1342543de82ef95u, whole.order};
}

// The numbers of ranks and elements.
class Fingerprints {
 public:
  // For so many of each, or more.
  void make(int ranks, std::size_t elements);

  // What a rank gave at one place of its input.
  Fingerprint leaf(int rank, std::size_t element) const {
    const Rank& of = ranks_[static_cast<std::size_t>(rank)];
    return {of.number * numbers_[element], of.order};
  }
  // The sum of that element's leaves of ranks 0 to ranks - 1.
  std::uint64_t whole(int ranks, std::size_t element) const {
    return ranks_[static_cast<std::size_t>(ranks)].before * numbers_[element];
  }

  // In words, for messages: what is in it, as a reduction of `element` over so many ranks.
  std::string text(const Fingerprint& value, int ranks, std::size_t element) const;

 private:
  struct Rank {
    std::uint64_t number;
    std::uint64_t order;
    std::uint64_t before;  // the sum of the numbers of the ranks below
  };
  std::string text_of_sum(std::uint64_t sum, int ranks, std::size_t element) const;
  std::string text_of_leaf(std::uint64_t sum, int ranks) const;

  std::vector<Rank> ranks_;             // one more than asked for
  std::vector<std::uint64_t> numbers_;  // of elements
};

}  // namespace catenary::proof
