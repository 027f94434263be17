#include "tests/support/schedule_check.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "src/base/error.h"
#include "src/collective/fold.h"
#include "src/collective/partition.h"
#include "tests/support/schedule_shape.h"

namespace catenary {
namespace {

constexpr int kNothing = -1;

// Ordered trees, one number for each different one.
class Symbols {
 public:
  explicit Symbols(int nranks) : nranks_(nranks) {}

  int leaf(int rank, std::size_t element) {
    return intern({Kind::kLeaf, rank, static_cast<int>(element)});
  }
  int reduced(int left, int right) { return intern({Kind::kReduced, left, right}); }

  // The complete result for one element, as it is written to output; kNothing if the symbol is not
  // every rank's leaf of one element, once each.
  int finished(int symbol) {
    seen_.assign(static_cast<std::size_t>(nranks_), 0);
    int element = kNothing;
    open_.assign(1, symbol);
    while (!open_.empty()) {
      const Node node = nodes_[static_cast<std::size_t>(open_.back())];
      open_.pop_back();
      switch (node.kind) {
        case Kind::kReduced:
          open_.push_back(node.a);
          open_.push_back(node.b);
          continue;
        case Kind::kFinished: return kNothing;
        case Kind::kLeaf:
          if (element == kNothing) element = node.b;
          if (element != node.b || seen_[static_cast<std::size_t>(node.a)]++ > 0) return kNothing;
      }
    }
    for (const int times : seen_) {
      if (times == 0) return kNothing;
    }
    return intern({Kind::kFinished, symbol, element});
  }

  bool is_finished(int symbol, std::size_t element) const {
    const Node& node = nodes_[static_cast<std::size_t>(symbol)];
    return node.kind == Kind::kFinished && node.b == static_cast<int>(element);
  }

  std::string text(int symbol) const {
    if (symbol == kNothing) return "nothing";
    const Node& node = nodes_[static_cast<std::size_t>(symbol)];
    switch (node.kind) {
      case Kind::kLeaf: return format("%d[%d]", node.a, node.b);
      case Kind::kReduced: return format("(%s+%s)", text(node.a).c_str(), text(node.b).c_str());
      case Kind::kFinished: return format("finished %s", text(node.a).c_str());
    }
    return "";
  }

 private:
  enum class Kind : std::uint8_t { kLeaf, kReduced, kFinished };
  // A leaf is (rank, element), a reduction (left, right), a finished one (symbol, element).
  struct Node {
    Kind kind;
    int a;
    int b;
    bool operator==(const Node&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Node& node) const {
      const auto a = static_cast<std::uint64_t>(node.a);
      const auto b = static_cast<std::uint64_t>(node.b);
      return ((a << 34) ^ (b << 2) ^ static_cast<std::uint64_t>(node.kind)) * 0x9e3779b97f4a7c15u;
    }
  };

  int intern(const Node& node) {
    const auto [found, is_new] = numbers_.try_emplace(node, static_cast<int>(nodes_.size()));
    if (is_new) nodes_.push_back(node);
    return found->second;
  }

  int nranks_;
  std::vector<Node> nodes_;
  std::unordered_map<Node, int, Hash> numbers_;
  std::vector<int> seen_;  // kept for their memory, as is the next
  std::vector<int> open_;
};

// One rank's memory: its input and output, apart or in the place that NCCL documents.
class Memory {
 public:
  Memory(const ScheduleCase& which, int rank, Symbols& symbols) {
    const std::size_t all = which.count * static_cast<std::size_t>(which.nranks);
    const bool parts = holds_part_per_rank(which.collective);
    const bool gathers =
        which.collective == Collective::kAllGather || which.collective == Collective::kGather;
    const bool scatters =
        which.collective == Collective::kReduceScatter || which.collective == Collective::kScatter;
    const std::size_t inputs = parts && !gathers ? all : which.count;
    outputs_ = parts && !scatters ? all : which.count;
    if (which.in_place) {
      const std::size_t own = which.count * static_cast<std::size_t>(rank);
      input_at_ = gathers ? own : 0;
      output_at_ = scatters ? own : 0;
    } else {
      output_at_ = inputs;
    }
    cells_.resize(std::max(input_at_ + inputs, output_at_ + outputs_));
    for (std::size_t i = 0; i < inputs && has_input(which, rank); ++i) {
      cells_[input_at_ + i].symbol = symbols.leaf(rank, i);
    }
    if (!has_output(which, rank)) outputs_ = 0;
  }

  // Both say what is wrong with the access, or nothing.
  std::string read(Buffer buffer, std::size_t element, std::size_t pass, int& symbol) {
    Cell& cell = cell_of(buffer, element);
    if (buffer == Buffer::kInput && cell.written) return "reads input that was overwritten";
    if (buffer == Buffer::kOutput && !cell.written) return "reads output before it is there";
    symbol = cell.symbol;
    return touch(cell, pass);
  }
  std::string write(Buffer buffer, std::size_t element, std::size_t pass, int symbol) {
    Cell& cell = cell_of(buffer, element);
    if (cell.written) return "writes output twice";
    cell.written = true;
    cell.symbol = symbol;
    return touch(cell, pass);
  }

  std::size_t outputs() const { return outputs_; }
  int output(std::size_t element) const {
    const Cell& cell = cells_[output_at_ + element];
    return cell.written ? cell.symbol : kNothing;
  }

 private:
  struct Cell {
    int symbol = kNothing;
    bool written = false;  // as output
    std::size_t pass = SIZE_MAX;
  };

  Cell& cell_of(Buffer buffer, std::size_t element) {
    return cells_.at((buffer == Buffer::kInput ? input_at_ : output_at_) + element);
  }
  static std::string touch(Cell& cell, std::size_t pass) {
    if (cell.pass == SIZE_MAX) cell.pass = pass;
    return cell.pass == pass ? "" : "touches what belongs to another pass";
  }

  std::size_t input_at_ = 0;
  std::size_t output_at_ = 0;
  std::size_t outputs_ = 0;
  std::vector<Cell> cells_;
};

// A slice under way, with what both ends must agree on.
struct Message {
  int symbol = kNothing;
  int chunk = 0;
  std::size_t pass = 0;
  std::size_t slice = 0;
  std::size_t slices = 0;
};

// Where a rank is: steps [step, step + fold), slice by slice.
struct Position {
  std::size_t pass = 0;
  std::size_t step = 0;
  std::size_t slice = 0;
};

class Simulation {
 public:
  Simulation(const ScheduleCase& which, const std::vector<Schedule>& schedules)
      : which_(which),
        schedules_(schedules),
        capacity_(which.link_slots > 0 ? which.link_slots : which.slots),
        symbols_(which.nranks),
        places_(schedules.size()),
        links_(schedules.size() * schedules.size()) {
    for (int rank = 0; rank < which.nranks; ++rank) {
      memories_.emplace_back(which, rank, symbols_);
      slicings_.emplace_back(
          partition_for(which.collective, which.count, kCutBytes, schedule(rank).chunk_count),
          kCutBytes, which.slots - 1);
    }
  }

  std::string run() {
    bool moved = true;
    while (moved && problem_.empty()) {
      moved = false;
      for (int rank = 0; rank < which_.nranks; ++rank) {
        while (problem_.empty() && advance(rank)) moved = true;
      }
    }
    if (problem_.empty()) check_all_finished();
    if (problem_.empty()) check_links_empty();
    for (int rank = 0; rank < which_.nranks && problem_.empty(); ++rank) check_output(rank);
    return problem_;
  }

 private:
  const Schedule& schedule(int rank) const { return schedules_[static_cast<std::size_t>(rank)]; }
  Position& place(int rank) { return places_[static_cast<std::size_t>(rank)]; }
  Memory& memory(int rank) { return memories_[static_cast<std::size_t>(rank)]; }
  const Slicing& slicing(int rank) const { return slicings_[static_cast<std::size_t>(rank)]; }
  std::vector<Message>& link(int from, int to) {
    return links_[static_cast<std::size_t>(from * which_.nranks + to)];
  }

  void fail(int rank, const std::string& what) {
    const Position& at = place(rank);
    if (problem_.empty()) {
      problem_ = format("rank %d, pass %zu, step %zu, slice %zu: %s", rank, at.pass, at.step,
                        at.slice, what.c_str());
    }
  }

  bool is_done(int rank) {
    return place(rank).pass >= slicing(rank).passes() || schedule(rank).steps.empty();
  }

  int chunk_of(const Step& step) const {
    return (step.dst ? step.dst.index : step.src.index) % schedules_[0].chunk_count;
  }

  // Does the next slice of the step or fold that the rank is at, or nothing if that would wait.
  bool advance(int rank) {
    if (is_done(rank)) return false;
    Position& at = place(rank);
    const std::vector<Step>& steps = schedule(rank).steps;
    const std::size_t fold = fold_steps(schedule(rank), at.step);
    const Step& last = steps[at.step + fold - 1];
    const std::size_t slices =
        slicing(rank).slices(slicing(rank).part(chunk_of(steps[at.step]), at.pass));
    if (at.slice < slices) {
      for (std::size_t i = 0; i < fold; ++i) {
        const int from = steps[at.step + i].recv_from;
        if (from != kNobody && link(from, rank).empty()) return false;
      }
      if (last.send_to != kNobody && link(rank, last.send_to).size() >= capacity_) return false;
      move_slice(rank, fold, slices);
      ++at.slice;
    }
    if (at.slice == slices) {
      at.slice = 0;
      at.step += fold;
    }
    if (at.step == steps.size()) {
      at.step = 0;
      ++at.pass;
    }
    return true;
  }

  void move_slice(int rank, std::size_t fold, std::size_t slices) {
    const Position at = place(rank);
    int symbol = kNothing;
    bool was_reduced = false;
    for (std::size_t i = 0; i < fold; ++i) {
      const Step& step = schedule(rank).steps[at.step + i];
      if (step.src && step.src.buffer != Buffer::kCarry) symbol = read(rank, step.src);
      if (step.recv_from == kNobody) continue;
      const int received = receive(rank, step, slices);
      was_reduced = was_reduced || symbol != kNothing;
      if (symbol == kNothing) {
        symbol = received;
      } else {
        symbol = step.received_first ? symbols_.reduced(received, symbol)
                                     : symbols_.reduced(symbol, received);
      }
    }
    if (!problem_.empty()) return;
    const Step& last = schedule(rank).steps[at.step + fold - 1];
    if (last.dst) {
      if (was_reduced && last.dst.buffer == Buffer::kOutput) {
        const int whole = symbols_.finished(symbol);
        if (whole == kNothing)
          fail(rank, "writes an incomplete reduction " + symbols_.text(symbol));
        symbol = whole;
      }
      write(rank, last.dst, symbol);
    }
    if (last.send_to != kNobody) {
      link(rank, last.send_to).push_back({symbol, chunk_of(last), at.pass, at.slice, slices});
    }
  }

  std::size_t element_of(int rank, const Chunk& chunk) {
    const Position& at = place(rank);
    const Range part = slicing(rank).part(chunk.index % schedules_[0].chunk_count, at.pass);
    const Range slice = slicing(rank).slice(part, at.slice);
    if (at.slice >= slicing(rank).slices(part) || slice.count != 1) {
      fail(rank, "src and dst differ in length");
    }
    return slice.offset;
  }

  int read(int rank, const Chunk& chunk) {
    const std::size_t element = element_of(rank, chunk);
    if (!problem_.empty()) return kNothing;
    int symbol = kNothing;
    if (chunk.buffer == Buffer::kScratch) {
      symbol = scratch_of(rank, chunk);
      if (symbol == kNothing) fail(rank, "reads scratch before it is there");
      return symbol;
    }
    const std::string wrong = memory(rank).read(chunk.buffer, element, place(rank).pass, symbol);
    if (!wrong.empty()) fail(rank, wrong);
    return symbol;
  }

  void write(int rank, const Chunk& chunk, int symbol) {
    const std::size_t element = element_of(rank, chunk);
    if (!problem_.empty()) return;
    if (chunk.buffer == Buffer::kScratch) {
      scratch_of(rank, chunk) = symbol;
      return;
    }
    const std::string wrong = memory(rank).write(chunk.buffer, element, place(rank).pass, symbol);
    if (!wrong.empty()) fail(rank, wrong);
  }

  // Scratch belongs to one pass: what an earlier one left there is undefined.
  int& scratch_of(int rank, const Chunk& chunk) {
    const Position& at = place(rank);
    const auto found = scratch_.try_emplace({rank, at.pass, chunk.index, at.slice}, kNothing);
    return found.first->second;
  }

  int receive(int rank, const Step& step, std::size_t slices) {
    const Message message = link(step.recv_from, rank).front();
    link(step.recv_from, rank).erase(link(step.recv_from, rank).begin());
    const Position& at = place(rank);
    const bool same_chunk =
        message.chunk == chunk_of(step) || holds_part_per_rank(which_.collective);
    if (!same_chunk || message.pass != at.pass || message.slice != at.slice ||
        message.slices != slices) {
      fail(rank, format("expects slice %zu of %zu of chunk %d, gets pass %zu, slice %zu of %zu of "
                        "chunk %d from rank %d",
                        at.slice, slices, chunk_of(step), message.pass, message.slice,
                        message.slices, message.chunk, step.recv_from));
    }
    return message.symbol;
  }

  void check_all_finished() {
    std::string waiting;
    for (int rank = 0; rank < which_.nranks; ++rank) {
      if (is_done(rank)) continue;
      const Position& at = place(rank);
      waiting +=
          format(" rank %d at pass %zu, step %zu, slice %zu;", rank, at.pass, at.step, at.slice);
    }
    if (!waiting.empty()) problem_ = "deadlock:" + waiting;
  }

  void check_links_empty() {
    for (int from = 0; from < which_.nranks; ++from) {
      for (int to = 0; to < which_.nranks; ++to) {
        if (link(from, to).empty()) continue;
        problem_ = format("rank %d leaves %zu messages to rank %d unread", from,
                          link(from, to).size(), to);
      }
    }
  }

  void check_output(int rank) {
    for (std::size_t i = 0; i < memory(rank).outputs(); ++i) {
      const int found = memory(rank).output(i);
      if (found == kNothing || !is_right(rank, i, found)) {
        problem_ = format("rank %d: output[%zu] is %s", rank, i, symbols_.text(found).c_str());
        return;
      }
      if (which_.collective == Collective::kAllReduce && found != memory(0).output(i)) {
        problem_ = format("rank %d: output[%zu] has not rank 0's bits", rank, i);
        return;
      }
    }
  }

  bool is_right(int rank, std::size_t element, int found) {
    const std::size_t count = which_.count;
    const std::size_t own = static_cast<std::size_t>(rank) * count;
    const int giver = static_cast<int>(element / count);
    switch (which_.collective) {
      case Collective::kAllReduce:
      case Collective::kReduce: return is_whole(found, element);
      case Collective::kReduceScatter: return is_whole(found, own + element);
      case Collective::kBroadcast:
      case Collective::kSend:
      case Collective::kRecv: return found == symbols_.leaf(which_.root, element);
      case Collective::kScatter: return found == symbols_.leaf(which_.root, own + element);
      case Collective::kAllGather:
      case Collective::kGather: return found == symbols_.leaf(giver, element % count);
      case Collective::kAllToAll: return found == symbols_.leaf(giver, own + element % count);
    }
    return false;
  }

  // The reduction of one rank is what it gave, and nothing divides it.
  bool is_whole(int found, std::size_t element) {
    return which_.nranks == 1 ? found == symbols_.leaf(0, element)
                              : symbols_.is_finished(found, element);
  }

  const ScheduleCase& which_;
  const std::vector<Schedule>& schedules_;
  const std::size_t capacity_;
  Symbols symbols_;
  std::vector<Position> places_;
  std::vector<std::vector<Message>> links_;  // from * nranks + to
  std::vector<Memory> memories_;
  std::vector<Slicing> slicings_;
  std::map<std::tuple<int, std::size_t, int, std::size_t>, int> scratch_;
  std::string problem_;
};

}  // namespace

bool has_in_place_layout(Collective collective) {
  return collective != Collective::kAllToAll && collective != Collective::kSend &&
         collective != Collective::kRecv;
}

Place place_of(const Algorithm& algorithm, const ScheduleCase& which, int rank) {
  Place place{.rank = rank,
              .ranks = which.nranks,
              .root = which.root,
              .box = which.box,
              .lane = which.lane};
  const Partition partition =
      partition_for(which.collective, which.count, kCutBytes, algorithm.chunks(place));
  if (algorithm.sends_ahead) place.window = Slicing(partition, kCutBytes, which.slots - 1).window();
  return place;
}

std::vector<Schedule> schedules_of(const Algorithm& algorithm, const ScheduleCase& which) {
  std::vector<Schedule> schedules;
  if (algorithm.collective != Collective::kSend && algorithm.collective != Collective::kRecv) {
    for (int rank = 0; rank < which.nranks; ++rank) {
      schedules.push_back(schedule_of(algorithm, place_of(algorithm, which, rank)));
    }
    return schedules;
  }
  schedules.resize(static_cast<std::size_t>(which.nranks));
  const auto add = [&](Collective half, int rank, int peer) {
    const Algorithm& direct = *find_algorithm(half, "direct");
    const Place at{.rank = rank, .ranks = which.nranks, .root = peer};
    for (const Step& step : steps_of(direct, at)) {
      schedules[static_cast<std::size_t>(rank)].add(step);
    }
  };
  add(Collective::kSend, which.root, which.receiver);
  add(Collective::kRecv, which.receiver, which.root);
  return schedules;
}

std::string check_schedules(const ScheduleCase& which, const std::vector<Schedule>& schedules) {
  for (int rank = 0; rank < which.nranks; ++rank) {
    const Schedule& schedule = schedules[static_cast<std::size_t>(rank)];
    if (schedule.chunk_count != schedules[0].chunk_count) {
      return format("rank %d cuts chunks otherwise than rank 0", rank);
    }
    const std::string wrong = check_shape(which, rank, schedule);
    if (!wrong.empty()) return wrong;
  }
  return Simulation(which, schedules).run();
}

}  // namespace catenary
