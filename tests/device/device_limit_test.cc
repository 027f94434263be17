// CATENARY_DEVICES is read once, so this is a program of its own that sets it first of all.
#include <gtest/gtest.h>

#include <cstdlib>

#include "src/device/device.h"
#include "src/device/device_error.h"

namespace catenary {
namespace {

const int kSet = ::setenv("CATENARY_DEVICES", "3", 1);

TEST(DeviceLimit, is_what_the_environment_says) {
  ASSERT_EQ(kSet, 0);
  EXPECT_EQ(Device::count(), 3);
  EXPECT_EQ(Device::get(2).ordinal(), 2);
  try {
    Device::get(3);
    FAIL() << "there is a fourth";
  } catch (const DeviceError& error) {
    EXPECT_STREQ(error.what(), "device 3 does not exist: CATENARY_DEVICES says that there are 3");
  }
}

}  // namespace
}  // namespace catenary
