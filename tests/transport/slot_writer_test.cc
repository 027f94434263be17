#include "src/transport/slot_writer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "src/base/copy.h"

namespace catenary {
namespace {

// A clock whose looks take long, and samples as long as the test says.
constexpr std::int64_t kLookNs = 1000;
std::int64_t clock_ns = 0;
std::int64_t sample_ns = 0;
int looks = 0;

std::int64_t fake_clock() noexcept {
  clock_ns += kLookNs;
  if (++looks % 3 == 0) clock_ns += sample_ns;
  return clock_ns;
}

class SlotWriterTest : public testing::Test {
 protected:
  void SetUp() override { looks = 0; }

  // How many samples were taken in `writes` of plain stores that take `ns` for each of them.
  int samples_in(int writes, std::int64_t ns, std::size_t bytes = kBytes) {
    sample_ns = ns;
    const int before = looks;
    for (int i = 0; i < writes; ++i) write(bytes);
    return (looks - before) / 3;
  }
  void write(std::size_t bytes) {
    std::vector<std::byte> data(bytes);
    for (std::size_t i = 0; i < bytes; ++i) data[i] = static_cast<std::byte>(i * 7 + 1);
    std::vector<std::byte> out(bytes + 128);
    writer_.write(out.data() + 64, data);
    EXPECT_TRUE(std::ranges::equal(data, std::span(out).subspan(64, bytes)));
    const auto is_clean = [](std::byte b) { return b == std::byte{0}; };
    EXPECT_TRUE(std::all_of(out.begin(), out.begin() + 64, is_clean));
    EXPECT_TRUE(std::all_of(out.end() - 64, out.end(), is_clean));
  }

  static constexpr std::size_t kBytes = 8192;
  static constexpr std::int64_t kNearNs = 100;
  static constexpr std::int64_t kFarNs = 600;
  SlotWriter writer_{fake_clock};
};

TEST_F(SlotWriterTest, stores_plainly_between_cores_that_are_near) {
  EXPECT_LE(samples_in(800, kNearNs), 16);
  EXPECT_FALSE(writer_.streams(kBytes));
}

TEST_F(SlotWriterTest, streams_soon_between_cores_that_are_far) {
  EXPECT_EQ(samples_in(32, kFarNs) > 0, kCanStream);
  EXPECT_EQ(writer_.streams(kBytes), kCanStream);
  EXPECT_LE(samples_in(1600, kFarNs), 100) << "samples are what is slow there";
  EXPECT_EQ(writer_.streams(kBytes), kCanStream);
}

TEST_F(SlotWriterTest, follows_cores_that_move) {
  for (int round = 0; round < 3; ++round) {
    samples_in(112, kFarNs);
    EXPECT_EQ(writer_.streams(kBytes), kCanStream);
    samples_in(112, kNearNs);
    EXPECT_FALSE(writer_.streams(kBytes));
  }
}

TEST_F(SlotWriterTest, an_interrupt_changes_nothing) {
  for (int i = 0; i < 100; ++i) {
    const int samples = samples_in(1, kFarNs);
    samples_in(samples > 0 ? 16 : 0, kNearNs);
    EXPECT_FALSE(writer_.streams(kBytes));
  }
}

// Whatever it stores past the caches it also measures, or it would never learn better.
TEST_F(SlotWriterTest, learns_from_the_shortest_that_it_streams) {
  constexpr std::size_t kShort = SlotWriter::kLeastStreamedBytes;
  samples_in(64, kFarNs, kShort);
  EXPECT_EQ(writer_.streams(kShort), kCanStream);
  EXPECT_FALSE(writer_.streams(kShort - 1));
  samples_in(64, kNearNs, kShort);
  EXPECT_FALSE(writer_.streams(kShort));
}

TEST_F(SlotWriterTest, writes_any_length_exactly) {
  for (const std::int64_t ns : {kNearNs, kFarNs}) {
    samples_in(64, ns);
    for (const std::size_t bytes : {0, 1, 63, 64, 2047, 2048, 2049, 4095, 4096, 4097, 65536}) {
      for (int i = 0; i < 17; ++i) samples_in(1, ns, bytes);
    }
    EXPECT_EQ(writer_.streams(kBytes), kCanStream && ns == kFarNs);
  }
}

}  // namespace
}  // namespace catenary
