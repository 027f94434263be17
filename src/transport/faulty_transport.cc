#include "src/transport/faulty_transport.h"

#include "src/base/error.h"
#include "src/transport/forwarding_links.h"

namespace catenary {
namespace {

// What goes wrong on one link.
class Misfortune {
 public:
  Misfortune(const Faults& faults, const LinkSpec& spec, bool sends)
      : faults_(faults), spec_(spec), state_(faults.seed) {
    // Links of one seed must not suffer in step.
    state_ += static_cast<std::uint64_t>(spec.peer) * 4 +
              static_cast<std::uint64_t>(spec.channel) * 2 + (sends ? 1 : 0);
  }

  // Whether this try is answered "not yet". Throws once the peer is dead.
  bool delays() {
    if (faults_.dies_after_messages != 0 && messages_ >= faults_.dies_after_messages) {
      throw_error(ErrorCode::kRemote, "rank %d died after %llu messages, as the test asked",
                  spec_.peer, static_cast<unsigned long long>(messages_));
    }
    if (starving_ != 0) {
      --starving_;
      return true;
    }
    if (next_random() % 1000 >= faults_.delays_in_1000) return false;
    starving_ = faults_.starved_tries;
    return true;
  }

  void count_message() { ++messages_; }

 private:
  // splitmix64 (Steele, Lea, Flood 2014): any state is a good state.
  std::uint64_t next_random() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }

  const Faults faults_;
  const LinkSpec spec_;
  std::uint64_t state_;
  std::uint64_t messages_ = 0;
  std::uint32_t starving_ = 0;
};

class FaultySendLink final : public ForwardingSendLink {
 public:
  FaultySendLink(std::unique_ptr<SendLink> inside, const Misfortune& misfortune)
      : ForwardingSendLink(std::move(inside)), misfortune_(misfortune) {}

  ByteSpan try_acquire(std::size_t bytes) override {
    // A slot once given stays given, so only a first try may fail.
    if (!acquired_ && misfortune_.delays()) return {};
    const ByteSpan span = inside().try_acquire(bytes);
    acquired_ = !span.empty();
    return span;
  }
  void commit(std::size_t bytes) override {
    inside().commit(bytes);
    note_commit();
  }
  void commit_from(std::size_t skip, ByteView data) override {
    inside().commit_from(skip, data);
    note_commit();
  }
  void commit_in_place(std::size_t skip, ByteView data) override {
    inside().commit_in_place(skip, data);
    note_commit();
  }
  bool try_flush() override { return !misfortune_.delays() && inside().try_flush(); }
  bool is_flushed_by_commit() const noexcept override { return false; }

 private:
  void note_commit() {
    acquired_ = false;
    misfortune_.count_message();
  }

  Misfortune misfortune_;
  bool acquired_ = false;
};

class FaultyRecvLink final : public ForwardingRecvLink {
 public:
  FaultyRecvLink(std::unique_ptr<RecvLink> inside, const Misfortune& misfortune)
      : ForwardingRecvLink(std::move(inside)), misfortune_(misfortune) {}

  ByteView try_peek() override {
    if (!peeked_ && misfortune_.delays()) return {};
    const ByteView view = inside().try_peek();
    peeked_ = !view.empty();
    return view;
  }
  void release() override {
    inside().release();
    peeked_ = false;
    misfortune_.count_message();
  }

 private:
  Misfortune misfortune_;
  bool peeked_ = false;
};

class FaultyTransport final : public Transport {
 public:
  FaultyTransport(std::unique_ptr<Transport> inside, const Faults& faults)
      : inside_(std::move(inside)), faults_(faults) {}

  std::string_view name() const override { return inside_->name(); }
  void note_neighbours(const Neighbours& here) override { inside_->note_neighbours(here); }
  void note_crowding(bool is_crowded) override { inside_->note_crowding(is_crowded); }
  Bytes address() override { return inside_->address(); }
  std::string about() const override { return inside_->about(); }
  bool reaches(ByteView peer_address) const override { return inside_->reaches(peer_address); }
  std::size_t longest_message() const override { return inside_->longest_message(); }
  bool shares_memory() const override { return inside_->shares_memory(); }
  bool has_ended(int peer) const override { return inside_->has_ended(peer); }
  std::vector<bool> attach(std::span<const Bytes> addresses, const Wait& wait) override {
    return inside_->attach(addresses, wait);
  }
  std::unique_ptr<SendLink> connect(const LinkSpec& spec) override {
    return std::make_unique<FaultySendLink>(inside_->connect(spec),
                                            Misfortune(faults_, spec, true));
  }
  std::unique_ptr<RecvLink> listen(const LinkSpec& spec) override {
    return std::make_unique<FaultyRecvLink>(inside_->listen(spec),
                                            Misfortune(faults_, spec, false));
  }
  bool has_come(const LinkSpec& spec) override { return inside_->has_come(spec); }
  Doorbell* doorbell() override { return nullptr; }
  bool poll() override { return inside_->poll(); }
  void check_sent() override { inside_->check_sent(); }
  bool try_drain() override { return inside_->try_drain(); }

 private:
  std::unique_ptr<Transport> inside_;
  const Faults faults_;
};

}  // namespace

std::unique_ptr<Transport> make_faulty_transport(std::unique_ptr<Transport> inside,
                                                 const Faults& faults) {
  return std::make_unique<FaultyTransport>(std::move(inside), faults);
}

}  // namespace catenary
