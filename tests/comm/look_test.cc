// Looking for proof of disagreement leaves nothing behind: over TCP a link costs memory, and a
// system call in every round while its sender has not come.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <map>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "src/comm/communicator.h"
#include "src/device/device.h"
#include "src/transport/traced_transport.h"
#include "transports/tcp/transport.h"

namespace catenary {
namespace {

constexpr int kRanks = 4;
// Long enough for those who wait to look for proof.
constexpr auto kLate = std::chrono::milliseconds(300);

// The links that each rank has made, as (peer, whether it sends).
using Made = std::map<std::pair<int, bool>, int>;

// A rank that broadcasts down the chain 0, 1, 2, 3, for which the first one comes late; then all of
// them ask for failures, when nobody reads anything.
Made stall(int rank, const UniqueId& id, const Config& config) {
  Device& device = Device::get(rank);
  TracedTransport* traced = nullptr;
  const auto communicator = Communicator::make(rank, kRanks, device, CommunicatorOptions{}, config);
  communicator->join(id, [&](const TransportContext& context) {
    auto transport = std::make_unique<TracedTransport>(tcp::make_transport(context));
    traced = transport.get();
    Transports all;
    all.push_back(std::move(transport));
    return all;
  });
  std::array<std::byte, 1000> data{};
  OperationRequest request{.kind = Collective::kBroadcast,
                           .input = data.data(),
                           .output = data.data(),
                           .count = data.size(),
                           .stream = &device.default_stream()};
  if (rank == 0) std::this_thread::sleep_for(kLate);
  communicator->submit({.operations = {&request, 1}, .messages = {}});
  device.default_stream().synchronize();
  communicator->exchange({});
  EXPECT_FALSE(communicator->failure()) << communicator->failure()->what();
  communicator->exchange({});
  Made made;
  for (const LinkCounts& link : traced->counts()) ++made[{link.peer, link.sends}];
  EXPECT_FALSE(communicator->part(0));
  return made;
}

TEST(Look, for_proof_makes_no_links_that_no_operation_uses) {
  Config config;
  config.socket_ifname = "=lo";
  config.algorithm = "chain";
  const UniqueId id = create_unique_id(config);
  std::array<Made, kRanks> made;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back(
        [&, rank] { made[static_cast<std::size_t>(rank)] = stall(rank, id, config); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(made[0], (Made{{{1, true}, 1}}));
  EXPECT_EQ(made[1], (Made{{{0, false}, 1}, {{2, true}, 1}}));
  EXPECT_EQ(made[2], (Made{{{1, false}, 1}, {{3, true}, 1}}));
  EXPECT_EQ(made[3], (Made{{{2, false}, 1}}));
}

}  // namespace
}  // namespace catenary
