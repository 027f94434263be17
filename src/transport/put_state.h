// What a PutHub (put_hub.h) knows of each link: values that it guards, and no more.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/base/mapping.h"
#include "src/transport/put_port.h"
#include "src/transport/transport.h"

namespace catenary {

// Both ways between two ranks have one number.
inline std::uint32_t link_number(std::uint32_t peer, std::uint32_t channel) {
  return peer * kChannelCount + channel;
}
inline std::uint32_t link_number(const LinkSpec& spec) {
  return link_number(static_cast<std::uint32_t>(spec.peer),
                     static_cast<std::uint32_t>(spec.channel));
}

// One message on its way.
struct PutFlight {
  int flying = 0;  // puts of it that are not done
  bool body_is_put = false;
  bool head_is_put = false;
  // Of its bytes, the last ones, which are put from where they lie; until that is done.
  ByteView in_place = {};
  std::shared_ptr<const PutMemory> memory = nullptr;  // that holds those, if it must be registered
};

struct PutOutgoing {
  LinkSpec spec;
  Mapping staging;
  std::unique_ptr<PutMemory> memory;
  std::optional<PutTarget> ring;
  std::vector<PutFlight> slots;
  std::uint32_t flights = 0;  // puts
  // Messages, counted from the first.
  std::uint64_t committed = 0;
  std::uint64_t put = 0;
  std::uint64_t credited = 0;
  std::uint64_t arrived = 0;  // as the peer said when either left
  bool has_lost = false;      // a put has failed
  std::string failure;
};

// What one end of a link, both ways, has done so far.
struct PutTally {
  std::uint64_t put = 0;       // messages
  std::uint64_t credited = 0;  // slots of the peer's messages
  bool operator==(const PutTally&) const = default;
};

// How both ends find out what was lost on the way (put_tally.cc).
struct PutTallies {
  PutTally ours;
  std::int64_t say_at_ns = 0;       // unless it changes before
  PutTally theirs;                  // as the peer has said
  PutTally come;                    // of that, when somebody last looked
  std::int64_t lacks_since_ns = 0;  // some of theirs, and has got nothing since; 0: not so
};

// What of a message has come.
struct PutArrival {
  bool is_here = false;  // all of it, and it is not released
  bool has_head = false;
  bool has_body = false;
};

struct PutIncoming {
  LinkSpec spec;
  bool is_listened = false;
  Mapping ring;
  std::unique_ptr<PutMemory> memory;  // null until the sender asked
  PutTarget credits_go;
  std::vector<PutArrival> arrivals;  // by slot
  // Messages, counted from the first.
  std::uint64_t came = 0;
  std::uint64_t released = 0;
  std::uint64_t credited = 0;
  std::optional<std::uint64_t> sent_in_all;  // the peer has said that it leaves
  bool is_answered = false;                  // and we, that all has come
  bool has_goodbye = false;                  // was said by us
  bool has_heard = false;                    // the peer knows that we leave
  PutTallies tallies;
  std::string failure;

  // A sender that sees all its slots taken must hear of every one that is free; one that has some
  // left does well with fewer credits.
  bool owes_credit(std::uint32_t slots) const {
    if (released == credited || sent_in_all || !failure.empty()) return false;
    return released - credited >= std::max(slots / 4, 1u) || came - credited >= slots;
  }
};

}  // namespace catenary
