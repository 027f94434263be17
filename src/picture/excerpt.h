// What a picture shows of a long timeline. Of steps that all ranks do over and over, with other
// parts of the data each time, the first time and the last are shown; a break stands for the
// others.
//
// Values; any thread; nothing fails.
#pragma once

#include <string_view>
#include <vector>

#include "src/picture/timeline.h"

namespace catenary::picture {

// Units of time [from, to).
struct Stretch {
  int from = 0;
  int to = 0;
  int length() const { return to - from; }
  bool operator==(const Stretch&) const = default;
};

class Excerpt {
 public:
  // All of `units`, but for what is left out: in order, none touching another. `what` that is.
  explicit Excerpt(int units, std::vector<Stretch> left_out = {}, std::string_view what = {});

  bool shows(int unit) const;
  // One end of it, at least.
  bool shows(const Timeline& timeline, const Message& message) const {
    return shows(timeline.actions[message.sender].start) ||
           shows(timeline.actions[message.receiver].start);
  }
  // Where a unit begins, in units of what is shown; of one that is not, the middle of its break.
  double column(int unit) const;
  double columns() const { return column(units_); }
  const std::vector<Stretch>& left_out() const { return left_out_; }
  std::string_view what() const { return what_; }

  // How many columns a break is wide.
  static constexpr double kBreak = 1.2;

 private:
  int units_;
  std::vector<Stretch> left_out_;
  std::string_view what_;
};

// What repeats, where a timeline is longer than a screen is wide.
Excerpt legible_excerpt(const Timeline& timeline);

// Only the units of the stretch, all of them.
Excerpt excerpt_of(const Timeline& timeline, const Stretch& shown);

}  // namespace catenary::picture
