// A rank dies at any moment. Every other one must know within a second who it was; what waits must
// return; and nothing may be left behind.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <random>
#include <thread>
#include <vector>

#include "tests/support/crew.h"
#include "tests/support/processes.h"
#include "tests/support/rank_group.h"

namespace catenary::testing {
namespace {

using namespace std::chrono_literals;

constexpr int kRanks = 4;
constexpr double kNoticed_ms = 1000;
constexpr double kReturned_ms = 1000;

enum Stage : int { kReady = 1, kNoticed = 2, kSynchronized = 3, kEnded = 4, kAgain = 5 };

int number_from(const char* variable, int otherwise) {
  const char* text = std::getenv(variable);
  return text != nullptr ? std::atoi(text) : otherwise;
}

// Lets the library open what a process keeps for as long as it lives.
void warm_up() {
  ncclComm_t comm = nullptr;
  require_success(ncclCommInitRank(&comm, 1, new_unique_id(), 0), "warm-up");
  TestStream stream;
  float one = 1;
  require_success(ncclAllReduce(&one, &one, 1, ncclFloat32, ncclSum, comm, stream), "warm-up");
  stream.finish();
  require_success(ncclCommDestroy(comm), "warm-up");
}

// One operation of a random kind and size; the same on all ranks.
// Every other rank's is such that peers read it in place.
class Data {
 public:
  explicit Data(const Seat& seat) : own_(seat.rank % 2 == 0 ? 0 : kCount) {
    if (own_.empty())
      require_success(ncclMemAlloc(&mapped_, kCount * sizeof(float)), "ncclMemAlloc");
    std::fill_n(data(), kCount, static_cast<float>(seat.rank));
  }
  ~Data() {
    if (mapped_ != nullptr) ncclMemFree(mapped_);
  }
  float* data() { return mapped_ != nullptr ? static_cast<float*>(mapped_) : own_.data(); }
  static constexpr std::size_t size() { return kCount; }

 private:
  static constexpr std::size_t kCount = std::size_t{1} << 20;
  std::vector<float> own_;
  void* mapped_ = nullptr;
};

ncclResult_t random_operation(std::mt19937& random, const Seat& seat, Data& data) {
  const std::size_t most = std::size_t{1} << (random() % 19);
  const std::size_t count = 1 + random() % most;
  float* const at = data.data();
  if (random() % 3 != 0) {
    return ncclAllReduce(at, at, count, ncclFloat32, ncclMax, seat.comm, seat.stream);
  }
  ncclGroupStart();
  ncclSend(at, count, ncclFloat32, seat.next(), seat.comm, seat.stream);
  ncclRecv(at + data.size() / 2, count, ncclFloat32, seat.previous(), seat.comm, seat.stream);
  return ncclGroupEnd();
}

// Runs operations until the communicator fails, and says how that was.
void work_until_failure(const Seat& seat, unsigned seed, Post& post, const Board& board) {
  std::mt19937 random(seed);
  Data data(seat);
  ncclResult_t result = ncclSuccess;
  while (result == ncclSuccess) {
    result = random_operation(random, seat, data);
    if (random() % 2 == 0) seat.finish();
    if (result == ncclSuccess)
      require_success(ncclCommGetAsyncError(seat.comm, &result), "ncclCommGetAsyncError");
  }
  post.numbers[0] = ms_since(board.event_ns);
  write_text(post, last_error());
  post.stage = kNoticed;
  require_result(result, ncclRemoteError, "the failure");
  seat.finish();
  post.numbers[1] = ms_since(board.event_ns);
  post.stage = kSynchronized;
}

void require_no_more_files(const std::vector<std::string>& before) {
  const std::int64_t start = monotonic_ns();
  for (;;) {
    const std::vector<std::string> now = open_files();
    if (now.size() <= before.size()) return;
    std::string list = "files were left open:";
    for (const std::string& file : now) list += "\n  " + file;
    list += "\nbefore:";
    for (const std::string& file : before) list += "\n  " + file;
    require(ms_since(start) < 1000, list);
    std::this_thread::sleep_for(5ms);
  }
}

struct Round {
  unsigned seed;
  int victim;
  int delay_us;
};

void survive(int rank, Board& board, const Round& round) {
  Post& post = board.posts[rank];
  warm_up();
  const std::vector<std::string> files = open_files();
  {
    TestStream stream;
    Seat seat{rank, kRanks, nullptr, stream};
    require_success(ncclCommInitRank(&seat.comm, kRanks, board.id(rank == 0), rank),
                    "ncclCommInitRank");
    post.stage = kReady;
    work_until_failure(seat, round.seed, post, board);
    // Nobody could remove the names of the dead. Seen from inside, since others use that folder
    // too.
    require(mapping_with("/dev/shm/").empty(), mapping_with("/dev/shm/"));
    const std::int64_t ending = monotonic_ns();
    require_success(rank % 2 == 0 ? ncclCommAbort(seat.comm) : ncclCommDestroy(seat.comm),
                    "abort or destroy");
    post.numbers[2] = ms_since(ending);
    post.stage = kEnded;
  }
  {
    // The survivors go on without the dead.
    TestStream stream;
    const int place = rank > round.victim ? rank - 1 : rank;
    ncclComm_t comm = nullptr;
    const ncclUniqueId id = board.id(place == 0, 1);
    require_success(ncclCommInitRank(&comm, kRanks - 1, id, place), "a new communicator");
    std::vector<float> data(50000, 1);
    require_success(
        ncclAllReduce(data.data(), data.data(), data.size(), ncclFloat32, ncclSum, comm, stream),
        "sum");
    stream.finish();
    require(data == std::vector<float>(50000, kRanks - 1), "the sum of the survivors");
    require_success(ncclCommDestroy(comm), "destroy");
    post.stage = kAgain;
  }
  require_no_more_files(files);
}

// One life and death of a communicator. Returns how long the last survivor took to know.
double run_round(const Round& round) {
  Processes ranks(kRanks, [&](int rank, Board& board) { survive(rank, board, round); });
  if (!ranks.wait_for_stage(kReady, 20s)) {
    for (const std::string& failure : ranks.join(0ms)) ADD_FAILURE() << failure;
    return 0;
  }
  std::this_thread::sleep_for(std::chrono::microseconds(round.delay_us));
  ranks.board().event_ns = monotonic_ns();
  ranks.signal(round.victim, SIGKILL);
  for (const std::string& failure : ranks.join(20s, round.victim)) ADD_FAILURE() << failure;
  double slowest = 0;
  for (int rank = 0; rank < kRanks; ++rank) {
    if (rank == round.victim) continue;
    const Post& post = ranks.board().posts[rank];
    EXPECT_LT(post.numbers[0], kNoticed_ms) << "rank " << rank << " noticed late";
    EXPECT_LT(post.numbers[1], kNoticed_ms + kReturned_ms)
        << "rank " << rank << " synchronized late";
    EXPECT_LT(post.numbers[2], kReturned_ms) << "rank " << rank << " ended late";
    EXPECT_TRUE(contains(post.text, "rank " + std::to_string(round.victim)))
        << "rank " << rank << " does not name the dead rank: " << post.text;
    slowest = std::max(slowest, post.numbers[0]);
  }
  return slowest;
}

// CATENARY_TEST_SEED and CATENARY_TEST_ROUNDS repeat a failure, or look longer for one.
TEST(Kill, of_a_random_rank_at_a_random_moment_is_noticed_by_all_others) {
  const auto seed = static_cast<unsigned>(
      number_from("CATENARY_TEST_SEED", static_cast<int>(std::random_device()() >> 1)));
  const int rounds = number_from("CATENARY_TEST_ROUNDS", 20);
  std::mt19937 random(seed);
  double slowest = 0;
  for (int i = 0; i < rounds && !HasFailure(); ++i) {
    const Round round{static_cast<unsigned>(random()), static_cast<int>(random() % kRanks),
                      static_cast<int>(random() % 50000)};
    SCOPED_TRACE("seed " + std::to_string(seed) + " round " + std::to_string(i) + " victim " +
                 std::to_string(round.victim) + " after " + std::to_string(round.delay_us) + " us");
    slowest = std::max(slowest, run_round(round));
  }
  std::printf("seed %u: %d rounds, noticed within %.1f ms\n", seed, rounds, slowest);
}

// Rank 0, where the id was made, leaves and ends first; then rank 1 waits for rank 2.
void outlive_the_root(int rank, Board& board) {
  Post& post = board.posts[rank];
  TestStream stream;
  ncclComm_t comm = nullptr;
  require_success(ncclCommInitRank(&comm, 3, board.id(rank == 0), rank), "ncclCommInitRank");
  float one = 1;
  require_success(ncclAllReduce(&one, &one, 1, ncclFloat32, ncclSum, comm, stream), "AllReduce");
  stream.finish();
  post.numbers[0] = ::getpid();
  post.stage = kReady;
  if (rank == 0) {
    while (board.event_ns == 0) std::this_thread::sleep_for(1ms);  // until all three are seen
    require_success(ncclCommDestroy(comm), "destroy");
    return;
  }
  board.wait_for_go();
  if (rank == 2) std::this_thread::sleep_for(20s);  // and is killed
  require_success(ncclRecv(&one, 1, ncclFloat32, 2, comm, stream), "Recv");
  require_result(wait_for_failure(comm, 10s), ncclRemoteError, "the failure");
  post.numbers[0] = ms_since(board.event_ns);
  write_text(post, last_error());
  require_success(ncclCommAbort(comm), "abort");
}

TEST(Kill, is_noticed_by_who_waits_though_the_root_has_ended) {
  constexpr int kVictim = 2;
  Processes ranks(3, &outlive_the_root);
  ASSERT_TRUE(ranks.wait_for_stage(kReady, 20s));
  ranks.board().event_ns = monotonic_ns();
  siginfo_t ended = {};
  const auto root = static_cast<id_t>(ranks.board().posts[0].numbers[0]);
  for (int tries = 0; ended.si_pid == 0; ++tries) {
    ASSERT_LT(tries, 20'000) << "rank 0 does not end";
    ASSERT_EQ(::waitid(P_PID, root, &ended, WEXITED | WNOHANG | WNOWAIT), 0);
    std::this_thread::sleep_for(1ms);
  }
  ranks.board().go = true;
  std::this_thread::sleep_for(100ms);
  ranks.board().event_ns = monotonic_ns();
  ranks.signal(kVictim, SIGKILL);
  for (const std::string& failure : ranks.join(20s, kVictim)) ADD_FAILURE() << failure;
  const Post& post = ranks.board().posts[1];
  EXPECT_TRUE(contains(post.text, "rank 2 has ended")) << post.text;
  EXPECT_LT(post.numbers[0], 2 * kNoticed_ms);
}

// While one rank sends long messages to the other, and both copy them.
void send_until_failure(int rank, Board& board, bool is_mapped) {
  constexpr std::size_t kBytes = std::size_t{1} << 23;
  Post& post = board.posts[rank];
  ::setenv("CATENARY_FETCH_BYTES", "32768", 1);  // also where the kernel is slow
  TestStream stream;
  ncclComm_t comm = nullptr;
  require_success(ncclCommInitRank(&comm, 2, board.id(rank == 0), rank), "ncclCommInitRank");
  void* mapped = nullptr;
  require_success(ncclMemAlloc(&mapped, kBytes), "ncclMemAlloc");
  std::vector<char> own(kBytes);
  void* const data = is_mapped ? mapped : own.data();
  ncclResult_t result = ncclSuccess;
  for (int i = 0; result == ncclSuccess; ++i) {
    if (i == 2) post.stage = kReady;
    result = i % 2 == 0  ? ncclBroadcast(data, data, kBytes, ncclInt8, 0, comm, stream)
             : rank == 0 ? ncclSend(data, kBytes, ncclInt8, 1, comm, stream)
                         : ncclRecv(data, kBytes, ncclInt8, 0, comm, stream);
    stream.finish();
    if (result == ncclSuccess)
      require_success(ncclCommGetAsyncError(comm, &result), "ncclCommGetAsyncError");
  }
  post.numbers[0] = ms_since(board.event_ns);
  require_result(result, ncclRemoteError, "the failure");
  require_success(ncclCommAbort(comm), "abort");
  post.numbers[1] = ms_since(board.event_ns);
  require_success(ncclMemFree(mapped), "ncclMemFree");
}

TEST(Kill, of_a_rank_that_copies_together_with_the_other_is_noticed) {
  std::mt19937 random(static_cast<unsigned>(number_from("CATENARY_TEST_SEED", 1)));
  for (int i = 0; i < 12; ++i) {
    const int victim = i % 2;
    const bool is_mapped = i % 4 >= 2;
    const auto delay = std::chrono::microseconds(random() % 10000);
    SCOPED_TRACE("round " + std::to_string(i) + " after " + std::to_string(delay.count()) + " us");
    Processes ranks(2, [=](int rank, Board& board) { send_until_failure(rank, board, is_mapped); });
    ASSERT_TRUE(ranks.wait_for_stage(kReady, 20s));
    std::this_thread::sleep_for(delay);
    ranks.board().event_ns = monotonic_ns();
    ranks.signal(victim, SIGKILL);
    for (const std::string& failure : ranks.join(20s, victim)) ADD_FAILURE() << failure;
    const Post& post = ranks.board().posts[1 - victim];
    EXPECT_LT(post.numbers[0], kNoticed_ms);
    EXPECT_LT(post.numbers[1], kNoticed_ms + kReturned_ms);
  }
}

// The survivors of rank 2 shrink the communicator that it broke, and go on.
void shrink_and_go_on(int rank, Board& board) {
  TestStream stream;
  Seat seat{rank, kRanks, nullptr, stream};
  require_success(ncclCommInitRank(&seat.comm, kRanks, board.id(rank == 0), rank), "init");
  board.posts[rank].stage = kReady;
  work_until_failure(seat, 1, board.posts[rank], board);
  int dead = 2;
  ncclComm_t rest = nullptr;
  require_success(ncclCommShrink(seat.comm, &dead, 1, &rest, nullptr, NCCL_SHRINK_ABORT), "shrink");
  require_success(ncclCommAbort(seat.comm), "abort of the parent");
  float one = 1;
  require_success(ncclAllReduce(&one, &one, 1, ncclFloat32, ncclSum, rest, stream), "sum");
  stream.finish();
  require(one == kRanks - 1, "the sum of the survivors");
  require_success(ncclCommDestroy(rest), "destroy");
}

TEST(Kill, of_a_rank_can_be_survived_by_shrinking) {
  Processes ranks(kRanks, shrink_and_go_on);
  ASSERT_TRUE(ranks.wait_for_stage(kReady, 20s));
  ranks.board().event_ns = monotonic_ns();
  ranks.signal(2, SIGKILL);
  for (const std::string& failure : ranks.join(20s, 2)) ADD_FAILURE() << failure;
}

TEST(Kill, of_the_rank_that_made_the_id_is_noticed) {
  for (int i = 0; i < 3; ++i) run_round({static_cast<unsigned>(i), 0, 10000});
}

TEST(Kill, is_noticed_by_ranks_that_are_idle) {
  constexpr int kVictim = 2;
  Processes ranks(kRanks, [](int rank, Board& board) {
    ncclComm_t comm = nullptr;
    require_success(ncclCommInitRank(&comm, kRanks, board.id(rank == 0), rank), "ncclCommInitRank");
    board.posts[rank].stage = kReady;
    board.wait_for_go();
    require_result(wait_for_failure(comm, 5s), ncclRemoteError, "the failure");
    const double noticed = ms_since(board.event_ns);
    require(noticed < kNoticed_ms, "noticed after " + std::to_string(noticed) + " ms");
    require(contains(last_error(), "rank 2"), last_error());
    require_success(ncclCommDestroy(comm), "destroy");
  });
  EXPECT_TRUE(ranks.wait_for_stage(kReady, 20s));
  ranks.board().event_ns = monotonic_ns();
  ranks.signal(kVictim, SIGKILL);
  ranks.board().go = true;
  for (const std::string& failure : ranks.join(20s, kVictim)) ADD_FAILURE() << failure;
}

struct WaitingCall {
  const char* name;
  std::function<void(const Seat&)> call;
};

void PrintTo(const WaitingCall& test, std::ostream* out) { *out << test.name; }

class KillWhileOthersWait : public ::testing::TestWithParam<WaitingCall> {};

TEST_P(KillWhileOthersWait, makes_the_call_return) {
  constexpr int kVictim = 1;
  Processes ranks(3, [](int rank, Board& board) {
    TestStream stream;
    Seat seat{rank, 3, nullptr, stream};
    require_success(ncclCommInitRank(&seat.comm, 3, board.id(rank == 0), rank), "ncclCommInitRank");
    board.posts[rank].stage = kReady;
    if (rank == kVictim) std::this_thread::sleep_for(60s);
    float data[64] = {};
    require_success(ncclAllReduce(data, data, 64, ncclFloat32, ncclSum, seat.comm, stream), "sum");
    GetParam().call(seat);
    const double returned = ms_since(board.event_ns);
    require(board.event_ns != 0, "the call did not wait");
    require(returned < kNoticed_ms, "returned after " + std::to_string(returned) + " ms");
    require(contains(last_error(), "rank 1"), last_error());
  });
  EXPECT_TRUE(ranks.wait_for_stage(kReady, 20s));
  std::this_thread::sleep_for(100ms);
  ranks.board().event_ns = monotonic_ns();
  ranks.signal(kVictim, SIGKILL);
  for (const std::string& failure : ranks.join(20s, kVictim)) ADD_FAILURE() << failure;
}

INSTANTIATE_TEST_SUITE_P(
    In, KillWhileOthersWait,
    ::testing::Values(WaitingCall{"synchronize", [](const Seat& seat) { seat.finish(); }},
                      WaitingCall{"finalize",
                                  [](const Seat& seat) { ncclCommFinalize(seat.comm); }},
                      WaitingCall{"destroy", [](const Seat& seat) { ncclCommDestroy(seat.comm); }},
                      WaitingCall{"split",
                                  [](const Seat& seat) {
                                    ncclComm_t part = nullptr;
                                    require_result(ncclCommSplit(seat.comm, 0, 0, &part, nullptr),
                                                   ncclRemoteError, "ncclCommSplit");
                                  }}),
    [](const auto& test) { return std::string(test.param.name); });

// Whenever it happens, nobody waits longer than for a rank that never comes.
TEST(Kill, during_initialization_fails_it_for_all_others) {
  std::mt19937 random(static_cast<unsigned>(number_from("CATENARY_TEST_SEED", 1)));
  for (int i = 0; i < 8; ++i) {
    const int victim = i % kRanks;
    const auto delay = std::chrono::microseconds(random() % 25000);
    SCOPED_TRACE("victim " + std::to_string(victim) + " after " + std::to_string(delay.count()) +
                 " us");
    Processes ranks(kRanks, [](int rank, Board& board) {
      ::setenv("CATENARY_INIT_TIMEOUT", "2", 1);
      const ncclUniqueId id = board.id(rank == 0);
      board.posts[rank].stage = kReady;
      board.wait_for_go();
      ncclComm_t comm = nullptr;
      ncclResult_t result = ncclCommInitRank(&comm, kRanks, id, rank);
      require((result == ncclSuccess) == (comm != nullptr), "result and communicator");
      if (result == ncclSuccess) {
        result = wait_for_failure(comm, 5s);
        require_success(ncclCommAbort(comm), "abort");
      }
      require(result == ncclRemoteError || result == ncclSystemError,
              "result " + std::to_string(result));
      require(ms_since(board.event_ns) < 4500,
              "took " + std::to_string(ms_since(board.event_ns)) + " ms");
    });
    EXPECT_TRUE(ranks.wait_for_stage(kReady, 20s));
    ranks.board().event_ns = monotonic_ns();
    ranks.board().go = true;
    std::this_thread::sleep_for(delay);
    ranks.signal(victim, SIGKILL);
    for (const std::string& failure : ranks.join(20s, victim)) ADD_FAILURE() << failure;
  }
}

// A rank that does not run is late, not dead.
TEST(Stop, of_a_rank_makes_the_others_wait_and_nothing_else) {
  Processes ranks(3, [](int rank, Board& board) {
    TestStream stream;
    ncclComm_t comm = nullptr;
    require_success(ncclCommInitRank(&comm, 3, board.id(rank == 0), rank), "ncclCommInitRank");
    board.posts[rank].stage = kReady;
    std::vector<float> data(100000, 1);
    for (int i = 0; i < 2; ++i) {
      if (i == 1) board.wait_for_go();
      require_success(
          ncclAllReduce(data.data(), data.data(), data.size(), ncclFloat32, ncclSum, comm, stream),
          "sum");
      stream.finish();
      board.posts[rank].stage = kNoticed + i;
    }
    require(data == std::vector<float>(100000, 9), "the sums");
    ncclResult_t state;
    require_success(ncclCommGetAsyncError(comm, &state), "ncclCommGetAsyncError");
    require_success(state, "the state");
    require_success(ncclCommDestroy(comm), "destroy");
  });
  EXPECT_TRUE(ranks.wait_for_stage(kNoticed, 20s));
  ranks.signal(1, SIGSTOP);
  ranks.board().go = true;
  std::this_thread::sleep_for(1500ms);
  EXPECT_EQ(ranks.board().posts[0].stage, kNoticed) << "the others did not wait";
  ranks.signal(1, SIGCONT);
  for (const std::string& failure : ranks.join(20s)) ADD_FAILURE() << failure;
}

TEST(Missing, rank_is_named_after_the_time_that_was_set) {
  Processes ranks(2, [](int process, Board& board) {
    ::setenv("CATENARY_INIT_TIMEOUT", "1", 1);
    const int rank = process == 0 ? 0 : 2;  // ranks 1 and 3 never come
    ncclComm_t comm = nullptr;
    const ncclUniqueId id = board.id(process == 0);
    const Stopwatch watch;
    require_result(ncclCommInitRank(&comm, 4, id, rank), ncclRemoteError, "ncclCommInitRank");
    require(comm == nullptr, "a communicator was left behind");
    require(watch.ms() < 3000, "took " + std::to_string(watch.ms()) + " ms");
    require(contains(last_error(), "1, 3 of 4") || contains(last_error(), "1 and 3 of 4"),
            last_error());
  });
  for (const std::string& failure : ranks.join(20s)) ADD_FAILURE() << failure;
}

}  // namespace
}  // namespace catenary::testing
