// The checker is only worth what it catches: breaks right schedules in every place, one at a time.
#include "tests/support/schedule_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

namespace catenary {
namespace {

using Schedules = std::vector<Schedule>;

constexpr int kRanks = 5;

// An odd number of ranks, or an even one in boxes for an algorithm that wants some.
ScheduleCase case_of(const Algorithm& algorithm) {
  ScheduleCase which{
      .collective = algorithm.collective, .nranks = kRanks, .root = 1, .receiver = 3, .slots = 3};
  if (!algorithm.runs_on({.ranks = kRanks})) {
    which.nranks = kRanks + 1;
    which.box = which.nranks / 2;
  }
  const int chunks = algorithm.chunks({.ranks = which.nranks, .box = which.box});
  which.count = 2 * static_cast<std::size_t>(std::max(kRanks, chunks));
  return which;
}

// Keeping what one has is no mistake.
bool only_keeps(const Step& step) {
  return step.recv_from == kNobody && step.send_to == kNobody &&
         step.dst.buffer == Buffer::kScratch;
}

class Broken : public testing::TestWithParam<Algorithm> {
 protected:
  // Breaks each step of each rank in turn; `breaks` says whether there was anything to break.
  void expect_caught(const std::function<bool(Schedule&, std::size_t step)>& breaks) {
    ScheduleCase which = case_of(GetParam());
    for (; which.lane < GetParam().lanes; ++which.lane) expect_caught(which, breaks);
  }

 private:
  void expect_caught(const ScheduleCase& which,
                     const std::function<bool(Schedule&, std::size_t step)>& breaks) {
    const Schedules right = schedules_of(GetParam(), which);
    ASSERT_EQ(check_schedules(which, right), "");
    for (std::size_t rank = 0; rank < right.size(); ++rank) {
      for (std::size_t step = 0; step < right[rank].steps.size(); ++step) {
        Schedules wrong = right;
        if (!breaks(wrong[rank], step)) continue;
        EXPECT_NE(check_schedules(which, wrong), "")
            << "lane " << which.lane << ", rank " << rank << ", step " << step;
      }
    }
  }
};

TEST_P(Broken, a_dropped_step_is_caught) {
  expect_caught([](Schedule& schedule, std::size_t step) {
    schedule.steps.erase(schedule.steps.begin() + static_cast<std::ptrdiff_t>(step));
    return true;
  });
}

TEST_P(Broken, a_step_done_twice_is_caught) {
  expect_caught([](Schedule& schedule, std::size_t step) {
    const Step copy = schedule.steps[step];
    if (only_keeps(copy)) return false;
    schedule.steps.insert(schedule.steps.begin() + static_cast<std::ptrdiff_t>(step), copy);
    return true;
  });
}

TEST_P(Broken, another_source_chunk_is_caught) {
  expect_caught([](Schedule& schedule, std::size_t step) {
    Chunk& chunk = schedule.steps[step].src;
    if (!chunk) return false;
    chunk.index = (chunk.index + 1) % (schedule.chunk_count + 1);
    return true;
  });
}

TEST_P(Broken, another_destination_chunk_is_caught) {
  expect_caught([](Schedule& schedule, std::size_t step) {
    Chunk& chunk = schedule.steps[step].dst;
    if (!chunk) return false;
    chunk.index = (chunk.index + 1) % (schedule.chunk_count + 1);
    return true;
  });
}

TEST_P(Broken, a_message_to_the_wrong_peer_is_caught) {
  expect_caught([](Schedule& schedule, std::size_t step) {
    int& peer = schedule.steps[step].send_to;
    if (peer == kNobody) return false;
    peer = (peer + 1) % kRanks;
    return true;
  });
}

TEST_P(Broken, a_message_from_the_wrong_peer_is_caught) {
  expect_caught([](Schedule& schedule, std::size_t step) {
    int& peer = schedule.steps[step].recv_from;
    if (peer == kNobody) return false;
    peer = (peer + 1) % kRanks;
    return true;
  });
}

TEST_P(Broken, a_missing_contribution_is_caught) {
  expect_caught([](Schedule& schedule, std::size_t step) {
    Step& broken = schedule.steps[step];
    if (broken.recv_from == kNobody || broken.src.buffer != Buffer::kInput) return false;
    broken.src = {};
    return true;
  });
}

TEST_P(Broken, a_result_that_is_not_kept_is_caught) {
  expect_caught([](Schedule& schedule, std::size_t step) {
    Step& broken = schedule.steps[step];
    if (broken.dst.buffer != Buffer::kOutput) return false;
    broken.dst = {};
    return true;
  });
}

TEST_P(Broken, another_buffer_is_caught) {
  expect_caught([](Schedule& schedule, std::size_t step) {
    Step& broken = schedule.steps[step];
    if (broken.src.buffer != Buffer::kInput) return false;
    broken.src.buffer = Buffer::kOutput;
    return true;
  });
}

INSTANTIATE_TEST_SUITE_P(Table, Broken, testing::ValuesIn(algorithms().begin(), algorithms().end()),
                         [](const auto& which) {
                           return std::string(name_of(which.param.collective)) + "_" +
                                  std::string(which.param.name);
                         });

Schedule part_of(std::string_view algorithm, int rank, int ranks) {
  return schedule_of(*find_algorithm(Collective::kAllReduce, algorithm),
                     {.rank = rank, .ranks = ranks});
}

std::string check(const ScheduleCase& which, const Schedules& schedules) {
  return check_schedules(which, schedules);
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(ScheduleCheck, results_that_differ_in_order_only_have_other_bits) {
  const ScheduleCase which{.nranks = 3, .count = 2};
  Schedules schedules;
  for (int rank = 0; rank < 3; ++rank) schedules.push_back(part_of("one_shot", rank, 3));
  std::swap(schedules[2].steps[3].recv_from, schedules[2].steps[4].recv_from);
  EXPECT_TRUE(contains(check(which, schedules), "has not rank 0's bits"));
}

TEST(ScheduleCheck, a_reduction_completed_on_its_way_is_unfinished) {
  // Rank 0 completes the sum but only passes it on, so nobody would divide an average.
  const ScheduleCase which{.collective = Collective::kReduce, .nranks = 2, .root = 1};
  Schedules schedules(2);
  schedules[1].add({.src = input(0), .send_to = 0});
  schedules[0].add({.recv_from = 1, .src = input(0), .send_to = 1});
  schedules[1].add({.recv_from = 0, .dst = output(0)});
  EXPECT_EQ(check(which, schedules), "rank 1: output[0] is (0[0]+1[0])");
}

TEST(ScheduleCheck, a_partial_reduction_in_output_is_caught) {
  const ScheduleCase which{.collective = Collective::kReduce, .nranks = 3};
  Schedules schedules(3);
  schedules[1].add({.src = input(0), .send_to = 0});
  schedules[2].add({.src = input(0), .send_to = 0});
  schedules[0].add({.recv_from = 1, .src = input(0), .dst = output(0)});
  schedules[0].add({.recv_from = 2, .src = output(0), .send_to = 0});
  EXPECT_TRUE(contains(check(which, schedules), "writes an incomplete reduction"));
}

TEST(ScheduleCheck, a_contribution_counted_twice_is_caught) {
  const ScheduleCase which{.collective = Collective::kReduce, .nranks = 2};
  Schedules schedules(2);
  schedules[1].add({.src = input(0), .send_to = 1});
  schedules[1].add({.recv_from = 1, .src = input(0), .send_to = 0});
  schedules[0].add({.recv_from = 1, .src = input(0), .dst = output(0)});
  EXPECT_TRUE(contains(check(which, schedules), "writes an incomplete reduction"));
}

TEST(ScheduleCheck, input_read_after_it_was_overwritten_in_place_is_caught) {
  ScheduleCase which{.nranks = 2};
  Schedules schedules = {part_of("one_shot", 0, 2), part_of("one_shot", 1, 2)};
  // Rank 0 sends to its peer last.
  std::rotate(schedules[0].steps.begin(), schedules[0].steps.begin() + 1, schedules[0].steps.end());
  EXPECT_EQ(check(which, schedules), "");
  which.in_place = true;
  EXPECT_TRUE(contains(check(which, schedules), "reads input that was overwritten"));
}

TEST(ScheduleCheck, a_message_left_over_is_caught) {
  const ScheduleCase which{.collective = Collective::kSend, .nranks = 2, .root = 0, .receiver = 1};
  Schedules schedules(2);
  schedules[0].add({.src = input(0), .send_to = 1});
  schedules[0].add({.src = input(0), .send_to = 1});
  schedules[1].add({.recv_from = 0, .dst = output(0)});
  EXPECT_TRUE(contains(check(which, schedules), "unread"));
}

TEST(ScheduleCheck, steps_that_break_a_rule_of_shape_are_caught) {
  const ScheduleCase which{.nranks = 3};
  const auto wrong = [&](std::vector<Step> steps) {
    Schedules schedules(3);
    schedules[0].steps = std::move(steps);
    return check(which, schedules);
  };
  const auto expect = [&](std::vector<Step> steps, const char* reason) {
    EXPECT_TRUE(contains(wrong(std::move(steps)), reason)) << reason;
  };
  expect({{.dst = output(0)}}, "takes nothing");
  expect({{.src = input(0)}}, "leads nowhere");
  expect({{.recv_from = 1, .send_to = 2}}, "length is unknown");
  expect({{.src = input(0), .send_to = 3}}, "no such peer");
  expect({{.src = input(1), .send_to = 1}}, "outside of its buffer");
  expect({{.src = output(0), .dst = input(0)}}, "writes to input");
  expect({{.src = carry(0), .dst = output(0)}}, "reads a carry outside of a fold");
  expect({{.src = input(0), .dst = carry(0)}}, "takes no message");
  expect({{.recv_from = 1, .dst = carry(0)}}, "a fold without end");
  expect({{.recv_from = 1, .dst = carry(0), .send_to = 2}}, "sends a partial fold");
  expect({{.recv_from = 1, .dst = carry(0)}, {.recv_from = 2, .dst = output(0)}},
         "cuts a fold short");
  expect({{.recv_from = 1, .dst = carry(0)}, {.recv_from = 1, .src = carry(0), .dst = output(0)}},
         "two messages from one peer");
}

TEST(ScheduleCheck, a_buffer_that_a_rank_has_not_is_caught) {
  ScheduleCase which{.collective = Collective::kBroadcast, .nranks = 2};
  Schedules schedules(2);
  schedules[1].add({.src = input(0), .dst = output(0)});
  EXPECT_TRUE(contains(check(which, schedules), "this rank has no input"));
  which.collective = Collective::kGather;
  EXPECT_TRUE(contains(check(which, schedules), "this rank has no output"));
  schedules = Schedules(2, Schedule{.chunk_count = 2, .steps = {}});
  schedules[0].add({.src = input(1), .dst = output(1)});
  EXPECT_TRUE(contains(check(which, schedules), "input is one chunk only"));
  which.collective = Collective::kReduceScatter;
  EXPECT_TRUE(contains(check(which, schedules), "output is one chunk only"));
  which.collective = Collective::kAllReduce;
  schedules[0].steps[0].dst = output(0);
  EXPECT_TRUE(contains(check(which, schedules), "src and dst may differ in length"));
}

TEST(ScheduleCheck, output_written_twice_or_read_too_soon_is_caught) {
  const ScheduleCase which{.collective = Collective::kBroadcast, .nranks = 2};
  Schedules schedules(2);
  schedules[0].add({.src = input(0), .dst = output(0)});
  schedules[0].add({.src = input(0), .dst = output(0)});
  EXPECT_TRUE(contains(check(which, schedules), "writes output twice"));
  schedules[0].steps[0] = {.src = output(0), .send_to = 1};
  EXPECT_TRUE(contains(check(which, schedules), "reads output before it is there"));
}

TEST(ScheduleCheck, ends_that_cut_differently_are_caught) {
  const ScheduleCase which{.nranks = 3, .count = 30};
  const Schedules schedules = {part_of("ring", 0, 3), part_of("one_shot", 1, 3),
                               part_of("ring", 2, 3)};
  EXPECT_TRUE(contains(check(which, schedules), "cuts chunks otherwise"));
}

TEST(ScheduleCheck, only_reductions_reduce) {
  const ScheduleCase which{.collective = Collective::kAllGather, .nranks = 2};
  Schedules schedules(2);
  schedules[0].add({.recv_from = 1, .src = input(0), .dst = output(0)});
  EXPECT_TRUE(contains(check(which, schedules), "reduces in a collective that does not"));
}

}  // namespace
}  // namespace catenary
