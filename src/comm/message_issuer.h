// MessageIssuer: makes runs of the sends and receives of a communicator, and knows their turns.
//
// A group is mostly like the one before: then its messages are not made again, but get new buffers.
//
// Under the issue lock; the turns' serving sides as group_run.h says. Nothing waits. Failure:
// throws what links throw that are made, and kInvalidUsage if a message to oneself is another one
// at its other end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "src/comm/operation_request.h"
#include "src/comm/plan_cache.h"
#include "src/comm/store_choice.h"
#include "src/engine/group_run.h"
#include "src/engine/message_run.h"
#include "src/transport/link_table.h"

namespace catenary {

struct MessageTerms {
  int rank = 0;
  int nranks = 1;
  std::size_t slots = 0;  // of a link
  std::size_t least_loan = SIZE_MAX;
};

class MessageIssuer {
 public:
  // Where messages to a peer go, and where those from it come. Null until there is one, and for
  // this rank itself.
  struct SendEnd {
    SendLink* link = nullptr;
    Turn turn;
  };
  struct RecvEnd {
    RecvLink* link = nullptr;
    Turn turn;
  };

  MessageIssuer(const MessageTerms& terms, LinkTable& links, PlanCache& plans, StoreChoice& stores);

  SendEnd& send_end(int peer) { return send_ends_[static_cast<std::size_t>(peer)]; }
  RecvEnd& recv_end(int peer) { return recv_ends_[static_cast<std::size_t>(peer)]; }

  // Those of a group, which take their turns.
  void add(std::span<const MessageRequest> messages, GroupRun& run);
  // A receive that is a group by itself, whose turn was taken.
  void fill_lone_receive(MessageSpec& spec, const MessageRequest& message, const RecvEnd& end) {
    fill_receive(spec, message, end, {});
  }

 private:
  // What is said of a message depends on those beside it.
  struct GroupTraits {
    bool receives = false;  // from others
    bool some_are_long = false;
    bool copies_exceed_caches = false;  // as a recipe's
    std::size_t touched_bytes = 0;
  };

  bool are_like_last(std::span<const MessageRequest> messages);
  GroupTraits traits_of(std::span<const MessageRequest> messages) const;
  void add_new(std::span<const MessageRequest> messages, const GroupTraits& group, GroupRun& run);
  void add_send(const MessageRequest& message, GroupRun::MadeOf made_of, const GroupTraits& group,
                GroupRun& run);
  void add_receive(const MessageRequest& message, GroupRun::MadeOf made_of,
                   const GroupTraits& group, GroupRun& run);
  void add_own(const MessageRequest& send, const MessageRequest& receive, GroupRun::MadeOf made_of,
               const GroupTraits& group, GroupRun& run);
  void fill(MessageSpec& spec, const Turn& turn, const MessageRequest& message,
            const GroupTraits& group);
  void fill_receive(MessageSpec& spec, const MessageRequest& message, const RecvEnd& end,
                    const GroupTraits& group);
  void set_output(MessageSpec& spec, const MessageRequest& message, const GroupTraits& group);

  const MessageTerms terms_;
  LinkTable& links_;
  PlanCache& plans_;
  StoreChoice& stores_;
  std::vector<SendEnd> send_ends_;  // by peer
  std::vector<RecvEnd> recv_ends_;
  std::vector<std::uint32_t> own_sends_;       // of the group at hand
  std::vector<MessageRequest> last_messages_;  // of the last group that had several
  std::uint64_t stamp_ = 0;                    // what groups like that one are stamped with
  GroupTraits last_group_;
};

}  // namespace catenary
