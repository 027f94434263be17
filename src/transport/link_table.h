// LinkTable: which transport leads to which peer, and the links made so far.
//
// Built once while a communicator is made: every rank publishes its transports' addresses, attaches
// where it can, and publishes what it proved; two ranks use the best transport that both proved.
// First those that share memory, and networks only if some pair of ranks is left.
// Links are made at plan time, on first use, and live as long as the table.
//
// Threads: made by one thread; the links under the communicator's issue lock.
// Waiting: the constructor waits for all ranks. Failure: throws Error; a pair of ranks that no
// transport joins is kRemote, with the reason, on every rank.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "src/bootstrap/membership.h"
#include "src/transport/transport.h"

namespace catenary {

class LinkTable {
 public:
  // By the names of transports: their addresses, or whom they have proved.
  using AddressBook = std::map<std::string, Bytes, std::less<>>;

  LinkTable(Transports transports, Membership& membership, const Wait& wait);

  SendLink& send_link(int peer, Channel channel);
  RecvLink& recv_link(int peer, Channel channel);
  // For a look at what has come, which must not make links that no operation uses: null if nothing
  // can have.
  RecvLink* recv_link_if_come(int peer, Channel channel);

  // Which transport joins us with the peer.
  Transport& transport_of(int peer) const { return *transports_[by_peer_[index(peer)]]; }
  // The transports that some peer uses: those that need polling, and whose bells may ring.
  const std::vector<Transport*>& in_use() const { return in_use_; }
  // Whether anybody but ourselves rings a bell of one of them.
  bool joins_others_with_bells() const;
  // How many ranks, this one included, share this machine with us.
  int local_ranks() const { return local_ranks_; }

 private:
  static std::size_t index(int value) { return static_cast<std::size_t>(value); }
  static std::size_t index(int peer, Channel channel) {
    return index(peer) * kChannelCount + static_cast<std::size_t>(channel);
  }
  void attach(std::span<const std::unique_ptr<Transport>> round, Membership& membership,
              const Wait& wait, std::vector<AddressBook>& proven);
  bool agreed(const std::vector<AddressBook>& proven, int a, int b, std::string_view name) const;
  Neighbours neighbours(std::span<const std::unique_ptr<Transport>> near,
                        const std::vector<AddressBook>& proven) const;
  static bool joins_all(const std::vector<AddressBook>& proven);
  void choose(const std::vector<AddressBook>& proven);
  std::string own_offers() const;
  static std::string offers_of(const AddressBook& proven);
  void note_used(Transport& transport);

  const int rank_;
  const int nranks_;
  Transports transports_;
  std::vector<std::size_t> by_peer_;
  std::vector<Transport*> in_use_;
  int local_ranks_ = 1;
  std::vector<std::unique_ptr<SendLink>> send_links_;  // index(peer, channel)
  std::vector<std::unique_ptr<RecvLink>> recv_links_;
};

}  // namespace catenary
