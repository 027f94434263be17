// Links of each transport between two cores, beside what the machine allows: a cache line passed to
// and fro, and memcpy. The partner is a thread for loopback and a process for shared memory.
//
// one_way is the time from a message's first byte to its receipt, halved from round trips; each hop
// copies the message into a slot. Bandwidth is streamed through the slots and copied out of them.
// The distance between the cores changes under virtual machines: compare with cache_line of the
// same run only. `best` is the best stretch of 64 round trips, or the best 4 MB: what remains of
// the truth on a machine that has other work.
#include <benchmark/benchmark.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <new>
#include <thread>

#include "src/base/error.h"
#include "src/bootstrap/key.h"
#include "transports/loopback/transport.h"
#include "transports/shm/transport.h"
#include "transports/tcp/transport.h"

namespace catenary {
namespace {

using benchmark::Counter;
using benchmark::State;

// Both sides map it, threads and processes alike.
struct Shared {
  alignas(128) std::atomic<std::uint64_t> ping{0};
  alignas(128) std::atomic<std::uint64_t> pong{0};
  alignas(128) std::atomic<bool> stop{false};
  std::atomic<std::size_t> address_bytes{0};
  std::byte address[512] = {};
};

void pin_to_core(int index) {
  cpu_set_t allowed;
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &allowed) || index-- != 0) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    ::sched_setaffinity(0, sizeof one, &one);
    return;
  }
}

// Spins, and lets others run where it takes long: the machine may have other work.
template <typename Ready>
void spin_until(const Ready& ready) {
  for (int tries = 0; !ready(); ++tries) {
    if (tries % 2000 == 1999) ::sched_yield();
  }
}

// The shortest time from one mark to the next.
class BestStretch {
 public:
  explicit BestStretch(std::uint64_t iterations_a_mark) : iterations_a_mark_(iterations_a_mark) {}

  void iterate() {
    if (++iterations_ % iterations_a_mark_ != 0) return;
    const std::int64_t now = now_ns();
    if (last_ns_ != 0) best_ns_ = std::min(best_ns_, now - last_ns_);
    last_ns_ = now;
  }
  double seconds_an_iteration() const {
    return static_cast<double>(best_ns_) * 1e-9 / static_cast<double>(iterations_a_mark_);
  }

 private:
  const std::uint64_t iterations_a_mark_;
  std::uint64_t iterations_ = 0;
  std::int64_t last_ns_ = 0;
  std::int64_t best_ns_ = INT64_MAX;
};

void report_one_way(State& state, const BestStretch& best) {
  state.counters["one_way"] = Counter(2, Counter::kIsIterationInvariantRate | Counter::kInvert);
  state.counters["best"] = Counter(best.seconds_an_iteration() / 2);
}

enum class Partner { kThread, kProcess };

struct Wire {
  const char* name;
  std::unique_ptr<Transport> (*make)(const TransportContext& context);
  Partner partner;
};
constexpr Wire kWires[] = {{"loopback", loopback::make_transport, Partner::kThread},
                           {"shm", shm::make_transport, Partner::kProcess},
                           {"tcp", tcp::make_transport, Partner::kProcess}};

// Runs `body` beside us on another core, until destroyed.
class Companion {
 public:
  using Body = std::function<void(Shared&)>;

  Companion(Partner partner, Body body) : allowed_(current_affinity()) {
    void* memory =
        ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw_system_error("cannot map memory", errno);
    shared_ = new (memory) Shared;
    const auto run = [this, body = std::move(body)] {
      pin_to_core(1);
      body(*shared_);
    };
    if (partner == Partner::kThread) {
      thread_ = std::thread(run);
    } else if ((process_ = ::fork()) == 0) {
      run();
      ::_exit(0);
    }
    pin_to_core(0);
  }

  ~Companion() {
    shared_->stop = true;
    if (thread_.joinable()) thread_.join();
    if (process_ > 0) ::waitpid(process_, nullptr, 0);
    ::munmap(shared_, sizeof(Shared));
    ::sched_setaffinity(0, sizeof allowed_, &allowed_);
  }

  Shared& shared() { return *shared_; }

 private:
  static cpu_set_t current_affinity() {
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    ::sched_getaffinity(0, sizeof allowed, &allowed);
    return allowed;
  }

  const cpu_set_t allowed_;
  Shared* shared_ = nullptr;
  std::thread thread_;
  pid_t process_ = -1;
};

// One rank's links to the other.
struct Ends {
  std::unique_ptr<Transport> transport;
  std::unique_ptr<SendLink> send;
  std::unique_ptr<RecvLink> recv;

  void open(int peer) {
    send = transport->connect({peer, Channel::kCollective});
    recv = transport->listen({peer, Channel::kCollective});
  }
};

// Two ranks joined by one transport: we are rank 0, the companion is rank 1.
class LinkedPair {
 public:
  using Body = std::function<void(Ends&, const std::atomic<bool>& stop)>;

  LinkedPair(const Wire& wire, std::uint32_t slots, std::size_t slot_bytes, const Body& body) {
    static const Config config = Config::process();
    TransportContext context;
    context.nranks = 2;
    context.key = random_key();
    context.slots = slots;
    context.slot_bytes = slot_bytes;
    context.config = &config;
    here_.transport = wire.make(context);
    const Bytes ours = here_.transport->address();
    companion_.emplace(wire.partner, [wire, context, ours, body](Shared& shared) mutable {
      context.rank = 1;
      Ends there;
      there.transport = wire.make(context);
      const Bytes theirs = there.transport->address();
      std::memcpy(shared.address, theirs.data(), theirs.size());
      shared.address_bytes = theirs.size();
      there.transport->attach(std::vector<Bytes>{ours, theirs}, Wait{});
      there.open(0);
      body(there, shared.stop);
    });
    Shared& shared = companion_->shared();
    spin_until([&] { return shared.address_bytes.load() != 0; });
    const Bytes theirs(shared.address, shared.address + shared.address_bytes.load());
    here_.transport->attach(std::vector<Bytes>{ours, theirs}, Wait{});
    here_.open(1);
  }

  Ends& here() { return here_; }

 private:
  Ends here_;
  std::optional<Companion> companion_;  // destroyed first
};

bool try_copy_out(Ends& ends, std::byte* to) {
  const ByteView view = ends.recv->try_peek();
  if (view.empty()) {
    ends.transport->poll();
    return false;
  }
  std::memcpy(to, view.data(), view.size());
  // Nobody reads the copy, and a compiler that sees that makes none.
  benchmark::DoNotOptimize(to);
  benchmark::ClobberMemory();
  ends.recv->release();
  return true;
}

void copy_in(Ends& ends, const std::byte* from, std::size_t bytes) {
  ByteSpan span;
  spin_until([&] {
    if (!(span = ends.send->try_acquire(bytes)).empty()) return true;
    ends.transport->poll();
    return false;
  });
  std::memcpy(span.data(), from, bytes);
  ends.send->commit(bytes);
}

void link_latency(State& state, const Wire& wire) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  LinkedPair pair(wire, 16, 65536, [bytes](Ends& ends, const std::atomic<bool>& stop) {
    Bytes local(bytes);
    while (!stop.load(std::memory_order_relaxed)) {
      bool received = false;
      spin_until([&] {
        return (received = try_copy_out(ends, local.data())) ||
               stop.load(std::memory_order_relaxed);
      });
      if (received) copy_in(ends, local.data(), bytes);
    }
  });
  Bytes local(bytes);
  for (int warm_up = 0; warm_up < 1000; ++warm_up) {
    copy_in(pair.here(), local.data(), bytes);
    spin_until([&] { return try_copy_out(pair.here(), local.data()); });
  }
  BestStretch best(64);
  for (auto _ : state) {
    copy_in(pair.here(), local.data(), bytes);
    spin_until([&] { return try_copy_out(pair.here(), local.data()); });
    best.iterate();
  }
  report_one_way(state, best);
}

void link_bandwidth(State& state, const Wire& wire) {
  const auto slot_bytes = static_cast<std::size_t>(state.range(0));
  constexpr std::size_t kBatchBytes = 4 << 20;
  const std::size_t messages = kBatchBytes / slot_bytes;
  const auto receive_batches = [slot_bytes, messages](Ends& ends, const std::atomic<bool>& stop) {
    Bytes sink(slot_bytes);
    std::size_t received = 0;
    while (!stop.load(std::memory_order_relaxed)) {
      bool is_one = false;
      spin_until([&] {
        return (is_one = try_copy_out(ends, sink.data())) || stop.load(std::memory_order_relaxed);
      });
      if (is_one && ++received % messages == 0) copy_in(ends, sink.data(), 8);
    }
  };
  LinkedPair pair(wire, 16, slot_bytes, receive_batches);
  const Bytes source(slot_bytes, std::byte{1});
  std::byte answer[64];
  const auto send_batch = [&] {
    for (std::size_t i = 0; i < messages; ++i) copy_in(pair.here(), source.data(), slot_bytes);
    spin_until([&] { return try_copy_out(pair.here(), answer); });
  };
  send_batch();
  BestStretch best(1);
  for (auto _ : state) {
    send_batch();
    best.iterate();
  }
  state.counters["best"] = Counter(static_cast<double>(kBatchBytes) / best.seconds_an_iteration(),
                                   Counter::kDefaults, Counter::kIs1000);
  state.SetBytesProcessed(static_cast<std::int64_t>(kBatchBytes) * state.iterations());
}

// The floor of every latency: one line to and fro, nothing else.
void cache_line(State& state) {
  Companion companion(Partner::kThread, [](Shared& shared) {
    for (std::uint64_t i = 1; !shared.stop.load(std::memory_order_relaxed); ++i) {
      spin_until([&] {
        return shared.ping.load(std::memory_order_acquire) == i ||
               shared.stop.load(std::memory_order_relaxed);
      });
      shared.pong.store(i, std::memory_order_release);
    }
  });
  Shared& shared = companion.shared();
  std::uint64_t i = 0;
  BestStretch best(64);
  for (auto _ : state) {
    shared.ping.store(++i, std::memory_order_release);
    spin_until([&] { return shared.pong.load(std::memory_order_acquire) == i; });
    best.iterate();
  }
  report_one_way(state, best);
}

void copy_on_one_core(State& state) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  const Bytes source(bytes, std::byte{1});
  Bytes target(bytes);
  for (auto _ : state) {
    std::memcpy(target.data(), source.data(), bytes);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(bytes) * state.iterations());
}

void register_all() {
  benchmark::RegisterBenchmark("cache_line", cache_line)->UseRealTime();
  for (const Wire& wire : kWires) {
    const std::string name = wire.name;
    const auto latency = [wire](State& state) { link_latency(state, wire); };
    const auto bandwidth = [wire](State& state) { link_bandwidth(state, wire); };
    benchmark::RegisterBenchmark((name + "/latency").c_str(), latency)
        ->Arg(8)
        ->Arg(56)
        ->Arg(64)
        ->Arg(256)
        ->Arg(1024)
        ->Arg(1080)
        ->Arg(1081)
        ->Arg(4096)
        ->Arg(16384)
        ->UseRealTime();
    benchmark::RegisterBenchmark((name + "/bandwidth").c_str(), bandwidth)
        ->RangeMultiplier(4)
        ->Range(1024, 1 << 20)
        ->UseRealTime();
  }
  benchmark::RegisterBenchmark("memcpy", copy_on_one_core)
      ->Arg(4096)
      ->Arg(65536)
      ->Arg(1 << 20)
      ->UseRealTime();
}

}  // namespace
}  // namespace catenary

int main(int argc, char** argv) {
  catenary::register_all();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
