// How communicators end while something else goes on: a thread in the middle of an operation, a
// transport that fails, what is just being made of them.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "src/comm/split.h"
#include "tests/comm/watched_ranks.h"
#include "tests/device/test_task.h"

namespace catenary {
namespace {

using namespace std::chrono_literals;

class Parting : public WatchedRanks {
 protected:
  // Until the other end of an operation that rank 0 has begun is missed by somebody.
  void begin_what_waits() { submit(0, Collective::kAllReduce); }
};

// As if it copied and had lost its core for longer than an abort waits for what ends by itself.
TEST_F(Parting, by_an_abort_waits_for_a_thread_in_the_middle_of_an_operation) {
  begin_what_waits();
  std::atomic<bool> copies{false};
  std::atomic<bool> aborts{false};
  const auto aside = ranks[0]->device().create_stream(true);
  std::thread late([&] {
    aside->enqueue(testing::task_of([&] {
      copies = true;
      while (!aborts) std::this_thread::yield();
      std::this_thread::sleep_for(400ms);
      copies = false;
    }));
    aside->synchronize();
  });
  while (!copies) std::this_thread::yield();
  aborts = true;
  ranks[0]->abort();
  EXPECT_FALSE(copies) << "buffers are the user's again while they are copied";
  late.join();
}

// Whoever shares the new communicator may have died before it was there.
TEST_F(Parting, of_the_parent_ends_what_is_being_made_of_it) {
  begin_what_waits();
  std::atomic<bool> was_told{false};
  const auto make = [&](std::size_t rank) {
    return split(*ranks[rank], 0, 0, CommunicatorOptions{}, config,
                 [&, rank](const TransportContext& context) {
                   if (rank == 1) {
                     ranks[0]->abandon();
                     while (!was_told) std::this_thread::sleep_for(1ms);
                   }
                   Transports all;
                   all.push_back(loopback::make_transport(context));
                   return all;
                 });
  };
  std::thread other([&] { EXPECT_THROW(make(1), Error); });
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_THROW(make(0), Error);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s);
  was_told = true;
  other.join();
}

struct PartingOfPolled : WatchedRanks {
  PartingOfPolled() : WatchedRanks(false) {}
};

TEST_F(PartingOfPolled, ends_although_a_transport_fails_at_last) {
  seen[0].drain_fails = true;
  EXPECT_NO_THROW(ranks[0]->part(0));
  EXPECT_TRUE(ranks[0]->known_failure()) << "what it throws is the communicator's failure";
}

TEST_F(PartingOfPolled, ends_although_a_transport_fails) {
  for (Seen& each : seen) each.poll_fails = true;
  EXPECT_TRUE(ranks[0]->failure()) << "what it throws is the communicator's failure";
  EXPECT_NO_THROW(ranks[1]->part(0));
}

}  // namespace
}  // namespace catenary
