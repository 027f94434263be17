// The log as NCCL's users and their scripts know it. Each case is a process of its own, because a
// process reads its settings once.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "tests/support/crew.h"
#include "tests/support/processes.h"
#include "tests/support/rank_group.h"
#include "tests/support/temporary_folder.h"

namespace catenary::testing {
namespace {

using namespace std::chrono_literals;

class Log : public ::testing::Test {
 protected:
  // Makes and destroys a communicator, and provokes one warning; returns what that logged.
  std::string run(const char* level, const char* subsystems, const std::string& conf_file = "") {
    Processes ranks(1, [&](int, Board&) {
      ::setenv("NCCL_CONF_FILE", conf_file.c_str(), 1);
      ::setenv("NCCL_DEBUG", level, 1);
      ::setenv("NCCL_DEBUG_FILE", (folder_ / "log.%h.%p").c_str(), 1);
      ::setenv("CATENARY_SLOTS", "many", 1);
      const std::string errors = folder_ / "stderr";
      require(std::freopen(errors.c_str(), "w", stderr) != nullptr, "freopen");
      if (subsystems != nullptr) ::setenv("NCCL_DEBUG_SUBSYS", subsystems, 1);
      ncclComm_t comm = nullptr;
      ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
      config.netName = "IB";
      require_success(ncclCommInitRankConfig(&comm, 1, new_unique_id(), 0, &config),
                      "ncclCommInitRankConfig");
      require_result(ncclGroupEnd(), ncclInvalidUsage, "ncclGroupEnd");
      require_success(ncclCommDestroy(comm), "ncclCommDestroy");
    });
    for (const std::string& failure : ranks.join(20s)) ADD_FAILURE() << failure;
    std::stringstream text;
    files_ = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      if (entry.path().filename() == "stderr") {
        std::stringstream errors;
        errors << std::ifstream(entry.path()).rdbuf();
        standard_error_ = errors.str();
        continue;
      }
      file_name_ = entry.path().filename();
      text << std::ifstream(entry.path()).rdbuf();
      ++files_;
    }
    return text.str();
  }

  static bool has_line(const std::string& text, const std::string& pattern) {
    std::stringstream lines(text);
    const std::regex regex(pattern);
    for (std::string line; std::getline(lines, line);) {
      if (std::regex_match(line, regex)) return true;
    }
    return false;
  }

  TemporaryFolder keeper_;
  const std::filesystem::path& folder_ = keeper_.path();
  std::string file_name_;
  std::string standard_error_;
  int files_ = 0;
};

TEST_F(Log, of_level_info_has_the_lines_that_scripts_look_for) {
  const std::string text = run("INFO", nullptr);
  const std::string place = R"([^ :]+:\d+:\d+ )";
  const std::string head = place + R"(\[\d+\] NCCL INFO )";
  const std::string comm = R"(comm 0x[0-9a-f]+ rank 0 nranks 1 cudaDev 0.* )";
  const std::string init = head + R"(\[Rank 0\] ncclCommInitRankConfig )" + comm;
  EXPECT_TRUE(has_line(text, init + "- Init START")) << text;
  EXPECT_TRUE(has_line(text, init + R"(commId 0x[0-9a-f]+ - Init COMPLETE)")) << text;
  EXPECT_TRUE(contains(text, "NCCL INFO the option netName, IB, means nothing here")) << text;
  EXPECT_TRUE(contains(text, "NCCL INFO The parameters of the model of time are ")) << text;
  EXPECT_TRUE(has_line(text, head + comm + "- Destroy COMPLETE")) << text;
  const std::string when = R"(\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\] )";
  EXPECT_TRUE(has_line(text, when + place + R"(\S+:\d+ \(\w+\) NCCL WARN .*not in a group.*)"))
      << text;
}

TEST_F(Log, goes_to_a_file_named_after_host_and_process) {
  run("INFO", nullptr);
  EXPECT_EQ(files_, 1);
  char host[256] = "";
  ASSERT_EQ(::gethostname(host, sizeof host - 1), 0);
  const std::string name = "log." + std::string(host).substr(0, std::string(host).find('.')) + ".";
  EXPECT_EQ(file_name_.substr(0, name.size()), name);
  EXPECT_TRUE(std::regex_match(file_name_.substr(name.size()), std::regex("\\d+"))) << file_name_;
}

TEST_F(Log, of_level_warn_has_warnings_only) {
  const std::string text = run("WARN", nullptr);
  EXPECT_TRUE(contains(text, "NCCL WARN")) << text;
  EXPECT_FALSE(contains(text, "NCCL INFO")) << text;
}

TEST_F(Log, of_some_subsystems_leaves_the_others_out) {
  const std::string text = run("INFO", "BOOTSTRAP,ENV");
  EXPECT_TRUE(contains(text, "Bootstrap")) << text;
  EXPECT_FALSE(contains(text, "Init START")) << text;
}

TEST_F(Log, takes_no_notice_of_blanks_around_subsystems) {
  const std::string text = run("INFO", " BOOTSTRAP ,\tENV ");
  EXPECT_TRUE(contains(text, "Bootstrap")) << text;
  EXPECT_FALSE(contains(text, "Init START")) << text;
}

TEST_F(Log, of_all_but_some_subsystems_leaves_those_out) {
  const std::string text = run("INFO", "^INIT");
  EXPECT_TRUE(contains(text, "Bootstrap")) << text;
  EXPECT_FALSE(contains(text, "Init START")) << text;
}

TEST_F(Log, begins_with_the_variables_that_were_set) {
  const std::string text = run("INFO", nullptr);
  EXPECT_TRUE(has_line(text, R"([^ :]+:\d+:\d+ NCCL INFO NCCL_DEBUG set by environment to INFO\.)"))
      << text;
}

TEST_F(Log, names_a_value_that_is_no_good_whatever_its_level) {
  run("NONE", nullptr);
  EXPECT_TRUE(contains(standard_error_, "CATENARY_SLOTS=many is not a number")) << standard_error_;
  EXPECT_EQ(files_, 0);
}

TEST_F(Log, names_a_configuration_file_that_cannot_be_read) {
  for (const std::string& path : {std::string("/no/such/file"), folder_.string()}) {
    run("NONE", nullptr, path);
    EXPECT_TRUE(contains(standard_error_, "NCCL_CONF_FILE=" + path + " cannot be read"))
        << standard_error_;
  }
}

TEST_F(Log, does_not_name_configuration_files_that_can_be_read_or_that_nobody_asked_for) {
  const std::string path = folder_ / "empty.conf";
  std::ofstream(path).flush();
  for (const std::string& named : {path, std::string()}) {
    run("NONE", nullptr, named);
    EXPECT_FALSE(contains(standard_error_, "cannot be read")) << standard_error_;
  }
}

TEST_F(Log, names_the_version) {
  const std::string text = run("VERSION", nullptr);
  EXPECT_TRUE(has_line(text, R"(NCCL version 2\.\d+\.\d+.*)")) << "log: " << text;
}

// By the one who sees it first, and by nobody who only passes it on.
TEST_F(Log, tells_a_failure_once) {
  Processes ranks(1, [&](int, Board&) {
    ::setenv("NCCL_DEBUG", "WARN", 1);
    ::setenv("NCCL_DEBUG_FILE", (folder_ / "log").c_str(), 1);
    ::setenv("CATENARY_INIT_TIMEOUT", "1", 1);
    ncclComm_t comm = nullptr;
    const ncclResult_t result = ncclCommInitRank(&comm, 2, new_unique_id(), 0);
    require(result != ncclSuccess, "one of two ranks came, and has joined");
  });
  for (const std::string& failure : ranks.join(20s)) ADD_FAILURE() << failure;
  std::stringstream text;
  text << std::ifstream(folder_ / "log").rdbuf();
  const std::string log = text.str();
  const std::size_t told = log.find("NCCL WARN");
  ASSERT_NE(told, std::string::npos) << log;
  EXPECT_EQ(log.find("NCCL WARN", told + 1), std::string::npos) << log;
}

}  // namespace
}  // namespace catenary::testing
