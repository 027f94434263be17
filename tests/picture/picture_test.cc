// Pictures, traces and files of MSCCL: how much is in them, and that they depend on nothing but the
// schedule. What they look like to their readers is for the scripts beside this file.
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "src/base/error.h"
#include "src/picture/chrome_trace.h"
#include "src/picture/condense.h"
#include "src/picture/msccl.h"
#include "src/picture/palette.h"
#include "src/picture/space_time.h"
#include "src/picture/svg.h"
#include "tests/picture/scenes.h"

namespace catenary::picture {
namespace {

std::size_t count(std::string_view text, std::string_view what) {
  std::size_t found = 0;
  for (std::size_t at = text.find(what); at != text.npos; at = text.find(what, at + what.size())) {
    ++found;
  }
  return found;
}

// With nothing left out.
std::string whole_svg(const Timeline& timeline) {
  return space_time_svg(timeline, Excerpt(timeline.units));
}

TEST(Picture, tells_each_step_and_message_once) {
  for (const Scene& scene : all_scenes({1, 2, 4, 9})) {
    const Timeline timeline = timeline_of(scene);
    const std::string svg = whole_svg(timeline);
    EXPECT_EQ(count(svg, "<title>rank "), timeline.actions.size()) << name_of(scene);
    EXPECT_EQ(count(svg, "<title>from rank "), timeline.messages.size()) << name_of(scene);
  }
}

TEST(Picture, repeats_the_first_and_last_row_of_a_ring_only) {
  const std::string ring = whole_svg(timeline_of(scene_of(Collective::kAllReduce, "ring", 6)));
  EXPECT_EQ(count(ring, ">(5)<"), 1u);
  EXPECT_EQ(count(ring, ">(0)<"), 1u);
  const std::string direct = whole_svg(timeline_of(scene_of(Collective::kAllReduce, "direct", 6)));
  EXPECT_EQ(count(direct, ">(5)<"), 0u);
}

TEST(Picture, numbers_the_parts_of_each_lane_on) {
  Scene scene = scene_of(Collective::kAllReduce, "ring", 4);
  EXPECT_EQ(count(whole_svg(timeline_of(scene)), "fill=\"#000000\">7<"), 0u);
  scene.lanes = 2;
  const std::string picture = whole_svg(timeline_of(scene));
  for (const std::string part : {">0<", ">3<", ">4<", ">7<"}) {
    // A card for each step with it, a number of the legend, and perhaps one of the axis.
    EXPECT_GE(count(picture, part), 4u * 7 / 4) << part;
  }
  scene = scene_of(Collective::kAllToAll, "pairwise", 4);
  scene.lanes = 2;
  EXPECT_EQ(count(whole_svg(timeline_of(scene)), ">2→3/1<"), 2u) << "sent and received";
}

TEST(Picture, of_runs_tells_how_many_steps_and_what_each_has) {
  const Timeline timeline = legible_timeline(scene_of(Collective::kAllToAll, "bruck", 16));
  const std::string picture = whole_svg(timeline);
  EXPECT_EQ(count(picture, ">×16<"), 16u);
  EXPECT_EQ(count(picture, ">×8<"), 16u * 8);
  EXPECT_EQ(count(picture, "<title>rank "), timeline.actions.size());
}

TEST(Trace, has_a_slice_for_each_step_and_both_ends_of_each_message) {
  for (const Scene& scene : all_scenes({1, 2, 4, 9})) {
    const Timeline timeline = timeline_of(scene);
    const std::string trace = chrome_trace(timeline);
    EXPECT_EQ(count(trace, "\"ph\":\"X\""), timeline.actions.size()) << name_of(scene);
    EXPECT_EQ(count(trace, "\"ph\":\"s\""), timeline.messages.size()) << name_of(scene);
    EXPECT_EQ(count(trace, "\"ph\":\"f\""), timeline.messages.size()) << name_of(scene);
  }
}

TEST(Outputs, depend_on_nothing_but_the_schedule) {
  for (const Scene& scene : all_scenes({2, 5})) {
    EXPECT_EQ(whole_svg(timeline_of(scene)), whole_svg(timeline_of(scene)));
    EXPECT_EQ(chrome_trace(timeline_of(scene)), chrome_trace(timeline_of(scene)));
  }
}

TEST(Msccl, refuses_collectives_that_it_has_no_words_for) {
  EXPECT_THROW(msccl_xml(scene_of(Collective::kGather, "direct", 4), MscclCalls::kOutOfPlace),
               Error);
  EXPECT_THROW(msccl_xml(scene_of(Collective::kSend, "direct", 4), MscclCalls::kOutOfPlace), Error);
  EXPECT_THROW(msccl_xml(scene_of(Collective::kAllToAll, "direct", 4), MscclCalls::kInPlace),
               Error);
}

TEST(Msccl, says_where_the_order_of_a_reduction_is_lost) {
  const Scene scene = scene_of(Collective::kAllReduce, "one_shot", 2);
  Schedule first;
  first.add({.src = input(0), .send_to = 1});
  first.add({.recv_from = 1, .src = input(0), .dst = output(0)});
  Schedule second;
  second.add({.src = input(0), .send_to = 0});
  second.add({.recv_from = 0, .src = input(0), .dst = output(0), .received_first = true});
  const std::string_view remark = "take the received side first";
  EXPECT_EQ(count(msccl_xml(scene, MscclCalls::kOutOfPlace, {{first, second}}), remark), 1u);
  second.steps[1].received_first = false;
  EXPECT_EQ(count(msccl_xml(scene, MscclCalls::kOutOfPlace, {{first, second}}), remark), 0u);
}

TEST(Msccl, says_where_the_runtime_has_no_room) {
  EXPECT_EQ(count(msccl_xml(scene_of(Collective::kAllReduce, "ring", 128), MscclCalls::kOutOfPlace),
                  "Too large"),
            0u);
  EXPECT_EQ(count(msccl_xml(scene_of(Collective::kAllReduce, "ring", 129), MscclCalls::kOutOfPlace),
                  "Too large"),
            1u);
  EXPECT_EQ(count(msccl_xml(scene_of(Collective::kAllToAll, "direct", 33), MscclCalls::kOutOfPlace),
                  "Too large"),
            0u);
  EXPECT_EQ(count(msccl_xml(scene_of(Collective::kAllToAll, "direct", 34), MscclCalls::kOutOfPlace),
                  "Too large"),
            1u);
}

TEST(Palette, has_a_colour_for_each_and_ink_that_shows) {
  for (const int colours : {1, 2, 8, 9, 16, 64}) {
    for (int i = 0; i < colours; ++i) {
      for (int j = 0; j < i; ++j) {
        EXPECT_NE(text_of(colour_of(i, colours)), text_of(colour_of(j, colours)));
      }
    }
  }
  EXPECT_EQ(text_of(ink_on({255, 255, 255})), "#000000");
  EXPECT_EQ(text_of(ink_on({0, 0, 80})), "#ffffff");
}

TEST(Svg, escapes_what_xml_reserves) {
  EXPECT_EQ(escaped("a<b> & \"c\""), "a&lt;b&gt; &amp; &quot;c&quot;");
  EXPECT_EQ(number(12.0), "12");
  EXPECT_EQ(number(-0.01), "0");
  EXPECT_EQ(number(12.46), "12.5");
}

}  // namespace
}  // namespace catenary::picture
