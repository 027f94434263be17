// Which rail a put goes over, and what is told of all of them.
#include "src/transport/striped_port.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>

#include <deque>

namespace catenary::test {
namespace {

// A rail of which a test sees all and says what happens.
class WatchedPort final : public PutPort {
 public:
  explicit WatchedPort(std::uint64_t key) : key_(key) {}

  class Memory final : public PutMemory {
   public:
    explicit Memory(std::uint64_t key) : key_(key) {}
    PutTarget target() const override {
      PutTarget target;
      target.keys.fill(key_);
      return target;
    }

   private:
    const std::uint64_t key_;
  };
  std::unique_ptr<PutMemory> register_memory(ByteSpan) override {
    return std::make_unique<Memory>(key_);
  }
  std::unique_ptr<PutMemory> register_source(ByteView) override {
    return std::make_unique<Memory>(key_);
  }
  bool registers_sources() const override { return true; }
  bool gathers() const override { return false; }
  bool try_put(const Put& put) override {
    if (flying.size() == room) return false;
    flying.push_back(put);
    ++puts;
    return true;
  }
  bool try_send(int, const ControlMessage&) override { return ++sends > 0; }
  void progress(PortListener& listener) override {
    for (; done > 0; --done) {
      listener.put_done(flying.front().cookie);
      flying.pop_front();
    }
    for (; failed > 0; --failed) {
      listener.put_failed(flying.front().cookie, "as asked");
      flying.pop_front();
    }
  }
  int wait_descriptor() override { return descriptor.get(); }
  bool is_quiet() const override { return flying.empty(); }
  void shut(Parting /*parting*/) noexcept override { is_shut = true; }

  std::deque<Put> flying;
  std::size_t room = 100;
  int puts = 0;
  int sends = 0;
  int done = 0;
  int failed = 0;
  bool is_shut = false;
  UniqueFd descriptor{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};

 private:
  const std::uint64_t key_;
};

struct CountingListener final : PortListener {
  void put_done(std::uint64_t) override { ++done; }
  void put_failed(std::uint64_t, const std::string&) override { ++failed; }
  void was_told(std::uint32_t) override {}
  void was_cut(std::uint32_t) override {}
  void control_came(const ControlMessage&) override {}
  void control_failed(int, const std::string&) override {}
  void port_failed(const std::string&) override {}
  int done = 0;
  int failed = 0;
};

class StripedPortTest : public testing::Test {
 protected:
  StripedPortTest() {
    std::vector<std::unique_ptr<PutPort>> made;
    for (std::uint64_t key = 10; key < 13; ++key) {
      auto rail = std::make_unique<WatchedPort>(key);
      rails.push_back(rail.get());
      made.push_back(std::move(rail));
    }
    port.emplace(std::move(made), 1000);
    memory = port->register_source(bytes);
  }
  bool put(std::size_t length) {
    Put put;
    put.head = {memory.get(), ByteView(bytes).first(length)};
    put.target.keys = {20, 21, 22, 23};
    return port->try_put(put);
  }
  std::vector<int> puts() const {
    std::vector<int> counts;
    for (const WatchedPort* rail : rails) counts.push_back(rail->puts);
    return counts;
  }

  Bytes bytes = Bytes(5000);
  std::vector<WatchedPort*> rails;
  std::optional<StripedPort> port;
  std::unique_ptr<PutMemory> memory;
  CountingListener listener;
};

TEST_F(StripedPortTest, puts_short_ones_over_the_first_rail_and_long_ones_over_all) {
  for (int i = 0; i < 9; ++i) ASSERT_TRUE(put(999));
  EXPECT_EQ(puts(), std::vector<int>({9, 0, 0}));
  for (int i = 0; i < 18; ++i) ASSERT_TRUE(put(1000));
  EXPECT_EQ(puts(), std::vector<int>({9, 9, 9})) << "the first one has enough to carry";
}

TEST_F(StripedPortTest, puts_over_the_rail_that_is_done_first) {
  for (int i = 0; i < 6; ++i) ASSERT_TRUE(put(1000));
  for (int i = 0; i < 10; ++i) {
    rails[1]->done = 1;
    port->progress(listener);
    ASSERT_TRUE(put(1000));
  }
  EXPECT_EQ(puts(), std::vector<int>({2, 12, 2}));
  rails[2]->failed = 2;
  port->progress(listener);
  EXPECT_EQ(listener.failed, 2);
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(put(1000));
  EXPECT_EQ(puts(), std::vector<int>({2, 12, 4})) << "what failed is carried no more";
}

TEST_F(StripedPortTest, of_idle_rails_takes_that_which_has_carried_the_least) {
  for (int i = 0; i < 12; ++i) {
    ASSERT_TRUE(put(i % 3 == 0 ? 4000 : 2000));
    for (WatchedPort* rail : rails) rail->done = static_cast<int>(rail->flying.size());
    port->progress(listener);
  }
  EXPECT_EQ(listener.done, 12);
  for (const WatchedPort* rail : rails) EXPECT_GE(rail->puts, 3);
}

TEST_F(StripedPortTest, puts_over_another_rail_if_one_has_no_room) {
  rails[0]->room = 0;
  rails[1]->room = 1;
  rails[2]->room = 2;
  EXPECT_FALSE(put(10)) << "short ones do not";
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(put(1000));
  EXPECT_EQ(puts(), std::vector<int>({0, 1, 2}));
  EXPECT_FALSE(put(1000));
}

TEST_F(StripedPortTest, uses_of_each_rail_its_own_memory_and_the_key_for_it) {
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(put(1000));
  for (std::size_t rail = 0; rail < rails.size(); ++rail) {
    const Put& put = rails[rail]->flying.front();
    EXPECT_EQ(put.target.keys[0], 20 + rail);
    EXPECT_EQ(put.head.memory->target().keys[0], 10 + rail);
    EXPECT_EQ(put.tail.memory, nullptr);
  }
}

// Rail 3 of a peer that has four meets our first.
TEST_F(StripedPortTest, gives_peers_a_key_for_each_rail_that_they_may_have) {
  const auto given = port->register_memory(bytes);
  EXPECT_EQ(given->target().keys, (std::array<std::uint64_t, kMostRails>{10, 11, 12, 10}));
}

TEST_F(StripedPortTest, says_all_else_over_the_first_and_ends_them_all) {
  EXPECT_TRUE(port->try_send(0, ControlMessage{}));
  EXPECT_EQ(rails[0]->sends, 1);
  EXPECT_TRUE(port->is_quiet());
  ASSERT_TRUE(put(1000) && put(1000));
  EXPECT_FALSE(port->is_quiet());
  port->shut(Parting::kInPeace);
  for (const WatchedPort* rail : rails) EXPECT_TRUE(rail->is_shut);
}

TEST_F(StripedPortTest, tells_by_one_descriptor_of_news_on_any) {
  const int descriptor = port->wait_descriptor();
  ASSERT_GE(descriptor, 0);
  pollfd state = {descriptor, POLLIN, 0};
  EXPECT_EQ(::poll(&state, 1, 0), 0);
  for (WatchedPort* rail : rails) {
    ::eventfd_write(rail->descriptor.get(), 1);
    EXPECT_EQ(::poll(&state, 1, 0), 1);
    eventfd_t read = 0;
    ::eventfd_read(rail->descriptor.get(), &read);
    EXPECT_EQ(::poll(&state, 1, 0), 0);
  }
  EXPECT_EQ(port->wait_descriptor(), descriptor);
  rails[1]->descriptor.reset();
  EXPECT_EQ(port->wait_descriptor(), -1) << "one of them tells nothing";
}

}  // namespace
}  // namespace catenary::test
