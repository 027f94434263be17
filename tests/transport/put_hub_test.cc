// Links over a network that orders nothing, from thousands of seeds. CATENARY_TEST_SEED=n repeats
// one of them.
#include "src/transport/put_hub.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "src/base/error.h"
#include "src/transport/faulty_port.h"
#include "src/transport/put_words.h"
#include "tests/transport/attached_ranks.h"
#include "tests/transport/put_network.h"

namespace catenary::test {
namespace {

constexpr unsigned kSeeds = 3000;
constexpr std::uint64_t kMessages = 30;
constexpr int kMostSteps = 200'000;

// One link, and how far its ends have come.
struct Way {
  int from;
  int to;
  Channel channel;
  std::unique_ptr<SendLink> send;
  std::unique_ptr<RecvLink> recv;
  std::uint64_t sent = 0;
  std::uint64_t received = 0;
  Bytes block = {};  // what it sends in place from, while it does
  bool is_lost = false;
  bool is_over() const { return is_lost || received == kMessages; }
};

// Two or three ranks in one thread, which take their steps in an order that follows from the seed.
class World {
 public:
  World(unsigned seed, std::uint64_t fails_after_puts) : random_(seed), network_(seed + 1) {
    context_.slots = 2 + static_cast<std::uint32_t>(random_() % 9);
    context_.slot_bytes = 64 * (1 + random_() % 4);
    context_.nranks = 2 + static_cast<int>(random_() % 2);
    context_.key = random_test_key();
    context_.find_block = [this](const std::byte* at) { return find_block(at); };
    for (context_.rank = 0; context_.rank < context_.nranks; ++context_.rank) {
      const PortFaults faults = {random_(), 100, static_cast<std::uint32_t>(random_() % 20),
                                 static_cast<std::uint32_t>(random_() % 900),
                                 context_.rank == 0 ? fails_after_puts : 0};
      hubs_.push_back(
          std::make_unique<PutHub>(make_faulty_port(network_.add_port(), faults), context_));
    }
    for (int from = 0; from < context_.nranks; ++from) {
      for (int to = 0; to < context_.nranks; ++to) {
        ways_.push_back({from, to, Channel::kCollective, nullptr, nullptr});
      }
    }
    ways_.push_back({0, 1, Channel::kPointToPoint, nullptr, nullptr});
  }
  ~World() {
    ways_.clear();
    hubs_.clear();
  }

  void run() {
    for (int step = 0; step < kMostSteps; ++step) {
      const bool all_over = std::ranges::all_of(ways_, &Way::is_over);
      if (all_over) return drain();
      hub(static_cast<int>(random_() % hubs_.size())).poll();
      Way& way = ways_[random_() % ways_.size()];
      if (!way.is_lost) move(way);
    }
    throw std::runtime_error("nothing moves any more");
  }

  const std::string& failure() const { return failure_; }

 private:
  PutHub& hub(int rank) { return *hubs_[static_cast<std::size_t>(rank)]; }

  void move(Way& way) {
    try {
      if (random_() % 2 == 0) {
        send(way);
      } else {
        receive(way);
      }
    } catch (const Error& error) {
      require(error.code() == ErrorCode::kRemote, error.what());
      failure_ = error.what();
      way.is_lost = true;
    }
  }

  std::size_t bytes_of(std::uint64_t message) const {
    return 1 + static_cast<std::size_t>(message * 37) % context_.slot_bytes;
  }

  void send(Way& way) {
    if (!way.send) way.send = hub(way.from).connect({way.to, way.channel});
    if (!way.block.empty() && way.send->try_flush()) free_block(way);
    if (way.sent == kMessages) return;
    const ByteSpan span = way.send->try_acquire(bytes_of(way.sent));
    if (span.empty()) return;
    if (random_() % 2 == 0 && way.block.empty()) {
      send_in_place(way, span);
    } else {
      fill(span, way.sent);
      way.send->commit(span.size());
    }
    ++way.sent;
  }

  // From a block of its own, that lies where others did.
  void send_in_place(Way& way, ByteSpan span) {
    way.block.resize(256);
    blocks_[way.block.data()] = ++last_block_;
    const ByteSpan message = ByteSpan(way.block).first(span.size());
    fill(message, way.sent);
    const std::size_t skip = random_() % span.size();
    std::copy_n(message.begin(), skip, span.begin());
    require(way.send->sends_in_place(message.subspan(skip)), "the block is not registered");
    require(!way.send->sends_in_place(span), "a slot passes for a user's memory");
    way.send->commit_in_place(skip, message.subspan(skip));
  }
  void free_block(Way& way) {
    std::ranges::fill(way.block, std::byte{0xee});
    blocks_.erase(way.block.data());
    way.block.clear();
  }
  std::optional<UserBlock> find_block(const std::byte* at) const {
    auto found = blocks_.upper_bound(at);
    if (found == blocks_.begin() || at >= (--found)->first + 256) return std::nullopt;
    return UserBlock{{found->first, 256}, found->second};
  }

  void receive(Way& way) {
    if (!way.recv) way.recv = hub(way.to).listen({way.from, way.channel});
    const ByteView view = way.recv->try_peek();
    if (view.empty()) return;
    check(view, bytes_of(way.received), way.received);
    if (random_() % 3 == 0) return;
    way.recv->release();
    ++way.received;
  }

  // All leave; who is done first goes first.
  void drain() {
    std::vector<bool> gone(hubs_.size());
    for (int step = 0; step < kMostSteps; ++step) {
      const std::size_t rank = random_() % hubs_.size();
      hubs_[rank]->poll();
      gone[rank] = hubs_[rank]->try_drain() || gone[rank];
      if (std::ranges::all_of(gone, [](bool is) { return is; })) return;
    }
    if (failure_.empty()) throw std::runtime_error("somebody never hears that all has arrived");
  }

  std::mt19937 random_;
  PutNetwork network_;
  TransportContext context_;
  std::vector<std::unique_ptr<PutHub>> hubs_;
  std::vector<Way> ways_;
  std::map<const std::byte*, std::uint64_t> blocks_;  // and their numbers
  std::uint64_t last_block_ = 0;
  std::string failure_;
};

void run_seeds(const std::function<void(unsigned)>& run) {
  const char* const only = std::getenv("CATENARY_TEST_SEED");
  const unsigned first = only != nullptr ? static_cast<unsigned>(std::atoi(only)) : 0;
  const unsigned end = only != nullptr ? first + 1 : kSeeds;
  for (unsigned seed = first; seed < end && !testing::Test::HasFailure(); ++seed) {
    try {
      run(seed);
    } catch (const std::exception& error) {
      ADD_FAILURE() << "CATENARY_TEST_SEED=" << seed << ": " << error.what();
    }
  }
}

TEST(PutHub, everything_arrives_in_order_over_a_network_without_any) {
  run_seeds([](unsigned seed) {
    World world(seed, 0);
    world.run();
    require(world.failure().empty(), world.failure());
  });
}

// What fails is one rank's; what the others read is right all the same.
TEST(PutHub, a_put_that_fails_is_an_error_that_names_the_peer) {
  run_seeds([](unsigned seed) {
    World world(seed, 1 + seed % 50);
    try {
      world.run();
    } catch (const std::runtime_error& stuck) {
      // Receivers are told of what never comes by the control plane, which is not here.
      require(std::string(stuck.what()) == "nothing moves any more", stuck.what());
    }
    require(world.failure().find(" lost the connection to rank ") == 6 &&
                world.failure().find("as the test asked") != std::string::npos,
            "no failure was told, but '" + world.failure() + "'");
  });
}

// Two ranks, of which one's puts fail after the first; whether check_sent() of each throws, when
// the first rank has sent a few messages and the second has taken what came and given it back.
std::vector<bool> ranks_that_tell(int failing) {
  PutNetwork network(1);
  TransportContext context;
  context.nranks = 2;
  context.slots = 4;
  context.slot_bytes = 64;
  context.key = random_test_key();
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
    last = memory;
    return std::make_unique<Memory>();
  }
  std::unique_ptr<PutMemory> register_source(ByteView) override {
    return std::make_unique<Memory>();
  }
  bool registers_sources() const override { return false; }
  bool gathers() const override { return false; }
  bool try_put(const Put&) override { return true; }
  bool try_send(int, const ControlMessage&) override { return true; }
  void progress(PortListener& listener) override {
    for (const ControlMessage& message : messages) listener.control_came(message);
    for (const std::uint32_t word : words) listener.was_told(word);
    messages.clear();
    words.clear();
  }
  bool is_quiet() const override { return true; }
  void shut() noexcept override {}

  ByteSpan last;  // that was registered
  std::vector<ControlMessage> messages;
  std::vector<std::uint32_t> words;
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
    ControlWords open;
    open.kind = ControlKind::kOpen;
    open.from = 1;
    open.slots = context.slots;
    open.slot_bytes = static_cast<std::uint32_t>(context.slot_bytes);
    port->messages.push_back(seal_control(context.key, open));
    hub->poll();
    ring = port->last;
  }
  void write_head(std::uint64_t number, std::uint32_t bytes) const {
    const MessageHeader header = {number, bytes, ~bytes};
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
class BrokenPort final : public PutPort {
 public:
  explicit BrokenPort(std::unique_ptr<PutPort> port) : port_(std::move(port)) {}
  std::unique_ptr<PutMemory> register_memory(ByteSpan memory) override {
    return port_->register_memory(memory);
  }
  std::unique_ptr<PutMemory> register_source(ByteView memory) override {
    return port_->register_source(memory);
  }
  bool registers_sources() const override { return port_->registers_sources(); }
  bool gathers() const override { return port_->gathers(); }
  bool try_put(const Put& put) override { return port_->try_put(put); }
  bool try_send(int peer, const ControlMessage& message) override {
    return port_->try_send(peer, message);
  }
  void progress(PortListener& /*listener*/) override {
    throw_error(ErrorCode::kSystem, "the port is broken");
  }
  bool is_quiet() const override { return port_->is_quiet(); }
  void shut() noexcept override { port_->shut(); }

 private:
  std::unique_ptr<PutPort> port_;
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

}  // namespace
}  // namespace catenary::test
