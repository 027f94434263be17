#include "tests/support/schedule_shape.h"

#include <set>

#include "src/base/error.h"

namespace catenary {
namespace {

bool takes_message(const Step& step) { return step.recv_from != kNobody; }
bool sends_message(const Step& step) { return step.send_to != kNobody; }

// Whether the output holds a part for each rank, or the input does, or both.
bool input_is_long(Collective collective) {
  return collective != Collective::kAllGather && collective != Collective::kGather;
}
bool output_is_long(Collective collective) {
  return collective != Collective::kReduceScatter && collective != Collective::kScatter;
}

class ShapeCheck {
 public:
  ShapeCheck(const ScheduleCase& which, int rank, const Schedule& schedule)
      : which_(which), rank_(rank), schedule_(schedule) {}

  std::string run() {
    for (const Step& step : schedule_.steps) {
      std::string wrong = check_peers(step);
      if (wrong.empty()) wrong = check_work(step);
      if (wrong.empty()) wrong = check_chunk(step.src, "src");
      if (wrong.empty()) wrong = check_chunk(step.dst, "dst");
      if (wrong.empty()) wrong = check_fold(step);
      if (!wrong.empty()) {
        return format("rank %d, step %d: %s", rank_, static_cast<int>(&step - &schedule_.steps[0]),
                      wrong.c_str());
      }
    }
    return fold_ ? format("rank %d: a fold without end", rank_) : "";
  }

 private:
  std::string check_peers(const Step& step) const {
    for (const int peer : {step.recv_from, step.send_to}) {
      if (peer != kNobody && (peer < 0 || peer >= which_.nranks)) return "no such peer";
    }
    return "";
  }

  std::string check_work(const Step& step) const {
    if (!takes_message(step) && !step.src) return "takes nothing";
    if (!sends_message(step) && !step.dst) return "leads nowhere";
    if (!step.src && !step.dst && !holds_part_per_rank(which_.collective))
      return "names no chunk, so its length is unknown";
    if (takes_message(step) && step.src && !reduces(which_.collective)) {
      return "reduces in a collective that does not";
    }
    if (step.src && step.dst && !holds_part_per_rank(which_.collective) &&
        step.src.index % schedule_.chunk_count != step.dst.index % schedule_.chunk_count) {
      return "src and dst may differ in length";
    }
    return "";
  }

  std::string check_chunk(const Chunk& chunk, const char* field) const {
    const bool is_src = field[0] == 's';
    if (!chunk) return "";
    const bool is_private = chunk.buffer == Buffer::kScratch || chunk.buffer == Buffer::kCarry;
    if (chunk.index < 0 || (!is_private && chunk.index >= schedule_.chunk_count)) {
      return format("%s is outside of its buffer", field);
    }
    if (chunk.buffer == Buffer::kInput) {
      if (!is_src) return "writes to input";
      if (!has_input(which_, rank_)) return "this rank has no input";
      if (chunk.index > 0 && !input_is_long(which_.collective)) return "input is one chunk only";
    }
    if (chunk.buffer == Buffer::kOutput) {
      if (!has_output(which_, rank_)) return "this rank has no output";
      if (chunk.index > 0 && !output_is_long(which_.collective)) return "output is one chunk only";
    }
    return "";
  }

  // Follows a fold from step to step.
  std::string check_fold(const Step& step) {
    const bool continues = step.src.buffer == Buffer::kCarry;
    if (continues != static_cast<bool>(fold_)) {
      return continues ? "reads a carry outside of a fold" : "cuts a fold short";
    }
    if (continues && step.src != fold_) return "a fold changes its carry";
    if (!continues) fold_peers_.clear();
    const bool goes_on = step.dst.buffer == Buffer::kCarry;
    if (!continues && !goes_on) return "";
    if (!takes_message(step)) return "a step of a fold takes no message";
    if (!fold_peers_.insert(step.recv_from).second)
      return "a fold takes two messages from one peer";
    if (goes_on && sends_message(step)) return "sends a partial fold";
    if (continues && goes_on && step.dst != fold_) return "a fold changes its carry";
    fold_ = goes_on ? step.dst : Chunk{};
    return "";
  }

  const ScheduleCase& which_;
  const int rank_;
  const Schedule& schedule_;
  Chunk fold_;  // the carry of the fold under way
  std::set<int> fold_peers_;
};

}  // namespace

bool has_input(const ScheduleCase& which, int rank) {
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
  }
  return false;
}

bool has_output(const ScheduleCase& which, int rank) {
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
  }
  return false;
}

std::string check_shape(const ScheduleCase& which, int rank, const Schedule& schedule) {
  return ShapeCheck(which, rank, schedule).run();
}

}  // namespace catenary
