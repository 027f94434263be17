// The rules of schedule.h that can be seen in one rank's schedule alone, without running it.
#pragma once

#include <string>

#include "tests/support/schedule_check.h"

namespace catenary {

// Whether that rank has such a buffer at all: a broadcast's input is the root's alone, and so on.
bool has_input(const ScheduleCase& which, int rank);
bool has_output(const ScheduleCase& which, int rank);

// The first rule broken, or nothing.
std::string check_shape(const ScheduleCase& which, int rank, const Schedule& schedule);

}  // namespace catenary
