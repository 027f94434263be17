// Timelines that are too long to be read, made shorter: what a rank does in a row by itself, or
// only sends to one rank, or only receives from one rank, becomes one action, and messages between
// the same two actions become one. It is a timeline as any other, on a slower clock.
//
// Pure; any thread. Fails as timeline_of() does.
#pragma once

#include "src/picture/timeline.h"

namespace catenary::picture {

// Longer ones are wider than a screen.
inline constexpr int kLongestUnits = 40;

Timeline condensed(const Timeline& timeline);

// The timeline of a scene, condensed where it is long and gains much, or too long. Sends go ahead
// as far as they can then, so that rounds show; a scene's own window above 1 is kept.
Timeline legible_timeline(const Scene& scene);

}  // namespace catenary::picture
