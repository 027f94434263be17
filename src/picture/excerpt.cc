#include "src/picture/excerpt.h"

#include <algorithm>
#include <string>
#include <utility>

#include "src/base/error.h"
#include "src/picture/condense.h"

namespace catenary::picture {
namespace {

// What all ranks do in each unit of time, but for the parts of the data that they do it with.
std::vector<std::string> doings(const Timeline& timeline) {
  std::vector<std::string> units(static_cast<std::size_t>(timeline.units));
  for (const Action& action : timeline.actions) {
    const Step& step = timeline.last_step(action);
    std::string does =
        format("%d/%d %zu %zu: %d %d %d %d %s", action.lane, action.rank, action.steps,
               action.run.size(), step.recv_from, step.send_to, static_cast<int>(step.src.buffer),
               static_cast<int>(step.dst.buffer), action.result.from.text().c_str());
    for (const std::size_t arrival : action.arrivals) {
      does += format(" %d", timeline.messages[arrival].from);
    }
    units[static_cast<std::size_t>(action.start)] += does + "; ";
  }
  return units;
}

// The units from `at` on that are like those before them, if a period is as long as that.
int repeated_units(const std::vector<std::string>& units, int at, int period) {
  int length = 0;
  while (at + length + period < std::ssize(units) &&
         units[static_cast<std::size_t>(at + length)] ==
             units[static_cast<std::size_t>(at + length + period)]) {
    ++length;
  }
  return length;
}

// Of what repeats the first time begins at `at`: what may be left out behind that, and how long the
// last time is, which follows.
struct Repetitions {
  Stretch left_out;
  int period = 0;
};
// Those of the period of which the most may be left out.
Repetitions repetitions(const std::vector<std::string>& units, int at) {
  constexpr int kLongestPeriod = 64;
  constexpr int kFewest = 8;  // units, for which a break is worth it
  Repetitions most{.left_out = {at, at}};
  for (int period = 1; period <= kLongestPeriod; ++period) {
    const int times = repeated_units(units, at, period) / period + 1;  // whole ones
    const Stretch middle{at + period, at + (times - 1) * period};
    if (middle.length() < kFewest || middle.length() <= most.left_out.length()) continue;
    most = {middle, period};
  }
  return most;
}

}  // namespace

Excerpt::Excerpt(int units, std::vector<Stretch> left_out, std::string_view what)
    : units_(units), left_out_(std::move(left_out)), what_(what) {}

bool Excerpt::shows(int unit) const {
  return std::ranges::none_of(
      left_out_, [&](const Stretch& stretch) { return stretch.from <= unit && unit < stretch.to; });
}

double Excerpt::column(int unit) const {
  double shift = 0;
  for (const Stretch& stretch : left_out_) {
    if (unit < stretch.from) break;
    if (unit < stretch.to) return stretch.from + shift + kBreak / 2;
    shift += kBreak - stretch.length();
  }
  return unit + shift;
}

Excerpt legible_excerpt(const Timeline& timeline) {
  if (timeline.units <= kLongestUnits) return Excerpt(timeline.units);
  const std::vector<std::string> units = doings(timeline);
  std::vector<Stretch> left_out;
  for (int at = 0; at < timeline.units; ++at) {
    const Repetitions found = repetitions(units, at);
    if (found.period == 0) continue;
    left_out.push_back(found.left_out);
    at = found.left_out.to + found.period - 1;  // the last time is shown whole
  }
  return Excerpt(timeline.units, std::move(left_out), "the same steps again with other parts");
}

Excerpt excerpt_of(const Timeline& timeline, const Stretch& shown) {
  std::vector<Stretch> left_out;
  if (shown.from > 0) left_out.push_back({0, shown.from});
  if (shown.to < timeline.units) left_out.push_back({shown.to, timeline.units});
  return Excerpt(timeline.units, std::move(left_out), "not asked for");
}

}  // namespace catenary::picture
