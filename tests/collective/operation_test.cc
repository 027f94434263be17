#include "src/collective/operation.h"

#include <gtest/gtest.h>

namespace catenary {
namespace {

TEST(Collective, has_the_name_that_users_know) {
  EXPECT_EQ(name_of(Collective::kAllReduce), "AllReduce");
  EXPECT_EQ(name_of(Collective::kReduceScatter), "ReduceScatter");
  EXPECT_EQ(name_of(Collective::kAllToAll), "AlltoAll");
  EXPECT_EQ(name_of(Collective::kRecv), "Recv");
  EXPECT_EQ(name_of(Collective::kReduceScatterV), "ReduceScatterv");
  EXPECT_EQ(name_of(Collective::kBarrier), "Barrier");
  EXPECT_EQ(static_cast<int>(Collective::kBarrier) + 1, kCollectiveCount);
}

TEST(Collective, that_is_uneven_has_an_even_twin_of_the_same_nature) {
  for (int i = 0; i < kCollectiveCount; ++i) {
    const auto collective = static_cast<Collective>(i);
    const Collective twin = twin_of(collective);
    EXPECT_EQ(is_uneven(collective), twin != collective && holds_part_per_rank(twin));
    EXPECT_FALSE(is_uneven(twin));
    EXPECT_TRUE(!is_uneven(collective) || reduces(collective) == reduces(twin));
  }
}

}  // namespace
}  // namespace catenary
