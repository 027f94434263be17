// What a rank costs that does nothing, or waits, and how long many ranks take to come together.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "tests/support/crew.h"
#include "tests/support/processes.h"
#include "tests/support/rank_group.h"

namespace catenary::testing {
namespace {

using namespace std::chrono_literals;

double processor_ms() {
  rusage usage;
  require(::getrusage(RUSAGE_SELF, &usage) == 0, "getrusage");
  const auto ms = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_usec) / 1e3;
  };
  return ms(usage.ru_utime) + ms(usage.ru_stime);
}

void all_reduce(ncclComm_t comm, TestStream& stream, std::size_t count) {
  std::vector<float> data(count, 1);
  require_success(
      ncclAllReduce(data.data(), data.data(), count, ncclFloat32, ncclSum, comm, stream),
      "AllReduce");
  stream.finish();
}

TEST(Cost, of_an_idle_communicator_is_nothing) {
  Processes ranks(2, [](int rank, Board& board) {
    ncclComm_t comm = nullptr;
    require_success(ncclCommInitRank(&comm, 2, board.id(rank == 0), rank), "ncclCommInitRank");
    TestStream stream;
    for (int i = 0; i < 20; ++i) all_reduce(comm, stream, 100000);
    std::this_thread::sleep_for(50ms);  // whoever still waits in the library goes to sleep
    const double before = processor_ms();
    std::this_thread::sleep_for(1s);
    const double used = processor_ms() - before;
    board.posts[rank].numbers[0] = used;
    require(used < 10, "an idle second took " + std::to_string(used) + " ms of processor time");
    require_success(ncclCommDestroy(comm), "destroy");
  });
  for (const std::string& failure : ranks.join(20s)) ADD_FAILURE() << failure;
  const Post* posts = ranks.board().posts;
  std::printf("an idle second took %.2f and %.2f ms\n", posts[0].numbers[0], posts[1].numbers[0]);
}

TEST(Cost, of_waiting_for_a_late_rank_is_little) {
  Processes ranks(2, [](int rank, Board& board) {
    ncclComm_t comm = nullptr;
    require_success(ncclCommInitRank(&comm, 2, board.id(rank == 0), rank), "ncclCommInitRank");
    TestStream stream;
    all_reduce(comm, stream, 1000);
    if (rank == 1) std::this_thread::sleep_for(1s);
    const Stopwatch watch;
    const double before = processor_ms();
    all_reduce(comm, stream, 1000);
    const double used = processor_ms() - before;
    if (rank == 0) {
      board.posts[rank].numbers[0] = used;
      require(watch.ms() > 500, "nobody was late");
      require(used < 100,
              "waiting for a second took " + std::to_string(used) + " ms of processor time");
    }
    require_success(ncclCommDestroy(comm), "destroy");
  });
  for (const std::string& failure : ranks.join(20s)) ADD_FAILURE() << failure;
  std::printf("waiting for a second took %.2f ms\n", ranks.board().posts[0].numbers[0]);
}

TEST(Cost, of_initializing_64_ranks_is_no_more_than_seconds) {
  Processes ranks(kMostProcesses, [](int rank, Board& board) {
    const ncclUniqueId id = board.id(rank == 0);
    board.posts[rank].stage = 1;
    board.wait_for_go();
    ncclComm_t comm = nullptr;
    require_success(ncclCommInitRank(&comm, kMostProcesses, id, rank), "ncclCommInitRank");
    board.posts[rank].numbers[0] = ms_since(board.event_ns);
    TestStream stream;
    all_reduce(comm, stream, 1000);
    board.posts[rank].numbers[1] = ms_since(board.event_ns);
    require_success(ncclCommDestroy(comm), "destroy");
  });
  EXPECT_TRUE(ranks.wait_for_stage(1, 20s));
  ranks.board().event_ns = monotonic_ns();
  ranks.board().go = true;
  for (const std::string& failure : ranks.join(40s)) ADD_FAILURE() << failure;
  double joined = 0;
  double reduced = 0;
  for (const Post& post : ranks.board().posts) {
    joined = std::max(joined, post.numbers[0]);
    reduced = std::max(reduced, post.numbers[1]);
  }
  std::printf("%d ranks were there after %.0f ms, and had reduced after %.0f ms\n", kMostProcesses,
              joined, reduced);
  EXPECT_LT(joined, 10000);
}

}  // namespace
}  // namespace catenary::testing
