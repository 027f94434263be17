#include "tools/other_load.h"

#include <sys/resource.h>

#include <algorithm>

namespace catenary {
namespace {

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

}  // namespace

OtherLoad::OtherLoad() = default;

double OtherLoad::own_s() {
  double sum = 0;
  for (const auto who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage = {};
    ::getrusage(who, &usage);  // cannot fail with these arguments
    sum += seconds(usage.ru_utime) + seconds(usage.ru_stime);
  }
  return sum;
}

std::optional<double> OtherLoad::share() const {
  const CoreTime now = core_time();
  const double all = now.all_s - begin_.all_s;
  if (all <= 0) return std::nullopt;
  const double others = now.busy_s - begin_.busy_s - (own_s() - own_begin_s_);
  return std::clamp(others / all, 0.0, 1.0);
}

}  // namespace catenary
