// What is told of strangers, and how often.
#include "src/base/refusals.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <string>

namespace catenary {
namespace {

TEST(Refusals, are_all_counted_and_the_first_of_a_kind_is_told) {
  ::setenv("NCCL_DEBUG", "WARN", 1);
  ::setenv("NCCL_DEBUG_SUBSYS", "", 1);
  ::testing::internal::CaptureStdout();
  for (int i = 0; i < 1000; ++i) {
    note_refusal(Refused::kLink, "rank 7", "192.0.2.1:80", "it says nothing");
  }
  note_refusal(Refused::kMessage, "rank 7", "", "it says too much");
  const std::string log = ::testing::internal::GetCapturedStdout();
  EXPECT_EQ(count_of_refusals(Refused::kLink), 1000u);
  EXPECT_EQ(count_of_refusals(Refused::kMessage), 1u);
  EXPECT_EQ(count_of_refusals(Refused::kWrite), 0u);
  const auto first = log.find(
      "rank 7 has refused a connection to its links from 192.0.2.1:80: it "
      "says nothing; 1 such until now in this process");
  EXPECT_NE(first, std::string::npos) << log;
  EXPECT_EQ(log.find("192.0.2.1", first + 60), std::string::npos) << log;
  EXPECT_NE(log.find("rank 7 has refused a message: it says too much; 1 such"), std::string::npos)
      << log;
}

}  // namespace
}  // namespace catenary
