#include <algorithm>
#include <numeric>

#include "tests/random/program.h"
#include "tests/support/elements.h"

namespace catenary::testing {
namespace {

constexpr int kMostRanks = 9;

class Generator {
 public:
  explicit Generator(std::uint64_t seed) : dice_(seed * 1000003u + 17) { program_.seed = seed; }

  Program generate() {
    const bool big = dice_.one_in(25);
    program_.ranks = 1 + dice_.roll(kMostRanks);
    program_.streams = 1 + dice_.roll(3);
    program_.register_bytes = big ? std::size_t{1} << 21 : std::size_t{1} << (9 + dice_.roll(7));
    if (big) program_.streams = 1;
    program_.blocking = !dice_.one_in(4);
    make_communicators();
    const int actions = big ? 3 : 5 + dice_.roll(25);
    for (int i = 0; i < actions; ++i) make_action();
    return program_;
  }

 private:
  void make_communicators() {
    Communicator world;
    for (int rank = 0; rank < program_.ranks; ++rank) world.members.push_back(rank);
    program_.communicators.push_back(world);
    for (int splits = dice_.roll(3); splits > 0; --splits) {
      make_split(dice_.roll(static_cast<int>(program_.communicators.size())));
    }
  }

  void make_split(int parent) {
    const std::vector<int> old =
        program_.communicators[static_cast<std::size_t>(parent)].members;  // it may move
    const int colors = 1 + dice_.roll(3);
    const bool some_stay_away = dice_.one_in(3);
    std::vector<int> color;
    std::vector<int> keys;
    for (std::size_t i = 0; i < old.size(); ++i) {
      color.push_back(some_stay_away && dice_.one_in(4) ? NCCL_SPLIT_NOCOLOR : dice_.roll(colors));
      keys.push_back(dice_.roll(4) - 2);
    }
    for (int c = 0; c < colors; ++c) {
      std::vector<std::size_t> order;
      for (std::size_t i = 0; i < old.size(); ++i) {
        if (color[i] == c) order.push_back(i);
      }
      std::stable_sort(order.begin(), order.end(),
                       [&](std::size_t a, std::size_t b) { return keys[a] < keys[b]; });
      Communicator made{parent, {}, c, keys};
      for (const std::size_t i : order) made.members.push_back(old[i]);
      program_.communicators.push_back(made);
    }
    // A color of nobody stays in the list, so that all of a split follow each other.
  }

  void make_action() {
    Action action;
    used_.assign(static_cast<std::size_t>(program_.ranks * program_.streams), 0);
    action.depth = dice_.one_in(2) ? 1 + dice_.roll(3) : 0;
    const int wanted = action.depth > 0 ? 1 + dice_.roll(6) : 1;
    const bool one_communicator = dice_.one_in(2);
    int comm = any_communicator();
    for (int i = 0; i < wanted; ++i) {
      if (!one_communicator) comm = any_communicator();
      Operation operation = make_operation(comm, action.depth > 0);
      if (place(operation)) action.operations.push_back(std::move(operation));
    }
    for (int rank = 0; rank < program_.ranks; ++rank) {
      action.pauses.push_back(dice_.one_in(20) ? dice_.roll(300) : 0);
      action.shuffled.push_back(one_communicator && dice_.one_in(2));
    }
    action.synchronizes = dice_.one_in(6);
    if (!action.operations.empty()) program_.actions.push_back(std::move(action));
  }

  int any_communicator() {
    for (;;) {
      const int comm = dice_.roll(static_cast<int>(program_.communicators.size()));
      if (!program_.communicators[static_cast<std::size_t>(comm)].members.empty()) return comm;
    }
  }

  Operation make_operation(int comm, bool grouped) {
    const int size =
        static_cast<int>(program_.communicators[static_cast<std::size_t>(comm)].members.size());
    Operation made;
    made.comm = comm;
    made.kind = static_cast<Kind>(dice_.roll(kKinds));
    // Groups are mostly for messages.
    if (grouped && dice_.one_in(2)) made.kind = Kind::kMessage;
    made.type = static_cast<ncclDataType_t>(dice_.roll(ncclNumTypes));
    made.root = dice_.roll(size);
    made.receiver = dice_.roll(size);
    if (!grouped && made.kind == Kind::kMessage && made.receiver == made.root) {
      if (size == 1) {
        made.kind = Kind::kAllReduce;
      } else {
        made.receiver = (made.root + 1) % size;  // only a group may hold a message to oneself
      }
    }
    if (is_reduction(made.kind)) choose_reduction(made, size);
    if (made.pattern == 0 && dice_.one_in(3)) made.pattern = dice_.next() | 1;
    choose_counts(made, size);
    return made;
  }

  void choose_reduction(Operation& made, int size) {
    made.reduction = dice_.roll(6);
    made.factor_in_memory = dice_.one_in(2);
    if (!is_float(made.type)) return;
    made.pattern = dice_.next() | 1;  // floats are exact for chosen values only
    made.wild = made.kind == Kind::kAllReduce && dice_.one_in(3);
    const bool power_of_two = (size & (size - 1)) == 0;
    if (made.reduction == ncclAvg && !power_of_two && !made.wild) made.reduction = ncclSum;
  }

  // Mostly few, often none, sometimes all that fit.
  std::size_t any_count(std::size_t most) {
    if (most == 0 || dice_.one_in(8)) return 0;
    if (dice_.one_in(8)) return most;
    const int bits = dice_.roll(22);
    return std::min<std::size_t>(most, 1 + dice_.next() % (std::uint64_t{1} << bits));
  }

  void choose_counts(Operation& made, int size) {
    const std::size_t fit = (program_.register_bytes - kSlack) / element_bytes(made.type);
    const auto n = static_cast<std::size_t>(size);
    switch (made.kind) {
      case Kind::kBarrier: break;
      case Kind::kAllReduce:
      case Kind::kBroadcast:
      case Kind::kReduce:
      case Kind::kMessage: made.count = any_count(fit); break;
      case Kind::kAllGather:
      case Kind::kReduceScatter:
      case Kind::kAllToAll:
      case Kind::kGather:
      case Kind::kScatter: made.count = any_count(fit / n); break;
      case Kind::kAllGatherV:
      case Kind::kReduceScatterV: made.counts.push_back(any_counts(n, fit)); break;
      case Kind::kAllToAllV:
        for (int rank = 0; rank < size; ++rank) made.counts.push_back(any_counts(n, fit));
        break;
    }
  }

  // With room for gaps.
  Counts any_counts(std::size_t n, std::size_t fit) {
    Counts counts;
    const std::size_t most = fit / n > kMostGap ? fit / n - kMostGap : 0;
    for (std::size_t i = 0; i < n; ++i) counts.push_back(any_count(most));
    return counts;
  }

  // Parts in any order, with gaps; or packed.
  Counts any_displs(const Counts& counts) {
    if (dice_.one_in(3)) return {};
    std::vector<std::size_t> order(counts.size());
    std::iota(order.begin(), order.end(), 0);
    for (std::size_t i = order.size(); i > 1; --i) {
      std::swap(order[i - 1], order[static_cast<std::size_t>(dice_.roll(static_cast<int>(i)))]);
    }
    Counts displs(counts.size());
    std::size_t at = 0;
    for (const std::size_t part : order) {
      at += static_cast<std::size_t>(dice_.roll(static_cast<int>(kMostGap)));
      displs[part] = at;
      at += counts[part];
    }
    return displs;
  }

  // Gives each rank its stream and registers; false if it has none left in this action.
  bool place(Operation& made) {
    const std::vector<int>& members = program_.members(made);
    const int size = static_cast<int>(members.size());
    const bool in_place = dice_.one_in(3) && made.kind != Kind::kMessage;
    if (in_place && made.kind == Kind::kAllToAllV) make_symmetric(made);
    const std::vector<int> before = used_;
    const bool one_stream = dice_.one_in(2);
    const int common = dice_.roll(program_.streams);
    for (int rank = 0; rank < size; ++rank) {
      Part part;
      part.stream = one_stream ? common : dice_.roll(program_.streams);
      const int world = members[static_cast<std::size_t>(rank)];
      int& used = used_[static_cast<std::size_t>(world * program_.streams + part.stream)];
      const bool input = has_input(made, rank);
      const bool output = has_output(made, rank);
      const bool together = in_place && input && output;
      if (made.wild) {
        made.parts.push_back(part);
        continue;
      }
      if (input) part.input = used++;
      if (output) part.output = together ? part.input : used++;
      if (used > program_.registers) {
        used_ = before;
        return false;
      }
      lay_out(made, rank, together, part);
      made.parts.push_back(std::move(part));
    }
    return true;
  }

  void make_symmetric(Operation& made) {
    for (std::size_t i = 0; i < made.counts.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) made.counts[i][j] = made.counts[j][i];
    }
  }

  static bool has_input(const Operation& made, int rank) {
    switch (made.kind) {
      case Kind::kBarrier: return false;
      case Kind::kBroadcast:
      case Kind::kScatter:
      case Kind::kMessage: return rank == made.root;
      default: return true;
    }
  }
  static bool has_output(const Operation& made, int rank) {
    switch (made.kind) {
      case Kind::kBarrier: return false;
      case Kind::kReduce:
      case Kind::kGather: return rank == made.root;
      case Kind::kMessage: return rank == made.receiver;
      default: return true;
    }
  }

  void lay_out(const Operation& made, int rank, bool in_place, Part& part) {
    const std::size_t bytes = element_bytes(made.type);
    const auto any_start = [&] { return bytes * static_cast<std::size_t>(dice_.roll(8)); };
    part.input_at = any_start();
    part.output_at = in_place ? part.input_at : any_start();
    if (made.kind == Kind::kReduceScatterV || made.kind == Kind::kAllToAllV) {
      part.input_displs = any_displs(sent_counts(made, rank));
    }
    if (made.kind == Kind::kAllGatherV || made.kind == Kind::kAllToAllV) {
      part.output_displs = any_displs(taken_counts(made, rank));
    }
    if (!in_place) return;
    const auto own = static_cast<std::size_t>(rank);
    switch (made.kind) {
      case Kind::kAllToAllV: part.output_displs = part.input_displs; break;
      case Kind::kAllGather:
      case Kind::kGather: part.input_at += own * made.count * bytes; break;
      case Kind::kReduceScatter:
      case Kind::kScatter: part.output_at += own * made.count * bytes; break;
      case Kind::kAllGatherV:
        part.input_at += places_of(made.counts[0], part.output_displs)[own] * bytes;
        break;
      case Kind::kReduceScatterV:
        part.output_at += places_of(made.counts[0], part.input_displs)[own] * bytes;
        break;
      default: break;
    }
  }

  static constexpr std::size_t kSlack = 64;   // bytes, for where buffers begin
  static constexpr std::size_t kMostGap = 5;  // elements

  Dice dice_;
  Program program_;
  std::vector<int> used_;  // registers, by rank of the world and stream
};

}  // namespace

Program generate(std::uint64_t seed) { return Generator(seed).generate(); }

Program keep(const Program& program, const std::vector<int>& actions) {
  Program kept = program;
  kept.actions.clear();
  for (const int action : actions) {
    kept.actions.push_back(program.actions.at(static_cast<std::size_t>(action)));
  }
  return kept;
}

bool is_rooted(Kind kind) {
  return kind == Kind::kBroadcast || kind == Kind::kReduce || kind == Kind::kGather ||
         kind == Kind::kScatter;
}
bool is_reduction(Kind kind) {
  return kind == Kind::kAllReduce || kind == Kind::kReduce || kind == Kind::kReduceScatter ||
         kind == Kind::kReduceScatterV;
}
bool is_uneven(Kind kind) {
  return kind == Kind::kAllToAllV || kind == Kind::kAllGatherV || kind == Kind::kReduceScatterV;
}

Counts places_of(const Counts& counts, const Counts& displs) {
  if (!displs.empty()) return displs;
  Counts packed(counts.size());
  std::exclusive_scan(counts.begin(), counts.end(), packed.begin(), std::size_t{0});
  return packed;
}

Counts sent_counts(const Operation& operation, int rank) {
  return operation.kind == Kind::kAllToAllV ? operation.counts[static_cast<std::size_t>(rank)]
                                            : operation.counts[0];
}
Counts taken_counts(const Operation& operation, int rank) {
  if (operation.kind != Kind::kAllToAllV) return operation.counts[0];
  Counts counts;
  for (const Counts& row : operation.counts) counts.push_back(row[static_cast<std::size_t>(rank)]);
  return counts;
}

}  // namespace catenary::testing
