// A schedule as a trace that Chrome and Perfetto open: a thread for each rank and lane, a slice for
// each step on the logical clock of timeline.h, an arrow for each message. A unit is a millisecond.
//
// Pure; any thread; nothing fails. The same timeline gives the same bytes.
#pragma once

#include <string>

#include "src/picture/timeline.h"

namespace catenary::picture {

std::string chrome_trace(const Timeline& timeline);

}  // namespace catenary::picture
