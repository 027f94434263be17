// A space-time picture of a schedule, as SVG: who sends what to whom in which step, and how
// contributions come together.
//
// A card is a step. Its colour is the part of the data in its hands; the strip at its foot has a
// place for each rank, filled where that rank's contribution is in. At the left stand the parts
// that each rank gives, at the right those it ends with. No scripts, no fonts from elsewhere; a
// pointer that rests on a card is told the step in words. What the excerpt leaves out is a break.
//
// Pure; any thread; nothing fails. The same timeline gives the same bytes.
#pragma once

#include <string>

#include "src/picture/excerpt.h"
#include "src/picture/timeline.h"

namespace catenary::picture {

std::string space_time_svg(const Timeline& timeline, const Excerpt& excerpt);

}  // namespace catenary::picture
