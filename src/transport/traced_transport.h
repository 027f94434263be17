// Traced transport: counts what passes through the links of another transport.
//
// Threads: as the transport inside; counts() from any thread at any time. Nothing waits. Owner: the
// traced transport owns the one inside; counts outlive the links they are of. Adds no failures.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "src/transport/transport.h"

namespace catenary {

struct LinkCounts {
  int peer;
  Channel channel;
  bool sends;
  std::uint64_t messages;
  std::uint64_t bytes;
  std::uint64_t empties;  // times that a try_ found nothing
};

class TracedTransport final : public Transport {
 public:
  explicit TracedTransport(std::unique_ptr<Transport> inside);
  ~TracedTransport() override;

  // One entry per link ever made, in the order of their making.
  std::vector<LinkCounts> counts() const;

  std::string_view name() const override { return inside_->name(); }
  std::string about() const override { return inside_->about(); }
  void note_neighbours(const Neighbours& here) override { inside_->note_neighbours(here); }
  void note_crowding(bool is_crowded) override { inside_->note_crowding(is_crowded); }
  Bytes address() override { return inside_->address(); }
  bool reaches(ByteView peer_address) const override { return inside_->reaches(peer_address); }
  std::size_t longest_message() const override { return inside_->longest_message(); }
  bool shares_memory() const override { return inside_->shares_memory(); }
  bool has_ended(int peer) const override { return inside_->has_ended(peer); }
  std::vector<bool> attach(std::span<const Bytes> addresses, const Wait& wait) override {
    return inside_->attach(addresses, wait);
  }
  std::unique_ptr<SendLink> connect(const LinkSpec& spec) override;
  std::unique_ptr<RecvLink> listen(const LinkSpec& spec) override;
  bool has_come(const LinkSpec& spec) override { return inside_->has_come(spec); }
  Doorbell* doorbell() override { return inside_->doorbell(); }
  int wait_descriptor() override { return inside_->wait_descriptor(); }
  bool poll() override { return inside_->poll(); }
  void check_sent() override { inside_->check_sent(); }
  bool try_drain() override { return inside_->try_drain(); }

 private:
  struct Counters;
  class CountingSendLink;
  class CountingRecvLink;
  Counters& add_counters(const LinkSpec& spec, bool sends);

  std::unique_ptr<Transport> inside_;
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Counters>> counters_;  // guarded by mutex_; entries never move
};

}  // namespace catenary
