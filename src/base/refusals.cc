#include "src/base/refusals.h"

#include <atomic>

#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/log.h"

namespace catenary {
namespace {

constexpr std::int64_t kTellEvery_ns = 5'000'000'000;

struct Kind {
  const char* what;
  std::atomic<std::uint64_t> count{0};
  std::atomic<std::int64_t> next_told_ns{0};
};
constinit Kind kinds[kRefusedKinds] = {{"a control connection"},
                                       {"a connection to its links"},
                                       {"a connection beside its network"},
                                       {"a message"},
                                       {"a write"}};

Kind& of(Refused kind) { return kinds[static_cast<int>(kind)]; }

}  // namespace

void note_refusal(Refused which, const std::string& by, const std::string& from,
                  const std::string& why) {
  Kind& kind = of(which);
  const std::uint64_t count = kind.count.fetch_add(1, std::memory_order_relaxed) + 1;
  const std::int64_t now = now_ns();
  std::int64_t due = kind.next_told_ns.load(std::memory_order_relaxed);
  if (now < due || !kind.next_told_ns.compare_exchange_strong(due, now + kTellEvery_ns)) return;
  log_notice(-1, format("%s has refused %s%s%s: %s; %llu such until now in this process",
                        by.c_str(), kind.what, from.empty() ? "" : " from ", from.c_str(),
                        why.c_str(), static_cast<unsigned long long>(count)));
}

std::uint64_t count_of_refusals(Refused kind) noexcept {
  return of(kind).count.load(std::memory_order_relaxed);
}

}  // namespace catenary
