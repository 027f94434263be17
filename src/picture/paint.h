// What colours, labels and strips mean in a space-time picture, and the cards and tiles that carry
// them. Colour is the part of the data where there are several, otherwise the rank that gave it.
// Each lane has parts of its own, numbered on.
//
// Values; any thread; nothing fails.
#pragma once

#include <string>
#include <vector>

#include "src/picture/palette.h"
#include "src/picture/svg.h"
#include "src/picture/timeline.h"

namespace catenary::picture {

class Paint {
 public:
  explicit Paint(const Timeline& timeline);

  bool colours_are_parts() const { return colours_are_parts_; }
  int colours() const { return colours_; }
  Colour colour(int index) const { return colour_of(index, colours_); }

  // Of what holds contributions of several ranks where colours are ranks, and of runs: grey.
  Colour colour(int lane, const Content& content) const;
  Colour colour(const Action& action) const;
  bool is_complete(const Content& content) const;

  void card(Svg& svg, const Box& box, int lane, const Content& content, bool is_kept) const;
  // Of a run: how many steps, and at the foot a place for each of them.
  void run_card(Svg& svg, const Box& box, int lane, const std::vector<Content>& run,
                bool is_kept) const;
  // `contents` are as many as a lane's data has parts; those without a contribution are left white.
  void tiles(Svg& svg, const Box& box, int lane, const std::vector<Content>& contents) const;

 private:
  // Which part of all lanes' data it is.
  int part_of(int lane, const Content& content) const { return lane * parts_ + content.part; }
  std::string label(int lane, const Content& content) const;
  void words(Svg& svg, const Box& box, Colour ground, const std::string& text) const;
  void frame(Svg& svg, const Box& box, Colour hue, bool is_kept) const;
  void tile(Svg& svg, const Box& box, int lane, const Content& content) const;
  void strip(Svg& svg, const Box& box, int lane, const Content& content) const;

  int ranks_;
  int lanes_;
  int parts_;  // of a lane
  bool combines_;
  bool colours_are_parts_;
  bool labels_are_pairs_;  // "2>5": who gave it, and for whom
  int colours_;
};

}  // namespace catenary::picture
