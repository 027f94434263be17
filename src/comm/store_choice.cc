#include "src/comm/store_choice.h"

#include "src/base/size_literals.h"

namespace catenary {
namespace {

// Shorter messages do not gain by it where the kernel is too slow for one rank alone.
constexpr std::size_t kLeastFetchedByBoth = 1_MB;

}  // namespace

Fetching StoreChoice::fetching(std::size_t bytes, bool exceeds_caches, bool goes_one_way) const {
  const bool together = goes_one_way && nranks_ == 2 && !executor_.crowded();
  if (together && (exceeds_caches || bytes >= kLeastFetchedByBoth)) return Fetching::kByBoth;
  return exceeds_caches ? Fetching::kNever : Fetching::kByReceiver;
}

}  // namespace catenary
