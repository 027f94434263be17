// PutHub: one rank's links over a PutPort, which orders nothing.
//
// The receiver of a link owns a ring of slots in memory that it gives to the sender; a message is
// one put into the slot that its number falls on. What the put tells is the link and the slot;
// the number itself travels in front of the bytes. Messages may arrive in any order, and are
// peeked in the order of their numbers. A slot is used again once the receiver has given it back,
// by a credit, and once the put before it is done. Credits go along with messages the other way, or
// else by a put that only tells. They are sums, so their order does not matter either.
//
//     slot: 40 bytes unused | number (64 bits) | bytes (32) | credit (32) | check (64) | data
//
// Ends find each other by control messages (put_control.h), and are made independently: a sender
// stages until its receiver's ring is known, and a receiver makes the ring when the sender asks for
// it, whether or not anybody listens yet.
//
// A message that is committed in place consists of a head, its header and the first bytes, from the
// staging slot, and a body from the user's memory: one put of two pieces, or where a port does that
// badly, two puts, of which either may arrive first.
//
// Threads: poll() and try_drain() by one thread at a time, all the rest by any. Nothing waits.
// Owner: the hub owns all memory; links are destroyed before it. Failure: a link throws kRemote
// once its connection has failed and, at the receiver, once what came before has been read.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "src/base/mapping.h"
#include "src/transport/put_control.h"
#include "src/transport/put_port.h"
#include "src/transport/put_state.h"
#include "src/transport/registration_cache.h"
#include "src/transport/transport.h"

namespace catenary {

class PutHub final : private PortListener {
 public:
  // The context's key serves as it is: derive it first. Ports number peers as ranks.
  PutHub(std::unique_ptr<PutPort> port, const TransportContext& context);
  ~PutHub();

  std::unique_ptr<SendLink> connect(const LinkSpec& spec);
  std::unique_ptr<RecvLink> listen(const LinkSpec& spec);
  // Whether the sender has asked for its ring.
  bool has_come(const LinkSpec& spec);
  // Whether anything was told since the last time.
  bool poll();
  // As Transport's.
  int wait_descriptor();
  // Throws kRemote if a message was lost, or can never be put.
  void check_sent();
  // Has links say what they have done, when they have been quiet for a while, and gives up those
  // that wait in vain for some of it for `patience_ns`. To be called now and then by who waits.
  void compare_tallies(std::int64_t now_ns, std::int64_t patience_ns);
  // Tells the peers that this rank goes, from the first call on. True once they have all that was
  // sent, or can never have it, and know. Also polls the other hubs of this process.
  bool try_drain();
  // Whether anything has come from a peer.
  bool has_heard_of(int peer);

 private:
  using Outgoing = PutOutgoing;
  using Incoming = PutIncoming;
  class HubSendLink;
  class HubRecvLink;

  void put_done(std::uint64_t cookie) override;
  void put_failed(std::uint64_t cookie, const std::string& why) override;
  void was_told(std::uint32_t told) override;
  void control_came(const ControlMessage& message) override;
  void control_failed(int peer, const std::string& why) override;
  void port_failed(const std::string& why) override;
  void was_cut(std::uint32_t told) override;

  Incoming& incoming_of(std::uint32_t link);
  void take_head(Incoming& incoming, std::uint32_t slot);
  void take_body(Incoming& incoming, std::uint32_t slot, bool is_odd_round);
  void has_come_whole(Incoming& incoming, std::uint32_t slot);
  void take_credit(Outgoing& outgoing, std::uint32_t slots);
  bool has_our_shape(const ControlWords& words) const;
  void take_open(const ControlWords& words);
  void take_ring(const ControlWords& words);
  void take_leave(const ControlWords& words);
  void take_word_of_arrival(const ControlWords& words);
  void take_tally(const ControlWords& words);
  void say_tally(Incoming& incoming, const Outgoing* ours, std::int64_t now_ns,
                 std::int64_t patience_ns);
  static bool lacks_some(Incoming& incoming, const Outgoing* ours, bool was_away,
                         std::int64_t now_ns, std::int64_t patience_ns);
  void give_up_what_lacks(Incoming& incoming, Outgoing* ours);
  void say(ControlKind kind, const LinkSpec& spec, ControlWords words);
  void ask_for_ring(const Outgoing& outgoing);
  void give_ring(const Incoming& incoming);
  void say_goodbye();
  bool needs_no_goodbye(const Incoming& incoming) const;
  void answer_leave(Incoming& incoming);

  void move();
  void enlist(bool comes);
  void poll_others();
  void give_up();
  void push();
  bool push_controls();
  bool push_messages(Outgoing& outgoing);
  bool push_next_message(Outgoing& outgoing);
  bool push_credit(Incoming& incoming);

  const TransportContext context_;
  const std::size_t stride_;
  std::mutex mutex_;
  // Guarded by mutex_. The port goes last: memory is registered with it.
  std::unique_ptr<PutPort> port_;
  Mapping words_;  // what credits come from, and go to
  std::unique_ptr<PutMemory> words_memory_;
  RegistrationCache registrations_;             // of users' memory
  std::map<std::uint32_t, Outgoing> outgoing_;  // by peer and channel
  std::map<std::uint32_t, Incoming> incoming_;
  std::deque<std::pair<int, ControlMessage>> controls_;  // not yet taken by the port
  bool must_push_ = false;                               // something was not taken
  bool was_told_anything_ = false;                       // by the port, since the last poll()
  bool is_leaving_ = false;
  bool has_parted_ = false;  // from all peers, and none of them is lost
  std::int64_t tallied_ns_ = 0;
  std::string failure_;  // of the port
};

}  // namespace catenary
