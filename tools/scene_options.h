// The arguments that `catenary draw` and `catenary export` share: which schedule, and where to.
#pragma once

#include <optional>
#include <string>

#include "src/picture/scene.h"
#include "tools/arguments.h"

namespace catenary {

struct SceneOptions {
  picture::Scene scene;
  std::string format;  // of `export`, as is the next
  bool in_place = false;
  bool whole = false;                // of `draw`, as is the next: every step a card
  std::optional<NumberRange> units;  // of `draw`; the first is 1
  std::string out;                   // a file; empty for standard output
};

// Reads <collective> <algorithm> and options. Throws Error(kInvalidUsage) for what cannot be, with
// the remedy. Returns false if help was asked for.
bool read_scene_options(int argc, char** argv, SceneOptions& options);

// Writes all of `text` to the file of that name, or to standard output; throws Error(kSystem).
void write_out(const std::string& file, const std::string& text);

}  // namespace catenary
