#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "bench/perf/failure.h"
#include "bench/perf/options.h"
#include "bench/perf/pattern.h"
#include "bench/perf/rank.h"
#include "bench/perf/result.h"
#include "bench/perf/verify.h"
#include "bench/perf/world.h"

namespace catenary::perf {
namespace {

const DataType& type_named(const char* name) { return *find_data_type(name); }

TEST(EncodeFloat, agrees_with_the_processor_on_single_precision) {
  const FloatFormat single = type_named("float").format;
  for (const double value : {0.0, -0.0, 1.0, -1.5, 0.1, 1e-40, 3.4e38, 16777217.0, 1.0 / 3}) {
    EXPECT_EQ(encode_float(value, single), std::bit_cast<std::uint32_t>(static_cast<float>(value)))
        << value;
  }
  EXPECT_EQ(encode_float(0.1, type_named("double").format), std::bit_cast<std::uint64_t>(0.1));
}

TEST(EncodeFloat, knows_the_small_formats) {
  const FloatFormat half = type_named("half").format;
  EXPECT_EQ(encode_float(1.0, half), 0x3c00u);
  EXPECT_EQ(encode_float(-2.0, half), 0xc000u);
  EXPECT_EQ(encode_float(65504.0, half), 0x7bffu);
  EXPECT_EQ(encode_float(0x1p-24, half), 0x0001u);
  EXPECT_EQ(encode_float(1.0 + 0x1p-11, half), 0x3c00u);      // a tie, to even
  EXPECT_EQ(encode_float(1.0 + 3 * 0x1p-11, half), 0x3c02u);  // a tie, to even
  EXPECT_EQ(encode_float(2.0 - 0x1p-12, half), 0x4000u);      // carries into the exponent
  EXPECT_EQ(encode_float(1.0, type_named("bfloat16").format), 0x3f80u);
  EXPECT_EQ(encode_float(448.0, type_named("f8e4m3").format), 0x7eu);
  EXPECT_EQ(encode_float(1.5, type_named("f8e4m3").format), 0x3cu);
  EXPECT_EQ(encode_float(57344.0, type_named("f8e5m2").format), 0x7bu);
}

TEST(Pattern, every_rank_matters_at_some_element_of_a_sum) {
  for (const DataType& type : data_types()) {
    for (const ReductionName& reduction : reductions()) {
      const Pattern pattern(type, reduction.reduction, 40, 7);
      for (int rank = 0; rank < 40; ++rank) {
        const std::vector<std::byte> input = pattern.input(rank);
        const std::vector<std::byte> idle(input.size());
        EXPECT_NE(std::memcmp(input.data(), idle.data(), input.size()), 0)
            << type.name << " " << reduction.name << " rank " << rank;
      }
    }
  }
}

TEST(Pattern, sums_of_floats_are_exact_in_any_order) {
  constexpr int kRanks = 23;
  const Pattern pattern(type_named("float"), Reduction::kSum, kRanks, 3);
  std::vector<float> forward(kPeriod), backward(kPeriod), expected(kPeriod);
  for (int i = 0; i < kRanks; ++i) {
    const auto first = pattern.input(i);
    const auto last = pattern.input(kRanks - 1 - i);
    for (std::size_t e = 0; e < kPeriod; ++e) {
      float value;
      std::memcpy(&value, first.data() + 4 * e, 4);
      forward[e] += value;
      std::memcpy(&value, last.data() + 4 * e, 4);
      backward[e] += value;
    }
  }
  const auto reduced = pattern.reduced();
  std::memcpy(expected.data(), reduced.data(), reduced.size());
  EXPECT_EQ(forward, expected);
  EXPECT_EQ(backward, expected);
}

TEST(Pattern, integers_wrap_as_their_type_does) {
  const Pattern pattern(type_named("int8"), Reduction::kProd, 3, 5);
  const auto a = pattern.input(0), b = pattern.input(1), c = pattern.input(2);
  const auto reduced = pattern.reduced();
  for (std::size_t i = 0; i < kPeriod; ++i) {
    const int product =
        std::to_integer<int>(a[i]) * std::to_integer<int>(b[i]) * std::to_integer<int>(c[i]);
    ASSERT_EQ(std::to_integer<int>(reduced[i]), product & 0xff) << i;
  }
}

TEST(Tile, counts_each_wrong_element_once) {
  const DataType& type = type_named("half");
  const Tile tile(Pattern(type, 11).input(2), type);
  constexpr std::size_t kCount = 100000;
  constexpr std::size_t kFirst = 777;
  std::vector<std::byte> elements(kCount * type.bytes);
  tile.fill(elements.data(), kCount, kFirst);
  EXPECT_EQ(tile.count_wrong(elements.data(), kCount, kFirst, 0), 0u);
  EXPECT_GT(tile.count_wrong(elements.data(), kCount, kFirst + 1, 0), kCount * 9 / 10);
  for (const std::size_t at : {std::size_t{0}, std::size_t{50001}, kCount - 1}) {
    elements[at * type.bytes + 1] ^= std::byte{0x40};
  }
  EXPECT_EQ(tile.count_wrong(elements.data(), kCount, kFirst, 0), 3u);
  EXPECT_TRUE(
      tile.describe_first_wrong(elements.data(), kCount, kFirst, 0).starts_with("element 0:"));
}

TEST(Tile, tolerance_is_a_distance_in_units_of_the_last_place) {
  const DataType& type = type_named("float");
  std::vector<std::byte> period(kPeriod * 4);  // all +0
  const Tile tile(period, type);
  const std::uint32_t values[] = {0x00000002, 0x80000002, 0x00000003, 0x80000003, 0x7fc00000};
  EXPECT_EQ(tile.count_wrong(reinterpret_cast<const std::byte*>(values), 5, 0, 2), 3u);
}

TEST(Guard, a_single_byte_is_noticed) {
  std::vector<std::byte> guard(kGuardBytes);
  fill_guard(guard.data());
  EXPECT_EQ(count_touched(guard.data()), 0u);
  guard[kGuardBytes - 1] ^= std::byte{1};
  EXPECT_EQ(count_touched(guard.data()), 1u);
}

TEST(Options, bytes_take_the_usual_suffixes) {
  EXPECT_EQ(parse_bytes("b", "8"), 8u);
  EXPECT_EQ(parse_bytes("b", "64K"), 65536u);
  EXPECT_EQ(parse_bytes("b", "1.5M"), 3u << 19);
  EXPECT_EQ(parse_bytes("b", "2g"), std::size_t{2} << 30);
  for (const char* bad : {"", "K", "-1", "8KB", "1e999"}) {
    EXPECT_THROW(parse_bytes("b", bad), UsageError) << bad;
  }
}

TEST(Split, understands_words_and_signs) {
  EXPECT_EQ(Split::parse("MOD 2").color(5), 1);
  EXPECT_EQ(Split::parse("div 0x4").color(9), 2);
  EXPECT_EQ(Split::parse("&0b110").color(7), 6);
  EXPECT_EQ(Split::parse("| 1").color(2), 3);
  EXPECT_THROW(Split::parse("XOR 2"), UsageError);
  EXPECT_THROW(Split::parse("MOD 0"), UsageError);
}

TEST(IterationStats, leave_out_what_is_skipped) {
  const IterationStats stats = iteration_stats({{100, 1, 2, 3}, {50, 2, 1, 3}}, 1);
  EXPECT_EQ(stats.times_us, (std::vector<double>{100, 2, 2, 3}));
  EXPECT_EQ(stats.max_us, 3);
  EXPECT_EQ(stats.p50_us, 2);
  EXPECT_EQ(stats.p99_us, 3);
}

Options parse(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "tool");
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  return parse_options(static_cast<int>(argv.size()), argv.data()).value();
}

TEST(ParseOptions, roots_and_steps_are_as_in_nccl_tests) {
  EXPECT_EQ(parse({"-r", "2"}).root, 2);
  EXPECT_EQ(parse({"-r", "-1"}).root, std::nullopt);
  EXPECT_EQ(parse({"-r", "all"}).root, std::nullopt);
  EXPECT_THROW(parse({"-r", "-2"}), UsageError);
  EXPECT_EQ(parse({"-f", "1"}).step_factor, 1u);  // then -i counts
  EXPECT_THROW(parse({"-f", "0"}), UsageError);
}

TEST(ParseOptions, memory_is_a_kind_or_what_nccl_tests_means_by_it) {
  EXPECT_EQ(parse({}).memory, MemoryKind::kMapped);
  EXPECT_EQ(parse({"--memory", "mapped"}).memory, MemoryKind::kMapped);
  EXPECT_EQ(parse({"--memory", "private"}).memory, MemoryKind::kPrivate);
  EXPECT_FALSE(parse({"--memory", "private"}).memory_report);
  EXPECT_TRUE(parse({"--memory", "1"}).memory_report);
  EXPECT_FALSE(parse({"--memory", "1", "--memory", "0"}).memory_report);
  EXPECT_TRUE(parse({"--memory_report", "1"}).memory_report);
  for (const char* bad : {"", "2", "shared", "Mapped"}) {
    EXPECT_THROW(parse({"--memory", bad}), UsageError) << bad;
  }
}

// The line of /proc/self/maps for the mapping that `address` lies in.
std::string mapping_of(const void* address) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    char dash = 0;
    std::istringstream(line) >> std::hex >> begin >> dash >> end;
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    if (begin <= at && at < end) return line;
  }
  return "not mapped";
}

TEST(Buffer, is_zero_and_of_the_kind_asked_for) {
  constexpr std::size_t kBytes = std::size_t{3} << 20;
  for (const MemoryKind kind : {MemoryKind::kMapped, MemoryKind::kPrivate}) {
    const Buffer first(kind, kBytes);
    const Buffer second = Buffer(kind, kBytes);
    for (const Buffer* buffer : {&first, &second}) {
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer->data()) % 4096, 0u);
      EXPECT_TRUE(std::all_of(buffer->data(), buffer->data() + kBytes,
                              [](std::byte value) { return value == std::byte{}; }));
      std::istringstream line(mapping_of(buffer->data()));
      std::string range, access;
      line >> range >> access;
      EXPECT_EQ(access, kind == MemoryKind::kMapped ? "rw-s" : "rw-p") << line.str();
    }
  }
}

}  // namespace
}  // namespace catenary::perf
