#include "src/proof/proof_case.h"

#include "src/base/error.h"

namespace catenary::proof {
namespace {

// The two halves of a message. Of Send and Recv either makes the pair.
Steps send_and_receive(Place at, bool sends, bool receives, int sender, int receiver) {
  if (sends) {
    at.root = receiver;
    for (const Step& step : direct_send(at)) co_yield step;
  }
  if (receives) {
    at.root = sender;
    for (const Step& step : direct_recv(at)) co_yield step;
  }
}

}  // namespace

Place place_of(const ProofCase& which, int rank) {
  return {
      .rank = rank, .ranks = which.ranks, .root = which.root, .box = which.box, .lane = which.lane};
}

Slicing slicing_of(const ProofCase& which, int chunk_count) {
  const Partition partition =
      partition_for(which.collective, which.count, kCutBytes, chunk_count, which.lane, which.lanes);
  return Slicing(partition, kCutBytes, which.slots - 1);
}

int label_of(const ProofCase& which, int rank, const Chunk& chunk) {
  const bool is_input = chunk.buffer == Buffer::kInput;
  const bool is_output = chunk.buffer == Buffer::kOutput;
  if (gathers(which.collective)) return is_input ? rank : chunk.index % which.ranks;
  if (scatters(which.collective)) return is_output ? rank : chunk.index % which.ranks;
  if (is_input) return rank * which.ranks + chunk.index;
  return is_output ? chunk.index * which.ranks + rank : kNobody;
}

bool runs_on(const Algorithm& algorithm, const ProofCase& which) {
  return algorithm.runs_on(place_of(which, 0));
}

StepSource source_with(const Algorithm& algorithm, const ProofCase& which, int window) {
  if (is_point_to_point(algorithm.collective)) {
    const int sender = which.root;
    const int receiver = which.receiver;
    return {[sender, receiver](const Place& at) {
              return send_and_receive(at, at.rank == sender, at.rank == receiver, sender, receiver);
            },
            algorithm.chunks, algorithm.scratch};
  }
  return {[&algorithm, window](Place at) {
            at.window = window;
            return steps_of(algorithm, at);
          },
          algorithm.chunks,
          [&algorithm, window](Place at) {
            at.window = window;
            return algorithm.scratch(at);
          }};
}

int window_of(const Algorithm& algorithm, const ProofCase& which) {
  if (!algorithm.sends_ahead) return 1;
  return slicing_of(which, algorithm.chunks(place_of(which, 0))).window();
}

StepSource source_of(const Algorithm& algorithm, const ProofCase& which) {
  return source_with(algorithm, which, window_of(algorithm, which));
}

std::string describe(const ProofCase& which) {
  std::string text = format("%d ranks", which.ranks);
  if (has_root(which.collective)) text += format(", root %d", which.root);
  if (is_point_to_point(which.collective)) text += format(", receiver %d", which.receiver);
  if (which.box > 1) text += format(", box %d", which.box);
  if (which.lanes > 1) text += format(", lane %d of %d", which.lane, which.lanes);
  return text + format(", %zu elements, %u slots", which.count, which.slots);
}

bool has_input(const ProofCase& which, int rank) {
  switch (which.collective) {
    case Collective::kBroadcast:
    case Collective::kScatter:
    case Collective::kSend:
    case Collective::kRecv: return rank == which.root;
    case Collective::kAllReduce:
    case Collective::kReduce:
    case Collective::kAllGather:
    case Collective::kReduceScatter:
    case Collective::kAllToAll:
    case Collective::kGather: return true;
    default: return false;  // those without algorithms of their own
  }
}

bool has_output(const ProofCase& which, int rank) {
  switch (which.collective) {
    case Collective::kReduce:
    case Collective::kGather: return rank == which.root;
    case Collective::kSend:
    case Collective::kRecv: return rank == which.receiver;
    case Collective::kAllReduce:
    case Collective::kBroadcast:
    case Collective::kAllGather:
    case Collective::kReduceScatter:
    case Collective::kAllToAll:
    case Collective::kScatter: return true;
    default: return false;  // those without algorithms of their own
  }
}

}  // namespace catenary::proof
