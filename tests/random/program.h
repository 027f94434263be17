// A random program: communicators, and what their ranks do with them. Plain values, made from a
// seed by generate(), run by Catenary (execute.h) and by the reference (reference.h).
//
// Every rank has some streams, and a few registers of bytes for each stream. An operation takes its
// input from a register of the stream on which the rank runs it, and puts its output into another
// one, so that what a later operation gets depends on what earlier ones did. All ranks issue what
// they take part in in the order of the program, which so can always end. Operations of one action
// use different registers; they may be one group.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "nccl.h"

namespace catenary::testing {

using Counts = std::vector<std::size_t>;

enum class Kind {
  kAllReduce,
  kBroadcast,
  kReduce,
  kAllGather,
  kReduceScatter,
  kAllToAll,
  kGather,
  kScatter,
  kAllToAllV,
  kAllGatherV,
  kReduceScatterV,
  kBarrier,
  kMessage,  // a send and a receive
};
inline constexpr int kKinds = 13;

// Beyond NCCL's own operations.
inline constexpr int kPreMulSum = 5;

// What one rank does in an operation. Registers are of `stream`; -1: it has no such buffer.
struct Part {
  int stream = 0;
  int input = -1;
  int output = -1;
  std::size_t input_at = 0;  // bytes into the register
  std::size_t output_at = 0;
  // Of the parts of uneven collectives; empty: packed.
  Counts input_displs;
  Counts output_displs;
};

struct Operation {
  Kind kind = Kind::kAllReduce;
  int comm = 0;
  ncclDataType_t type = ncclInt8;
  int reduction = ncclSum;
  std::size_t count = 0;       // as the call means it
  std::vector<Counts> counts;  // AlltoAllv: by sender and receiver; others that are uneven: one row
  int root = 0;                // of a message: who sends
  int receiver = 0;
  // Not 0: inputs are written just before, of a pattern with this seed. Otherwise they are what
  // earlier operations left there.
  std::uint64_t pattern = 0;
  bool factor_in_memory = false;  // of PreMulSum
  // Values are any floats: only that all ranks get the same bits, each time, is known. Buffers are
  // apart from all registers.
  bool wild = false;
  std::vector<Part> parts;  // by rank of the communicator
};

struct Action {
  std::vector<Operation> operations;
  int depth = 0;               // of nested groups; 0: an operation alone
  std::vector<int> pauses;     // microseconds before it, by rank of the world
  std::vector<bool> shuffled;  // by rank of the world: messages are called in another order
  bool synchronizes = false;
};

struct Communicator {
  int parent = -1;           // -1: it is the world
  std::vector<int> members;  // ranks of the world
  int color = 0;
  std::vector<int> keys;  // by rank of the parent, of members
};

struct Program {
  std::uint64_t seed = 0;
  int ranks = 1;
  int streams = 1;
  int registers = 6;
  std::size_t register_bytes = 0;
  bool blocking = true;
  // Those of one parent that follow each other come from one split.
  std::vector<Communicator> communicators;
  std::vector<Action> actions;

  const std::vector<int>& members(const Operation& operation) const {
    return communicators[static_cast<std::size_t>(operation.comm)].members;
  }
};

Program generate(std::uint64_t seed);

// Only the actions of these numbers.
Program keep(const Program& program, const std::vector<int>& actions);

bool is_rooted(Kind kind);
bool is_reduction(Kind kind);
bool is_uneven(Kind kind);

// Where the parts of an uneven buffer begin, in elements.
Counts places_of(const Counts& counts, const Counts& displs);
// What a rank of the communicator sends to, or takes from, each other one.
Counts sent_counts(const Operation& operation, int rank);
Counts taken_counts(const Operation& operation, int rank);

std::string describe(const Program& program);
std::string describe(const Program& program, const Operation& operation);

// Numbers that only depend on their seed.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t bits = state_ += 0x9e3779b97f4a7c15u;
    bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9u;
    bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebu;
    return bits ^ (bits >> 31);
  }
  // From 0 to sides - 1.
  int roll(int sides) { return static_cast<int>(next() % static_cast<std::uint64_t>(sides)); }
  bool one_in(int sides) { return roll(sides) == 0; }

 private:
  std::uint64_t state_;
};

}  // namespace catenary::testing
