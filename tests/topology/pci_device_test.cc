#include "src/topology/pci_device.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/temporary_folder.h"

namespace catenary {
namespace {

constexpr PciPlace kFirst{.bus = 0x3b};
constexpr PciPlace kSecond{.bus = 0xaf, .function = 1};
constexpr PciPlace kThird{.domain = 1, .bus = 0xb0, .device = 0x1f};
constexpr PciPlace kAll[] = {kFirst, kSecond, kThird};
using Indices = std::vector<std::size_t>;

// A machine of which the system tells so much.
class PciDevices : public ::testing::Test {
 protected:
  void put(const PciPlace& device, const char* cores) {
    const std::filesystem::path folder = folder_.path() / text_of(device);
    std::filesystem::create_directory(folder);
    std::ofstream(folder / "local_cpulist") << cores << "\n";
  }
  Indices nearest_to(std::initializer_list<int> cores) {
    CoreGrant grant;
    for (const int core : cores) {
      grant.allowed[static_cast<std::size_t>(core) / 64] |= std::uint64_t{1} << (core % 64);
    }
    return nearest_devices(kAll, grant, folder_.path().string());
  }

 private:
  testing::TemporaryFolder folder_;
};

TEST_F(PciDevices, are_named_as_the_system_does) {
  EXPECT_EQ(text_of(kFirst), "0000:3b:00.0");
  EXPECT_EQ(text_of(kSecond), "0000:af:00.1");
  EXPECT_EQ(text_of(kThird), "0001:b0:1f.0");
}

TEST_F(PciDevices, near_to_most_of_the_cores_are_the_nearest) {
  put(kFirst, "0-3,8");
  put(kSecond, "4-7,9-11");
  put(kThird, "4-7,9-11");
  EXPECT_EQ(nearest_to({0}), Indices{0});
  EXPECT_EQ(nearest_to({8}), Indices{0});
  EXPECT_EQ(nearest_to({10}), (Indices{1, 2}));
  EXPECT_EQ(nearest_to({2, 3, 4}), Indices{0});
  EXPECT_EQ(nearest_to({3, 4, 5}), (Indices{1, 2}));
  EXPECT_EQ(nearest_to({3, 4}), (Indices{0, 1, 2}));
}

TEST_F(PciDevices, near_to_almost_as_many_are_as_near) {
  put(kFirst, "0-22");
  put(kSecond, "23-46");
  put(kThird, "23-30");
  std::initializer_list<int> most = {1,  2,  3,  4,  5,  6,  7,  8,  23,
                                     24, 25, 26, 27, 28, 29, 31, 32, 33};
  EXPECT_EQ(nearest_to(most), (Indices{0, 1}));
}

TEST_F(PciDevices, of_which_nothing_is_known_are_as_good_as_any) {
  EXPECT_EQ(nearest_to({0}), (Indices{0, 1, 2}));
  put(kSecond, "0-1");
  put(kThird, "no cores, 3-, -2,,");
  EXPECT_EQ(nearest_to({0}), Indices{1});
  EXPECT_EQ(nearest_to({3}), Indices{2});  // a run without an end is its first core
  EXPECT_EQ(nearest_to({70}), (Indices{0, 1, 2}));
}

}  // namespace
}  // namespace catenary
