#include "tests/transport/attached_ranks.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <random>
#include <stdexcept>
#include <thread>

#include "src/base/error.h"
#include "src/bootstrap/unshared_fd.h"

namespace catenary::test {

// Mapped by all ranks, threads or processes.
struct GroupBlock {
  static constexpr std::size_t kMostRanks = 8;
  static constexpr std::size_t kMostAddressBytes = 512;
  struct Address {
    std::size_t bytes;
    std::byte data[kMostAddressBytes];
  };

  std::atomic<std::uint32_t> arrived{0};
  std::atomic<std::uint32_t> failures{0};
  char failure[1024] = {};
  Address addresses[kMostRanks] = {};
  std::array<std::byte, 32> key = {};
  Config config = {};
  Deadline deadline = Deadline::after_ms(30'000);

  void fail(const std::string& text) {
    static_assert(std::atomic<std::uint32_t>::is_always_lock_free);
    if (failures.fetch_add(1) == 0) std::strncpy(failure, text.c_str(), sizeof failure - 1);
  }
};

namespace {

class SharedBlock {
 public:
  SharedBlock()
      : memory_(::mmap(nullptr, sizeof(GroupBlock), PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {
    if (memory_ == MAP_FAILED) throw std::runtime_error("no memory for the ranks of a test");
    block_ = new (memory_) GroupBlock;
  }
  ~SharedBlock() {
    block_->~GroupBlock();
    ::munmap(memory_, sizeof(GroupBlock));
  }
  GroupBlock& operator*() const { return *block_; }
  GroupBlock* operator->() const { return block_; }

 private:
  void* memory_;
  GroupBlock* block_;
};

void run_rank(GroupBlock& block, const Variant& variant, const TestHeap& heap, int rank, int nranks,
              const RankBody& body) {
  try {
    Rank self(block, variant, heap, rank, nranks);
    body(self);
    self.drain();
  } catch (const std::exception& error) {
    block.fail(format("rank %d of %d: %s", rank, nranks, error.what()));
  }
}

void run_process(GroupBlock& block, const Variant& variant, int rank, int nranks,
                 const RankBody& body) {
  const TestHeap heap;
  const Holdings before = Holdings::now();
  run_rank(block, variant, heap, rank, nranks, body);
  const Holdings after = Holdings::now();
  if (before != after) {
    block.fail(format("rank %d leaked: %zu descriptors and %zu mappings became %zu and %zu", rank,
                      before.descriptors, before.shared_mappings, after.descriptors,
                      after.shared_mappings));
  }
}

void run_threads(GroupBlock& block, const Variant& variant, int nranks, const RankBody& body) {
  const TestHeap heap;
  const Holdings before = Holdings::now();
  std::vector<std::thread> threads;
  for (int rank = 0; rank < nranks; ++rank) {
    threads.emplace_back([&, rank] { run_rank(block, variant, heap, rank, nranks, body); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(before == Holdings::now()) << "descriptors or mappings leaked";
}

void run_processes(GroupBlock& block, const Variant& variant, int nranks, const RankBody& body) {
  std::vector<pid_t> processes;
  for (int rank = 0; rank < nranks; ++rank) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0) << errno_text(errno);
    if (child == 0) {
      run_process(block, variant, rank, nranks, body);
      ::_exit(0);
    }
    processes.push_back(child);
  }
  for (const pid_t child : processes) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0) << "a rank's process died";
  }
}

}  // namespace

TestHeap::TestHeap()
    : fd_(create_memfd("catenary-test", kParts * kPartBytes)),
      memory_(Mapping::shared(fd_.get(), kParts * kPartBytes)) {
  const auto token = random_test_key();
  std::memcpy(memory_.data(), token.data(), SharedHeap::kTokenBytes);
}

Rank::Rank(GroupBlock& block, const Variant& variant, const TestHeap& heap, int rank_number,
           int rank_count)
    : rank(rank_number), nranks(rank_count), block_(block), heap_(heap) {
  TransportContext context;
  context.rank = rank;
  context.nranks = nranks;
  context.key = block.key;
  context.slot_bytes = variant.slot_bytes;
  // Each rank uses as much as it likes.
  if (variant.slot_bytes >= 4096) context.belt_bytes = (std::size_t{1} << 20) / (1 + rank % 3);
  context.slots = variant.slots;
  context.config = &block.config;
  context.heap = heap.shared();
  context.least_fetched = kLeastFetched;
  transport_ = variant.make(context);
  if (variant.is_faulty()) {
    transport_ = make_faulty_transport(std::move(transport_), variant.faults);
  }
  attach();
}

Rank::~Rank() = default;

void Rank::attach() {
  const Bytes mine = transport_->address();
  require(mine.size() <= GroupBlock::kMostAddressBytes, "an address is too long");
  GroupBlock::Address& slot = block_.addresses[rank];
  slot.bytes = mine.size();
  std::ranges::copy(mine, slot.data);
  barrier();
  std::vector<Bytes> addresses;
  for (int i = 0; i < nranks; ++i) {
    const GroupBlock::Address& each = block_.addresses[i];
    addresses.emplace_back(each.data, each.data + each.bytes);
  }
  proven_ = transport_->attach(addresses, Wait{Deadline::after_ms(20'000)});
  require(proven_ == std::vector<bool>(static_cast<std::size_t>(nranks), true),
          "did not attach to all ranks");
  barrier();
}

void Rank::wait_until(const std::function<bool()>& ready) {
  for (int tries = 0; !ready(); ++tries) {
    transport_->poll();
    if (tries < 16) continue;
    std::this_thread::yield();
    require(block_.failures.load() == 0, "stopped, because another rank failed");
    require(!block_.deadline.passed(), "waited too long");
  }
}

void Rank::barrier() {
  const auto count = static_cast<std::uint32_t>(nranks);
  const std::uint32_t goal = (block_.arrived.fetch_add(1) / count + 1) * count;
  while (block_.arrived.load() < goal) {
    // Whoever is ahead keeps its transport turning, as a rank in another collective would.
    transport_->poll();
    std::this_thread::yield();
    require(block_.failures.load() == 0, "stopped, because another rank failed");
    require(!block_.deadline.passed(), "waited too long for the other ranks");
  }
}

// As a communicator does before it goes. Whoever has gone without is not waited for.
void Rank::drain() {
  const Deadline end = Deadline::after_ms(3000);
  while (!transport_->try_drain() && !end.passed()) {
    transport_->poll();
    std::this_thread::yield();
  }
}

void Rank::settle() {
  const Deadline end = Deadline::after_ms(20);
  while (!end.passed()) {
    transport_->poll();
    std::this_thread::yield();
  }
}

bool Rank::try_send(SendLink& link, std::size_t bytes, std::uint64_t message) {
  const ByteSpan span = link.try_acquire(bytes);
  if (span.empty()) return false;
  require(span.size() >= bytes, "a span is shorter than what was asked for");
  fill(span.first(bytes), message);
  link.commit(bytes);
  return true;
}

void Rank::send(SendLink& link, std::size_t bytes, std::uint64_t message) {
  wait_until([&] { return try_send(link, bytes, message); });
}

bool Rank::try_receive(RecvLink& link, std::size_t bytes, std::uint64_t message) {
  const ByteView view = link.try_peek();
  if (view.empty()) return false;
  check(view, bytes, message);
  link.release();
  return true;
}

void Rank::receive(RecvLink& link, std::size_t bytes, std::uint64_t message) {
  wait_until([&] { return try_receive(link, bytes, message); });
}

void check(ByteView view, std::size_t bytes, std::uint64_t message) {
  if (view.size() != bytes) {
    throw std::runtime_error(format("message %llu came with %zu bytes instead of %zu",
                                    static_cast<unsigned long long>(message), view.size(), bytes));
  }
  if (holds(view, message)) return;
  for_each_run(message, bytes, [&](std::size_t at, ByteView run) {
    const auto differs =
        std::mismatch(run.begin(), run.end(), view.begin() + static_cast<std::ptrdiff_t>(at)).first;
    if (differs == run.end()) return true;
    at += static_cast<std::size_t>(differs - run.begin());
    throw std::runtime_error(format("message %llu of %zu bytes is wrong at byte %zu",
                                    static_cast<unsigned long long>(message), bytes, at));
  });
}

void require(bool condition, const std::string& text) {
  if (!condition) throw std::runtime_error(text);
}

const Config& loopback_config() {
  static const Config config = [] {
    Config made;
    made.socket_ifname = "=lo";
    return made;
  }();
  return config;
}

std::array<std::byte, 32> random_test_key() {
  std::random_device source;
  std::array<std::byte, 32> key;
  for (std::byte& each : key) each = static_cast<std::byte>(source() & 0xff);
  return key;
}

void run_ranks(const Variant& variant, int nranks, const RankBody& body) {
  const SharedBlock block;
  block->key = random_test_key();
  block->config.socket_ifname = "=lo";
  // The first of these makes what the process then keeps for good, which is no leak.
  UnsharedFd::made_by([] { return ::eventfd(0, EFD_CLOEXEC); });
  if (variant.run_as == RunAs::kThreads) {
    run_threads(*block, variant, nranks, body);
  } else {
    run_processes(*block, variant, nranks, body);
  }
  EXPECT_EQ(block->failures.load(), 0u) << block->failure;
}

Holdings Holdings::now() {
  Holdings holdings = {};
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    holdings.descriptors += entry.is_other() || !entry.path().empty();
  }
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    holdings.shared_mappings += line.find("memfd:catenary") != std::string::npos;
  }
  return holdings;
}

}  // namespace catenary::test
