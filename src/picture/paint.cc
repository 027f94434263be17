#include "src/picture/paint.h"

#include <algorithm>
#include <cstddef>

#include "src/base/error.h"

namespace catenary {
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
      parts_(timeline.chunk_count()),
      combines_(combines(timeline.scene)),
      colours_are_parts_(parts_ > 1 && !is_exchange(timeline.scene)),
      labels_are_pairs_(is_exchange(timeline.scene)),
      colours_(colours_are_parts_ ? parts_ : ranks_) {}

Colour Paint::colour(const Content& content) const {
  if (colours_are_parts_) return colour(content.part);
  return content.from.size() == 1 ? colour(first_of(content.from, ranks_)) : kSeveral;
}

std::string Paint::label(const Content& content) const {
  if (labels_are_pairs_) return format("%d→%d", first_of(content.from, ranks_), content.part);
  if (parts_ > 1) return std::to_string(content.part);
  return combines_ ? format("%d/%d", content.from.size(), ranks_) : "";
}

bool Paint::is_complete(const Content& content) const {
  return content.from.size() == (combines_ ? ranks_ : 1);
}

void Paint::strip(Svg& svg, const Box& box, const Content& content) const {
  svg.rect(box, " fill=\"#fff\"");
  const double width = box.width / ranks_;
  for (int first = 0; first < ranks_; ++first) {
    if (!content.from.contains(first)) continue;
    // Neighbours of one colour are one shape.
    int last = first;
    while (colours_are_parts_ && last + 1 < ranks_ && content.from.contains(last + 1)) ++last;
    svg.rect({box.x + first * width, box.y, (last - first + 1) * width, box.height},
             fill(colours_are_parts_ ? colour(content) : colour(first)));
    first = last;
  }
}

void Paint::card(Svg& svg, const Box& box, const Content& content, bool is_kept) const {
  const Colour hue = colour(content);
  const bool solid = is_complete(content);
  const Colour ground = solid ? hue : tint(hue, 0.72);
  svg.rect(box, fill(ground));
  double label_height = box.height;
  // What is complete needs no strip, unless its colours are the ranks'.
  if (combines_ && !(solid && colours_are_parts_)) {
    label_height -= kStrip;
    strip(svg, {box.x, box.y + label_height, box.width, kStrip}, content);
  }
  const Colour edge = is_kept ? Colour{20, 20, 20} : tint(hue, 0.15);
  svg.rect({box.x, box.y, box.width, box.height},
           format(" class=\"%s\" stroke=\"%s\"", is_kept ? "kept" : "card", text_of(edge).c_str()));
  const std::string words = label(content);
  if (words.empty()) return;
  const bool is_long = 7.2 * static_cast<double>(characters(words)) > box.width;
  svg.text({box.x + box.width / 2, box.y + label_height / 2 + (is_long ? 3 : 4)},
           format(" class=\"%s\" fill=\"%s\"", is_long ? "small" : "label",
                  text_of(ink_on(ground)).c_str()),
           words);
}

void Paint::tiles(Svg& svg, const Box& box, const std::vector<Content>& contents) const {
  const double width = box.width / static_cast<double>(contents.size());
  for (std::size_t i = 0; i < contents.size(); ++i) {
    const Content& content = contents[i];
    const double x = box.x + static_cast<double>(i) * width;
    const double share = static_cast<double>(content.from.size()) / (combines_ ? ranks_ : 1);
    if (share == 0) continue;
    if (share < 1) svg.rect({x, box.y, width, box.height}, fill(tint(colour(content), 0.72)));
    const double height = box.height * share;
    svg.rect({x, box.y + box.height - height, width, height}, fill(colour(content)));
  }
  svg.rect(box, " class=\"tiles\"");
}

}  // namespace catenary
