// Links over a network that orders nothing, from thousands of seeds. CATENARY_TEST_SEED=n repeats
// one of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "src/base/error.h"
#include "src/transport/faulty_port.h"
#include "src/transport/put_hub.h"
#include "src/transport/striped_port.h"
#include "tests/transport/attached_ranks.h"
#include "tests/transport/put_network.h"

namespace catenary::test {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr unsigned kSeeds = 1000;  // which takes as long as 3000 without
#else
constexpr unsigned kSeeds = 3000;
#endif
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
    for (int rank = 0; rank < context_.nranks; ++rank) rails_.push_back(1 + random_() % 3);
    for (context_.rank = 0; context_.rank < context_.nranks; ++context_.rank) {
      hubs_.push_back(
          std::make_unique<PutHub>(add_port(context_.rank == 0 ? fails_after_puts : 0), context_));
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

  // Of one rail that fails, or of several that may.
  std::unique_ptr<PutPort> add_port(std::uint64_t fails_after_puts) {
    const std::size_t count = rails_[static_cast<std::size_t>(context_.rank)];
    std::vector<std::unique_ptr<PutPort>> rails;
    for (std::size_t rail = 0; rail < count; ++rail) {
      std::vector<int> peers;
      int before = 0;
      for (const std::size_t of_peer : rails_) {
        peers.push_back(before + static_cast<int>(rail % of_peer));
        before += static_cast<int>(of_peer);
      }
      const PortFaults faults = {random_(), 100, static_cast<std::uint32_t>(random_() % 20),
                                 static_cast<std::uint32_t>(random_() % 900), fails_after_puts};
      rails.push_back(make_faulty_port(network_.add_port(std::move(peers)), faults));
    }
    if (count == 1) return std::move(rails.front());
    return std::make_unique<StripedPort>(std::move(rails), 1 + random_() % 128);
  }

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
  std::vector<std::size_t> rails_;  // how many each rank has
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
    World world(seed, 1 + seed % 20);
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

}  // namespace
}  // namespace catenary::test
