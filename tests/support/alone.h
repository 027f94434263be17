// One rank alone, for rules that need no peer.
#pragma once

#include <gtest/gtest.h>

#include "tests/support/crew.h"
#include "tests/support/rank_group.h"

namespace catenary::testing {

class Alone : public ::testing::Test {
 protected:
  Alone() { require_success(ncclCommInitRank(&comm_, 1, new_unique_id(), 0), "ncclCommInitRank"); }
  ~Alone() override { ncclCommDestroy(comm_); }

  ncclResult_t sum(float* data, std::size_t count) {
    return ncclAllReduce(data, data, count, ncclFloat32, ncclSum, comm_, stream_);
  }

  ncclComm_t comm_ = nullptr;
  TestStream stream_;
};

}  // namespace catenary::testing
