// Loss: what a rank makes of a connection that is lost. A third rank may have died, and the other
// end have heard of it and given up before this one did. Who it was the control plane knows, or
// will know in a moment; whether its root is there an answer shows. If none comes soon, the root's
// host may be what was lost, and the failure says so.
//
// Threads: one at a time. Nothing waits. Owner: the communicator, which outlives it.
#pragma once

#include <optional>

#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/bootstrap/membership.h"

namespace catenary {

class Loss {
 public:
  Loss(const Error& error, Membership& membership);
  // To be asked now and then, after a look for news of the control plane, which go before: the
  // failure, once none are to be waited for any more.
  std::optional<Error> verdict();

 private:
  Error error_;
  Membership& membership_;
  bool is_asking_;
  Deadline until_;
};

}  // namespace catenary
