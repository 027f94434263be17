// Where things are in a space-time picture: time runs to the right, a rank is a row, a lane a panel
// of all rows. Rows of a box stand together. Sizes shrink as ranks and units of time grow.
//
// Values; any thread; nothing fails.
#pragma once

#include "src/picture/excerpt.h"
#include "src/picture/svg.h"
#include "src/picture/timeline.h"

namespace catenary::picture {

class Layout {
 public:
  Layout(const Timeline& timeline, const Excerpt& excerpt);

  Box card(const Action& action) const;
  double row(int lane, int rank) const;  // the middle
  double column(int unit) const;         // the left edge of its cards, or a break's middle
  Box break_at(int lane, const Stretch& left_out) const;
  double ghost_above(int lane) const;  // of the last rank
  double ghost_below(int lane) const;  // of the first rank
  // What a rank has before or after: `tiles` of them side by side.
  Box tiles_before(int lane, int rank) const;
  Box tiles_after(int lane, int rank) const;

  double panel_top(int lane) const;
  double panel_bottom(int lane) const;
  double axis() const { return panel_bottom(lanes_ - 1) + 6; }
  double legend() const { return axis() + 44; }
  double width() const;

  // Messages go from neighbour to neighbour only and some pass from the last row to the first: then
  // those rows are repeated on the other side, so that no line crosses the picture.
  bool has_ghosts() const { return has_ghosts_; }
  // Whether messages cross so few others that each can be followed.
  bool is_sparse() const { return is_sparse_; }
  double card_width() const { return card_width_; }
  double card_height() const { return card_height_; }
  double gap() const { return pitch_ - card_width_; }
  double row_pitch() const { return row_pitch_; }
  double break_width() const { return Excerpt::kBreak * pitch_; }
  // From where its cards would begin to the right.
  double to_break_edge() const { return (break_width() - gap()) / 2; }

  static constexpr double kMargin = 24;
  static constexpr double kHeader = 74;

 private:
  double rows_height() const;

  Excerpt excerpt_;
  int ranks_;
  int box_;
  int lanes_;
  int units_;
  bool is_sparse_ = true;
  bool has_ghosts_;
  double card_width_;
  double card_height_;
  double pitch_;      // from column to column
  double row_pitch_;  // from row to row
  double box_gap_;    // between rows of different boxes, besides
  double tiles_width_;
};

}  // namespace catenary::picture
