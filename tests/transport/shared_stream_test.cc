// Two hubs whose links share a stream, of which one goes.
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <thread>

#include "src/base/error.h"
#include "src/transport/socket_hub.h"
#include "tests/transport/attached_ranks.h"

namespace catenary::test {
namespace {

constexpr LinkSpec with(int peer) { return {peer, Channel::kPointToPoint}; }

// Rank 1 answers what rank 0 tells it.
class SharedStream : public ::testing::Test {
 protected:
  SharedStream() {
    const Key key = random_key();
    std::array<SocketListener, 2> listeners = {open_listener(loopback_config()),
                                               open_listener(loopback_config())};
    const std::vector<SocketPeer> peers = {{listeners[0].address, true},
                                           {listeners[1].address, true}};
    for (int rank = 0; rank < 2; ++rank) {
      TransportContext context;
      context.rank = rank;
      context.nranks = 2;
      context.key = key;
      context.slot_bytes = 4096;
      context.slots = 16;
      context.config = &loopback_config();
      UnsharedFd listener = std::move(listeners[static_cast<std::size_t>(rank)].socket);
      hubs_[rank] = std::make_unique<SocketHub>(std::move(listener), context, peers);
    }
    to_higher_ = hubs_[0]->connect(with(1));
    at_lower_ = hubs_[0]->listen(with(1));
    to_lower_ = hubs_[1]->connect(with(0));
    at_higher_ = hubs_[1]->listen(with(0));
    EXPECT_TRUE(poll_until([&] {
      return hubs_[0]->wait_descriptor() >= 0 && hubs_[1]->wait_descriptor() >= 0 &&
             hubs_[1]->has_come(with(0));
    }));
  }

  bool poll_until(const std::function<bool()>& ready) {
    const Deadline deadline = Deadline::after_ms(10'000);
    while (!ready()) {
      for (const auto& hub : hubs_) {
        if (hub) hub->poll();
      }
      std::this_thread::yield();
      if (deadline.passed()) return false;
    }
    return true;
  }

  void tell_higher() {
    fill(to_higher_->try_acquire(100), 0);
    to_higher_->commit(100);
  }
  bool try_send(std::uint64_t message) {
    const ByteSpan span = to_lower_->try_acquire(kShortMessageBytes);
    if (span.empty()) return false;
    fill(span, message);
    to_lower_->commit(kShortMessageBytes);
    return true;
  }
  void receive(std::uint64_t message) {
    ByteView view;
    ASSERT_TRUE(poll_until([&] { return !(view = at_lower_->try_peek()).empty(); }));
    ASSERT_NO_THROW(check(view, kShortMessageBytes, message));
    at_lower_->release();
  }

  std::unique_ptr<SocketHub> hubs_[2];
  std::unique_ptr<SendLink> to_higher_;
  std::unique_ptr<SendLink> to_lower_;
  std::unique_ptr<RecvLink> at_lower_;
  std::unique_ptr<RecvLink> at_higher_;
};

TEST_F(SharedStream, brings_what_was_flushed_although_its_sender_goes_and_leaves_messages_unread) {
  for (std::uint64_t i = 0; i < 2 * kShortInARow; ++i) {
    tell_higher();
    ASSERT_TRUE(poll_until([&] { return !at_higher_->try_peek().empty(); }));
    at_higher_->release();
    ASSERT_TRUE(try_send(i));
    receive(i);
  }
  tell_higher();
  constexpr std::uint64_t kMessages = kMostUnanswered - 2;
  for (std::uint64_t i = 0; i < kMessages; ++i) {
    ASSERT_TRUE(poll_until([&] { return try_send(i); }));
  }
  ASSERT_TRUE(poll_until([&] { return to_lower_->try_flush(); }));
  to_lower_.reset();
  at_higher_.reset();
  hubs_[1].reset();
  for (std::uint64_t i = 0; i < kMessages; ++i) receive(i);
}

}  // namespace
}  // namespace catenary::test
