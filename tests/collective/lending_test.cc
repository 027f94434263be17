// What may be lent in place, proved apart from how it is found: all ranks run, each message carries
// what its sender knows of everyone's progress, and whoever writes over what it lent must know that
// it was taken.
#include "src/collective/lending.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <string>

namespace catenary {
namespace {

using Clock = std::vector<std::size_t>;  // by rank: how many of its steps are known to be over

struct Loaned {
  std::size_t step;  // of the lender
  int peer;
  Chunk given;
  std::size_t taken_at;  // step of the peer
};

class World {
 public:
  World(const Algorithm& algorithm, const Place& place) : algorithm_(algorithm), place_(place) {
    for (int rank = 0; rank < place.ranks; ++rank) {
      schedules_.push_back(schedule_of(algorithm, at(rank)));
      lendings_.push_back(lendings(algorithm, at(rank), schedules_.back()));
    }
  }

  // Everything that is wrong, empty if nothing is.
  std::string run() {
    std::vector<Clock> clocks(index(place_.ranks), Clock(index(place_.ranks)));
    std::map<std::pair<int, int>, std::deque<Clock>> wires;
    std::string wrong;
    for (bool moved = true; moved;) {
      moved = false;
      for (int rank = 0; rank < place_.ranks; ++rank) {
        Clock& mine = clocks[index(rank)];
        while (mine[index(rank)] < steps(rank).size()) {
          const std::size_t now = mine[index(rank)];
          const Step& step = steps(rank)[now];
          if (step.recv_from != kNobody) {
            auto& wire = wires[{step.recv_from, rank}];
            if (wire.empty()) break;
            for (std::size_t i = 0; i < mine.size(); ++i)
              mine[i] = std::max(mine[i], wire.front()[i]);
            wire.pop_front();
          }
          wrong += overwritten_too_soon(rank, now, mine);
          mine[index(rank)] = now + 1;
          if (step.send_to != kNobody) wires[{rank, step.send_to}].push_back(mine);
          moved = true;
        }
      }
    }
    for (int rank = 0; rank < place_.ranks; ++rank) {
      if (clocks[index(rank)][index(rank)] != steps(rank).size()) wrong += " is stuck;";
    }
    return wrong;
  }

  std::size_t lent_in_place() const {
    std::size_t count = 0;
    for (const auto& of_rank : lendings_) {
      for (const Lending& each : of_rank)
        count += each.in_place && each.chunk.buffer == Buffer::kInput;
    }
    return count;
  }

 private:
  static std::size_t index(int value) { return static_cast<std::size_t>(value); }
  Place at(int rank) const {
    Place place = place_;
    place.rank = rank;
    return place;
  }
  const std::vector<Step>& steps(int rank) const { return schedules_[index(rank)].steps; }

  // NCCL's layouts for working in place.
  bool lies_over(int rank, const Chunk& given, const Chunk& written) const {
    if (written.buffer != Buffer::kOutput) return false;
    switch (twin_of(algorithm_.collective)) {
      case Collective::kAllGather:
      case Collective::kGather: return written.index == rank;
      case Collective::kReduceScatter:
      case Collective::kScatter: return given.index == rank;
      default: return written.index == given.index;
    }
  }

  std::string overwritten_too_soon(int rank, std::size_t now, const Clock& known) const {
    const Step& step = steps(rank)[now];
    for (std::size_t lent_at = 0; lent_at < now; ++lent_at) {
      const Lending& lending = lendings_[index(rank)][lent_at];
      if (!lending.in_place || lending.chunk.buffer != Buffer::kInput) continue;
      if (!lies_over(rank, lending.chunk, step.dst)) continue;
      if (step.recv_from == kNobody && step.src == lending.chunk) continue;  // onto itself
      const int peer = steps(rank)[lent_at].send_to;
      if (known[index(peer)] > taken_at(rank, lent_at, peer)) continue;
      return " rank " + std::to_string(rank) + " lends in step " + std::to_string(lent_at) +
             " what it writes over in step " + std::to_string(now) + ";";
    }
    return "";
  }

  std::size_t taken_at(int rank, std::size_t lent_at, int peer) const {
    std::size_t before = 0;
    for (std::size_t i = 0; i < lent_at; ++i) before += steps(rank)[i].send_to == peer;
    for (std::size_t i = 0; i < steps(peer).size(); ++i) {
      if (steps(peer)[i].recv_from == rank && before-- == 0) return i;
    }
    return SIZE_MAX - 1;
  }

  const Algorithm& algorithm_;
  const Place place_;
  std::vector<Schedule> schedules_;
  std::vector<std::vector<Lending>> lendings_;
};

TEST(Lending, in_place_nothing_is_written_over_before_it_is_taken) {
  for (const Algorithm& algorithm : algorithms()) {
    if (is_point_to_point(algorithm.collective)) continue;
    for (int ranks = 2; ranks <= 12; ++ranks) {
      for (int box : {1, 2, 3, 4}) {
        if (ranks % box != 0) continue;
        for (int lane = 0; lane < algorithm.lanes; ++lane) {
          for (const int root : {0, ranks - 1}) {
            const Place place{.ranks = ranks, .root = root, .box = box, .lane = lane};
            if (!algorithm.runs_on(place)) continue;
            EXPECT_EQ(World(algorithm, place).run(), "")
                << algorithm.name << " " << name_of(algorithm.collective) << " of " << ranks
                << " ranks, root " << root << ", boxes of " << box;
          }
        }
      }
    }
  }
}

Lending first_lending(Collective collective, std::string_view name, const Place& at) {
  const Algorithm& algorithm = *find_algorithm(collective, name);
  return lendings(algorithm, at, schedule_of(algorithm, at)).front();
}

TEST(Lending, of_input_in_place_is_found_where_it_is_safe) {
  const Place at{.rank = 1, .ranks = 4};
  const Lending reduced = first_lending(Collective::kAllReduce, "direct", at);
  EXPECT_EQ(reduced.chunk, input(2));
  EXPECT_TRUE(reduced.in_place);
  EXPECT_TRUE(first_lending(Collective::kAllGather, "direct", at).in_place);
  // All of the sum is written over all of the input, which may not have been read by then.
  const Lending shot = first_lending(Collective::kAllReduce, "one_shot", at);
  EXPECT_EQ(shot.chunk, input(0));
  EXPECT_FALSE(shot.in_place);
  // Each would wait for the other to take what it gives.
  EXPECT_FALSE(first_lending(Collective::kAllToAll, "direct", at).in_place);
}

TEST(Lending, of_what_is_neither_input_nor_output_is_none) {
  const Algorithm& ring = *find_algorithm(Collective::kAllReduce, "ring");
  const Place at{.rank = 0, .ranks = 4};
  const Schedule schedule = schedule_of(ring, at);
  const std::vector<Lending> found = lendings(ring, at, schedule);
  ASSERT_EQ(found.size(), schedule.steps.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    const Step& step = schedule.steps[i];
    if (step.recv_from != kNobody && step.dst.buffer != Buffer::kOutput) {
      EXPECT_FALSE(found[i].chunk);
    }
  }
}

}  // namespace
}  // namespace catenary
