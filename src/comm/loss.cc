#include "src/comm/loss.h"

#include "src/transport/transport.h"

namespace catenary {
namespace {

// How long news may take from a root that is there: its process may have to wait for a core.
constexpr std::int64_t kNewsWait_ms = 100;
// How long it may take to answer. Not for as long as a host has to be silent to be lost: it may be
// stopped, or its host be the one, of which this rank's kernel does not hear before while it has
// our question to repeat.
constexpr std::int64_t kAnswerWait_ms = 1000;

// Who lost a connection to the root's own process need not ask it.
bool ask_root(const Error& error, Membership& membership) {
  const auto* lost = dynamic_cast<const LostConnection*>(&error);
  return lost != nullptr && !membership.lives_with_root(lost->peer()) && membership.ask_root();
}

}  // namespace

Loss::Loss(const Error& error, Membership& membership)
    : error_(error),
      membership_(membership),
      is_asking_(ask_root(error, membership)),
      until_(Deadline::after_ms(is_asking_ ? kAnswerWait_ms : kNewsWait_ms)) {}

std::optional<Error> Loss::verdict() {
  if (is_asking_ && membership_.has_root_answered()) {
    is_asking_ = false;
    until_ = Deadline::after_ms(kNewsWait_ms);
  }
  if (!until_.passed()) return std::nullopt;
  if (!is_asking_) return error_;
  return Error(error_.code(), std::string(error_.what()) + "; no answer from " +
                                  membership_.root_text() + ", where all ranks met");
}

}  // namespace catenary
