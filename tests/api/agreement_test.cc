// Ranks that do agree, however late they are and whatever else they do: nobody may be blamed.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "src/base/scope_exit.h"
#include "tests/support/crew.h"
#include "tests/support/rank_group.h"

namespace catenary::testing {
namespace {

using namespace std::chrono_literals;

// Long enough for those who wait to look for proof, and to tell the others in what they wait.
constexpr auto kLate = 250ms;

// Runs body on every rank, while a thread beside it asks all the time whether something is wrong.
void run_watched(int nranks, const std::function<void(Seat&)>& body) {
  run_crew(nranks, [&](Seat& seat) {
    std::atomic<bool> over{false};
    std::atomic<int> state{ncclSuccess};
    std::thread watchdog([&, comm = seat.comm] {
      while (!over && state == ncclSuccess) {
        ncclResult_t now = ncclSuccess;
        ncclCommGetAsyncError(comm, &now);
        state = now;
        std::this_thread::sleep_for(1ms);
      }
    });
    {
      const ScopeExit stop([&] {
        over = true;
        watchdog.join();
      });
      body(seat);
    }
    require(state == ncclSuccess, "the watchdog saw " + std::to_string(state) + " " + last_error());
  });
}

void be_late(const Seat& seat, int rank) {
  if (seat.rank == rank) std::this_thread::sleep_for(kLate);
}

// One collective, number `which`, with the given root.
ncclResult_t collective(const Seat& seat, int which, int root, std::vector<float>& data,
                        catStream_t stream) {
  constexpr std::size_t kCount = 3000;
  float* const in = data.data();
  float* const out = in + data.size() / 2;
  switch (which % 8) {
    case 0: return ncclAllReduce(in, out, kCount, ncclFloat32, ncclSum, seat.comm, stream);
    case 1: return ncclBroadcast(in, out, kCount, ncclFloat32, root, seat.comm, stream);
    case 2: return ncclReduce(in, out, kCount, ncclFloat32, ncclSum, root, seat.comm, stream);
    case 3: return ncclAllGather(in, out, kCount, ncclFloat32, seat.comm, stream);
    case 4: return ncclReduceScatter(in, out, kCount, ncclFloat32, ncclSum, seat.comm, stream);
    case 5: return ncclAlltoAll(in, out, kCount, ncclFloat32, seat.comm, stream);
    case 6: return ncclGather(in, out, kCount, ncclFloat32, root, seat.comm, stream);
    default: return ncclScatter(in, out, kCount, ncclFloat32, root, seat.comm, stream);
  }
}

std::vector<float> room() { return std::vector<float>(40000, 1); }

TEST(Agreement, with_a_rank_that_is_late_for_each_collective) {
  run_watched(4, [](Seat& seat) {
    std::vector<float> data = room();
    for (int which = 0; which < 8; ++which) {
      for (const int root : {1, 2}) {
        be_late(seat, (which + root) % 4);
        require_success(collective(seat, which, root, data, seat.stream), "collective");
        // Now all at once, and now behind each other.
        if (root == 1) seat.finish();
      }
    }
    seat.finish();
  });
}

TEST(Agreement, with_ranks_that_are_far_ahead_of_a_late_one) {
  run_watched(3, [](Seat& seat) {
    std::vector<float> data = room();
    be_late(seat, 2);
    for (int i = 0; i < 300; ++i) {
      require_success(collective(seat, i, i % 2, data, seat.stream), "collective");
    }
    seat.finish();
  });
}

// What lies unread for long in the middle of these is no opening, though its bytes could be one.
TEST(Agreement, with_a_rank_that_is_late_for_long_messages_of_zeros) {
  run_watched(4, [](Seat& seat) {
    std::vector<float> data(10'000'000, 0);
    constexpr std::size_t kCount = 1'000'000;  // more than a link holds
    float* const in = data.data();
    float* const out = in + data.size() / 2;
    const auto call = [&](int which) {
      switch (which) {
        case 0: return ncclBroadcast(in, out, kCount, ncclFloat32, 0, seat.comm, seat.stream);
        case 1: return ncclAllReduce(in, out, kCount, ncclFloat32, ncclSum, seat.comm, seat.stream);
        case 2: return ncclReduce(in, out, kCount, ncclFloat32, ncclSum, 3, seat.comm, seat.stream);
        default: return ncclAllGather(in, out, kCount, ncclFloat32, seat.comm, seat.stream);
      }
    };
    for (int which = 0; which < 4; ++which) {
      be_late(seat, 2);
      require_success(call(which), "collective");
      seat.finish();
    }
  });
}

TEST(Agreement, with_messages_and_collectives_on_several_streams) {
  run_watched(3, [](Seat& seat) {
    TestStream second;
    TestStream third;
    std::vector<float> a = room();
    std::vector<float> b = room();
    std::vector<float> c = room();
    for (int round = 0; round < 6; ++round) {
      const auto collectives = [&] {
        require_success(collective(seat, round, round % 3, a, seat.stream), "one");
        require_success(collective(seat, round + 1, (round + 1) % 3, b, second), "two");
      };
      const auto messages = [&] {
        require_success(ncclGroupStart(), "group");
        ncclSend(c.data(), 3000, ncclFloat32, seat.next(), seat.comm, third);
        ncclRecv(c.data() + 5000, 3000, ncclFloat32, seat.previous(), seat.comm, third);
        require_success(ncclGroupEnd(), "group");
      };
      // One rank has its messages first and waits for them, which no other one does.
      const bool other_way = seat.rank == round % 3;
      if (other_way) messages();
      if (!other_way) collectives();
      be_late(seat, (round + 1) % 3);
      if (other_way) collectives();
      if (!other_way) messages();
    }
    seat.finish();
    second.finish();
    third.finish();
  });
}

TEST(Agreement, with_groups_that_mix_messages_and_collectives) {
  run_watched(3, [](Seat& seat) {
    std::vector<float> a = room();
    std::vector<float> b = room();
    std::vector<float> c = room();
    for (int round = 0; round < 6; ++round) {
      be_late(seat, round % 3);
      require_success(ncclGroupStart(), "group");
      ncclSend(c.data(), 3000, ncclFloat32, seat.next(), seat.comm, seat.stream);
      collective(seat, 2 * round, round % 3, a, seat.stream);
      ncclRecv(c.data() + 5000, 3000, ncclFloat32, seat.previous(), seat.comm, seat.stream);
      collective(seat, 2 * round + 1, (round + 1) % 3, b, seat.stream);
      require_success(ncclGroupEnd(), "group");
    }
    seat.finish();
  });
}

// Links of who has left are broken, or hold what nobody reads any more.
TEST(Agreement, with_ranks_that_have_left) {
  run_watched(4, [](Seat& seat) {
    std::vector<float> data = room();
    for (int which = 0; which < 8; ++which) {
      require_success(collective(seat, which, 0, data, seat.stream), "collective");
    }
    require_success(collective(seat, 2, 0, data, seat.stream), "Reduce to 0");
    seat.finish();
    if (seat.rank == 3) {
      // While rank 0 still waits for rank 1, and rank 2 for nobody.
      require_success(ncclCommFinalize(seat.comm), "finalize");
      return;
    }
    if (seat.rank == 2) std::this_thread::sleep_for(2 * kLate);
    std::vector<float> more = room();
    be_late(seat, 1);
    if (seat.rank == 1) {
      require_success(ncclSend(more.data(), 3000, ncclFloat32, 0, seat.comm, seat.stream), "Send");
    } else if (seat.rank == 0) {
      require_success(ncclRecv(more.data(), 3000, ncclFloat32, 1, seat.comm, seat.stream), "Recv");
    }
    seat.finish();
  });
}

TEST(Agreement, with_a_collective_of_nothing_in_between) {
  run_watched(2, [](Seat& seat) {
    std::vector<float> data = room();
    // Not even issued, so it has no number.
    if (seat.rank == 0) {
      require_success(
          ncclAllReduce(data.data(), data.data(), 0, ncclFloat32, ncclSum, seat.comm, seat.stream),
          "of nothing");
    }
    be_late(seat, 1);
    require_success(collective(seat, 0, 0, data, seat.stream), "AllReduce");
    seat.finish();
  });
}

}  // namespace
}  // namespace catenary::testing
