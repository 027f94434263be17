// Ranks for tests of transports: runs one function as every rank of a communicator, each a thread
// of this process or a process of its own, with transports already attached.
//
// A rank fails by throwing; the first failure fails the test, and the others stop waiting. No rank
// waits longer than half a minute. After each run, descriptors and mappings must be as before.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <ostream>
#include <string>

#include "src/transport/faulty_transport.h"
#include "src/transport/transport.h"
#include "tests/support/pattern.h"

namespace catenary::test {

// What ranks of tests have as TransportContext::least_fetched.
inline constexpr std::size_t kLeastFetched = 2048;

enum class RunAs { kThreads, kProcesses };

// One way to set a transport up; the suite runs once for each.
struct Variant {
  std::string name;
  std::function<std::unique_ptr<Transport>(const TransportContext&)> make;
  RunAs run_as = RunAs::kThreads;
  std::uint32_t slots = 8;
  std::size_t slot_bytes = 8192;
  Faults faults = {};

  bool is_faulty() const { return faults.delays_in_1000 != 0; }
};

inline void PrintTo(const Variant& variant, std::ostream* out) { *out << variant.name; }

struct GroupBlock;

// What a process lends from, as one that is a device has it.
class TestHeap {
 public:
  static constexpr std::size_t kPartBytes = 131072;

  TestHeap();
  SharedHeap shared() const { return {memory_.data(), memory_.bytes(), fd_.get()}; }
  // A place of its own for each rank.
  ByteSpan parts(int first, std::size_t count) const {
    return ByteSpan(memory_.data(), memory_.bytes())
        .subspan(index(first) * kPartBytes, count * kPartBytes);
  }
  ByteSpan part(int rank) const { return parts(rank, 1); }

 private:
  static constexpr std::size_t kParts = 9;
  static std::size_t index(int rank) { return static_cast<std::size_t>(rank) + 1; }
  UniqueFd fd_;
  Mapping memory_;
};

// One rank in a test.
class Rank {
 public:
  Rank(GroupBlock& block, const Variant& variant, const TestHeap& heap, int rank, int nranks);
  ~Rank();

  const int rank;
  const int nranks;
  const TestHeap& heap() const { return heap_; }
  Transport& transport() { return *transport_; }
  const std::vector<bool>& proven() const { return proven_; }
  int next() const { return (rank + 1) % nranks; }
  int previous() const { return (rank + nranks - 1) % nranks; }

  std::unique_ptr<SendLink> connect(int peer, Channel channel = Channel::kCollective) {
    return transport_->connect({peer, channel});
  }
  std::unique_ptr<RecvLink> listen(int peer, Channel channel = Channel::kCollective) {
    return transport_->listen({peer, channel});
  }

  // Polls until `ready` holds.
  void wait_until(const std::function<bool()>& ready);
  void barrier();
  // Waits until all that was flushed has arrived.
  void drain();
  // Turns the transport for a moment, so that what could move has moved.
  void settle();

  // A message is its number, from which its bytes follow.
  bool try_send(SendLink& link, std::size_t bytes, std::uint64_t message);
  void send(SendLink& link, std::size_t bytes, std::uint64_t message);
  bool try_receive(RecvLink& link, std::size_t bytes, std::uint64_t message);
  void receive(RecvLink& link, std::size_t bytes, std::uint64_t message);

 private:
  void attach();

  GroupBlock& block_;
  const TestHeap& heap_;
  std::unique_ptr<Transport> transport_;
  std::vector<bool> proven_;
};

// Throws unless `view` is `bytes` long and holds that message.
void check(ByteView view, std::size_t bytes, std::uint64_t message);
void require(bool condition, const std::string& text);

// For transports that need a network.
const Config& loopback_config();

// Any 32 bytes that differ from run to run.
std::array<std::byte, 32> random_test_key();

using RankBody = std::function<void(Rank&)>;
void run_ranks(const Variant& variant, int nranks, const RankBody& body);

// What a leak would add to.
struct Holdings {
  std::size_t descriptors;
  std::size_t shared_mappings;
  static Holdings now();
  bool operator==(const Holdings&) const = default;
};

}  // namespace catenary::test
