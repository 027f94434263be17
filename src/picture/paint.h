// What colours, labels and strips mean in a space-time picture, and the cards and tiles that carry
// them. Colour is the part of the data where there are several, otherwise the rank that gave it.
//
// Values; any thread; nothing fails.
#pragma once

#include <string>
#include <vector>

#include "src/picture/palette.h"
#include "src/picture/svg.h"
#include "src/picture/timeline.h"

namespace catenary {

class Paint {
 public:
  explicit Paint(const Timeline& timeline);

  bool colours_are_parts() const { return colours_are_parts_; }
  int colours() const { return colours_; }
  Colour colour(int index) const { return colour_of(index, colours_); }

  // Of what holds contributions of several ranks where colours are ranks: grey.
  Colour colour(const Content& content) const;
  std::string label(const Content& content) const;
  bool is_complete(const Content& content) const;

  void card(Svg& svg, const Box& box, const Content& content, bool is_kept) const;
  // `contents` are as many as the data has parts; those without a contribution are left white.
  void tiles(Svg& svg, const Box& box, const std::vector<Content>& contents) const;

 private:
  void strip(Svg& svg, const Box& box, const Content& content) const;

  int ranks_;
  int parts_;
  bool combines_;
  bool colours_are_parts_;
  bool labels_are_pairs_;  // "2>5": who gave it, and for whom
  int colours_;
};

}  // namespace catenary
