// What is lost with a connection, which nobody tells, is found out (src/transport/put_tally.cc).
#include <gtest/gtest.h>

#include <optional>

#include "src/base/error.h"
#include "src/transport/put_hub.h"
#include "tests/transport/attached_ranks.h"
#include "tests/transport/passing_port.h"
#include "tests/transport/put_network.h"

namespace catenary::test {
namespace {

// A port that loses a put, or control message, and says that it is done, as where a connection
// breaks off that had taken it. The first one, and more when it is told to.
class LosingPort final : public PassingPort {
 public:
  LosingPort(std::unique_ptr<PutPort> port, bool loses_control)
      : PassingPort(std::move(port)), loses_control_(loses_control) {}
  bool try_put(const Put& put) override {
    if (loses_control_ || !std::exchange(is_losing_, false)) return PassingPort::try_put(put);
    lost_ = put.cookie;
    return true;
  }
  bool try_send(int peer, const ControlMessage& message) override {
    return (loses_control_ && std::exchange(is_losing_, false)) ||
           PassingPort::try_send(peer, message);
  }
  void progress(PortListener& listener) override {
    if (lost_) listener.put_done(*lost_);
    lost_.reset();
    PassingPort::progress(listener);
  }

  void lose_another_control() {
    loses_control_ = true;
    is_losing_ = true;
  }

 private:
  bool loses_control_;
  bool is_losing_ = true;
  std::optional<std::uint64_t> lost_;
};

// Two ranks, the first of which sends three messages. Something of one of them is lost.
class Loss : public testing::Test {
 protected:
  static constexpr std::int64_t kPatience_ns = 5'000'000'000;
  void send(int loser, bool loses_control = false) {
    context.nranks = 2;
    context.slots = 2;
    context.slot_bytes = 64;
    context.key = random_test_key();
    for (context.rank = 0; context.rank < 2; ++context.rank) {
      std::unique_ptr<PutPort> port = network.add_port();
      if (context.rank == loser) {
        auto made = std::make_unique<LosingPort>(std::move(port), loses_control);
        losing = made.get();
        port = std::move(made);
      }
      hubs.push_back(std::make_unique<PutHub>(std::move(port), context));
    }
    link = hubs[0]->connect({1, Channel::kCollective});
    end = hubs[1]->listen({0, Channel::kCollective});
    go_on();
  }
  void go_on() {
    for (int i = 0; i < 1000; ++i) {
      if (given < 3 && !link->try_acquire(8).empty()) link->commit(8), ++given;
      turn();
      if (!end->try_peek().empty()) end->release(), ++came;
    }
  }
  void turn() {
    network.turn();
    for (const auto& hub : hubs) hub->poll();
  }
  void look() {
    now_ns += 200'000'000;
    for (const auto& hub : hubs) hub->compare_tallies(now_ns, kPatience_ns);
  }
  // What is said has come before anybody looks again.
  void look_for(std::int64_t time_ns) {
    for (const std::int64_t until_ns = now_ns + time_ns; now_ns < until_ns;) {
      look();
      for (int i = 0; i < 50; ++i) turn();
    }
  }
  template <typename Use>
  static std::string failure(const Use& use) {
    try {
      use();
      return "";
    } catch (const Error& error) {
      return error.what();
    }
  }

  PutNetwork network{1};
  TransportContext context;
  std::vector<std::unique_ptr<PutHub>> hubs;
  std::unique_ptr<SendLink> link;
  std::unique_ptr<RecvLink> end;
  std::int64_t now_ns = 1'000'000'000;
  int given = 0;
  int came = 0;
  LosingPort* losing = nullptr;
};

TEST_F(Loss, of_a_message_is_found_out_and_told) {
  send(0);
  EXPECT_EQ(came, 0);
  look_for(kPatience_ns);
  EXPECT_EQ(failure([&] { end->try_peek(); }), "") << "it may be on its way";
  look_for(2 * kPatience_ns);
  const std::string told = failure([&] { end->try_peek(); });
  EXPECT_NE(told.find("lost with a connection"), std::string::npos) << told;
}

TEST_F(Loss, of_a_credit_is_found_out_and_told) {
  send(1);
  EXPECT_EQ(failure([&] { link->try_acquire(8); }), "");
  look_for(2 * kPatience_ns);
  const std::string told = failure([&] { link->try_acquire(8); });
  EXPECT_NE(told.find("lost with a connection"), std::string::npos) << told;
}

TEST_F(Loss, of_the_question_for_a_ring_is_made_good) {
  send(0, true);
  EXPECT_EQ(came, 0);
  look_for(2'000'000'000);
  go_on();
  EXPECT_EQ(came, 3);
}

TEST_F(Loss, of_the_answer_is_made_good) {
  send(1, true);
  EXPECT_EQ(came, 0);
  look_for(2'000'000'000);
  go_on();
  EXPECT_EQ(came, 3);
}

TEST_F(Loss, of_what_was_said_of_it_is_made_good) {
  send(0);
  losing->lose_another_control();
  look_for(3 * kPatience_ns);
  EXPECT_NE(failure([&] { end->try_peek(); }), "");
}

// What is stopped looks late, and finds what has come only after that.
TEST_F(Loss, is_not_concluded_by_who_was_away) {
  send(0);
  look_for(kPatience_ns / 2);
  for (int i = 0; i < 20; ++i) {
    now_ns += kPatience_ns;
    look();
  }
  EXPECT_EQ(failure([&] { end->try_peek(); }), "");
}

TEST_F(Loss, of_nothing_harms_nothing) {
  send(-1);
  EXPECT_EQ(came, 3);
  look_for(3 * kPatience_ns);
  EXPECT_EQ(failure([&] { end->try_peek(); }), "");
  EXPECT_EQ(failure([&] { link->try_acquire(8); }), "");
}

}  // namespace
}  // namespace catenary::test
