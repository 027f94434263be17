// The parameters of the model of time as text: what `catenary tune` measured on a machine, to be
// read when a communicator is made. A line for each parameter, `name value`, after the lines
// `version` and `machine`; `#` begins a comment.
//
// Pure; any thread; nothing waits. Text that is no such thing throws Error(kInvalidArgument), which
// says what is wrong with it: it may come from another version, another machine, or be garbage.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "src/collective/cost.h"

namespace catenary {

struct Parameter {
  std::string name;
  std::string meaning;
  double least;
  double most;
  double& (*of)(CostParameters& parameters);
};
std::span<const Parameter> cost_parameter_table();

// `remark`: how they were measured, for people; one line.
std::string write_tuning(const CostParameters& parameters, std::string_view machine,
                         std::string_view remark = "");
// `machine`: the one that we run on; a text about another one is refused.
CostParameters read_tuning(std::string_view text, std::string_view machine);

}  // namespace catenary
