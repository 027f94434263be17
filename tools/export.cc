// catenary export: a schedule in the formats of others.
#include <cstdio>

#include "src/base/error.h"
#include "src/picture/chrome_trace.h"
#include "src/picture/msccl.h"
#include "tools/scene_options.h"
#include "tools/verb.h"

namespace catenary {
namespace {

constexpr char kUsage[] =
    "usage: catenary export <collective> <algorithm> --ranks N --format FORMAT [options]\n\n"
    "  --format chrome   a trace for Chrome or ui.perfetto.dev: a slice a step, on a logical "
    "clock\n"
    "  --format msccl    an algorithm file of MSCCL\n"
    "  --in-place        an MSCCL file for calls in place; without, for calls out of place\n"
    "  --ranks N         so many ranks\n"
    "  --root R          of a collective with a root, 0 if not given\n"
    "  --box B           so many consecutive ranks share a machine, as in draw\n"
    "  --lanes L         so many parallel copies of the schedule, instead of what it is made for\n"
    "  --window W        so many messages a link holds, 1 if not given: some schedules send ahead\n"
    "  --out FILE        instead of standard output\n"
    "  --help            this text\n";

}  // namespace

int run_export(int argc, char** argv) {
  using namespace picture;
  SceneOptions options;
  if (!read_scene_options(argc, argv, options)) {
    std::printf("%s", kUsage);
    return 0;
  }
  if (options.units || options.whole) {
    throw_error(ErrorCode::kInvalidUsage, "--units and --whole are for catenary draw");
  }
  const MscclCalls calls = options.in_place ? MscclCalls::kInPlace : MscclCalls::kOutOfPlace;
  if (options.format == "chrome") {
    if (options.in_place) throw_error(ErrorCode::kInvalidUsage, "--in-place is for MSCCL");
    write_out(options.out, chrome_trace(timeline_of(options.scene)));
  } else if (options.format == "msccl") {
    write_out(options.out, msccl_xml(options.scene, calls));
  } else {
    throw_error(ErrorCode::kInvalidUsage, "--format wants chrome or msccl%s%s",
                options.format.empty() ? "" : ", not ", options.format.c_str());
  }
  return 0;
}

}  // namespace catenary
