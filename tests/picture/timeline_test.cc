// The logical clock, and what steps have in hand.
#include "src/picture/timeline.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>

#include "src/base/error.h"
#include "src/picture/condense.h"
#include "tests/picture/scenes.h"

namespace catenary::picture {
namespace {

const Action& action_at(const Timeline& timeline, int rank, int start) {
  for (const Action& action : timeline.actions) {
    if (action.rank == rank && action.start == start) return action;
  }
  throw_error(ErrorCode::kInternal, "rank %d does nothing at %d", rank, start);
}

std::string error_of(const Scene& scene, const std::vector<Schedule>& schedules) {
  try {
    timeline_of(scene, {schedules});
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(RankSet, tells_ranges) {
  RankSet ranks;
  EXPECT_EQ(ranks.text(), "");
  for (const int rank : {0, 1, 2, 7, 63, 64, 200}) ranks.add(rank);
  EXPECT_EQ(ranks.text(), "0-2, 7, 63-64, 200");
  EXPECT_EQ(ranks.size(), 7);
  EXPECT_TRUE(ranks.contains(200));
  EXPECT_FALSE(ranks.contains(3));
  EXPECT_FALSE(ranks.contains(1000));
  RankSet others;
  others.add(3);
  others.add(ranks);
  EXPECT_EQ(others.text(), "0-3, 7, 63-64, 200");
}

TEST(Timeline, a_ring_advances_one_hop_a_unit_and_one_contribution_a_hop) {
  const Timeline timeline = timeline_of(scene_of(Collective::kAllReduce, "ring", 5));
  EXPECT_EQ(timeline.units, 9);
  EXPECT_EQ(timeline.messages.size(), 40u);
  EXPECT_EQ(timeline.most_messages(), 8u);
  for (int rank = 0; rank < 5; ++rank) {
    for (int unit = 0; unit < 9; ++unit) {
      const Action& action = action_at(timeline, rank, unit);
      EXPECT_EQ(action.result.from.size(), std::min(unit + 1, 5));
      EXPECT_EQ(action.result.part, (rank + 4 - unit + 5) % 5) << rank << " at " << unit;
    }
  }
}

TEST(Timeline, a_fold_is_one_step_that_waits_for_all_of_its_messages) {
  const Timeline timeline = timeline_of(scene_of(Collective::kAllReduce, "direct", 4));
  const Action& fold = action_at(timeline, 1, 3);
  EXPECT_EQ(fold.steps, 3u);
  EXPECT_EQ(fold.arrivals.size(), 3u);
  EXPECT_EQ(fold.result.from.text(), "0-3");
  for (const std::size_t arrival : fold.arrivals) {
    EXPECT_LT(timeline.actions[timeline.messages[arrival].sender].start, fold.start);
  }
  EXPECT_EQ(timeline.units, 10);
}

TEST(Timeline, who_waits_starts_late) {
  const Timeline timeline = timeline_of(scene_of(Collective::kBroadcast, "chain", 4, 2));
  EXPECT_EQ(action_at(timeline, 2, 0).result.from.text(), "2");
  EXPECT_EQ(action_at(timeline, 3, 1).result.from.text(), "2");
  EXPECT_EQ(action_at(timeline, 0, 2).result.from.text(), "2");
  EXPECT_EQ(action_at(timeline, 1, 3).result.from.text(), "2");
}

TEST(Timeline, a_message_leaves_before_it_arrives_and_keeps_its_order) {
  for (const Scene& scene : all_scenes({2, 3, 4, 8})) {
    const Timeline timeline = timeline_of(scene);
    std::map<std::pair<int, int>, std::size_t> last_receiver;
    for (const Message& message : timeline.messages) {
      const Action& sender = timeline.actions[message.sender];
      const Action& receiver = timeline.actions[message.receiver];
      EXPECT_LT(sender.start, receiver.start) << name_of(scene);
      EXPECT_EQ(sender.rank, message.from);
      EXPECT_EQ(receiver.rank, message.to);
      std::size_t& last = last_receiver[{message.lane * scene.ranks + message.from, message.to}];
      EXPECT_LE(last, message.receiver) << name_of(scene);
      last = message.receiver;
    }
  }
}

TEST(Timeline, results_hold_what_the_collective_promises) {
  for (const Scene& scene : all_scenes({1, 2, 3, 4, 8})) {
    const Timeline timeline = timeline_of(scene);
    for (int lane = 0; lane < scene.lanes; ++lane) {
      for (int rank = 0; rank < scene.ranks; ++rank) {
        const int outputs = output_chunks(scene, rank, timeline.chunk_count());
        for (int i = 0; i < outputs; ++i) {
          const Content& content =
              timeline.outputs[static_cast<std::size_t>(lane)][static_cast<std::size_t>(rank)]
                              [static_cast<std::size_t>(i)];
          EXPECT_EQ(content.from.size(), combines(scene) ? scene.ranks : 1)
              << name_of(scene) << ", " << scene.ranks << " ranks, output " << i;
        }
      }
    }
  }
}

TEST(Timeline, every_step_and_every_send_is_there_once) {
  for (const Scene& scene : all_scenes({1, 2, 3, 4, 8})) {
    const Timeline timeline = timeline_of(scene);
    std::size_t steps = 0;
    std::size_t sends = 0;
    for (const auto& lane : timeline.schedules) {
      for (const Schedule& schedule : lane) {
        steps += schedule.steps.size();
        for (const Step& step : schedule.steps) sends += step.send_to != kNobody;
      }
    }
    std::size_t drawn = 0;
    for (const Action& action : timeline.actions) drawn += action.steps;
    EXPECT_EQ(drawn, steps) << name_of(scene);
    EXPECT_EQ(timeline.messages.size(), sends) << name_of(scene);
  }
}

TEST(Condensed, shows_the_rounds_of_a_long_schedule) {
  const Scene scene = scene_of(Collective::kAllToAll, "bruck", 16);
  EXPECT_GT(timeline_of(scene).units, 70);
  const Timeline timeline = legible_timeline(scene);
  EXPECT_EQ(timeline.units, 9) << "the copies, then four times a send and a receive";
  EXPECT_EQ(timeline.messages.size(), 16u * 4);
  EXPECT_EQ(timeline.message_count(), 16u * 4 * 8);
  EXPECT_EQ(action_at(timeline, 3, 0).run.size(), 16u);
  const Action& send = action_at(timeline, 3, 1);
  EXPECT_EQ(send.steps, 8u);
  EXPECT_EQ(describe(timeline, send), "sends 8 messages to 4");
}

TEST(Condensed, leaves_alone_what_is_short_or_gains_little) {
  for (const int ranks : {4, 32}) {
    const Scene scene = scene_of(Collective::kAllReduce, "ring", ranks);
    EXPECT_EQ(legible_timeline(scene).units, timeline_of(scene).units);
  }
}

TEST(Condensed, has_every_step_and_message_in_an_order_that_can_be) {
  for (const Scene& scene : all_scenes({1, 2, 5, 8, 16})) {
    const Timeline whole = timeline_of(scene);
    const Timeline timeline = condensed(whole);
    EXPECT_LE(timeline.units, whole.units) << name_of(scene);
    EXPECT_EQ(timeline.message_count(), whole.message_count()) << name_of(scene);
    EXPECT_EQ(timeline.most_messages(), whole.most_messages()) << name_of(scene);
    std::size_t steps = 0;
    std::size_t before = 0;
    for (const Action& action : whole.actions) before += action.steps;
    const Action* last = nullptr;
    for (const Action& action : timeline.actions) {
      steps += action.steps;
      if (last != nullptr && last->lane == action.lane && last->rank == action.rank) {
        EXPECT_LT(last->start, action.start) << name_of(scene);
      }
      last = &action;
    }
    EXPECT_EQ(steps, before) << name_of(scene);
    for (const Message& message : timeline.messages) {
      EXPECT_LT(timeline.actions[message.sender].start, timeline.actions[message.receiver].start)
          << name_of(scene);
    }
  }
}

TEST(Timeline, scratch_keeps_what_was_put_there) {
  const Scene scene = scene_of(Collective::kAllReduce, "one_shot", 2);
  Schedule first;
  first.add({.recv_from = 1, .src = input(0), .dst = scratch(3)});
  first.add({.src = scratch(3), .dst = output(0), .send_to = 1});
  Schedule second;
  second.add({.src = input(0), .send_to = 0});
  second.add({.recv_from = 0, .dst = output(0)});
  const Timeline timeline = timeline_of(scene, {{first, second}});
  EXPECT_EQ(action_at(timeline, 0, 2).result.from.text(), "0-1");
  EXPECT_EQ(action_at(timeline, 1, 3).result.from.text(), "0-1");
}

TEST(Timeline, names_who_waits_for_ever_and_what_nobody_takes) {
  const Scene scene = scene_of(Collective::kAllReduce, "one_shot", 2);
  Schedule waits;
  waits.add({.src = input(0), .dst = output(0)});
  waits.add({.recv_from = 1, .dst = output(0)});
  Schedule sends;
  sends.add({.src = input(0), .send_to = 0});
  EXPECT_EQ(error_of(scene, {waits, Schedule{}}),
            "the schedule does not end: rank 0 waits in step 1 of lane 0 for a message that nobody "
            "sends");
  EXPECT_EQ(error_of(scene, {Schedule{}, sends}),
            "rank 0 never takes 1 messages of rank 1 in lane 0");
  EXPECT_EQ(error_of(scene, {waits, sends}), "");
}

TEST(Scene, refuses_what_cannot_be) {
  Scene scene = scene_of(Collective::kBroadcast, "chain", 4, 4);
  EXPECT_THROW(schedules_of(scene), Error);
  scene.root = 0;
  scene.box = 3;
  EXPECT_THROW(schedules_of(scene), Error);
  scene.box = 2;
  EXPECT_EQ(schedules_of(scene).size(), 1u);
}

}  // namespace
}  // namespace catenary::picture
