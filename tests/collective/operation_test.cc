#include "src/collective/operation.h"

#include <gtest/gtest.h>

namespace catenary {
namespace {

TEST(Collective, has_the_name_that_users_know) {
  EXPECT_EQ(name_of(Collective::kAllReduce), "AllReduce");
  EXPECT_EQ(name_of(Collective::kReduceScatter), "ReduceScatter");
  EXPECT_EQ(name_of(Collective::kAllToAll), "AlltoAll");
  EXPECT_EQ(name_of(Collective::kRecv), "Recv");
  EXPECT_EQ(static_cast<int>(Collective::kRecv) + 1, kCollectiveCount);
}

}  // namespace
}  // namespace catenary
