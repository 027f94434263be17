#include "src/comm/loss.h"

#include <gtest/gtest.h>

#include <string>

#include "src/transport/transport.h"
#include "tests/bootstrap/process_crew.h"

namespace catenary {
namespace {

constexpr int kRanks = 3;  // of which the first has the root, and the second loses a connection

class LossTest : public testing::Test {
 protected:
  // What rank 1 makes of the loss of `peer`, whether or not the root's process runs.
  std::string verdict_on(int peer, bool root_is_stopped) {
    for (int rank = 0; rank < kRanks; ++rank) {
      crew_.start(rank, [this, peer](int mine) { take_part(mine, peer); });
    }
    for (int rank = 0; rank < kRanks; ++rank) EXPECT_TRUE(crew_.wait_stage(rank, kJoined));
    if (root_is_stopped) ::kill(crew_.pid(0), SIGSTOP);
    crew_.open_gate();
    EXPECT_TRUE(crew_.wait_stage(1, kFinished));
    EXPECT_EQ(crew_.at(1).code, static_cast<int>(ErrorCode::kRemote));
    return crew_.at(1).text;
  }

 private:
  void take_part(int rank, int peer) {
    const Config config = loopback();
    if (rank == 0) crew_.publish_id(config);
    Membership membership(crew_.wait_id(), rank, kRanks, within_ms(20000), config);
    crew_.at(rank).stage = kJoined;
    crew_.wait_gate();
    if (rank != 1) ::pause();
    Loss loss(LostConnection(rank, peer, "it is gone"), membership);
    while (!membership.poll()) {
      if (const auto verdict = loss.verdict()) throw Error(*verdict);
      ::usleep(200);
    }
  }

  ProcessCrew crew_;
};

TEST_F(LossTest, is_what_it_seems_if_the_root_is_there_and_knows_of_nothing) {
  EXPECT_EQ(verdict_on(2, false), "rank 1 lost the connection to rank 2: it is gone");
}

TEST_F(LossTest, may_be_that_of_a_root_that_does_not_answer) {
  const std::string text = verdict_on(2, true);
  EXPECT_NE(text.find("rank 1 lost the connection to rank 2: it is gone; no answer from rank 0 ("),
            std::string::npos)
      << text;
}

TEST_F(LossTest, of_the_roots_own_process_needs_no_answer) {
  EXPECT_EQ(verdict_on(0, true), "rank 1 lost the connection to rank 0: it is gone");
}

}  // namespace
}  // namespace catenary
