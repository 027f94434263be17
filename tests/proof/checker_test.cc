// What each rule catches, on schedules that break it and little else.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>

#include "src/base/error.h"
#include "tests/proof/written_out.h"

namespace catenary::proof {
namespace {

Schedule part_of(std::string_view algorithm, int rank, int ranks) {
  return schedule_of(*find_algorithm(Collective::kAllReduce, algorithm),
                     {.rank = rank, .ranks = ranks});
}

void expect_fault(const ProofCase& which, const Schedules& schedules, const std::string& fault) {
  const std::string found = fault_of(which, schedules);
  EXPECT_NE(found.find(fault), std::string::npos) << "found \"" << found << "\"";
}

TEST(Checker, more_passes_than_it_can_count_are_refused) {
  const Algorithm& algorithm = *find_algorithm(Collective::kBroadcast, "chain");
  ProofCase which{.collective = Collective::kBroadcast, .ranks = 2, .slots = 2};
  Checker checker;
  Orders orders;
  which.count = kMostPasses;
  EXPECT_EQ(checker.check(which, source_of(algorithm, which), orders).fault, "");
  which.count = kMostPasses + 1;
  EXPECT_THROW(checker.check(which, source_of(algorithm, which), orders), Error);
}

TEST(Checker, results_that_differ_in_order_only_have_other_bits) {
  const ProofCase which{.ranks = 3, .count = 2};
  Schedules schedules;
  for (int rank = 0; rank < 3; ++rank) schedules.push_back(part_of("one_shot", rank, 3));
  std::swap(schedules[2].steps[3].recv_from, schedules[2].steps[4].recv_from);
  expect_fault(which, schedules, "reduced in another order");
}

// Right as long as parts are alike, but no longer.
TEST(Checker, parts_that_travel_under_anothers_length_are_caught_where_that_matters) {
  ProofCase which{.collective = Collective::kAllGather, .ranks = 2};
  Schedules schedules(2);
  for (int rank = 0; rank < 2; ++rank) {
    Schedule& schedule = schedules[static_cast<std::size_t>(rank)];
    const int peer = 1 - rank;
    schedule.chunk_count = 2;
    schedule.add({.src = input(0), .send_to = peer});
    schedule.add({.src = input(0), .dst = output(rank)});
    schedule.add({.recv_from = peer, .dst = scratch(rank)});  // as long as the wrong part
    schedule.add({.src = scratch(rank), .dst = output(peer)});
  }
  EXPECT_EQ(fault_of(which, schedules), "");
  which.keeps_parts = true;
  expect_fault(which, schedules, "expects");
  for (int rank = 0; rank < 2; ++rank) {
    schedules[static_cast<std::size_t>(rank)].steps[2].dst = scratch(1 - rank);
  }
  expect_fault(which, schedules, "src and dst may differ in length");
}

// A ring's second message on a link would not be sent if there were no elements, and nobody would
// wait for it.
TEST(Checker, all_that_a_barrier_sends_is_first_on_its_link) {
  ProofCase which{.ranks = 3, .count = 3};
  Schedules schedules;
  for (int rank = 0; rank < 3; ++rank) schedules.push_back(part_of("ring", rank, 3));
  EXPECT_EQ(fault_of(which, schedules), "");
  which.opens_links_only = true;
  expect_fault(which, schedules, "sends a message that is not the first on its link");

  // The same of what a fold sends: here a sum that nobody asked for.
  which = {.ranks = 2, .count = 2};
  schedules = {part_of("one_shot", 0, 2), part_of("one_shot", 1, 2)};
  schedules[0].steps.back().send_to = 1;
  schedules[1].add({.recv_from = 0, .dst = scratch(0)});
  EXPECT_EQ(fault_of(which, schedules), "");
  which.opens_links_only = true;
  expect_fault(which, schedules, "sends a message that is not the first on its link");
}

TEST(Checker, a_reduction_completed_on_its_way_is_unfinished) {
  // Rank 0 completes the sum but only passes it on, so nobody would divide an average.
  const ProofCase which{.collective = Collective::kReduce, .ranks = 2, .root = 1};
  Schedules schedules(2);
  schedules[1].add({.src = input(0), .send_to = 0});
  schedules[0].add({.recv_from = 1, .src = input(0), .send_to = 1});
  schedules[1].add({.recv_from = 0, .dst = output(0)});
  EXPECT_EQ(fault_of(which, schedules),
            "rank 1, pass 0, step 1, slice 0: writes the unfinished reduction of element 0 to "
            "output[0], where the finished reduction of element 0 belongs");
}

TEST(Checker, a_partial_reduction_in_output_is_caught) {
  const ProofCase which{.collective = Collective::kReduce, .ranks = 3};
  Schedules schedules(3);
  schedules[1].add({.src = input(0), .send_to = 0});
  schedules[2].add({.src = input(0), .send_to = 0});
  schedules[0].add({.recv_from = 1, .src = input(0), .dst = output(0)});
  schedules[0].add({.recv_from = 2, .src = output(0), .send_to = 0});
  expect_fault(which, schedules,
               "writes a reduction of element 0 without rank 2's part to output[0]");
}

TEST(Checker, a_contribution_counted_twice_is_caught) {
  const ProofCase which{.collective = Collective::kReduce, .ranks = 2};
  Schedules schedules(2);
  schedules[1].add({.src = input(0), .send_to = 0});
  schedules[1].add({.src = input(0), .send_to = 0});
  schedules[0].add({.recv_from = 1, .src = input(0), .dst = scratch(0)});
  schedules[0].add({.recv_from = 1, .src = scratch(0), .dst = output(0)});
  expect_fault(which, schedules,
               "writes a reduction of element 0 with rank 1's twice to output[0]");
}

TEST(Checker, input_read_after_it_was_overwritten_in_place_is_caught) {
  const ProofCase which{.ranks = 2};
  Schedules schedules = {part_of("one_shot", 0, 2), part_of("one_shot", 1, 2)};
  // Rank 0 sends to its peer last.
  std::rotate(schedules[0].steps.begin(), schedules[0].steps.begin() + 1, schedules[0].steps.end());
  expect_fault(which, schedules, "reads input that was overwritten in place");
}

TEST(Checker, input_that_a_fold_reads_in_place_must_still_be_there) {
  // Rank 0 sends its input to itself, loses it, and then folds it: from the message all is well,
  // but the engine may leave that out.
  const ProofCase which{.collective = Collective::kAllReduce, .ranks = 2, .count = 2};
  Schedules schedules(2, Schedule{.chunk_count = 1, .steps = {}});
  schedules[0].add({.src = input(0), .send_to = 0});
  schedules[0].add({.src = input(0), .send_to = 1});
  schedules[1].add({.recv_from = 0, .src = input(0), .dst = output(0), .send_to = 0});
  schedules[0].add({.recv_from = 1, .dst = output(0)});
  schedules[0].add({.recv_from = 0, .dst = carry(0)});
  schedules[1].add({.src = output(0), .send_to = 0});
  schedules[0].add({.recv_from = 1, .src = carry(0), .dst = scratch(0)});
  expect_fault({.collective = which.collective, .ranks = 2}, schedules,
               "reads input that was overwritten in place");
}

TEST(Checker, a_second_message_to_oneself_ahead_of_a_fold_is_caught) {
  Schedules schedules(2, Schedule{.chunk_count = 2, .steps = {}});
  schedules[0].add({.src = input(0), .send_to = 0});
  schedules[0].add({.src = input(1), .send_to = 0});
  schedules[1].add({.src = input(0), .send_to = 0});
  schedules[0].add({.recv_from = 0, .dst = carry(0)});
  schedules[0].add({.recv_from = 1, .src = carry(0), .dst = output(0)});
  for (const std::size_t count : {2, 3}) {  // of 3, the second chunk is shorter
    expect_fault({.ranks = 2, .count = count, .slots = 3}, schedules,
                 "sends itself another message before it folds the first");
  }
}

TEST(Checker, a_message_to_oneself_outside_of_a_fold_is_caught) {
  const ProofCase which{.collective = Collective::kBroadcast, .ranks = 1};
  Schedules schedules(1);
  schedules[0].add({.src = input(0), .send_to = 0});
  schedules[0].add({.recv_from = 0, .dst = output(0)});
  expect_fault(which, schedules, "takes its own message outside of a fold");
}

TEST(Checker, a_message_left_over_is_caught) {
  const ProofCase which{.collective = Collective::kSend, .ranks = 2, .root = 0, .receiver = 1};
  Schedules schedules(2);
  schedules[0].add({.src = input(0), .send_to = 1});
  schedules[0].add({.src = input(0), .send_to = 1});
  schedules[1].add({.recv_from = 0, .dst = output(0)});
  expect_fault(which, schedules, "unread");
}

TEST(Checker, steps_that_break_a_rule_of_shape_are_caught) {
  const auto expect = [](std::vector<Step> steps, const char* reason) {
    Schedules schedules(3);
    schedules[0].steps = std::move(steps);
    expect_fault({.ranks = 3}, schedules, reason);
  };
  expect({{.dst = output(0)}}, "takes nothing");
  expect({{.src = input(0)}}, "leads nowhere");
  expect({{.recv_from = 1, .send_to = 2}}, "length is unknown");
  expect({{.src = input(0), .send_to = 3}}, "no such peer");
  expect({{.src = input(1), .send_to = 1}}, "src is outside of its buffer");
  expect({{.recv_from = 1, .dst = scratch(-1)}}, "dst is outside of its buffer");
  expect({{.src = output(0), .dst = input(0)}}, "writes to input");
  expect({{.src = carry(0), .dst = output(0)}}, "reads a carry outside of a fold");
  expect({{.src = input(0), .dst = carry(0)}}, "takes no message");
  expect({{.recv_from = 1, .dst = carry(0)}}, "a fold without end");
  expect({{.recv_from = 1, .dst = carry(0), .send_to = 2}}, "sends a partial fold");
  expect({{.recv_from = 1, .dst = carry(0), .received_first = true}}, "has one order");
  expect({{.recv_from = 1, .dst = carry(0)}, {.recv_from = 2, .dst = output(0)}},
         "cuts a fold short");
  expect({{.recv_from = 1, .dst = carry(0)}, {.recv_from = 1, .src = carry(0), .dst = output(0)}},
         "two messages from one peer");
}

TEST(Checker, a_buffer_that_a_rank_has_not_is_caught) {
  const auto expect = [](Collective collective, int rank, const Step& step, const char* reason) {
    Schedules schedules(2, Schedule{.chunk_count = 2, .steps = {}});
    schedules[static_cast<std::size_t>(rank)].add(step);
    expect_fault({.collective = collective, .ranks = 2}, schedules, reason);
  };
  const Step copy = {.src = input(0), .dst = output(0)};
  expect(Collective::kBroadcast, 1, copy, "this rank has no input");
  expect(Collective::kGather, 1, copy, "this rank has no output");
  const Step copy_second = {.src = input(1), .dst = output(1)};
  expect(Collective::kGather, 0, copy_second, "input is one chunk only");
  expect(Collective::kReduceScatter, 0, copy_second, "output is one chunk only");
  const Step copy_across = {.src = input(1), .dst = output(0)};
  expect(Collective::kAllReduce, 0, copy_across, "src and dst may differ in length");
}

TEST(Checker, output_written_twice_or_read_too_soon_is_caught) {
  const ProofCase which{.collective = Collective::kBroadcast, .ranks = 2};
  Schedules schedules(2);
  schedules[0].add({.src = input(0), .dst = output(0)});
  schedules[0].add({.src = output(0), .dst = output(0)});
  expect_fault(which, schedules, "writes output[0] twice");
  schedules[0].steps[0] = {.src = output(0), .send_to = 1};
  expect_fault(which, schedules, "reads output before it is there");
}

TEST(Checker, ends_that_cut_differently_are_caught) {
  const ProofCase which{.ranks = 3, .count = 30};
  const Schedules schedules = {part_of("ring", 0, 3), part_of("one_shot", 1, 3),
                               part_of("ring", 2, 3)};
  expect_fault(which, schedules, "rank 1 cuts 1 chunks, rank 0 3");
}

TEST(Checker, only_reductions_reduce) {
  const ProofCase which{.collective = Collective::kBroadcast, .ranks = 2};
  Schedules schedules(2);
  schedules[0].add({.recv_from = 1, .src = input(0), .dst = output(0)});
  expect_fault(which, schedules, "reduces in a collective that does not");
}

// Two ranks that exchange what they have and both reduce it.
Schedules exchange(bool second_received_first) {
  Schedules schedules(2);
  for (int rank = 0; rank < 2; ++rank) {
    auto& mine = schedules[static_cast<std::size_t>(rank)];
    mine.add({.src = input(0), .send_to = 1 - rank});
    mine.add({.recv_from = 1 - rank,
              .src = input(0),
              .dst = output(0),
              .received_first = rank == 1 && second_received_first});
  }
  return schedules;
}

TEST(Checker, who_is_first_in_a_reduction_counts) {
  EXPECT_EQ(fault_of({.ranks = 2, .count = 3, .slots = 3}, exchange(true)), "");
  expect_fault({.ranks = 2}, exchange(false), "reduced in another order");
}

TEST(Checker, an_order_that_changes_with_the_cuts_is_caught) {
  Checker checker;
  Orders orders;
  const Schedules schedules = exchange(true);
  Schedules others = schedules;
  for (Schedule& schedule : others) schedule.steps[1].received_first ^= true;
  const ProofCase which{.ranks = 2};
  EXPECT_EQ(checker.check(which, source_of(schedules), orders).fault, "");
  EXPECT_EQ(checker.check({.ranks = 2, .count = 5, .slots = 3}, source_of(schedules), orders).fault,
            "");
  EXPECT_NE(checker.check(which, source_of(others), orders).fault, "");
  EXPECT_EQ(fault_of(which, others), "");
}

TEST(Checker, scratch_is_undefined_until_written_and_after_each_pass) {
  ProofCase which{.collective = Collective::kBroadcast, .ranks = 1};
  Schedules schedules(1);
  schedules[0].add({.src = scratch(0), .dst = output(0)});
  expect_fault(which, schedules, "reads scratch before it is there");
  schedules[0].steps = {{.src = input(0), .dst = scratch(2)},
                        {.src = scratch(2), .dst = output(0)}};
  which.count = 7;
  which.slots = 3;
  EXPECT_EQ(fault_of(which, schedules), "");
  Checker checker;
  Orders orders;
  EXPECT_EQ(checker.check(which, source_of(schedules), orders).scratch_chunks, 3);
}

TEST(Checker, scratch_that_is_not_declared_is_caught) {
  const ProofCase which{.collective = Collective::kBroadcast, .ranks = 1};
  Schedules schedules(1);
  schedules[0].steps = {{.src = input(0), .dst = scratch(2)},
                        {.src = scratch(2), .dst = output(0)}};
  Checker checker;
  Orders orders;
  EXPECT_EQ(checker.check(which, source_of(schedules, 3), orders).fault, "");
  EXPECT_EQ(checker.check(which, source_of(schedules, 2), orders).fault,
            "rank 0, pass 0, step 0, slice 0: uses more scratch than its algorithm declares");
  schedules[0].steps = {{.src = input(0), .dst = scratch(0)},
                        {.src = scratch(0), .dst = output(0)}};
  EXPECT_EQ(checker.check(which, source_of(schedules, -1), orders).fault,
            "rank 0, pass 0, step 0, slice 0: uses more scratch than its algorithm declares");
}

TEST(Checker, scratch_is_the_same_for_all_ranks) {
  const ProofCase which{.ranks = 2};
  StepSource source = source_of(*find_algorithm(Collective::kAllReduce, "direct"), which);
  source.scratch = [](const Place& at) { return at.rank == 0 ? 8 : 4; };
  Checker checker;
  Orders orders;
  EXPECT_EQ(checker.check(which, source, orders).fault,
            "rank 1 declares 4 chunks of scratch, rank 0 8");
}

TEST(Checker, a_chunk_of_no_buffer_has_no_number) {
  const ProofCase which{.collective = Collective::kBroadcast, .ranks = 1};
  Schedules schedules(1);
  schedules[0].steps = {{.src = input(0), .dst = {Buffer::kNone, -1}, .send_to = 0}};
  Checker checker;
  Orders orders;
  EXPECT_EQ(checker.check(which, source_of(schedules), orders).fault,
            "rank 0, pass 0, step 0, slice 0: names a chunk of no buffer");
}

TEST(Checker, a_result_that_belongs_elsewhere_is_caught) {
  const ProofCase which{.collective = Collective::kAllGather, .ranks = 2};
  Schedules schedules(2, Schedule{.chunk_count = 2, .steps = {}});
  schedules[0].add({.src = input(0), .dst = output(1)});
  EXPECT_EQ(fault_of(which, schedules),
            "rank 0, pass 0, step 0, slice 0: writes rank 0's element 0 to output[1], where rank "
            "1's element 0 belongs");
}

TEST(Checker, output_that_nobody_writes_is_caught) {
  const ProofCase which{.collective = Collective::kBroadcast, .ranks = 2, .count = 2};
  Schedules schedules(2);
  schedules[0].add({.src = input(0), .dst = output(0)});
  EXPECT_EQ(fault_of(which, schedules), "rank 1 never writes output[0]");
}

TEST(Checker, messages_that_do_not_pair_up_are_caught) {
  const ProofCase which{.collective = Collective::kBroadcast, .ranks = 2, .count = 2};
  Schedules schedules(2, Schedule{.chunk_count = 2, .steps = {}});
  schedules[0].add({.src = input(0), .send_to = 1});
  schedules[1].add({.recv_from = 0, .dst = output(1)});
  EXPECT_EQ(fault_of(which, schedules),
            "rank 1, pass 0, step 0, slice 0: expects slice 0 of chunk 1 in pass 0 from rank 0, "
            "which sent slice 0 of chunk 0 in pass 0");
}

TEST(Checker, a_step_that_moves_nothing_still_opens_its_links) {
  // Nothing to broadcast: rank 1 waits for an opening that rank 0 does not send.
  const ProofCase which{.collective = Collective::kBroadcast, .ranks = 2, .count = 0};
  Schedules schedules(2);
  EXPECT_EQ(fault_of(which, schedules), "");
  schedules[1].add({.recv_from = 0, .dst = output(0)});
  EXPECT_EQ(fault_of(which, schedules),
            "deadlock: there wait rank 1 at pass 0, step 0, slice 0 for a message from rank 0");
  schedules[0].add({.src = input(0), .send_to = 1});
  EXPECT_EQ(fault_of(which, schedules), "");
}

TEST(Checker, steps_without_end_are_caught) {
  const StepSource endless{[](const Place&) -> Steps {
                             for (;;) co_yield {.src = input(0), .dst = scratch(0)};
                           },
                           one_chunk, one_chunk};
  Checker checker;
  Orders orders;
  const Verdict verdict = checker.check({.ranks = 2}, endless, orders);
  EXPECT_NE(verdict.fault.find("no end of steps"), std::string::npos) << verdict.fault;
}

TEST(Checker, a_part_for_each_rank_is_a_chunk_for_each_rank) {
  const Schedules schedules(2, Schedule{.chunk_count = 1, .steps = {}});
  expect_fault({.collective = Collective::kAllGather, .ranks = 2}, schedules,
               "1 chunks where each of 2 ranks has one");
}

TEST(Checker, a_lane_moves_its_range_only) {
  const Algorithm& ring = *find_algorithm(Collective::kAllReduce, "ring");
  for (int lane = 0; lane < 3; ++lane) {
    const ProofCase which{.ranks = 3, .lane = lane, .lanes = 3, .count = 20, .slots = 3};
    Checker checker;
    Orders orders;
    const Verdict verdict = checker.check(which, source_of(ring, which), orders);
    EXPECT_EQ(verdict.fault, "") << lane;
    // Each element takes 5 steps in a ring of 3: two to collect it, one complete, two to spread it.
    EXPECT_EQ(verdict.moves, lane_range(20, kCutBytes, lane, 3).count * 5) << lane;
  }
}

std::string fault_of_ring(const ProofCase& which) {
  const Algorithm& ring = *find_algorithm(Collective::kAllReduce, "ring");
  Checker checker;
  Orders orders;
  return checker.check(which, source_of(ring, which), orders).fault.substr(0, 8);
}

TEST(Links, one_slot_deadlocks_a_ring_and_two_do_not) {
  EXPECT_EQ(fault_of_ring({.ranks = 4, .count = 4, .link_slots = 1}), "deadlock");
  EXPECT_EQ(fault_of_ring({.ranks = 4, .count = 4, .link_slots = 2}), "");
}

TEST(Links, a_message_that_spans_all_slots_deadlocks_a_ring) {
  for (std::uint32_t slots = 2; slots <= 5; ++slots) {
    ProofCase which{.ranks = 4, .count = 4 * 5, .slots = slots + 1, .link_slots = slots};
    EXPECT_EQ(fault_of_ring(which), "deadlock") << slots;
    which.slots = slots;
    EXPECT_EQ(fault_of_ring(which), "") << slots;
  }
}

}  // namespace
}  // namespace catenary::proof
