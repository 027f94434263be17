// What a program must lead to, by the meaning of its operations: one after the other, in one
// thread, with arithmetic of its own (integers modulo 2^64, doubles), sharing nothing with the
// library but names. Patterns are chosen so that every order of reduction is exact.
#pragma once

#include <cstddef>
#include <vector>

#include "tests/random/program.h"

namespace catenary::testing {

using Register = std::vector<std::byte>;

// One rank's registers, by stream and number; at the beginning, or wherever a program has led.
struct Registers {
  int of_each = 0;
  std::vector<Register> all;
  Register& at(int stream, int number) {
    return all[static_cast<std::size_t>(stream * of_each + number)];
  }
};

// What a rank of the world finds in its registers at first.
Registers first_registers(const Program& program, int rank);
// The elements that a rank's input spans in its register.
std::size_t input_extent(const Operation& operation, int ranks, int rank);
// What is written to there before the operation, if it has a pattern: that many elements.
Register pattern_of(const Operation& operation, int ranks, int rank, std::size_t elements);
// The factor that a rank gives to PreMulSum, as an element.
Register factor_of(const Operation& operation, int rank);

// All ranks' registers after the program.
std::vector<Registers> run_reference(const Program& program);

}  // namespace catenary::testing
