// That memory from ncclMemAlloc is really read where it lies, as one sees from outside: a send of
// it is not over before the peer has taken it, while one of other memory is copied ahead.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "tests/support/crew.h"
#include "tests/support/rank_group.h"

namespace catenary::testing {
namespace {

constexpr std::size_t kCount = 65536;  // far fewer bytes than a link's slots hold

class Device {
 public:
  explicit Device(int rank) { require(catSetDevice(rank) == catSuccess, "catSetDevice"); }
};

class Comm {
 public:
  Comm(int rank, int nranks, const ncclUniqueId& id) {
    require_success(ncclCommInitRank(&comm_, nranks, id, rank), "ncclCommInitRank");
  }
  ~Comm() { ncclCommDestroy(comm_); }
  operator ncclComm_t() const { return comm_; }

 private:
  ncclComm_t comm_ = nullptr;
};

class Mapped {
 public:
  explicit Mapped(std::size_t count) {
    require_success(ncclMemAlloc(&base_, count * sizeof(float)), "ncclMemAlloc");
  }
  ~Mapped() { ncclMemFree(base_); }
  float* data() const { return static_cast<float*>(base_); }

 private:
  void* base_ = nullptr;
};

void meet(const Comm& comm) {
  TestStream stream;
  float one = 1;
  require_success(ncclAllReduce(&one, &one, 1, ncclFloat32, ncclSum, comm, stream), "meeting");
  stream.finish();
}

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

// Rank 0 sends `data` and looks for as long as `patience` whether that is over before rank 1 has
// begun to receive. A time, not a number of looks: whoever drives rank 0 just then may have lost
// its core, and every look finds the executor taken.
bool is_sent_ahead(int rank, const Comm& comm, const float* data, milliseconds patience) {
  TestStream stream;
  std::vector<float> taken(kCount);
  meet(comm);
  bool over = false;
  if (rank == 0) {
    require_success(ncclSend(data, kCount, ncclFloat32, 1, comm, stream), "Send");
    const auto end = steady_clock::now() + patience;
    while (!over && steady_clock::now() < end) over = catStreamQuery(stream) == catSuccess;
  }
  meet(comm);
  if (rank == 1)
    require_success(ncclRecv(taken.data(), kCount, ncclFloat32, 0, comm, stream), "Recv");
  stream.finish();
  if (rank == 1) require(taken == std::vector<float>(kCount, 5), "what was received");
  return over;
}

void body(int rank, int nranks, const ncclUniqueId& id) {
  const Device device(rank);
  const Comm comm(rank, nranks, id);
  const std::vector<float> own(kCount, 5);
  const Mapped mapped(kCount);
  std::copy(own.begin(), own.end(), mapped.data());
  // The first message between two ranks makes their links, and only then do they know.
  is_sent_ahead(rank, comm, own.data(), milliseconds(0));
  const bool copied_own = is_sent_ahead(rank, comm, own.data(), seconds(20));
  const char* const least = std::getenv("CATENARY_LEND_BYTES");
  const bool lends = least == nullptr || std::strcmp(least, "0") != 0;
  const bool copied_mapped =
      is_sent_ahead(rank, comm, mapped.data(), lends ? milliseconds(20) : seconds(20));
  if (rank != 0) return;
  require(copied_own, "memory of the program's own is not copied");
  require(copied_mapped != lends, "mapped memory is lent exactly where that is not switched off");
}

constexpr std::size_t kLong = std::size_t{1} << 22;

// Mapped, or of the program's own.
template <bool kIsMapped>
class Memory {
 public:
  explicit Memory(std::size_t count)
      : mapped_(kIsMapped ? count : 1), own_(kIsMapped ? 0 : count) {}
  float* data() { return kIsMapped ? mapped_.data() : own_.data(); }

 private:
  Mapped mapped_;
  std::vector<float> own_;
};

using Operation = ncclResult_t (*)(int rank, float* given, float* taken, ncclComm_t comm,
                                   catStream_t stream);
ncclResult_t sum(int, float* given, float* taken, ncclComm_t comm, catStream_t stream) {
  return ncclAllReduce(given, taken, kLong, ncclFloat32, ncclSum, comm, stream);
}
// Rank 1 waits until what it lent is taken, and helps.
ncclResult_t take(int rank, float* given, float* taken, ncclComm_t comm, catStream_t stream) {
  float* const data = rank == 0 ? taken : given;
  return ncclBroadcast(data, data, kLong, ncclFloat32, 1, comm, stream);
}

// The same as a message.
ncclResult_t receive(int rank, float* given, float* taken, ncclComm_t comm, catStream_t stream) {
  return rank == 0 ? ncclRecv(taken, kLong, ncclFloat32, 1, comm, stream)
                   : ncclSend(given, kLong, ncclFloat32, 0, comm, stream);
}

// Two ranks write into each other's memory, again and again, until rank 0 stops the other's process
// for a while and gives up: then its memory is its own, although the other one goes on later,
// mostly in the middle of writing.
template <Operation kOperation, bool kIsMapped>
void abort_while_written_to(int rank, int nranks, const ncclUniqueId& id) {
  constexpr int kOperations = 40;
  ::setenv("CATENARY_FETCH_BYTES", "32768", 1);  // also where the kernel is slow
  const Device device(rank);
  ncclComm_t comm = nullptr;
  require_success(ncclCommInitRank(&comm, nranks, id, rank), "ncclCommInitRank");
  Memory<kIsMapped> given(kLong), taken(kLong);
  std::fill_n(given.data(), kLong, 1.0F);
  TestStream stream;
  int peer = ::getpid();  // of rank 1, as its broadcast says
  require_success(ncclBcast(&peer, 1, ncclInt32, 1, comm, stream), "Bcast");
  require(catStreamSynchronize(stream) == catSuccess, "catStreamSynchronize");
  for (int i = 0; i < kOperations; ++i) {
    const ncclResult_t enqueued = kOperation(rank, given.data(), taken.data(), comm, stream);
    if (rank == 0) require_success(enqueued, "enqueue");
  }
  if (rank == 0) {
    std::this_thread::sleep_for(milliseconds(20));
    ::kill(peer, SIGSTOP);
    std::thread waker([&] {
      std::this_thread::sleep_for(milliseconds(200));
      ::kill(peer, SIGCONT);
    });
    const ncclResult_t aborted = ncclCommAbort(comm);
    std::fill_n(taken.data(), kLong, 7.0F);
    waker.join();
    std::this_thread::sleep_for(milliseconds(20));
    require_success(aborted, "ncclCommAbort");
    require(std::all_of(taken.data(), taken.data() + kLong, [](float x) { return x == 7.0F; }),
            "memory was written to after the abort");
  } else {
    catStreamSynchronize(stream);
    ncclCommAbort(comm);
  }
}

// First, since a process that has used the library may not fork ranks.
TEST(Lending, of_mapped_memory_between_processes) {
  for (const std::string& failure : run_ranks({2, 1}, body)) ADD_FAILURE() << failure;
}

template <Operation kOperation, bool kIsMapped>
void abort_again_and_again() {
  for (int round = 0; round < 8; ++round) {
    for (const std::string& failure :
         run_ranks({2, 1}, abort_while_written_to<kOperation, kIsMapped>))
      ADD_FAILURE() << failure;
  }
}

TEST(Lending, of_places_for_results_ends_with_an_abort) { abort_again_and_again<sum, true>(); }
TEST(Lending, of_what_both_copy_ends_with_an_abort) { abort_again_and_again<take, true>(); }
TEST(Lending, of_what_the_kernel_copies_ends_with_an_abort) {
  abort_again_and_again<take, false>();
}
TEST(Lending, of_a_long_message_ends_with_an_abort) { abort_again_and_again<receive, true>(); }
TEST(Lending, of_a_message_that_the_kernel_copies_ends_with_an_abort) {
  abort_again_and_again<receive, false>();
}

TEST(Lending, of_mapped_memory_between_threads) {
  for (const std::string& failure : run_ranks({1, 2}, body)) ADD_FAILURE() << failure;
}

// Two sends from two streams: the first is over once the first was received, also if the second is
// received only after something that waits for the first.
TEST(Lending, to_a_rank_that_answers_before_it_takes_the_next_message) {
  run_crew(2, [](Seat& seat) {
    const Mapped first(kCount), second(kCount), answer(kCount);
    TestStream other;
    const auto send = [&](const Mapped& data, int to, catStream_t stream) {
      require_success(ncclSend(data.data(), kCount, ncclFloat32, to, seat.comm, stream), "Send");
    };
    const auto receive = [&](const Mapped& data, int from) {
      require_success(ncclRecv(data.data(), kCount, ncclFloat32, from, seat.comm, seat.stream),
                      "Recv");
    };
    // The first round makes the links, and only then do ranks know who can borrow.
    for (int round = 0; round < 3; ++round) {
      if (seat.rank == 0) {
        send(first, 1, seat.stream);
        send(second, 1, other);
        receive(answer, 1);
      } else {
        std::this_thread::sleep_for(milliseconds(20));
        receive(first, 0);
        send(answer, 0, seat.stream);
        receive(second, 0);
      }
      seat.finish();
      other.finish();
    }
  });
}

// A group that only sends is over although nobody receives yet, as long as links hold all of it.
TEST(Lending, of_other_memory_does_not_hold_up_those_who_send_first) {
  run_crew(2, [](Seat& seat) {
    const std::vector<float> first(kCount / 2, 1.0F), second(kCount / 2, 2.0F);
    std::vector<float> taken(kCount / 2), taken_next(kCount / 2);
    const int peer = 1 - seat.rank;
    const auto send = [&](const std::vector<float>& data) {
      require_success(ncclSend(data.data(), data.size(), ncclFloat32, peer, seat.comm, seat.stream),
                      "Send");
    };
    const auto receive = [&](std::vector<float>& data) {
      require_success(ncclRecv(data.data(), data.size(), ncclFloat32, peer, seat.comm, seat.stream),
                      "Recv");
    };
    for (int round = 0; round < 3; ++round) {
      require_success(ncclGroupStart(), "GroupStart");
      send(first);
      send(second);
      require_success(ncclGroupEnd(), "GroupEnd");
      require_success(ncclGroupStart(), "GroupStart");
      receive(taken);
      receive(taken_next);
      require_success(ncclGroupEnd(), "GroupEnd");
      seat.finish();
    }
    require(taken == first && taken_next == second, "what was received");
  });
}

// Suspicion has no place where a rank only waits for its message to be taken.
TEST(Lending, to_a_rank_that_does_other_things_first_is_no_disagreement) {
  run_crew(2, [](Seat& seat) {
    const Mapped data(kCount);
    std::fill_n(data.data(), kCount, 5.0F);
    TestStream other;
    float small = 1;
    if (seat.rank == 0) {
      require_success(
          ncclBroadcast(data.data(), data.data(), kCount, ncclFloat32, 0, seat.comm, seat.stream),
          "Broadcast");
      seat.finish();
      require_success(ncclRecv(&small, 1, ncclFloat32, 1, seat.comm, other), "Recv");
    } else {
      const auto idle = [](void*) { std::this_thread::sleep_for(seconds(2)); };
      require(catLaunchHostFunc(seat.stream, idle, nullptr) == catSuccess, "catLaunchHostFunc");
      require_success(
          ncclBroadcast(data.data(), data.data(), kCount, ncclFloat32, 0, seat.comm, seat.stream),
          "Broadcast");
      require_success(ncclSend(&small, 1, ncclFloat32, 0, seat.comm, other), "Send");
    }
    other.finish();
    seat.finish();
  });
}

}  // namespace
}  // namespace catenary::testing
