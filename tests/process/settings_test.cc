// Settings that must be alike on all ranks, and are not.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/support/crew.h"
#include "tests/support/processes.h"
#include "tests/support/rank_group.h"

namespace catenary::testing {
namespace {

using namespace std::chrono_literals;

// Links of different lengths would cut messages differently, and sums would be wrong.
TEST(Settings, that_would_cut_messages_differently_are_refused_on_every_rank) {
  Processes ranks(2, [](int rank, Board& board) {
    ::setenv("CATENARY_SLOTS", rank == 0 ? "4" : "16", 1);
    ncclComm_t comm = nullptr;
    require_result(ncclCommInitRank(&comm, 2, board.id(rank == 0), rank), ncclInvalidUsage,
                   "initialization with unequal slots");
    require(comm == nullptr, "no communicator");
    require(contains(last_error(), "CATENARY_SLOTS"), last_error());
  });
  for (const std::string& failure : ranks.join(20s)) ADD_FAILURE() << failure;
}

}  // namespace
}  // namespace catenary::testing
