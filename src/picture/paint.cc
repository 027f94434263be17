#include "src/picture/paint.h"

#include <algorithm>
#include <cstddef>

#include "src/base/error.h"

namespace catenary::picture {
namespace {

constexpr Colour kSeveral{70, 70, 70};
constexpr double kStrip = 8;  // height

std::string fill(Colour colour) { return " fill=\"" + text_of(colour) + "\""; }

int first_of(const RankSet& ranks, int count) {
  for (int rank = 0; rank < count; ++rank) {
    if (ranks.contains(rank)) return rank;
  }
  return 0;
}

// Of UTF-8: bytes that go on with one do not count.
std::ptrdiff_t characters(const std::string& text) {
  return std::ranges::count_if(text, [](char c) { return (c & 0xc0) != 0x80; });
}

}  // namespace

Paint::Paint(const Timeline& timeline)
    : ranks_(timeline.scene.ranks),
      lanes_(timeline.scene.lanes),
      parts_(timeline.chunk_count()),
      combines_(combines(timeline.scene)),
      colours_are_parts_(parts_ * lanes_ > 1 && !is_exchange(timeline.scene)),
      labels_are_pairs_(is_exchange(timeline.scene)),
      colours_(colours_are_parts_ ? parts_ * lanes_ : ranks_) {}

Colour Paint::colour(int lane, const Content& content) const {
  if (colours_are_parts_) return colour(part_of(lane, content));
  return content.from.size() == 1 ? colour(first_of(content.from, ranks_)) : kSeveral;
}

Colour Paint::colour(const Action& action) const {
  if (action.run.empty()) return colour(action.lane, action.result);
  const auto text = [&](const Content& content) { return text_of(colour(action.lane, content)); };
  const Content& first = action.run.front();
  const bool all_alike = std::ranges::all_of(
      action.run, [&](const Content& content) { return text(content) == text(first); });
  return all_alike ? colour(action.lane, first) : kSeveral;
}

std::string Paint::label(int lane, const Content& content) const {
  if (labels_are_pairs_) {
    const std::string pair = format("%d→%d", first_of(content.from, ranks_), content.part);
    return lanes_ > 1 ? pair + format("/%d", lane) : pair;
  }
  if (colours_are_parts_) return std::to_string(part_of(lane, content));
  return combines_ ? format("%d/%d", content.from.size(), ranks_) : "";
}

bool Paint::is_complete(const Content& content) const {
  return content.from.size() == (combines_ ? ranks_ : 1);
}

void Paint::strip(Svg& svg, const Box& box, int lane, const Content& content) const {
  svg.rect(box, " fill=\"#fff\"");
  const double width = box.width / ranks_;
  for (int first = 0; first < ranks_; ++first) {
    if (!content.from.contains(first)) continue;
    // Neighbours of one colour are one shape.
    int last = first;
    while (colours_are_parts_ && last + 1 < ranks_ && content.from.contains(last + 1)) ++last;
    svg.rect({box.x + first * width, box.y, (last - first + 1) * width, box.height},
             fill(colours_are_parts_ ? colour(lane, content) : colour(first)));
    first = last;
  }
}

void Paint::frame(Svg& svg, const Box& box, Colour hue, bool is_kept) const {
  const Colour edge = is_kept ? Colour{20, 20, 20} : tint(hue, 0.15);
  svg.rect(box,
           format(" class=\"%s\" stroke=\"%s\"", is_kept ? "kept" : "card", text_of(edge).c_str()));
}

// `box` is what the text has to itself.
void Paint::words(Svg& svg, const Box& box, Colour ground, const std::string& text) const {
  if (text.empty()) return;
  const bool is_long = 7.2 * static_cast<double>(characters(text)) > box.width;
  svg.text({box.x + box.width / 2, box.y + box.height / 2 + (is_long ? 3 : 4)},
           format(" class=\"%s\" fill=\"%s\"", is_long ? "small" : "label",
                  text_of(ink_on(ground)).c_str()),
           text);
}

void Paint::card(Svg& svg, const Box& box, int lane, const Content& content, bool is_kept) const {
  const Colour hue = colour(lane, content);
  const bool solid = is_complete(content);
  const Colour ground = solid ? hue : tint(hue, 0.72);
  svg.rect(box, fill(ground));
  double label_height = box.height;
  // What is complete needs no strip, unless its colours are the ranks'.
  if (combines_ && !(solid && colours_are_parts_)) {
    label_height -= kStrip;
    strip(svg, {box.x, box.y + label_height, box.width, kStrip}, lane, content);
  }
  frame(svg, box, hue, is_kept);
  words(svg, {box.x, box.y, box.width, label_height}, ground, label(lane, content));
}

void Paint::run_card(Svg& svg, const Box& box, int lane, const std::vector<Content>& run,
                     bool is_kept) const {
  const Box top{box.x, box.y, box.width, box.height - kStrip};
  constexpr Colour kGround{250, 250, 250};
  svg.rect(top, fill(kGround));
  const double width = box.width / static_cast<double>(run.size());
  for (std::size_t i = 0; i < run.size(); ++i) {
    const double x = box.x + static_cast<double>(i) * width;
    tile(svg, {x, box.y + top.height, width, kStrip}, lane, run[i]);
  }
  frame(svg, box, kSeveral, is_kept);
  words(svg, top, kGround, format("×%zu", run.size()));
}

// Pale, and in full colour as far up as contributions are in.
void Paint::tile(Svg& svg, const Box& box, int lane, const Content& content) const {
  const double share = static_cast<double>(content.from.size()) / (combines_ ? ranks_ : 1);
  if (share == 0) return;
  if (share < 1) svg.rect(box, fill(tint(colour(lane, content), 0.72)));
  const double height = box.height * share;
  svg.rect({box.x, box.y + box.height - height, box.width, height}, fill(colour(lane, content)));
}

void Paint::tiles(Svg& svg, const Box& box, int lane, const std::vector<Content>& contents) const {
  const double width = box.width / static_cast<double>(contents.size());
  for (std::size_t i = 0; i < contents.size(); ++i) {
    const double x = box.x + static_cast<double>(i) * width;
    tile(svg, {x, box.y, width, box.height}, lane, contents[i]);
  }
  svg.rect(box, " class=\"tiles\"");
}

}  // namespace catenary::picture
