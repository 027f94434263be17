// What a hub of puts tells, refuses, and leaves behind. That everything arrives: put_seeds_test.cc.
#include "src/transport/put_hub.h"

#include <gtest/gtest.h>

#include <cstring>

#include "src/base/error.h"
#include "src/transport/faulty_port.h"
#include "src/transport/put_words.h"
#include "tests/transport/attached_ranks.h"
#include "tests/transport/passing_port.h"
#include "tests/transport/put_network.h"

namespace catenary::test {
namespace {

TransportContext of_two_ranks(std::uint32_t slots) {
  TransportContext context;
  context.nranks = 2;
  context.slots = slots;
  context.slot_bytes = 64;
  context.key = random_test_key();
  return context;
}

// Two ranks, of which one's puts fail after the first; whether check_sent() of each throws, when
// the first rank has sent a few messages and the second has taken what came and given it back.
std::vector<bool> ranks_that_tell(int failing) {
  PutNetwork network(1);
  TransportContext context = of_two_ranks(4);
  std::vector<std::unique_ptr<PutHub>> hubs;
  for (context.rank = 0; context.rank < 2; ++context.rank) {
    PortFaults faults;
    faults.fails_after_puts = context.rank == failing ? 1 : 0;
    auto port = make_faulty_port(network.add_port(), faults);
    hubs.push_back(std::make_unique<PutHub>(std::move(port), context));
  }
  const auto send = hubs[0]->connect({1, Channel::kCollective});
  const auto recv = hubs[1]->listen({0, Channel::kCollective});
  const auto other_way = hubs[1]->connect({0, Channel::kCollective});
  for (int i = 0, given = 0; i < 2000; ++i) {
    network.turn();
    for (const auto& hub : hubs) hub->poll();
    try {
      if (given < 9 && !send->try_acquire(8).empty()) send->commit(8), ++given;
    } catch (const Error&) {
      given = 9;  // nobody uses it again
    }
    try {
      if (!recv->try_peek().empty()) recv->release();
    } catch (const Error&) {
      continue;  // it says so itself
    }
  }
  std::vector<bool> told;
  for (const auto& hub : hubs) {
    try {
      hub->check_sent();
      told.push_back(false);
    } catch (const Error& error) {
      told.push_back(error.code() == ErrorCode::kRemote);
    }
  }
  return told;
}

TEST(PutHub, tells_who_waits_of_messages_that_are_lost_and_of_nothing_else) {
  EXPECT_EQ(ranks_that_tell(-1), std::vector<bool>({false, false}));
  EXPECT_EQ(ranks_that_tell(0), std::vector<bool>({true, false}));
  EXPECT_EQ(ranks_that_tell(1), std::vector<bool>({false, false})) << "only credits were lost";
}

// Ranks that leave take what has come for others of their process, who may sleep until they are
// told.
TEST(PutHub, that_is_moved_by_another_one_wakes_who_sleeps) {
  PutNetwork network(1);
  TransportContext context;
  context.nranks = 2;
  context.key = random_test_key();
  PutHub leaving(network.add_port(), context);
  context.rank = 1;
  int wakes = 0;
  context.wake = [&] { ++wakes; };
  PutHub sleeping(network.add_port(), context);
  const auto link = leaving.connect({1, Channel::kCollective});
  EXPECT_EQ(wakes, 0);
  leaving.try_drain();
  EXPECT_EQ(wakes, 1) << "it was asked for its ring";
}

// A port of which a test can tell a hub anything.
class TellingPort final : public PutPort {
 public:
  struct Memory final : PutMemory {
    PutTarget target() const override { return {}; }
  };
  std::unique_ptr<PutMemory> register_memory(ByteSpan memory) override {
    if (!has_memory) throw_error(ErrorCode::kSystem, "too much is locked");
    last = memory;
    return std::make_unique<Memory>();
  }
  std::unique_ptr<PutMemory> register_source(ByteView) override {
    return std::make_unique<Memory>();
  }
  bool registers_sources() const override { return false; }
  bool gathers() const override { return false; }
  bool try_put(const Put&) override { return true; }
  bool try_send(int, const ControlMessage& message) override {
    sent.push_back(message);
    return true;
  }
  void progress(PortListener& listener) override {
    for (const ControlMessage& message : messages) listener.control_came(message);
    for (const std::uint32_t word : words) listener.was_told(word);
    for (const std::uint32_t word : cuts) listener.was_cut(word);
    messages.clear();
    words.clear();
    cuts.clear();
  }
  bool is_quiet() const override { return true; }
  void shut(Parting parting) noexcept override { *how_it_ended = parting; }

  bool has_memory = true;  // to register
  ByteSpan last;           // that was registered
  std::vector<ControlMessage> sent;
  std::vector<ControlMessage> messages;
  std::vector<std::uint32_t> words;
  std::vector<std::uint32_t> cuts;
  std::shared_ptr<Parting> how_it_ended = std::make_shared<Parting>();
};

// What the hub of rank 0 makes of words about its link from rank 1, whose first message is there
// with its body apart.
class Words : public testing::Test {
 protected:
  Words() {
    context.nranks = 2;
    context.slots = 3;
    context.slot_bytes = 64;
    context.key = random_test_key();
    auto made = std::make_unique<TellingPort>();
    port = made.get();
    hub.emplace(std::move(made), context);
    link = hub->listen({1, Channel::kCollective});
    say(ControlKind::kOpen, Channel::kCollective);
    ring = port->last;
  }
  void say(ControlKind kind, Channel channel, std::uint64_t sent = 0) {
    ControlWords words;
    words.sent = sent;
    words.kind = kind;
    words.channel = static_cast<std::uint16_t>(channel);
    words.from = 1;
    words.slots = context.slots;
    words.slot_bytes = static_cast<std::uint32_t>(context.slot_bytes);
    port->messages.push_back(seal_control(context.key, words));
    hub->poll();
  }
  void write_head(std::uint64_t number, std::uint32_t bytes, std::uint32_t credit = 0) const {
    MessageHeader header = {number, bytes, credit, 0};
    header.check = check_of(header);
    const std::size_t at = number % context.slots * (kDataOffset + context.slot_bytes);
    std::memcpy(ring.data() + at + kHeaderOffset, &header, sizeof header);
  }
  static constexpr std::uint32_t kLink = kChannelCount;  // from rank 1, for collectives
  std::uint32_t head(std::uint64_t number) const {
    return message_word(kLink, number, context.slots);
  }
  std::uint32_t body(std::uint64_t number) const { return head(number) | kIsBody; }
  void tell(std::vector<std::uint32_t> words) {
    port->words = std::move(words);
    hub->poll();
  }
  bool has_failed() {
    try {
      while (!link->try_peek().empty()) link->release();
      return false;
    } catch (const Error& error) {
      return std::string(error.what()).find("its process is faulty") != std::string::npos;
    }
  }

  TransportContext context;
  TellingPort* port = nullptr;
  std::optional<PutHub> hub;
  std::unique_ptr<RecvLink> link;
  ByteSpan ring;
};

TEST_F(Words, of_head_and_body_make_a_message_in_any_order) {
  write_head(0, 10 | kBodyApart);
  write_head(1, 20 | kBodyApart);
  tell({head(0)});
  EXPECT_TRUE(link->try_peek().empty());
  tell({body(1), head(1)});
  EXPECT_TRUE(link->try_peek().empty());
  tell({body(0)});
  EXPECT_EQ(link->try_peek().size(), 10u);
  link->release();
  EXPECT_EQ(link->try_peek().size(), 20u);
  link->release();
  EXPECT_FALSE(has_failed());
}

TEST_F(Words, of_a_body_for_another_round_are_refused) {
  tell({body(context.slots)});
  EXPECT_TRUE(has_failed());
}

TEST_F(Words, of_a_body_twice_are_refused) {
  tell({body(0), body(0)});
  EXPECT_TRUE(has_failed());
}

TEST_F(Words, of_a_body_that_comes_again_when_its_message_was_read_are_refused) {
  write_head(0, 10 | kBodyApart);
  tell({head(0), body(0)});
  link->try_peek();
  link->release();
  tell({body(0)});
  EXPECT_TRUE(has_failed());
}

TEST_F(Words, of_a_body_for_a_message_without_one_are_refused) {
  write_head(0, 10);
  tell({body(0), head(0)});
  EXPECT_TRUE(has_failed());
}

// The way may be slow: all that was sent has not come by the end of a patience, but some has.
TEST_F(Words, of_a_tally_end_a_link_only_when_nothing_more_comes) {
  constexpr std::int64_t kPatience_ns = 5'000'000'000;
  std::int64_t now_ns = 1'000'000'000;
  const auto look_for = [&](std::int64_t time_ns) {
    for (const std::int64_t until_ns = now_ns + time_ns; now_ns < until_ns;) {
      hub->compare_tallies(now_ns += 200'000'000, kPatience_ns);
    }
  };
  say(ControlKind::kTally, Channel::kCollective, 4);
  for (std::uint64_t number = 0; number < 3; ++number) {
    look_for(kPatience_ns * 3 / 4);
    ASSERT_NO_THROW(link->try_peek());
    write_head(number, 10);
    tell({head(number)});
    link->release();
  }
  say(ControlKind::kTally, Channel::kCollective, 4);
  look_for(kPatience_ns + 1'000'000'000);
  EXPECT_THROW(link->try_peek(), Error);
}

TEST_F(Words, of_what_broke_off_end_the_links_of_that_rank) {
  const auto other_way = hub->connect({1, Channel::kPointToPoint});
  port->cuts = {head(0)};
  hub->poll();
  EXPECT_THROW(link->try_peek(), Error);
  EXPECT_THROW(other_way->try_acquire(1), Error);
}

// Only who has heard the last of all its peers is sure that none is in the middle of a put.
TEST_F(Words, of_all_peers_make_it_a_parting_in_peace) {
  const auto how_it_ended = port->how_it_ended;
  link.reset();
  hub.reset();
  EXPECT_EQ(*how_it_ended, Parting::kInTheMiddle);
}

// Neither end waits for what can never be.
TEST_F(Words, of_a_link_for_which_there_is_no_memory_are_answered_by_a_refusal) {
  const auto end = hub->listen({1, Channel::kPointToPoint});
  port->has_memory = false;
  say(ControlKind::kOpen, Channel::kPointToPoint);
  EXPECT_THROW(end->try_peek(), Error);
  TransportContext peer = context;
  peer.rank = 1;
  const auto answer = open_control(context.key, port->sent.back(), peer.rank, peer.nranks);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->kind, ControlKind::kRefuse);

  port->has_memory = true;
  const auto other_way = hub->connect({1, Channel::kCollective});
  say(ControlKind::kRefuse, Channel::kCollective);
  try {
    other_way->try_acquire(1);
    ADD_FAILURE() << "it does not say why";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("has no memory"), std::string::npos) << error.what();
  }
}

// A user who gives an operation up may free its buffers at once.
TEST(PutHub, puts_nothing_any_more_of_what_was_withdrawn) {
  for (unsigned seed = 0; seed < 100; ++seed) {
    PutNetwork network(seed);
    TransportContext context;
    context.nranks = 2;
    context.slots = 4;
    context.slot_bytes = 256;
    context.key = random_test_key();
    auto buffer = std::make_unique<Bytes>(200);
    bool is_freed = false;
    context.find_block = [&](const std::byte*) {
      return is_freed ? std::optional<UserBlock>() : UserBlock{*buffer, 1};
    };
    PutHub sender(network.add_port(), context);
    context.rank = 1;
    PutHub receiver(network.add_port(), context);
    const auto send = sender.connect({1, Channel::kCollective});
    const auto recv = receiver.listen({0, Channel::kCollective});
    for (unsigned turn = 0; turn < seed % 10; ++turn) sender.poll(), receiver.poll();
    for (int message = 0; message < 3; ++message) {
      ASSERT_FALSE(send->try_acquire(200).empty());
      ASSERT_TRUE(send->sends_in_place(*buffer));
      send->commit_in_place(0, *buffer);
    }
    for (unsigned turn = 0; turn < seed % 7; ++turn) sender.poll(), receiver.poll();
    if (send->try_flush()) continue;
    send->withdraw();
    is_freed = true;
    buffer.reset();
    for (unsigned turn = 0; turn < 50; ++turn) sender.poll(), receiver.poll();
    EXPECT_TRUE(sender.try_drain());
    EXPECT_THROW(send->try_acquire(1), Error);
  }
}

// A port that cannot be used any more, and says so by what it throws.
class BrokenPort final : public PassingPort {
 public:
  using PassingPort::PassingPort;
  void progress(PortListener& /*listener*/) override {
    throw_error(ErrorCode::kSystem, "the port is broken");
  }
};

// Ranks that leave answer for others of their process, whose failures are not theirs.
TEST(PutHub, leaves_beside_another_one_that_is_broken) {
  PutNetwork network(1);
  TransportContext context;
  context.nranks = 2;
  context.key = random_test_key();
  PutHub sound(network.add_port(), context);
  context.rank = 1;
  PutHub broken(std::make_unique<BrokenPort>(network.add_port()), context);
  const std::unique_ptr<SendLink> link = broken.connect({0, Channel::kCollective});
  EXPECT_TRUE(sound.try_drain());
  EXPECT_TRUE(broken.try_drain()) << "it has failed, and waits for nobody";
  try {
    link->try_acquire(1);
    ADD_FAILURE() << "the link does not tell of the port's failure";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("the port is broken"), std::string::npos)
        << error.what();
  }
}

class PartingPort final : public PassingPort {
 public:
  PartingPort(std::unique_ptr<PutPort> port, std::vector<Parting>& partings)
      : PassingPort(std::move(port)), partings_(partings) {}
  void shut(Parting parting) noexcept override {
    partings_.push_back(parting);
    PassingPort::shut(parting);
  }

 private:
  std::vector<Parting>& partings_;
};

TEST(PutHub, parts_in_peace_from_peers_that_have_said_goodbye) {
  PutNetwork network(1);
  TransportContext context = of_two_ranks(4);
  std::vector<Parting> partings;
  std::vector<std::unique_ptr<PutHub>> hubs;
  for (context.rank = 0; context.rank < 2; ++context.rank) {
    auto port = std::make_unique<PartingPort>(network.add_port(), partings);
    hubs.push_back(std::make_unique<PutHub>(std::move(port), context));
  }
  const auto send = hubs[0]->connect({1, Channel::kCollective});
  const auto recv = hubs[1]->listen({0, Channel::kCollective});
  send->try_acquire(8);
  send->commit(8);
  bool have_all_left = false;
  for (int i = 0; i < 1000 && !have_all_left; ++i) {
    network.turn();
    for (const auto& hub : hubs) hub->poll();
    if (!recv->try_peek().empty()) recv->release();
    const bool has_first_left = hubs[0]->try_drain();
    have_all_left = hubs[1]->try_drain() && has_first_left;
  }
  ASSERT_TRUE(have_all_left);
  hubs.clear();
  EXPECT_EQ(partings, std::vector<Parting>(2, Parting::kInPeace));
}

class CountingPort final : public PassingPort {
 public:
  CountingPort(std::unique_ptr<PutPort> port, int& credits)
      : PassingPort(std::move(port)), credits_(credits) {}
  bool try_put(const Put& put) override {
    const bool is_taken = PassingPort::try_put(put);
    if (is_taken && (put.told & kIsCredit) != 0) ++credits_;
    return is_taken;
  }

 private:
  int& credits_;  // that went by themselves
};

// Puts that only give credit, of two ranks of which one sends `messages`, and the other answers
// each, or only takes them.
int credits_by_themselves(int messages, bool answers) {
  PutNetwork network(1);
  TransportContext context = of_two_ranks(16);
  int credits = 0;
  std::vector<std::unique_ptr<PutHub>> hubs;
  std::vector<std::unique_ptr<SendLink>> sends;
  std::vector<std::unique_ptr<RecvLink>> recvs;
  for (context.rank = 0; context.rank < 2; ++context.rank) {
    auto port = std::make_unique<CountingPort>(network.add_port(), credits);
    hubs.push_back(std::make_unique<PutHub>(std::move(port), context));
  }
  for (int rank = 0; rank < 2; ++rank) {
    PutHub& hub = *hubs[static_cast<std::size_t>(rank)];
    sends.push_back(hub.connect({1 - rank, Channel::kCollective}));
    recvs.push_back(hub.listen({1 - rank, Channel::kCollective}));
  }
  const auto turn = [&] {
    network.turn();
    for (const auto& hub : hubs) hub->poll();
  };
  const auto pass = [&](std::size_t from) {
    int turns = 0;
    while (sends[from]->try_acquire(8).empty() && ++turns < 1000) turn();
    sends[from]->commit(8);
    while (recvs[1 - from]->try_peek().empty() && ++turns < 1000) turn();
    recvs[1 - from]->release();
    EXPECT_LT(turns, 1000);
  };
  for (int i = 0; i < messages; ++i) {
    pass(0);
    if (answers) pass(1);
  }
  return credits;
}

TEST(PutHub, sends_credits_along_with_what_goes_the_other_way) {
  EXPECT_EQ(credits_by_themselves(100, true), 0);
  EXPECT_GT(credits_by_themselves(100, false), 10);
}

TEST_F(Words, of_credit_for_what_was_not_sent_are_refused) {
  const auto other_way = hub->connect({1, Channel::kCollective});
  write_head(0, 10, 1);
  tell({head(0)});
  EXPECT_THROW(other_way->try_acquire(1), Error);
}

}  // namespace
}  // namespace catenary::test
