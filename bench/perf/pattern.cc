#include "bench/perf/pattern.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

namespace catenary::perf {
namespace {

// Stands for "no rank in particular" where all ranks must draw the same number.
constexpr int kEveryRank = -1;

// Largest magnitude used where the type would allow more; plenty of bits, no overflow anywhere.
constexpr std::int64_t kLargestTerm = std::int64_t{1} << 20;

// splitmix64's finalizer: cheap, and every bit of the result depends on every bit of the input.
std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

std::uint64_t low_bytes(std::uint64_t bits, std::size_t bytes) {
  return bytes == 8 ? bits : bits & ((std::uint64_t{1} << (8 * bytes)) - 1);
}

std::int64_t sign_extended(std::uint64_t bits, std::size_t bytes) {
  const int unused = static_cast<int>(64 - 8 * bytes);
  return static_cast<std::int64_t>(bits << unused) >> unused;
}

int bias(const FloatFormat& format) { return (1 << (format.exponent_bits - 1)) - 1; }

// Exponent field of the largest binade that holds only ordinary numbers.
int largest_plain_exponent(const FloatFormat& format) { return (1 << format.exponent_bits) - 2; }

void store(std::vector<std::byte>& elements, std::size_t index, std::uint64_t bits,
           std::size_t bytes) {
  // Little endian, as every host this library runs on.
  std::memcpy(elements.data() + index * bytes, &bits, bytes);
}

}  // namespace

std::uint64_t encode_float(double value, const FloatFormat& format) {
  const std::uint64_t sign = std::signbit(value) ? 1 : 0;
  const double magnitude = std::fabs(value);
  const int mantissa = format.mantissa_bits;
  const int smallest = 1 - bias(format);
  // The binade of the value; below the smallest one numbers keep its spacing (subnormals).
  const int exponent = magnitude == 0 ? smallest : std::max(std::ilogb(magnitude), smallest);
  const double in_units = std::nearbyint(std::ldexp(magnitude, mantissa - exponent));
  std::uint64_t bits = static_cast<std::uint64_t>(in_units);
  // The hidden bit, and a carry out of rounding, both add to the exponent field as they should.
  bits += static_cast<std::uint64_t>(exponent - smallest) << mantissa;
  const std::uint64_t top = (std::uint64_t{1} << (format.exponent_bits + mantissa)) - 1;
  const std::uint64_t largest = format.finite_only ? top - 1 : top - (std::uint64_t{1} << mantissa);
  bits = std::min(bits, largest);
  return bits | sign << (format.exponent_bits + mantissa);
}

Pattern::Pattern(const DataType& type, std::uint64_t seed)
    : type_(type), reduces_(false), seed_(seed) {}

Pattern::Pattern(const DataType& type, Reduction reduction, int nranks, std::uint64_t seed)
    : type_(type), reduces_(true), reduction_(reduction), nranks_(nranks), seed_(seed) {}

std::vector<std::byte> Pattern::input(int rank) const {
  std::vector<std::byte> elements(kPeriod * type_.bytes);
  for (std::size_t i = 0; i < kPeriod; ++i) store(elements, i, input_bits(rank, i), type_.bytes);
  return elements;
}

std::vector<std::byte> Pattern::reduced() const {
  std::vector<std::byte> elements(kPeriod * type_.bytes);
  for (std::size_t i = 0; i < kPeriod; ++i) store(elements, i, reduced_bits(i), type_.bytes);
  return elements;
}

int Pattern::tolerance_ulp() const {
  return reduces_ && reduction_ == Reduction::kAvg && type_.is_float() ? 2 : 0;
}

std::uint64_t Pattern::premul_bits(const DataType& type, int rank) {
  const double factor = premul_factor(rank);
  return type.is_float() ? encode_float(factor, type.format) : static_cast<std::uint64_t>(factor);
}

std::uint64_t Pattern::random(int rank, std::size_t index) const {
  return mix(mix(seed_ ^ mix(static_cast<std::uint64_t>(rank))) ^ index);
}

std::uint64_t Pattern::input_bits(int rank, std::size_t index) const {
  if (!reduces_) return low_bytes(random(rank, index), type_.bytes);
  if (type_.is_float()) return encode_float(input_float(rank, index), type_.format);
  return low_bytes(input_integer(rank, index), type_.bytes);
}

std::uint64_t Pattern::reduced_bits(std::size_t index) const {
  if (type_.is_float()) return encode_float(reduced_float(index), type_.format);
  return low_bytes(reduced_integer(index), type_.bytes);
}

// A number such that the sum over all ranks, in any order, never leaves [-budget, budget]. When
// there are more ranks than budget, only every so many ranks contribute, others at other elements.
std::int64_t Pattern::small_integer(int rank, std::size_t index, std::int64_t budget) const {
  const std::int64_t heaviest = reduction_ == Reduction::kMulSum ? 2 : 1;
  const std::int64_t weight = heaviest * nranks_;
  const std::uint64_t draw = random(rank, index);
  if (weight > budget) {
    const std::int64_t every = (weight + budget - 1) / budget;
    const auto turn = static_cast<std::int64_t>(random(kEveryRank, index) % 65536);
    if ((rank + turn) % every != 0) return 0;
  }
  const std::int64_t largest = std::clamp<std::int64_t>(budget / weight, 1, kLargestTerm);
  const auto magnitude =
      static_cast<std::int64_t>((draw >> 1) % static_cast<std::uint64_t>(largest + 1));
  return type_.is_signed && (draw & 1) != 0 ? -magnitude : magnitude;
}

double Pattern::input_float(int rank, std::size_t index) const {
  switch (reduction_) {
    case Reduction::kSum:
    case Reduction::kMulSum:
      // Integers up to 2^(mantissa bits + 1) are exact.
      return static_cast<double>(
          small_integer(rank, index, std::int64_t{1} << (type_.format.mantissa_bits + 1)));
    case Reduction::kProd: return product_term(rank, index);
    case Reduction::kMin:
    case Reduction::kMax: return any_normal(rank, index);
    case Reduction::kAvg: return average_term(rank, index);
  }
  throw std::logic_error("unknown reduction");
}

// Signs everywhere; a few ranks, others at other elements, bring powers of two and one 1.5. Every
// partial product is exact and stays between 2^-2 and 2^3.
double Pattern::product_term(int rank, std::size_t index) const {
  const std::uint64_t turn = random(kEveryRank, index) % static_cast<std::uint64_t>(nranks_);
  const std::uint64_t place =
      (static_cast<std::uint64_t>(rank) + turn) % static_cast<std::uint64_t>(nranks_);
  double magnitude = 1.0;
  if (place == 0) magnitude = 1.5;
  if (place == 1 || place == 3) magnitude = 2.0;
  if (place == 2 || place == 4) magnitude = 0.5;
  return (random(rank, index) & 1) != 0 ? -magnitude : magnitude;
}

// Two ranks, others at other elements, bring positive numbers of one binade: so few roundings can
// happen that two units in the last place are enough for whoever divides first or last.
double Pattern::average_term(int rank, std::size_t index) const {
  const std::uint64_t turn = random(kEveryRank, index) % static_cast<std::uint64_t>(nranks_);
  const std::uint64_t place =
      (static_cast<std::uint64_t>(rank) + turn) % static_cast<std::uint64_t>(nranks_);
  if (place > 1) return 0.0;
  const std::uint64_t fraction =
      random(rank, index) & ((std::uint64_t{1} << type_.format.mantissa_bits) - 1);
  return 16.0 + std::ldexp(static_cast<double>(fraction), 4 - type_.format.mantissa_bits);
}

// Any number but zeros, subnormals, infinities and NaN.
double Pattern::any_normal(int rank, std::size_t index) const {
  const FloatFormat& format = type_.format;
  const std::uint64_t draw = random(rank, index);
  const std::uint64_t fraction = draw & ((std::uint64_t{1} << format.mantissa_bits) - 1);
  const auto field =
      1 +
      static_cast<int>((draw >> 53) % static_cast<std::uint64_t>(largest_plain_exponent(format)));
  const double magnitude = std::ldexp(
      1.0 + std::ldexp(static_cast<double>(fraction), -format.mantissa_bits), field - bias(format));
  return (draw >> 52 & 1) != 0 ? -magnitude : magnitude;
}

double Pattern::reduced_float(std::size_t index) const {
  double result = input_float(0, index);  // rank 0's PreMulSum factor is 1
  for (int rank = 1; rank < nranks_; ++rank) {
    const double term = input_float(rank, index);
    switch (reduction_) {
      case Reduction::kSum:
      case Reduction::kAvg: result += term; break;
      case Reduction::kMulSum: result += term * premul_factor(rank); break;
      case Reduction::kProd: result *= term; break;
      case Reduction::kMin: result = std::min(result, term); break;
      case Reduction::kMax: result = std::max(result, term); break;
    }
  }
  return reduction_ == Reduction::kAvg ? result / nranks_ : result;
}

std::uint64_t Pattern::input_integer(int rank, std::size_t index) const {
  if (reduction_ != Reduction::kAvg) return low_bytes(random(rank, index), type_.bytes);
  // Before the division nothing may wrap.
  const int value_bits =
      std::min(62, static_cast<int>(8 * type_.bytes) - (type_.is_signed ? 1 : 0));
  return static_cast<std::uint64_t>(
      small_integer(rank, index, (std::int64_t{1} << value_bits) - 1));
}

bool Pattern::less(std::uint64_t a, std::uint64_t b) const {
  if (!type_.is_signed) return a < b;
  return sign_extended(a, type_.bytes) < sign_extended(b, type_.bytes);
}

// Sums and products modulo 2^64 agree with those modulo 2^(bits of the type) in the low bytes.
std::uint64_t Pattern::reduced_integer(std::size_t index) const {
  std::uint64_t result = input_integer(0, index);
  for (int rank = 1; rank < nranks_; ++rank) {
    const std::uint64_t term = input_integer(rank, index);
    switch (reduction_) {
      case Reduction::kSum:
      case Reduction::kAvg: result += term; break;
      case Reduction::kMulSum:
        result += term * static_cast<std::uint64_t>(premul_factor(rank));
        break;
      case Reduction::kProd: result *= term; break;
      case Reduction::kMin: result = less(term, result) ? term : result; break;
      case Reduction::kMax: result = less(result, term) ? term : result; break;
    }
  }
  if (reduction_ != Reduction::kAvg) return result;
  // small_integer() gave negative numbers in 64 bits, so the sum is a true one; towards zero.
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(result) / nranks_);
}

}  // namespace catenary::perf
