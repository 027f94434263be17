// Who has left is blamed for what it did not send, and for nothing else: whatever the order in
// which its message and the news of its departure are seen.
#include "src/comm/stall_watch.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <optional>

#include "src/base/error.h"
#include "transports/loopback/transport.h"

namespace catenary {
namespace {

constexpr std::int64_t kSecond_ns = 1'000'000'000;

// A link that delivers when the test says so.
class Inbox final : public RecvLink {
 public:
  void arrive() { ++messages_; }
  ByteView try_peek() override {
    return messages_ > 0 ? std::as_bytes(std::span(value_)) : ByteView();
  }
  void release() override { --messages_; }

 private:
  const std::array<float, 1> value_{2};
  int messages_ = 0;
};

// The communicator, as far as runs know it.
class Owner final : public RunOwner {
 public:
  void check_peers(const GroupRun& /*run*/) override {}
  bool poll_transports() override { return false; }
  bool has_time() const noexcept override { return true; }
  Task::Wakers wakers() override { return {}; }
  void begins(const Descriptor& /*descriptor*/) noexcept override {}
  bool run_failed(const std::exception& /*error*/) noexcept override { return true; }
  void run_over(GroupRun& /*run*/) noexcept override {}
  void short_run_over() noexcept override {}

  std::uint64_t moves() const { return moves_; }

 private:
  bool may_go_on_in_trouble() override { return true; }
};

// An operation that takes messages from some ranks, in that order: a step for each, or a fold.
class Taker {
 public:
  Taker(const std::shared_ptr<Owner>& owner, const std::vector<int>& peers, bool folds) {
    for (const int peer : peers) {
      inboxes_.push_back(std::make_unique<Inbox>());
      Inbox* inbox = inboxes_.back().get();
      if (folds) {
        plan_.fold_sources.push_back({.recv = inbox, .recv_from = peer});
      } else {
        plan_.steps.push_back(
            {.recv = inbox, .dst = output(0), .extent = output(0), .recv_from = peer});
      }
    }
    if (folds)
      plan_.steps.push_back(
          {.dst = output(0), .extent = output(0), .fold_count = static_cast<int>(peers.size())});
    RunSpec spec;
    spec.plan = &plan_;
    spec.kernels =
        &kernels::reduce_kernels(DataType::kFloat32, ReduceOp::kSum, kernels::Isa::kScalar);
    spec.output = reinterpret_cast<std::byte*>(&result_);
    spec.slicing = Slicing(Partition::split(1, sizeof result_, 1), 64, 2);
    spec.descriptor.kind = Collective::kReduce;
    spec.descriptor.type = DataType::kFloat32;
    spec.descriptor.count = 1;
    group_.begin(*owner);
    group_.add({.spec = spec,
                .input = spec.input,
                .output = spec.output,
                .turn = turn_,
                .ticket = turn_.take()});
  }

  Inbox& inbox(std::size_t i) { return *inboxes_[i]; }
  GroupRun& group() { return group_; }
  bool poll_is_done() { return group_.poll() == Task::Progress::kDone; }
  float result() const { return result_; }

 private:
  Plan plan_;
  std::vector<std::unique_ptr<Inbox>> inboxes_;
  Turn turn_;
  GroupRun group_;
  float result_ = 0;
};

class Departure : public testing::Test {
 protected:
  // The look of a thread after the news that the rank that `run` waits for has left. What it says.
  std::string look(Taker& run, bool shares_memory = true) {
    try {
      const GroupRun& group = run.group();
      watch_.check_gone(group, group.waiting().value(), "has left the communicator",
                        owner_->moves(), shares_memory, now_ns_);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kRemote);
      return error.what();
    }
    return "";
  }

  const std::shared_ptr<Owner> owner_ = std::make_shared<Owner>();
  std::int64_t now_ns_ = kSecond_ns;

 private:
  Transports loopback() {
    TransportContext context;
    context.config = &config_;
    Transports transports;
    transports.push_back(loopback::make_transport(context));
    return transports;
  }

  const Config config_;
  Membership membership_{create_unique_id(config_), 0, 1, Wait{}, config_};
  LinkTable links_{loopback(), membership_, Wait{}};
  StallWatch watch_{0, links_, 0};
};

constexpr const char* kBlame =
    "rank 1 has left the communicator, but rank 0 waits for it in Reduce number 0 (count 1, float, "
    "root 0)";

TEST_F(Departure, of_a_rank_that_sent_nothing_is_an_error) {
  Taker run(owner_, {1}, false);
  EXPECT_FALSE(run.poll_is_done());
  EXPECT_EQ(look(run), "");
  EXPECT_FALSE(run.poll_is_done());
  EXPECT_EQ(look(run), kBlame);
}

// The message came after the last poll. Two threads look before the next one.
TEST_F(Departure, does_no_harm_after_a_message_that_nobody_has_seen_yet) {
  Taker run(owner_, {1}, false);
  EXPECT_FALSE(run.poll_is_done());
  run.inbox(0).arrive();
  EXPECT_EQ(look(run), "");
  EXPECT_EQ(look(run), "");
  EXPECT_TRUE(run.poll_is_done());
  EXPECT_EQ(run.result(), 2);
}

// What a poll of another run of the communicator finds, or not, says nothing about this one.
TEST_F(Departure, counts_against_the_run_that_was_polled_since) {
  Taker run(owner_, {1}, false);
  Taker other(owner_, {1}, false);
  EXPECT_FALSE(run.poll_is_done());
  run.inbox(0).arrive();
  EXPECT_EQ(look(run), "");
  EXPECT_FALSE(other.poll_is_done());
  EXPECT_EQ(look(run), "");
  EXPECT_TRUE(run.poll_is_done());
}

// A fold that comes to wait for the next rank has not moved.
TEST_F(Departure, counts_for_each_rank_that_a_fold_waits_for) {
  Taker run(owner_, {1, 2}, true);
  EXPECT_FALSE(run.poll_is_done());
  run.inbox(0).arrive();
  EXPECT_EQ(look(run), "");
  EXPECT_FALSE(run.poll_is_done());  // sees rank 1's message, and waits for rank 2
  EXPECT_EQ(owner_->moves(), 0u);
  run.inbox(1).arrive();
  EXPECT_EQ(look(run), "");
  EXPECT_TRUE(run.poll_is_done());
  EXPECT_EQ(run.result(), 4);
}

// Of the many messages of a rank that has left, the next one is yet to be seen.
TEST_F(Departure, counts_anew_after_each_move) {
  Taker run(owner_, {1, 1}, false);
  EXPECT_FALSE(run.poll_is_done());
  run.inbox(0).arrive();
  EXPECT_EQ(look(run), "");
  EXPECT_FALSE(run.poll_is_done());
  EXPECT_EQ(owner_->moves(), 1u);
  run.inbox(1).arrive();
  EXPECT_EQ(look(run), "");
  EXPECT_TRUE(run.poll_is_done());
}

// The news goes another way than the message, and may be there first.
TEST_F(Departure, may_overtake_a_message_in_a_network) {
  Taker run(owner_, {1}, false);
  EXPECT_FALSE(run.poll_is_done());
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(look(run, false), "");
    EXPECT_FALSE(run.poll_is_done());
    now_ns_ += kSecond_ns / 2;
  }
  run.inbox(0).arrive();
  EXPECT_EQ(look(run, false), "");
  EXPECT_TRUE(run.poll_is_done());

  Taker other(owner_, {1}, false);
  EXPECT_FALSE(other.poll_is_done());
  EXPECT_EQ(look(other, false), "");
  EXPECT_FALSE(other.poll_is_done());
  now_ns_ += 10 * kSecond_ns;
  EXPECT_EQ(look(other, false), kBlame);
}

}  // namespace
}  // namespace catenary
