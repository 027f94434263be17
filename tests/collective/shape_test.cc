// What walking a schedule finds, beside what its inventors say of it.
#include "src/collective/shape.h"

#include <gtest/gtest.h>

#include "src/collective/cost.h"

namespace catenary {
namespace {

Shape walked(Collective collective, const char* name, int nranks, int box) {
  return walk(*find_algorithm(collective, name), {.ranks = nranks, .box = box});
}

double hops(const Work& work) { return work.hops[0] + work.hops[1]; }

TEST(Shape, of_the_ring_is_what_the_book_says) {
  for (const int n : {2, 3, 8, 13}) {
    const Shape shape = walked(Collective::kAllReduce, "ring", n, n);
    EXPECT_EQ(hops(shape.paths[0]), 2 * (n - 1));
    EXPECT_EQ(shape.busiest.messages[0], 4 * (n - 1));  // so many sent, and so many taken
    EXPECT_EQ(shape.busiest.wired[0], 4 * (n - 1));
    EXPECT_EQ(shape.busiest.reduced, n - 1);
    EXPECT_EQ(shape.chunk_count, n);
    EXPECT_EQ(shape.peers, 1);
    EXPECT_EQ(shape.links, 1);
  }
}

TEST(Shape, of_a_chain_has_all_hops_but_little_work) {
  const Shape shape = walked(Collective::kBroadcast, "chain", 8, 8);
  EXPECT_EQ(hops(shape.paths[0]), 7);
  EXPECT_EQ(shape.busiest.messages[0], 2);
  EXPECT_EQ(shape.average.messages[0], 14.0 / 8);
  EXPECT_EQ(shape.waits, 7.0 / 8);
}

// Who only passes on need not wait for the end of a pass; who gets something back does.
TEST(Shape, a_second_pass_follows_the_first_as_closely_as_ranks_may) {
  const Shape chain = walked(Collective::kBroadcast, "chain", 8, 8);
  EXPECT_EQ(hops(chain.two_passes[0]), hops(chain.paths[0]));
  EXPECT_EQ(chain.two_passes[1].local - chain.paths[1].local, chain.busiest.local);
  const Shape tree = walked(Collective::kAllReduce, "tree", 2, 2);
  EXPECT_EQ(hops(tree.two_passes[0]), 2 * hops(tree.paths[0]));
  EXPECT_EQ(tree.two_passes[1].wired[0], 2 * tree.paths[1].wired[0]);
  EXPECT_GT(tree.paths[1].wired[0], tree.busiest.wired[0]);
  const Shape ring = walked(Collective::kAllReduce, "ring", 2, 2);
  EXPECT_EQ(ring.two_passes[1].wired[0] - ring.paths[1].wired[0], ring.busiest.wired[0]);
}

TEST(Shape, of_direct_all_reduce_has_two_hops) {
  const Shape shape = walked(Collective::kAllReduce, "direct", 8, 8);
  EXPECT_EQ(hops(shape.paths[0]), 2);
  EXPECT_EQ(shape.peers, 7);
  EXPECT_EQ(shape.busiest.messages[0], 4 * 7);
}

// What need not be copied, beside what is on the wire.
TEST(Shape, of_what_goes_to_several_counts_the_copies_that_are_spared) {
  const Shape broadcast = walked(Collective::kBroadcast, "direct", 8, 8);
  EXPECT_EQ(broadcast.busiest.fanned_out, 6);
  EXPECT_EQ(broadcast.paths[1].fanned_out, 6);
  EXPECT_EQ(broadcast.busiest.exchanged, 0);
  EXPECT_EQ(walked(Collective::kAllGather, "direct", 8, 8).average.exchanged, 6);
  EXPECT_EQ(walked(Collective::kAllReduce, "ring", 8, 8).average.exchanged, 0);
  // Another machine does not read our memory.
  EXPECT_EQ(walked(Collective::kBroadcast, "direct", 8, 4).busiest.fanned_out, 2);
}

TEST(Shape, a_message_to_oneself_is_no_message) {
  const Shape shape = walked(Collective::kAllReduce, "one_shot", 4, 4);
  EXPECT_EQ(hops(shape.paths[0]), 1);
  EXPECT_EQ(shape.busiest.messages[0], 2 * 3);
  EXPECT_EQ(shape.peers, 3);
}

TEST(Shape, tells_hops_within_a_box_from_those_between_boxes) {
  const Shape shape = walked(Collective::kBroadcast, "chain", 8, 4);
  EXPECT_EQ(shape.paths[0].hops[0], 6);
  EXPECT_EQ(shape.paths[0].hops[1], 1);
}

// Of paths with as many hops that is the longest which leaves the box.
TEST(Shape, of_a_star_has_the_hops_between_boxes) {
  const auto far_hops = [](Collective collective, const char* name) {
    return walked(collective, name, 4, 2).paths[0].hops[1];
  };
  EXPECT_EQ(far_hops(Collective::kBroadcast, "knomial4"), 1);
  EXPECT_EQ(far_hops(Collective::kReduce, "knomial4"), 1);
  EXPECT_EQ(far_hops(Collective::kAllReduce, "knomial4"), 2);
  EXPECT_EQ(far_hops(Collective::kAllReduce, "one_shot"), 1);
}

TEST(Shape, of_point_to_point_is_one_hop) {
  for (const Collective kind : {Collective::kSend, Collective::kRecv}) {
    const Shape shape = walked(kind, "direct", 2, 2);
    EXPECT_EQ(hops(shape.paths[0]), 1);
    EXPECT_EQ(shape.average.messages[0], 1);
  }
}

// Where all ranks are walked, and where they are not, the numbers are of one law.
TEST(Shape, of_many_ranks_grows_from_few) {
  constexpr Place kMany{.ranks = 4096, .box = 4096};
  const Algorithm& ring = *find_algorithm(Collective::kAllReduce, "ring");
  const Shape& shape = shape_of(ring, kMany);
  EXPECT_DOUBLE_EQ(hops(shape.paths[0]), 2 * 4095);
  EXPECT_DOUBLE_EQ(shape.busiest.messages[0], 4 * 4095);
  EXPECT_EQ(shape.chunk_count, 4096);
  EXPECT_DOUBLE_EQ(shape.peers, 1);
  const Algorithm& direct = *find_algorithm(Collective::kAllReduce, "direct");
  EXPECT_DOUBLE_EQ(shape_of(direct, kMany).peers, 4095);
  EXPECT_DOUBLE_EQ(hops(shape_of(direct, kMany).paths[0]), 2);
}

// A place that has more ranks than are walked grows from smaller ones, on which an algorithm of two
// levels must run as well.
TEST(Shape, of_two_levels_grows_from_two_boxes_at_least) {
  for (const Algorithm& algorithm : algorithms()) {
    for (const Place at : {Place{.ranks = 40, .box = 8}, Place{.ranks = 64, .box = 8},
                           Place{.ranks = 128, .box = 8}, Place{.ranks = 48, .box = 16}}) {
      if (!algorithm.runs_on(at)) continue;
      EXPECT_GT(shape_of(algorithm, at).busiest.steps, 0) << algorithm.name << " " << at.ranks;
    }
  }
}

// How much longer an algorithm seems to take than it would if all ranks were walked: the worst of
// some sizes, with a core for each rank and with few.
double longer_than_walked(const Algorithm& algorithm, int ranks, int box) {
  Setting setting{.nranks = ranks,
                  .machine = {.local_ranks = box, .box = box, .far = Wire::kNetwork},
                  .parameters = default_parameters(),
                  .cut = {.slice_bytes = 65536, .slots = 16}};
  double worst = 1;
  for (const std::size_t bytes : {std::size_t{8}, std::size_t{1} << 16, std::size_t{1} << 24}) {
    const Place at = place_of(algorithm, bytes, setting);
    Shape walked = walk(algorithm, at);
    const Work& average = shape_of(algorithm, at).average;
    if (average.fanned_out + average.exchanged == 0) forget_fan_outs(walked);
    for (const int cores : {2, 1000}) {
      setting.machine.cores = cores;
      const auto time = [&](const Shape& shape) {
        return time_ns(shape, algorithm, bytes, setting);
      };
      const double ratio = time(shape_of(algorithm, at)) / time(walked);
      worst = std::max({worst, ratio, 1 / ratio});
    }
  }
  return worst;
}

// Those that send as much ahead as links hold follow another law beyond that, and have more steps
// for numbers that are no powers of two.
TEST(Shape, of_many_ranks_has_nearly_the_price_of_a_walk) {
  for (const auto& [ranks, box] : {std::pair{96, 96}, {100, 10}, {128, 32}}) {
    for (const Algorithm& algorithm : algorithms()) {
      if (!algorithm.runs_on({.ranks = ranks, .box = box})) continue;
      if (is_point_to_point(algorithm.collective)) continue;
      EXPECT_LT(longer_than_walked(algorithm, ranks, box), algorithm.sends_ahead ? 2.2 : 1.35)
          << name_of(algorithm.collective) << " " << algorithm.name << " of " << ranks
          << " ranks in boxes of " << box;
    }
  }
}

TEST(Shape, of_every_algorithm_is_found_for_every_number_of_ranks) {
  for (const Algorithm& algorithm : algorithms()) {
    for (const int ranks : {1, 2, 3, 5, 8, 17, 33, 64, 1000}) {
      for (const int box : {ranks, 1}) {
        for (const int window : {1, 15}) {
          const Place at{.ranks = ranks, .box = box, .window = window};
          if (!algorithm.runs_on(at)) continue;
          const Shape& shape = shape_of(algorithm, at);
          EXPECT_GE(shape.chunk_count, 1);
          EXPECT_GT(shape.busiest.steps, 0) << algorithm.name << " " << ranks;
          for (const Work& path : shape.paths) EXPECT_GE(path.steps, 1);
        }
      }
    }
  }
}

}  // namespace
}  // namespace catenary
