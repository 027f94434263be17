// catenary draw: a space-time picture of a schedule.
#include <algorithm>
#include <cstdio>
#include <string>

#include "src/base/error.h"
#include "src/picture/condense.h"
#include "src/picture/space_time.h"
#include "tools/scene_options.h"
#include "tools/verb.h"

namespace catenary {
namespace {

constexpr char kUsage[] =
    "usage: catenary draw <collective> <algorithm> --ranks N [options]\n\n"
    "Writes an SVG: time runs to the right, a rank is a row, a card is a step. The colour of a "
    "card\n"
    "is the part of the data in its hands, the strip at its foot whose contributions it holds.\n"
    "Where that would be very long, steps in a row with one peer, or none, are one card, and what\n"
    "all ranks do over and over is left out but for the first and the last time.\n\n"
    "  --ranks N    so many ranks\n"
    "  --root R     of a collective with a root, 0 if not given; of Send and Recv who receives, 1 "
    "if not\n"
    "               given: rank 0 sends\n"
    "  --box B      so many consecutive ranks share a machine; of hier_ algorithms, if not given,\n"
    "               as many as there are machines, or the next number above that divides N\n"
    "  --lanes L    so many parallel copies of the schedule, a panel each, instead of what it is "
    "for\n"
    "  --window W   so many messages a link holds: some schedules send ahead; 1 if not given,\n"
    "               and as many as there are ranks where several steps are one card\n"
    "  --whole      every step a card of its own, however long that is, and none left out\n"
    "  --units A-B  only these units of time, or A only, as the picture's axis counts them\n"
    "  --out FILE   instead of standard output\n"
    "  --help       this text\n";

// Beyond that, viewers take seconds.
constexpr std::size_t kLargePicture = 10'000'000;

picture::Excerpt excerpt_for(const SceneOptions& options, const picture::Timeline& timeline) {
  if (!options.units) {
    return options.whole ? picture::Excerpt(timeline.units) : picture::legible_excerpt(timeline);
  }
  const auto [first, last] = *options.units;
  if (first > timeline.units) {
    throw_error(ErrorCode::kInvalidUsage, "--units: time ends at %d", timeline.units);
  }
  return picture::excerpt_of(timeline, {first - 1, std::min(last, timeline.units)});
}

}  // namespace

int run_draw(int argc, char** argv) {
  SceneOptions options;
  if (!read_scene_options(argc, argv, options)) {
    std::printf("%s", kUsage);
    return 0;
  }
  if (!options.format.empty() || options.in_place) {
    throw_error(ErrorCode::kInvalidUsage, "--format and --in-place are for catenary export");
  }
  const picture::Timeline timeline = options.whole ? picture::timeline_of(options.scene)
                                                   : picture::legible_timeline(options.scene);
  const std::string svg = picture::space_time_svg(timeline, excerpt_for(options, timeline));
  write_out(options.out, svg);
  if (svg.size() > kLargePicture) {
    std::fprintf(
        stderr,
        "catenary: a picture of %zu MB, which takes viewers long to show; --units A-B draws "
        "less of it\n",
        svg.size() / 1'000'000);
  }
  return 0;
}

}  // namespace catenary
