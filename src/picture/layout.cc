#include "src/picture/layout.h"

#include <algorithm>
#include <cstdlib>

namespace catenary::picture {
namespace {

constexpr double kLabel = 58;    // "rank 12"
constexpr double kTileGap = 16;  // between tiles and cards
constexpr double kLaneGap = 46;  // between panels
constexpr double kLeastWidth = 720;
constexpr double kCardsWidth = 800;

bool wraps(const Timeline& timeline) {
  const int last = timeline.scene.ranks - 1;
  bool any = false;
  for (const Message& message : timeline.messages) {
    const int distance = std::abs(message.to - message.from);
    if (distance != 1 && distance != last) return false;
    any = any || distance == last;
  }
  return any && last > 2;
}

// Whether messages are few, or pass few of the steps that there is room for.
bool are_few(const Timeline& timeline, const Excerpt& excerpt) {
  constexpr int kFew = 120;
  constexpr double kFewPassed = 2.5;
  int shown = 0;
  double passed = 0;
  for (const Message& message : timeline.messages) {
    if (!excerpt.shows(timeline, message)) continue;
    const int sent = timeline.actions[message.sender].start;
    const int taken = timeline.actions[message.receiver].start;
    ++shown;
    const double columns = excerpt.column(taken) - excerpt.column(sent);
    passed += std::max<double>(std::abs(message.to - message.from), columns);
  }
  const double room = excerpt.columns() * timeline.scene.ranks * timeline.scene.lanes;
  return shown <= kFew || passed / room < kFewPassed;
}

}  // namespace

Layout::Layout(const Timeline& timeline, const Excerpt& excerpt)
    : excerpt_(excerpt),
      ranks_(timeline.scene.ranks),
      box_(timeline.scene.box),
      lanes_(timeline.scene.lanes),
      units_(timeline.units),
      has_ghosts_(wraps(timeline)) {
  is_sparse_ = has_ghosts_ || are_few(timeline, excerpt);
  const double columns = excerpt.columns();
  const bool many = columns > 40 || ranks_ > 40;
  const bool some = columns > 20;
  const double narrow = is_exchange(timeline.scene) ? 30 : 24;  // labels are pairs
  card_width_ = many ? narrow : some ? std::max(narrow, 28.0) : 36;
  const bool has_runs = std::ranges::any_of(
      timeline.actions, [](const Action& action) { return !action.run.empty(); });
  card_height_ = combines(timeline.scene) || has_runs ? 26 : 20;
  // A short schedule gets wide gaps, so that arrows over many rows do not stand upright.
  const double gap = kCardsWidth / columns - card_width_;
  pitch_ = card_width_ + std::clamp(gap, many ? 12.0 : some ? 18.0 : 26.0, 64.0);
  row_pitch_ = card_height_ + (ranks_ > 16 ? 12 : ranks_ > 8 ? 20 : 28);
  box_gap_ = box_ > 1 && box_ < ranks_ ? 20 : 0;
  const int parts = timeline.chunk_count();
  tiles_width_ = parts * (parts == 1 ? 14 : parts <= 8 ? 7 : parts <= 16 ? 4.5 : 2);
}

double Layout::column(int unit) const {
  return kMargin + kLabel + tiles_width_ + kTileGap + excerpt_.column(unit) * pitch_;
}

double Layout::rows_height() const {
  return (ranks_ - 1) * row_pitch_ + (ranks_ / box_ - 1) * box_gap_;
}

double Layout::row(int lane, int rank) const {
  return panel_top(lane) + card_height_ / 2 + (has_ghosts_ ? row_pitch_ * 0.75 : 0) +
         rank * row_pitch_ + rank / box_ * box_gap_;
}

double Layout::ghost_above(int lane) const { return row(lane, 0) - row_pitch_ * 0.75; }

double Layout::ghost_below(int lane) const { return row(lane, ranks_ - 1) + row_pitch_ * 0.75; }

double Layout::panel_top(int lane) const {
  const double height =
      rows_height() + card_height_ + (has_ghosts_ ? row_pitch_ * 1.5 : 0) + kLaneGap;
  return kHeader + (lanes_ > 1 ? 24 : 14) + lane * height;
}

double Layout::panel_bottom(int lane) const {
  return (has_ghosts_ ? ghost_below(lane) : row(lane, ranks_ - 1)) + card_height_ / 2;
}

Box Layout::card(const Action& action) const {
  return {column(action.start), row(action.lane, action.rank) - card_height_ / 2, card_width_,
          card_height_};
}

Box Layout::break_at(int lane, const Stretch& left_out) const {
  const double middle = column(left_out.from) - gap() / 2;
  const double left = std::max(middle - break_width() / 2, column(0));
  const double right = std::min(middle + break_width() / 2, column(units_) - gap());
  const double top = panel_top(lane) - 6;
  return {left, top, right - left, panel_bottom(lane) + 6 - top};
}

Box Layout::tiles_before(int lane, int rank) const {
  return {kMargin + kLabel, row(lane, rank) - card_height_ / 2, tiles_width_, card_height_};
}

Box Layout::tiles_after(int lane, int rank) const {
  return {column(units_) - gap() + kTileGap, row(lane, rank) - card_height_ / 2, tiles_width_,
          card_height_};
}

double Layout::width() const {
  const Box last = tiles_after(0, 0);
  return std::max(last.x + last.width + kMargin, kLeastWidth);
}

}  // namespace catenary::picture
