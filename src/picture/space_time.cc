#include "src/picture/space_time.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "src/base/error.h"
#include "src/collective/operation.h"
#include "src/picture/layout.h"
#include "src/picture/paint.h"

namespace catenary::picture {
namespace {

constexpr std::string_view kStyle =
    "svg{font-family:Helvetica,Arial,'Liberation Sans','DejaVu Sans',sans-serif;font-size:11px;"
    "fill:#222}\n"
    ".title{font-size:20px;font-weight:bold}\n"
    ".note{font-size:12px;fill:#555}\n"
    ".faint{fill:#777}\n"
    ".rank{text-anchor:end;font-size:12px}\n"
    ".label{text-anchor:middle}\n"
    ".small{text-anchor:middle;font-size:9px}\n"
    ".place{fill:#777;font-size:10px}\n"
    ".axis{text-anchor:middle;fill:#777;font-size:10px}\n"
    ".grid{stroke:#ececec;stroke-width:1}\n"
    ".base{stroke:#cfcfcf;stroke-width:1}\n"
    ".break{fill:#f6f6f6;stroke:#999;stroke-dasharray:3 4}\n"
    ".tiles{fill:none;stroke:#999;stroke-width:.6}\n"
    ".card{fill:none;stroke-width:.8}\n"
    ".kept{fill:none;stroke-width:1.5}\n"
    ".few{fill:none;stroke-width:1.6;stroke-opacity:.9}\n"
    ".many{fill:none;stroke-width:1;stroke-opacity:.55}\n"
    ".few>:hover,.many>:hover{stroke-width:5;stroke-opacity:1}\n";  // to follow one among many

constexpr double kLineShade = 0.15;

class SpaceTime {
 public:
  SpaceTime(const Timeline& timeline, const Excerpt& excerpt)
      : timeline_(timeline),
        scene_(timeline.scene),
        excerpt_(excerpt),
        layout_(timeline, excerpt),
        paint_(timeline) {}

  std::string draw() {
    header();
    for (int lane = 0; lane < scene_.lanes; ++lane) panel(lane);
    svg_.open(layout_.is_sparse() ? " class=\"few\"" : " class=\"many\"");
    for (const Message& message : timeline_.messages) {
      if (!excerpt_.shows(timeline_, message)) continue;
      svg_.open("", format("from rank %d to rank %d", message.from, message.to));
      arrow(message, Part::kShaft);
      svg_.close();
    }
    svg_.close();
    for (const Action& action : timeline_.actions) {
      if (excerpt_.shows(action.start)) card(action);
    }
    // Steep ones would vanish below the cards that they point to.
    if (layout_.is_sparse()) {
      for (const Message& message : timeline_.messages) {
        if (excerpt_.shows(timeline_.actions[message.receiver].start)) arrow(message, Part::kHead);
      }
    }
    axis();
    const double bottom = legend();
    return svg_.finish(width(), bottom + Layout::kMargin, title(), facts(), kStyle);
  }

 private:
  // Short schedules are narrower than what is said of them.
  double width() const {
    constexpr double kLetter = 11.6;  // of a title, on average
    constexpr double kSmallLetter = 6.7;
    const double words = std::max(kLetter * static_cast<double>(title().size()),
                                  kSmallLetter * static_cast<double>(facts().size()));
    return std::max(layout_.width(), 2 * Layout::kMargin + words);
  }

  std::string title() const {
    std::string text = format("%s, %d rank%s", name_of(scene_).c_str(), scene_.ranks,
                              scene_.ranks == 1 ? "" : "s");
    if (is_point_to_point(scene_)) {
      text += format(", from 0 to %d", scene_.root);
    } else if (has_root(scene_.algorithm->collective)) {
      text += format(", root %d", scene_.root);
    }
    if (scene_.box > 1) text += format(", boxes of %d", scene_.box);
    if (scene_.lanes > 1) text += format(", %d lanes", scene_.lanes);
    return text;
  }

  std::string facts() const {
    const std::size_t messages = timeline_.message_count();
    const int parts = timeline_.chunk_count() * scene_.lanes;
    std::string text =
        format("%d unit%s of time%s; ", timeline_.units, timeline_.units == 1 ? "" : "s",
               is_condensed() ? ", one for a run of steps (×n)" : "");
    if (messages == 0) return text + "no messages";
    text += format("%zu message%s ", messages, messages == 1 ? "" : "s");
    if (scene_.form == Collective::kBarrier) return text + "without data";
    text += parts > 1 ? format("of 1/%d of the data each", parts) : std::string("of all the data");
    const auto most = static_cast<double>(timeline_.most_messages());
    if (most == 0) return text + ", to the sender itself";
    return text + format("; a rank sends up to %.3g × the data", most / parts);
  }

  bool is_condensed() const {
    return std::ranges::any_of(timeline_.actions,
                               [](const Action& action) { return !action.run.empty(); });
  }

  void header() {
    svg_.text({Layout::kMargin, 34}, " class=\"title\"", title());
    svg_.text({Layout::kMargin, 54}, " class=\"note\"", facts());
  }

  void panel(int lane) {
    const double top = layout_.panel_top(lane) - 6;
    const double bottom = layout_.panel_bottom(lane) + 6;
    for (int unit = 1; unit < timeline_.units; ++unit) {
      if (!excerpt_.shows(unit)) continue;
      const double x = layout_.column(unit) - layout_.gap() / 2;
      svg_.line({x, top}, {x, bottom}, " class=\"grid\"");
    }
    if (scene_.lanes > 1) {
      svg_.text({Layout::kMargin, top - 16}, " class=\"note\"",
                format("lane %d, which has 1/%d of the data to itself", lane, scene_.lanes));
    }
    const Box first = layout_.tiles_before(lane, 0);
    const Box last = layout_.tiles_after(lane, 0);
    svg_.text({first.x + first.width / 2, top - 2}, " class=\"axis\"", "gives");
    svg_.text({last.x + last.width / 2, top - 2}, " class=\"axis\"", "gets");
    for (int rank = 0; rank < scene_.ranks; ++rank) row(lane, rank);
    for (const Stretch& stretch : excerpt_.left_out()) {
      svg_.open("", format("units %d to %d: %s", stretch.from + 1, stretch.to,
                           std::string(excerpt_.what()).c_str()));
      svg_.rect(layout_.break_at(lane, stretch), " class=\"break\"");
      svg_.close();
    }
    for (int at = 0; scene_.box > 1 && at < scene_.ranks; at += scene_.box) {
      svg_.text({Layout::kMargin, layout_.row(lane, at) - layout_.card_height() / 2 - 4},
                " class=\"place\"", format("box %d", at / scene_.box));
    }
    if (layout_.has_ghosts()) {
      ghost_label(layout_.ghost_above(lane), scene_.ranks - 1);
      ghost_label(layout_.ghost_below(lane), 0);
    }
  }

  void row(int lane, int rank) {
    const double y = layout_.row(lane, rank);
    svg_.line({layout_.column(0), y}, {layout_.column(timeline_.units) - layout_.gap(), y},
              " class=\"base\"");
    const Box before = layout_.tiles_before(lane, rank);
    svg_.text({before.x - 8, y + 4}, " class=\"rank\"", format("rank %d", rank));
    const int parts = timeline_.chunk_count();
    std::vector<Content> gives(static_cast<std::size_t>(parts));
    for (int i = 0; i < input_chunks(scene_, rank, parts); ++i) {
      const Content content = given(scene_, rank, i);
      gives[static_cast<std::size_t>(content.part)] = content;
    }
    std::vector<Content> gets(static_cast<std::size_t>(parts));
    for (int i = 0; i < output_chunks(scene_, rank, parts); ++i) {
      gets[static_cast<std::size_t>(part_of_output(scene_, rank, i))] =
          timeline_.outputs[static_cast<std::size_t>(lane)][static_cast<std::size_t>(rank)]
                           [static_cast<std::size_t>(i)];
    }
    paint_.tiles(svg_, before, lane, gives);
    paint_.tiles(svg_, layout_.tiles_after(lane, rank), lane, gets);
  }

  void ghost_label(double y, int rank) {
    svg_.text({layout_.tiles_before(0, 0).x - 8, y + 4}, " class=\"rank faint\"",
              format("(%d)", rank));
  }

  // Where a message leaves: the right edge of its card; where it arrives: the left edge of its
  // card, below or above others that arrive there. What is taken in a break ends at its edge, and
  // what is sent there begins at the other.
  Point leaves(const Message& message) const {
    const Action& sender = timeline_.actions[message.sender];
    const Box card = layout_.card(sender);
    const double right =
        excerpt_.shows(sender.start) ? card.x + card.width : card.x + layout_.to_break_edge();
    return {right, card.y + card.height / 2};
  }
  Point arrives(const Message& message) const {
    const Action& receiver = timeline_.actions[message.receiver];
    const Box card = layout_.card(receiver);
    if (!excerpt_.shows(receiver.start)) {
      return {card.x - layout_.gap() - layout_.to_break_edge(), card.y + card.height / 2};
    }
    std::size_t above = 0;
    for (const std::size_t arrival : receiver.arrivals) {
      if (timeline_.messages[arrival].from < message.from) ++above;
    }
    const double step = card.height / static_cast<double>(receiver.arrivals.size() + 1);
    return {card.x, card.y + step * static_cast<double>(above + 1)};
  }

  enum class Part { kShaft, kHead };

  void arrow(const Message& message, Part part) {
    const std::string colour =
        text_of(shade(paint_.colour(timeline_.actions[message.sender]), kLineShade));
    const Point from = leaves(message);
    const Point to = arrives(message);
    if (message.from == message.to) {
      const double dip = layout_.row_pitch() * 0.55;
      bend(from, {(from.x + to.x) / 2, std::max(from.y, to.y) + dip}, to, colour, part);
      return;
    }
    if (layout_.has_ghosts() && std::abs(message.from - message.to) > 1) {
      const double above = layout_.ghost_above(message.lane);
      const double below = layout_.ghost_below(message.lane);
      const bool down = message.from > message.to;
      stretch(from, {to.x, down ? below : above}, colour, part);
      stretch({from.x, down ? above : below}, to, colour, part);
      return;
    }
    stretch(from, to, colour, part);
  }

  void stretch(Point from, Point to, const std::string& colour, Part part) {
    if (part == Part::kShaft) {
      svg_.line(from, to, " stroke=\"" + colour + "\"");
    } else {
      head(from, to, colour);
    }
  }

  void bend(Point from, Point over, Point to, const std::string& colour, Part part) {
    if (part == Part::kHead) {
      head(over, to, colour);
      return;
    }
    svg_.path("M" + coordinates(from) + "Q" + coordinates(over) + " " + coordinates(to),
              " stroke=\"" + colour + "\"");
  }

  void head(Point from, Point to, const std::string& colour) {
    const double distance = std::hypot(to.x - from.x, to.y - from.y);
    const Point along{(to.x - from.x) / distance, (to.y - from.y) / distance};
    const Point neck{to.x - along.x * 7, to.y - along.y * 7};
    svg_.path("M" + coordinates(to) + "L" +
                  coordinates({neck.x - along.y * 3, neck.y + along.x * 3}) + "L" +
                  coordinates({neck.x + along.y * 3, neck.y - along.x * 3}) + "Z",
              " fill=\"" + colour + "\"");
  }

  void card(const Action& action) {
    const bool is_kept = timeline_.last_step(action).dst.buffer == Buffer::kOutput;
    const std::string does = describe(timeline_, action);
    if (action.run.empty()) {
      svg_.open("", format("rank %d, step %zu: %s; holds part %d of ranks %s", action.rank,
                           action.first_step, does.c_str(), action.result.part,
                           action.result.from.text().c_str()));
      paint_.card(svg_, layout_.card(action), action.lane, action.result, is_kept);
    } else {
      svg_.open(
          "", format("rank %d, steps %zu to %zu: %s; %s", action.rank, action.first_step,
                     action.first_step + action.steps - 1, does.c_str(), parts_of(action).c_str()));
      paint_.run_card(svg_, layout_.card(action), action.lane, action.run, is_kept);
    }
    svg_.close();
  }

  // "holds part 3 of ranks 0-7, part 4 of ranks 0-7"
  static std::string parts_of(const Action& action) {
    std::string text;
    for (const Content& content : action.run) {
      text += format("%spart %d of ranks %s", text.empty() ? "holds " : ", ", content.part,
                     content.from.text().c_str());
    }
    return text;
  }

  void axis() {
    const double y = layout_.axis() + 12;
    const int every = excerpt_.columns() > 30 ? 5 : 1;
    for (const Stretch& stretch : excerpt_.left_out()) {
      const std::string units = stretch.length() == 1
                                    ? std::to_string(stretch.to)
                                    : format("%d–%d", stretch.from + 1, stretch.to);
      const Box box = layout_.break_at(0, stretch);
      svg_.text({box.x + box.width / 2, y}, " class=\"axis\"", units);
    }
    for (int unit = 0; unit < timeline_.units; ++unit) {
      if (!excerpt_.shows(unit) || (unit > 0 && (unit + 1) % every != 0)) continue;
      svg_.text({layout_.column(unit) + layout_.card_width() / 2, y}, " class=\"axis\"",
                std::to_string(unit + 1));
    }
    svg_.text({layout_.tiles_before(0, 0).x - 8, y}, " class=\"rank faint\"", "time");
  }

  double legend();

  const Timeline& timeline_;
  const Scene& scene_;
  const Excerpt& excerpt_;
  const Layout layout_;
  const Paint paint_;
  Svg svg_;
};

// What cards and colours mean. Returns its lower edge.
double SpaceTime::legend() {
  double x = Layout::kMargin;
  double y = layout_.legend();
  const auto say = [&](const std::string& text) {
    svg_.text({x, y + 4}, " class=\"note\"", text);
    x += 6.7 * static_cast<double>(text.size()) + 18;
  };
  const auto show = [&](const Content& content, bool is_kept) {
    const double height = layout_.card_height();
    paint_.card(svg_, {x, y - height / 2, layout_.card_width(), height}, 0, content, is_kept);
    x += layout_.card_width() + 8;
  };
  Content some{.part = 0, .from = {}};
  int giver = 0;
  while (input_chunks(scene_, giver, 1) == 0) ++giver;
  some.from.add(giver);
  if (combines(scene_) && scene_.ranks > 1) {
    for (int rank = 0; rank < scene_.ranks / 2; ++rank) some.from.add(rank);
    show(some, false);
    say("a step; strip: whose contributions it holds");
    for (int rank = 0; rank < scene_.ranks; ++rank) some.from.add(rank);
    show(some, false);
    say("holds all");
  } else {
    show(some, false);
    say(!is_exchange(scene_) ? "a step"
        : scene_.lanes == 1  ? "a step; given by → for"
                             : "a step; given by → for/lane");
  }
  show(some, true);
  say("kept as a result");
  // On the next line if there is no room for what follows.
  const auto place_for = [&](double words) {
    const double height = layout_.card_height();
    if (x + layout_.card_width() + words > layout_.width()) {
      x = Layout::kMargin;
      y += 34;
    }
    const Box place{x, y - height / 2, layout_.card_width(), height};
    x += layout_.card_width() + 8;
    return place;
  };
  if (is_condensed()) {
    paint_.run_card(svg_, place_for(600), 0, {some, some}, false);
    say("so many steps; strip: what each has in hand, full as far up as contributions are in");
  }
  if (!excerpt_.left_out().empty()) {
    svg_.rect(place_for(480), " class=\"break\"");
    say("left out: " + std::string(excerpt_.what()) + " (--units shows any)");
  }
  x = Layout::kMargin;
  y += 30;
  say(paint_.colours_are_parts() ? "part of the data" : "given by rank");
  const double first = x;
  for (int i = 0; i < paint_.colours(); ++i) {
    if (!paint_.colours_are_parts() && input_chunks(scene_, i, 1) == 0) continue;
    if (x + 44 > layout_.width()) {
      x = first;
      y += 20;
    }
    svg_.rect({x, y - 6, 14, 12}, " fill=\"" + text_of(paint_.colour(i)) + "\"");
    svg_.text({x + 18, y + 4}, " class=\"note\"", std::to_string(i));
    x += 18 + (i > 9 ? 26 : 20);
  }
  return y + 6;
}

}  // namespace

std::string space_time_svg(const Timeline& timeline, const Excerpt& excerpt) {
  return SpaceTime(timeline, excerpt).draw();
}

}  // namespace catenary::picture
