// What else went on while something was measured: the part of the cores' time that other programs
// took. One thread; nothing waits or fails.
#pragma once

#include <optional>

#include "src/topology/machine.h"

namespace catenary {

class OtherLoad {
 public:
  // From now on.
  OtherLoad();
  // Up to now; processes of ours count that have ended. Nothing if the system does not tell.
  std::optional<double> share() const;

 private:
  static double own_s();

  const CoreTime begin_ = core_time();
  const double own_begin_s_ = own_s();
};

}  // namespace catenary
