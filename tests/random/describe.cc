#include <cstdio>

#include "tests/random/program.h"

namespace catenary::testing {
namespace {

constexpr const char* kKindNames[] = {
    "AllReduce", "Broadcast", "Reduce",     "AllGather",      "ReduceScatter", "AlltoAll", "Gather",
    "Scatter",   "AlltoAllv", "AllGatherv", "ReduceScatterv", "Barrier",       "Message"};
constexpr const char* kTypeNames[] = {"int8", "uint8", "int32",  "uint32",   "int64",  "uint64",
                                      "half", "float", "double", "bfloat16", "f8e4m3", "f8e5m2"};
constexpr const char* kReductionNames[] = {"sum", "prod", "max", "min", "avg", "premulsum"};

template <typename Values>
std::string list(const Values& values) {
  std::string text;
  for (const auto value : values) text += (text.empty() ? "" : " ") + std::to_string(value);
  return "[" + text + "]";
}

std::string place(int stream, int where, std::size_t at) {
  return where < 0 ? "-"
                   : "s" + std::to_string(stream) + ".r" + std::to_string(where) + "+" +
                         std::to_string(at);
}

}  // namespace

std::string describe(const Program& program, const Operation& operation) {
  std::string text = std::string(kKindNames[static_cast<int>(operation.kind)]) + " comm " +
                     std::to_string(operation.comm) + " " + kTypeNames[operation.type];
  if (is_reduction(operation.kind)) {
    text += std::string(" ") + kReductionNames[operation.reduction];
  }
  if (operation.kind == Kind::kMessage) {
    text += " " + std::to_string(operation.root) + " -> " + std::to_string(operation.receiver);
  } else if (is_rooted(operation.kind)) {
    text += " root " + std::to_string(operation.root);
  }
  text += " count " + std::to_string(operation.count);
  for (const Counts& counts : operation.counts) text += " " + list(counts);
  if (operation.wild) text += " wild";
  if (operation.pattern != 0) text += " fresh";
  for (std::size_t rank = 0; rank < operation.parts.size(); ++rank) {
    const Part& part = operation.parts[rank];
    if (part.input < 0 && part.output < 0) continue;
    text += "\n      rank " + std::to_string(rank) + " (world " +
            std::to_string(program.members(operation)[rank]) +
            "): " + place(part.stream, part.input, part.input_at) + " -> " +
            place(part.stream, part.output, part.output_at);
    if (!part.input_displs.empty()) text += " from " + list(part.input_displs);
    if (!part.output_displs.empty()) text += " to " + list(part.output_displs);
  }
  return text;
}

std::string describe(const Program& program) {
  std::string text = "seed " + std::to_string(program.seed) + ": " + std::to_string(program.ranks) +
                     " ranks, " + std::to_string(program.streams) + " streams, registers of " +
                     std::to_string(program.register_bytes) + " bytes" +
                     (program.blocking ? "" : ", non-blocking") + "\n";
  for (std::size_t comm = 0; comm < program.communicators.size(); ++comm) {
    const Communicator& made = program.communicators[comm];
    text += "  comm " + std::to_string(comm) + " of " + std::to_string(made.parent) + ": " +
            list(made.members) + "\n";
  }
  for (const Action& action : program.actions) {
    text += "  group of depth " + std::to_string(action.depth) +
            (action.synchronizes ? ", then synchronize\n" : "\n");
    for (const Operation& operation : action.operations) {
      text += "    " + describe(program, operation) + "\n";
    }
  }
  return text;
}

}  // namespace catenary::testing
