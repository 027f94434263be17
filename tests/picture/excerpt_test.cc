// What of a long timeline is left out: only what is there before and behind, and nothing of what
// can be read as it is.
#include "src/picture/excerpt.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "src/base/error.h"
#include "src/picture/condense.h"
#include "src/picture/space_time.h"
#include "tests/picture/scenes.h"

namespace catenary::picture {
namespace {

Scene pair_of(std::string_view name, int ranks, int box) {
  Scene scene = scene_of(Collective::kAllReduce, name, ranks);
  scene.box = box;
  scene.lanes = scene.algorithm->lanes;
  return scene;
}

TEST(Excerpt, gives_units_columns_and_what_is_left_out_one_break) {
  const Excerpt excerpt(100, {{10, 20}, {50, 90}});
  EXPECT_TRUE(excerpt.shows(9));
  EXPECT_FALSE(excerpt.shows(10));
  EXPECT_FALSE(excerpt.shows(19));
  EXPECT_TRUE(excerpt.shows(20));
  EXPECT_DOUBLE_EQ(excerpt.column(9), 9);
  EXPECT_EQ(excerpt.column(10), excerpt.column(19)) << "the middle of the break";
  EXPECT_DOUBLE_EQ(excerpt.column(19), 10 + Excerpt::kBreak / 2);
  EXPECT_DOUBLE_EQ(excerpt.column(20), 10 + Excerpt::kBreak);
  EXPECT_DOUBLE_EQ(excerpt.columns(), 50 + 2 * Excerpt::kBreak);
}

TEST(Excerpt, leaves_out_nothing_that_is_short) {
  for (const Scene& scene : all_scenes({1, 2, 4, 8})) {
    const Timeline timeline = timeline_of(scene);
    if (timeline.units > kLongestUnits) continue;
    EXPECT_TRUE(legible_excerpt(timeline).left_out().empty()) << name_of(scene);
  }
}

// Sums of a ring grow from unit to unit, so none is like the one before it.
TEST(Excerpt, leaves_out_nothing_where_contributions_grow) {
  const Timeline timeline = timeline_of(scene_of(Collective::kAllReduce, "ring", 32));
  ASSERT_EQ(timeline.units, 63);
  const Excerpt excerpt = legible_excerpt(timeline);
  for (int unit = 0; unit <= 32; ++unit) EXPECT_TRUE(excerpt.shows(unit)) << unit;
  EXPECT_FALSE(excerpt.shows(45)) << "whole sums are passed on and on";
}

// What each rank does in a unit of time, without the parts.
std::map<std::pair<int, int>, std::string> doings_of(const Timeline& timeline, int unit) {
  std::map<std::pair<int, int>, std::string> doings;
  for (const Action& action : timeline.actions) {
    if (action.start != unit) continue;
    const Step& step = timeline.last_step(action);
    doings[{action.lane, action.rank}] =
        format("%d>%d %s", step.recv_from, step.send_to, action.result.from.text().c_str());
  }
  return doings;
}

TEST(Excerpt, shows_what_is_left_out_once_before_and_once_behind) {
  const std::vector<std::pair<std::string, int>> pairs = {{"hier_direct_double_tree", 4},
                                                          {"hier_double_tree_ring", 4},
                                                          {"hier_double_tree_ring", 2},
                                                          {"hier_ring_double_tree", 8}};
  for (const auto& [name, box] : pairs) {
    const Timeline timeline = legible_timeline(pair_of(name, 16, box));
    const Excerpt excerpt = legible_excerpt(timeline);
    ASSERT_FALSE(excerpt.left_out().empty()) << name;
    EXPECT_LT(excerpt.columns(), 0.7 * timeline.units) << name;
    for (const Stretch& stretch : excerpt.left_out()) {
      int period = 1;
      const auto repeats = [&] {
        for (int unit = stretch.from; unit < stretch.to + period; ++unit) {
          if (doings_of(timeline, unit) != doings_of(timeline, unit - period)) return false;
        }
        return true;
      };
      while (period < stretch.length() && !repeats()) ++period;
      EXPECT_TRUE(repeats()) << name << ": units " << stretch.from << " to " << stretch.to;
      for (int unit = 0; unit < period; ++unit) {
        EXPECT_TRUE(excerpt.shows(stretch.from - 1 - unit)) << name << ", before";
        EXPECT_TRUE(excerpt.shows(stretch.to + unit)) << name << ", behind";
      }
      EXPECT_EQ(stretch.length() % period, 0);
    }
  }
}

TEST(Excerpt, of_asked_units_has_them_all_and_no_others) {
  const Timeline timeline = timeline_of(pair_of("hier_direct_double_tree", 16, 4));
  const Excerpt excerpt = excerpt_of(timeline, {20, 30});
  for (int unit = 0; unit < timeline.units; ++unit) {
    EXPECT_EQ(excerpt.shows(unit), unit >= 20 && unit < 30) << unit;
  }
  EXPECT_TRUE(excerpt_of(timeline, {0, timeline.units}).left_out().empty());
}

TEST(Excerpt, is_said_in_the_picture) {
  const Timeline timeline = legible_timeline(pair_of("hier_double_tree_ring", 16, 4));
  const std::string picture = space_time_svg(timeline, legible_excerpt(timeline));
  EXPECT_NE(picture.find("units 4 to 31: the same steps again"), std::string::npos);
  EXPECT_NE(picture.find("left out: the same steps again"), std::string::npos);
}

}  // namespace
}  // namespace catenary::picture
