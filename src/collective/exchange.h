// Two groups of ranks that exchange chunks, as one of them sees it: so many messages to give, so
// many to take, one at a time, never more ahead than links hold.
//
// Pure; any thread. give(i) and take(i) are the steps of the i-th message each way; what they refer
// to outlives the loop over these steps.
#pragma once

#include <algorithm>

#include "src/collective/schedule.h"

namespace catenary {

template <class Give, class Take>
Steps exchange(int window, int gives, int takes, Give give, Take take) {
  const int ahead = window - 1;
  for (int i = 0; i < std::max(gives, takes + ahead); ++i) {
    if (i < gives) co_yield give(i);
    if (i >= ahead && i - ahead < takes) co_yield take(i - ahead);
  }
}

}  // namespace catenary
