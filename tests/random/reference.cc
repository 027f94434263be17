#include "tests/random/reference.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tests/support/elements.h"

namespace catenary::testing {
namespace {

struct Format {
  int exponent_bits;
  int mantissa_bits;
};

Format format_of(ncclDataType_t type) {
  switch (type) {
    case ncclFloat16: return {5, 10};
    case ncclBfloat16: return {8, 7};
    case ncclFloat8e4m3: return {4, 3};
    case ncclFloat8e5m2: return {5, 2};
    case ncclFloat32: return {8, 23};
    default: return {11, 52};
  }
}

std::uint64_t load(const std::byte* from, ncclDataType_t type) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, from, element_bytes(type));
  return bits;
}

std::int64_t integer_of(std::uint64_t bits, ncclDataType_t type) {
  if (is_unsigned(type)) return static_cast<std::int64_t>(bits);
  const int unused = 64 - 8 * static_cast<int>(element_bytes(type));
  return static_cast<std::int64_t>(bits << unused) >> unused;
}

// Of zeros and normal numbers, which is all that patterns lead to.
double float_of(std::uint64_t bits, ncclDataType_t type) {
  const Format format = format_of(type);
  const std::uint64_t mantissa = bits & ((std::uint64_t{1} << format.mantissa_bits) - 1);
  const auto exponent = static_cast<int>((bits >> format.mantissa_bits) &
                                         ((std::uint64_t{1} << format.exponent_bits) - 1));
  if (exponent == 0 && mantissa == 0) return 0;
  const double fraction = 1 + std::ldexp(static_cast<double>(mantissa), -format.mantissa_bits);
  const double value = std::ldexp(fraction, exponent - ((1 << (format.exponent_bits - 1)) - 1));
  return (bits >> (format.exponent_bits + format.mantissa_bits)) != 0 ? -value : value;
}

double combined(int reduction, double a, double b) {
  switch (reduction) {
    case ncclProd: return a * b;
    case ncclMax: return std::max(a, b);
    case ncclMin: return std::min(a, b);
    default: return a + b;
  }
}

bool less(std::uint64_t a, std::uint64_t b, ncclDataType_t type) {
  return is_unsigned(type) ? a < b : integer_of(a, type) < integer_of(b, type);
}

std::uint64_t combined(int reduction, std::uint64_t a, std::uint64_t b, ncclDataType_t type) {
  switch (reduction) {
    case ncclProd: return a * b;
    case ncclMax: return less(a, b, type) ? b : a;
    case ncclMin: return less(b, a, type) ? b : a;
    default: return a + b;
  }
}

// One element of a reduction, from where each rank has it.
void reduce(const Operation& operation, const std::vector<const std::byte*>& from, std::byte* to) {
  const ncclDataType_t type = operation.type;
  const bool scales = operation.reduction == kPreMulSum;
  const auto ranks = static_cast<int>(from.size());
  if (is_float(type)) {
    double result = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      double value = float_of(load(from[static_cast<std::size_t>(rank)], type), type);
      if (scales) value *= float_of(load(factor_of(operation, rank).data(), type), type);
      result = rank == 0 ? value : combined(operation.reduction, result, value);
    }
    if (operation.reduction == ncclAvg) result /= ranks;
    put_element(to, type, result);
    return;
  }
  std::uint64_t result = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    std::uint64_t value = load(from[static_cast<std::size_t>(rank)], type);
    if (scales) value *= load(factor_of(operation, rank).data(), type);
    result = rank == 0 ? value : combined(operation.reduction, result, value, type);
  }
  if (operation.reduction == ncclAvg) {
    std::memcpy(to, &result, element_bytes(type));
    const std::uint64_t sum = load(to, type);
    result = is_unsigned(type) ? sum / static_cast<std::uint64_t>(ranks)
                               : static_cast<std::uint64_t>(integer_of(sum, type) / ranks);
  }
  std::memcpy(to, &result, element_bytes(type));
}

class Reference {
 public:
  explicit Reference(const Program& program) : program_(program) {
    for (int rank = 0; rank < program.ranks; ++rank) {
      worlds_.push_back(first_registers(program, rank));
    }
  }

  std::vector<Registers> run() {
    for (const Action& action : program_.actions) {
      for (const Operation& operation : action.operations) {
        if (!operation.wild) apply(operation);
      }
    }
    return std::move(worlds_);
  }

 private:
  Register& at(const Operation& operation, int rank, int number) {
    const auto index = static_cast<std::size_t>(rank);
    const int world = program_.members(operation)[index];
    return worlds_[static_cast<std::size_t>(world)].at(operation.parts[index].stream, number);
  }

  void apply(const Operation& operation) {
    const auto size = static_cast<int>(operation.parts.size());
    inputs_.assign(operation.parts.size(), {});
    for (int rank = 0; rank < size; ++rank) {
      const Part& part = operation.parts[static_cast<std::size_t>(rank)];
      if (part.input < 0) continue;
      Register& source = at(operation, rank, part.input);
      if (operation.pattern != 0) {
        const Register fresh =
            pattern_of(operation, size, rank, input_extent(operation, size, rank));
        std::copy(fresh.begin(), fresh.end(),
                  source.begin() + static_cast<std::ptrdiff_t>(part.input_at));
      }
      inputs_[static_cast<std::size_t>(rank)].assign(
          source.begin() + static_cast<std::ptrdiff_t>(part.input_at), source.end());
    }
    for (int rank = 0; rank < size; ++rank) {
      const Part& part = operation.parts[static_cast<std::size_t>(rank)];
      if (part.output >= 0) write_output(operation, rank, part);
    }
  }

  void write_output(const Operation& operation, int rank, const Part& part) {
    const std::size_t bytes = element_bytes(operation.type);
    const auto own = static_cast<std::size_t>(rank);
    const auto size = operation.parts.size();
    std::byte* const out = at(operation, rank, part.output).data() + part.output_at;
    const std::size_t count = operation.count;
    const auto copy = [&](std::size_t to, std::size_t from_rank, std::size_t from,
                          std::size_t elements) {
      if (elements == 0) return;
      std::memcpy(out + to * bytes, inputs_[from_rank].data() + from * bytes, elements * bytes);
    };
    const auto root = static_cast<std::size_t>(operation.root);
    switch (operation.kind) {
      case Kind::kBarrier: break;
      case Kind::kAllReduce:
      case Kind::kReduce: reduce_all(operation, Counts(size, 0), count, out); break;
      case Kind::kReduceScatter:
        reduce_all(operation, Counts(size, own * count), count, out);
        break;
      case Kind::kReduceScatterV: {
        Counts from;
        for (const Part& each : operation.parts) {
          from.push_back(places_of(operation.counts[0], each.input_displs)[own]);
        }
        reduce_all(operation, from, operation.counts[0][own], out);
        break;
      }
      case Kind::kBroadcast:
      case Kind::kMessage: copy(0, root, 0, count); break;
      case Kind::kScatter: copy(0, root, own * count, count); break;
      case Kind::kAllGather:
      case Kind::kGather:
        for (std::size_t peer = 0; peer < size; ++peer) copy(peer * count, peer, 0, count);
        break;
      case Kind::kAllToAll:
        for (std::size_t peer = 0; peer < size; ++peer) {
          copy(peer * count, peer, own * count, count);
        }
        break;
      case Kind::kAllGatherV:
      case Kind::kAllToAllV: copy_uneven(operation, rank, copy); break;
    }
  }

  template <typename Copy>
  static void copy_uneven(const Operation& operation, int rank, const Copy& copy) {
    const auto own = static_cast<std::size_t>(rank);
    const Counts counts = taken_counts(operation, rank);
    const Counts places = places_of(counts, operation.parts[own].output_displs);
    for (std::size_t peer = 0; peer < counts.size(); ++peer) {
      std::size_t from = 0;
      if (operation.kind == Kind::kAllToAllV) {
        from = places_of(operation.counts[peer], operation.parts[peer].input_displs)[own];
      }
      copy(places[peer], peer, from, counts[peer]);
    }
  }

  void reduce_all(const Operation& operation, const Counts& from, std::size_t count,
                  std::byte* out) {
    const std::size_t bytes = element_bytes(operation.type);
    std::vector<const std::byte*> operands(from.size());
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t rank = 0; rank < from.size(); ++rank) {
        operands[rank] = inputs_[rank].data() + (from[rank] + i) * bytes;
      }
      reduce(operation, operands, out + i * bytes);
    }
  }

  const Program& program_;
  std::vector<Registers> worlds_;
  std::vector<Register> inputs_;  // as they are before the operation
};

// Whose turn it is to give more than others. Not by element: the same element of a result may lie
// in different places of ranks' inputs.
int place_of(const Operation& operation, int ranks, int rank) {
  return static_cast<int>((operation.pattern + static_cast<std::uint64_t>(rank)) %
                          static_cast<std::uint64_t>(ranks));
}

// A small integer, such that no order of summation over the ranks is inexact.
double summand(const Operation& operation, int ranks, int rank, std::uint64_t draw) {
  const int heaviest = operation.reduction == kPreMulSum ? 2 : 1;
  const int exact = 1 << std::min(format_of(operation.type).mantissa_bits + 1, 20);
  const int budget = exact / heaviest;
  if (budget < ranks && place_of(operation, ranks, rank) >= budget) return 0;
  const int most = std::max(budget / ranks, 1);
  return static_cast<double>(draw % static_cast<std::uint64_t>(2 * most + 1)) - most;
}

double element_of(const Operation& operation, int ranks, int rank, std::uint64_t draw) {
  switch (operation.reduction) {
    case ncclProd: {
      const double sign = (draw & 1) != 0 ? -1 : 1;
      return place_of(operation, ranks, rank) == 0 ? 2 * sign : sign;
    }
    case ncclMax:
    case ncclMin: return static_cast<double>(draw % 7) - 3;
    default: return summand(operation, ranks, rank, draw);
  }
}

// Any number of the format but zeros, subnormals, infinities and NaN.
std::uint64_t any_float(ncclDataType_t type, std::uint64_t draw) {
  const Format format = format_of(type);
  const std::uint64_t exponents = (std::uint64_t{1} << format.exponent_bits) - 2;
  const std::uint64_t mantissa = draw & ((std::uint64_t{1} << format.mantissa_bits) - 1);
  const std::uint64_t exponent = 1 + (draw >> 53) % exponents;
  const std::uint64_t sign = draw >> 52 & 1;
  return (sign << format.exponent_bits | exponent) << format.mantissa_bits | mantissa;
}

}  // namespace

Registers first_registers(const Program& program, int rank) {
  Dice dice(program.seed * 7919u + static_cast<std::uint64_t>(rank));
  Registers made{program.registers, {}};
  for (int i = 0; i < program.streams * program.registers; ++i) {
    Register bytes(program.register_bytes);
    for (std::size_t at = 0; at + 8 <= bytes.size(); at += 8) {
      const std::uint64_t draw = dice.next();
      std::memcpy(bytes.data() + at, &draw, 8);
    }
    made.all.push_back(std::move(bytes));
  }
  return made;
}

std::size_t input_extent(const Operation& operation, int ranks, int rank) {
  const auto size = static_cast<std::size_t>(ranks);
  const auto own = static_cast<std::size_t>(rank);
  switch (operation.kind) {
    case Kind::kReduceScatter:
    case Kind::kAllToAll:
    case Kind::kScatter: return operation.count * size;
    case Kind::kAllGatherV: return operation.counts[0][own];
    case Kind::kReduceScatterV:
    case Kind::kAllToAllV: {
      const Counts counts = sent_counts(operation, rank);
      const Counts places = places_of(counts, operation.parts[own].input_displs);
      std::size_t extent = 0;
      for (std::size_t i = 0; i < size; ++i) extent = std::max(extent, places[i] + counts[i]);
      return extent;
    }
    default: return operation.count;
  }
}

Register pattern_of(const Operation& operation, int ranks, int rank, std::size_t elements) {
  const std::size_t bytes = element_bytes(operation.type);
  Register made(elements * bytes);
  Dice dice(operation.pattern + static_cast<std::uint64_t>(rank) * 104729u);
  const bool chosen = is_reduction(operation.kind) && is_float(operation.type);
  for (std::size_t i = 0; i < elements; ++i) {
    const std::uint64_t draw = dice.next();
    std::byte* const to = made.data() + i * bytes;
    if (operation.wild) {
      const std::uint64_t bits = any_float(operation.type, draw);
      std::memcpy(to, &bits, bytes);
    } else if (chosen) {
      put_element(to, operation.type, element_of(operation, ranks, rank, draw));
    } else {
      std::memcpy(to, &draw, bytes);
    }
  }
  return made;
}

Register factor_of(const Operation& operation, int rank) {
  Register made(8);
  put_element(made.data(), operation.type, rank % 2 + 1);
  return made;
}

std::vector<Registers> run_reference(const Program& program) { return Reference(program).run(); }

}  // namespace catenary::testing
