#include "src/comm/ledger.h"

#include <cstring>

namespace catenary {
namespace {

// Ranks ahead of us cannot be far ahead, so more than this is not worth its memory.
constexpr std::size_t kMostHeard = 256;

}  // namespace

std::optional<Error> Ledger::judge(int peer, const Descriptor& theirs) const {
  const Descriptor& mine = begun_[theirs.sequence % kKept];
  const std::int32_t back = age(theirs.sequence);
  const bool known =
      back > 0 && back <= static_cast<std::int32_t>(kKept) && mine.sequence == theirs.sequence;
  if (!known || mine == whole(theirs)) return std::nullopt;
  return disagreement(rank_, mine, peer, theirs);
}

std::optional<Error> Ledger::judge_unread(int peer, const Descriptor& theirs) const {
  if (age(theirs.sequence) <= static_cast<std::int32_t>(kKept)) return judge(peer, theirs);
  return Error(ErrorCode::kInvalidUsage,
               format("ranks do not agree: rank %d has issued %s, in which rank %d, now at number "
                      "%u, took no part; every rank must issue the same operations in the same "
                      "order",
                      peer, describe(theirs).c_str(), rank_, next_));
}

Error Ledger::too_late(const Heard& heard) const {
  return Error(ErrorCode::kInvalidUsage,
               format("ranks do not agree: rank %d has issued %s, but rank %d has parted after %u "
                      "collectives; every rank must issue the same operations in the same order",
                      heard.peer, describe(heard.theirs).c_str(), rank_, next_));
}

void Ledger::hear(int peer, ByteView claim) {
  Heard heard{peer, {}};
  if (claim.size() != sizeof heard.theirs || heard_.size() == kMostHeard) return;
  std::memcpy(&heard.theirs, claim.data(), sizeof heard.theirs);
  heard_.push_back(heard);
}

std::optional<Descriptor> Ledger::close() {
  closed_ = true;
  if (next_ == 0) return std::nullopt;
  return begun_[(next_ - 1) % kKept];
}

std::optional<Error> Ledger::judge_heard() {
  std::optional<Error> proof;
  std::erase_if(heard_, [&](const Heard& heard) {
    const bool is_to_come = age(heard.theirs.sequence) <= 0;
    if (is_to_come && !closed_) return false;
    if (!proof) proof = is_to_come ? too_late(heard) : judge(heard.peer, heard.theirs);
    return true;
  });
  return proof;
}

}  // namespace catenary
