// The data that a check sends, and what must come back.
//
// Every rank's input repeats with a period that is prime, so that no power-of-two chunk, slot or
// shard can be swapped for another unnoticed. Values are chosen so that every order of reduction is
// exact: the result is then a matter of bits, not of tolerance. The one exception is the average of
// floating-point values, which a library may scale before or after it sums.
// The arithmetic here is the tool's own (integers modulo 2^64, doubles, one rounding), on purpose:
// it shares nothing with the library that it judges. Immutable; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "bench/perf/data_type.h"

namespace catenary::perf {

// Elements after which a pattern repeats.
inline constexpr std::size_t kPeriod = 1021;

// The bits of `value` in `format`, rounded to nearest even; beyond the range, the largest value.
std::uint64_t encode_float(double value, const FloatFormat& format);

class Pattern {
 public:
  // For data that is only moved: any bits will do.
  Pattern(const DataType& type, std::uint64_t seed);
  // For data that is reduced over `nranks` ranks.
  Pattern(const DataType& type, Reduction reduction, int nranks, std::uint64_t seed);

  // One period of what `rank` sends.
  std::vector<std::byte> input(int rank) const;
  // One period of the reduction of all ranks' inputs.
  std::vector<std::byte> reduced() const;
  // By how many units in the last place a result may differ.
  int tolerance_ulp() const;

  // The factor that `rank` gives to ncclRedOpCreatePreMulSum.
  static double premul_factor(int rank) { return rank % 2 == 0 ? 1.0 : 2.0; }
  // That factor, as an element.
  static std::uint64_t premul_bits(const DataType& type, int rank);

 private:
  std::uint64_t input_bits(int rank, std::size_t index) const;
  std::uint64_t reduced_bits(std::size_t index) const;
  std::uint64_t random(int rank, std::size_t index) const;

  std::int64_t small_integer(int rank, std::size_t index, std::int64_t budget) const;
  double input_float(int rank, std::size_t index) const;
  double product_term(int rank, std::size_t index) const;
  double average_term(int rank, std::size_t index) const;
  double any_normal(int rank, std::size_t index) const;
  double reduced_float(std::size_t index) const;
  std::uint64_t input_integer(int rank, std::size_t index) const;
  std::uint64_t reduced_integer(std::size_t index) const;
  bool less(std::uint64_t a, std::uint64_t b) const;

  DataType type_;
  bool reduces_;
  Reduction reduction_ = Reduction::kSum;
  int nranks_ = 1;
  std::uint64_t seed_;
};

}  // namespace catenary::perf
