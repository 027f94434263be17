// Registrations of buffers and windows, which may be turned off: ctest runs this both ways.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string_view>
#include <vector>

#include "tests/support/alone.h"

namespace catenary::testing {
namespace {

bool is_turned_off(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && std::string_view(value) == "0";
}

using Registration = Alone;

TEST_F(Registration, of_a_buffer_is_taken_back_once) {
  std::vector<float> data(1000);
  void* handle = &data;
  ASSERT_EQ(ncclCommRegister(comm_, data.data(), 4000, &handle), ncclSuccess);
  EXPECT_EQ(handle == nullptr, is_turned_off("NCCL_LOCAL_REGISTER"));
  EXPECT_EQ(ncclCommDeregister(comm_, handle), ncclSuccess);
  const ncclResult_t again = handle == nullptr ? ncclSuccess : ncclInvalidUsage;
  EXPECT_EQ(ncclCommDeregister(comm_, handle), again);
  EXPECT_EQ(ncclCommDeregister(comm_, &data), ncclInvalidUsage);
  EXPECT_EQ(ncclCommDeregister(comm_, nullptr), ncclSuccess);
}

TEST_F(Registration, of_a_window_is_taken_back_once) {
  std::vector<float> data(1000);
  ncclWindow_t window = nullptr;
  ASSERT_EQ(ncclCommWindowRegister(comm_, data.data(), 4000, &window, NCCL_WIN_DEFAULT),
            ncclSuccess);
  EXPECT_EQ(window == nullptr, is_turned_off("NCCL_WIN_ENABLE"));
  EXPECT_EQ(ncclCommWindowDeregister(comm_, window), ncclSuccess);
  const ncclResult_t again = window == nullptr ? ncclSuccess : ncclInvalidUsage;
  EXPECT_EQ(ncclCommWindowDeregister(comm_, window), again);
  EXPECT_EQ(ncclCommWindowDeregister(comm_, nullptr), ncclSuccess);
}

TEST_F(Registration, needs_a_buffer_a_size_and_a_place_for_the_handle) {
  float data = 1;
  void* handle = nullptr;
  EXPECT_EQ(ncclCommRegister(comm_, nullptr, 4, &handle), ncclInvalidArgument);
  EXPECT_EQ(ncclCommRegister(comm_, &data, 0, &handle), ncclInvalidArgument);
  EXPECT_EQ(ncclCommRegister(comm_, &data, 4, nullptr), ncclInvalidArgument);
  EXPECT_EQ(ncclCommRegister(comm_, &data, SIZE_MAX, &handle), ncclInvalidArgument);
}

}  // namespace
}  // namespace catenary::testing
