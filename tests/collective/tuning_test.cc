#include "src/collective/tuning.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "src/base/error.h"

namespace catenary {
namespace {

constexpr std::string_view kMachine = "Some Processor (TM) 9000, 2 cores";

CostParameters unusual() {
  CostParameters parameters = default_parameters();
  double value = 2048.25;
  for (const Parameter& parameter : cost_parameter_table()) parameter.of(parameters) = value++;
  return parameters;
}

std::string refusal(const std::string& text) {
  try {
    read_tuning(text, kMachine);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.what();
  }
  return "";
}

TEST(Tuning, reads_what_it_wrote) {
  CostParameters written = unusual();
  CostParameters read = read_tuning(write_tuning(written, kMachine), kMachine);
  for (const Parameter& parameter : cost_parameter_table()) {
    EXPECT_EQ(parameter.of(read), parameter.of(written)) << parameter.name;
  }
}

TEST(Tuning, a_remark_is_for_people) {
  const std::string text = write_tuning(unusual(), kMachine, "on a Saturday");
  EXPECT_NE(text.find("\n# on a Saturday\n"), std::string::npos) << text;
  EXPECT_EQ(refusal(text), "");
}

// Wherever it was cut, down to a digit of the last number.
TEST(Tuning, that_was_cut_short_is_refused) {
  const std::string good = write_tuning(unusual(), kMachine);
  for (std::size_t bytes = 0; bytes < good.size(); ++bytes) {
    EXPECT_NE(refusal(good.substr(0, bytes)), "") << bytes;
  }
}

TEST(Tuning, the_table_has_a_row_for_every_number) {
  EXPECT_EQ(cost_parameter_table().size(), sizeof(CostParameters) / sizeof(double));
}

TEST(Tuning, says_what_is_wrong) {
  const std::string good = write_tuning(unusual(), kMachine);
  EXPECT_EQ(refusal(good), "");
  EXPECT_EQ(refusal(""), "it names no machine");
  EXPECT_EQ(refusal("version 1\n"), "it is of version \"1\", not 3");
  EXPECT_EQ(refusal("hello"), "it does not begin with a version, but with \"hello\"");
  EXPECT_EQ(
      refusal("version 3\nmachine another\n"),
      "it is about another machine, \"another\", and this is \"" + std::string(kMachine) + "\"");
  EXPECT_EQ(refusal(good.substr(0, good.rfind("network_hop_ns"))), "parameters are missing");
  EXPECT_EQ(refusal(good.substr(0, good.size() - 1)), "its last line is cut off");
  EXPECT_EQ(refusal(good + "switch_ns 3\n"), "\"switch_ns\" is there twice");
  EXPECT_EQ(refusal("version 3\nspeed 3\n"), "there is no parameter \"speed\"");
  for (const char* value : {"", "-1", "nan", "inf", "1e300", "0x10", "1 2", "1,5"}) {
    EXPECT_EQ(refusal("version 3\nswitch_ns " + std::string(value) + "\n"),
              "switch_ns cannot be \"" + std::string(value) + "\"");
  }
  EXPECT_EQ(refusal(std::string(1 << 20, 'a')), "it is too long");
}

TEST(Tuning, comments_blanks_and_line_ends_are_free) {
  std::string text = write_tuning(unusual(), kMachine);
  for (std::size_t at = 0; (at = text.find('\n', at)) != std::string::npos; at += 8) {
    text.replace(at, 1, "  # x\r\n\n");
  }
  EXPECT_EQ(refusal(text), "");
}

// Whatever is in the file, the answer is parameters within their bounds or an Error.
TEST(Tuning, survives_garbage) {
  const std::string good = write_tuning(unusual(), kMachine);
  std::uint64_t state = 1;
  const auto random = [&state](std::size_t below) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return static_cast<std::size_t>(state >> 33) % below;
  };
  int accepted = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string text = good;
    for (std::size_t changes = 1 + random(6); changes > 0; --changes) {
      switch (random(3)) {
        case 0: text[random(text.size())] = static_cast<char>(random(256)); break;
        case 1: text.erase(random(text.size()), random(40)); break;
        default: text.insert(random(text.size()), text.substr(random(text.size()), random(40)));
      }
      if (text.empty()) text = "\n";
    }
    try {
      CostParameters read = read_tuning(text, kMachine);
      ++accepted;
      for (const Parameter& parameter : cost_parameter_table()) {
        ASSERT_GE(parameter.of(read), parameter.least);
        ASSERT_LE(parameter.of(read), parameter.most);
      }
    } catch (const Error& error) {
      ASSERT_EQ(error.code(), ErrorCode::kInvalidArgument);
    }
  }
  EXPECT_GT(accepted, 0);  // comments may change
}

}  // namespace
}  // namespace catenary
