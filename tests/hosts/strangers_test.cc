// A host on the members' network that is no member: it calls at every port on which the job
// listens, says what nobody would say, nothing, or what members have said before. The job goes on
// as if it were not there, and a capture shows that nothing but members' traffic is accepted.
// NCCL_NET and FI_PROVIDER say over which network.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/hosts/capture.h"
#include "tests/hosts/host_ranks.h"
#include "tests/hosts/stranger.h"
#include "tests/support/temporary_folder.h"

namespace catenary::testing {
namespace {

using namespace std::chrono_literals;

constexpr int kReady = 1;
constexpr HostShape kShape = {2, 2};
constexpr int kStranger = 2;  // the host after theirs
constexpr auto kAttack = 4s;
// Longer than members bear those who have not proven themselves: two seconds, or five for who
// begins as a member does.
constexpr auto kRest = 7s;
constexpr double kPatience_ms = 6500;
// What a member says before the other side has proven anything: a greeting, which depends on no
// key. libfabric's providers answer who speaks their protocol.
constexpr std::uint64_t kGreetingBytes = 40;
constexpr std::uint64_t kProvidersGreetingBytes = 400;
// AddressSanitizer keeps what was freed for a while, 256 MB of it.
#ifdef __SANITIZE_ADDRESS__
constexpr double kMostGrowth_kb = 320 * 1024;
#else
constexpr double kMostGrowth_kb = 32 * 1024;
#endif

bool has_libfabric() {
  const char* const net = std::getenv("NCCL_NET");
  return net != nullptr && std::string(net) == "ofi";
}

// Of the member's control connections, links, and watches of ways. All else is a provider's.
bool is_our_protocol(const std::string& first) {
  constexpr std::size_t kIntroduction = 12;
  return first.starts_with("ctnry-I") || first.find("ctnry-I") == kIntroduction;
}

// What a provider of libfabric says over TCP before it writes to a peer's memory: the request for a
// connection, then messages, ours among them. A write that is repeated nobody can tell from the
// first one: the provider's protocol has nothing that proves who speaks.
std::string before_writes(const std::string& first) {
  constexpr std::size_t kRequest = 32;  // and what follows it, of which it tells the length
  constexpr std::size_t kHeader = 16;
  if (first.size() < kRequest) return first;
  std::size_t at = kRequest + static_cast<unsigned char>(first[3]);
  while (at + kHeader <= first.size() && first[at + 1] == 0) {
    std::uint64_t bytes = 0;
    std::memcpy(&bytes, first.data() + at + kHeader / 2, sizeof bytes);
    if (bytes < kHeader || bytes > first.size() - at) break;
    at += bytes;
  }
  return first.substr(0, at);
}

double resident_kb() {
  std::ifstream statm("/proc/self/statm");
  double pages = 0;
  statm >> pages >> pages;
  return pages * static_cast<double>(::sysconf(_SC_PAGESIZE)) / 1024;
}

enum Number : int { kRounds, kFiles, kMemory_kb };

// Sums, and communicators that are made, used and given back, until the test says so.
void work_on(int rank, Board& board, const Hosts& hosts, const std::string& folder) {
  settle_on(hosts, kShape, rank);
  ::setenv("NCCL_DEBUG", "WARN", 1);
  ::setenv("NCCL_DEBUG_FILE", (folder + "/log." + std::to_string(rank)).c_str(), 1);
  Post& post = board.posts[rank];
  ncclComm_t comm = join(rank, kShape.ranks(), board);
  TestStream stream;
  std::vector<float> data(20'000);
  float more = 1;
  for (int i = 0; more != 0; ++i) {
    ncclComm_t used = comm;
    if (i % 20 == 0) {
      require_success(ncclCommSplit(comm, 0, rank, &used, nullptr), "ncclCommSplit");
    }
    std::fill(data.begin(), data.end(), static_cast<float>(i % 100 + rank));
    more = board.go ? 0 : 1;
    require_success(
        ncclAllReduce(data.data(), data.data(), data.size(), ncclFloat32, ncclSum, used, stream),
        "sum");
    require_success(ncclAllReduce(&more, &more, 1, ncclFloat32, ncclMin, used, stream), "min");
    stream.finish();
    const auto sum = static_cast<float>(4 * (i % 100) + 6);
    require(std::ranges::count(data, sum) == std::ssize(data),
            "sums of round " + std::to_string(i));
    if (used != comm) require_success(ncclCommDestroy(used), "ncclCommDestroy");
    post.numbers[kRounds] = i;
    if (i % 20 == 10) post.numbers[kFiles] = static_cast<double>(open_files().size());
    if (i % 20 == 10) post.numbers[kMemory_kb] = resident_kb();
    if (i == 40) post.stage = kReady;
    std::this_thread::sleep_for(1ms);
  }
  require_success(ncclCommDestroy(comm), "ncclCommDestroy");
}

// A job of two hosts at work, what goes over their cards, and a host that is none of theirs.
class StrangeCompany {
 public:
  StrangeCompany()
      : ranks_(kShape.ranks(), [this](int rank, Board& board) {
          work_on(rank, board, hosts_, folder_.path().string());
        }) {
    for (Capture& each : captures_) each.start();
    EXPECT_TRUE(ranks_.wait_for_stage(kReady, 20s));
    for (int rank = 0; rank < kShape.ranks(); ++rank) {
      for (const int i : {kRounds, kFiles, kMemory_kb}) before_[rank][i] = number(rank, i);
    }
  }

  const Hosts& hosts() const { return hosts_; }
  double number(int rank, int which) { return ranks_.board().posts[rank].numbers[which]; }

  std::vector<CapturedConnection> connections() const {
    std::vector<CapturedConnection> all;
    for (const int host : {0, 1}) {
      for (const CapturedConnection& each : captures_[host].connections()) {
        // Those between members are seen at both ends.
        if (each.opener.host == host || each.opener.host == kStranger) all.push_back(each);
      }
    }
    return all;
  }

  // What members have said first to a place, as one hears it who listens on the way.
  std::vector<std::string> overheard(const Place& place) const {
    std::vector<std::string> heard;
    for (const CapturedConnection& each : captures_[place.host].connections()) {
      const CapturedEnd& to = each.listener;
      if (each.opener.host == kStranger || each.opener.first.empty()) continue;
      if (to.host != place.host || to.port != place.port) continue;
      const std::string& first = each.opener.first;
      heard.push_back(is_our_protocol(first) ? first : before_writes(first));
      // A greeting alone, after which nothing comes that could be wrong.
      if (is_our_protocol(first)) heard.push_back(first.substr(0, first.find("ctnry-I") + 40));
    }
    return heard;
  }

  void expect_health() {
    for (int rank = 0; rank < kShape.ranks(); ++rank) {
      const double rounds = number(rank, kRounds) - before_[rank][kRounds];
      EXPECT_GT(rounds, 100) << "rank " << rank << " hardly goes on";
      // What connections cost that a provider of libfabric accepts is its affair.
      if (has_libfabric()) continue;
      EXPECT_LE(number(rank, kFiles), before_[rank][kFiles] + kNewFiles) << "rank " << rank;
      EXPECT_LE(number(rank, kMemory_kb), before_[rank][kMemory_kb] + kMostGrowth_kb)
          << "rank " << rank;
    }
  }

  void finish() {
    ranks_.board().go = true;
    for (const std::string& failure : ranks_.join(15s)) ADD_FAILURE() << failure;
    for (Capture& each : captures_) EXPECT_EQ(each.lost(), 0u);
  }

  // Of all ranks, after finish().
  std::string log() const {
    std::stringstream text;
    for (int rank = 0; rank < kShape.ranks(); ++rank) {
      text << std::ifstream(folder_.path() / ("log." + std::to_string(rank))).rdbuf();
    }
    return text.str();
  }

 private:
  static constexpr double kNewFiles = 4;  // of communicators that come and go
  const TemporaryFolder folder_;
  const Hosts hosts_{kShape.hosts + 1};
  Capture captures_[2] = {{hosts_, 0}, {hosts_, 1}};
  Processes ranks_;
  double before_[kShape.ranks()][3] = {};
};

std::string readable(std::string text) {
  std::ranges::replace_if(
      text, [](char letter) { return letter < ' ' || letter > '~'; }, '.');
  return text;
}

std::string describe(const CapturedConnection& connection) {
  const CapturedEnd& from = connection.opener;
  const CapturedEnd& to = connection.listener;
  std::stringstream text;
  text << "host " << from.host << ", which said " << from.bytes << " bytes ("
       << readable(from.first.substr(0, 20)) << "), to port " << to.port << " of host " << to.host
       << ", which said " << to.bytes;
  if (to.ended_ns == 0) text << " and has not ended it";
  if (to.ended_ns != 0)
    text << " and ended it after " << (to.ended_ns - connection.opened_ns) / 1'000'000 << " ms";
  return text.str();
}

// A provider's ports are its own: members say nothing there but that they are there.
bool is_turned_away(const CapturedConnection& connection, bool is_ours) {
  const CapturedEnd& member = connection.listener;
  if (connection.opener.host != kStranger) return false;
  if (!is_ours) return member.bytes <= kProvidersGreetingBytes;
  const double patience_ns = kPatience_ms * 1e6;
  return member.bytes <= kGreetingBytes && member.ended_ns != 0 &&
         static_cast<double>(member.ended_ns - connection.opened_ns) <= patience_ns;
}

struct Traffic {
  std::uint64_t between_members = 0;
  std::uint64_t to_stranger = 0;
  int turned_away = 0;
};

Traffic expect_that_strangers_are_turned_away(const StrangeCompany& company) {
  Traffic traffic;
  std::map<std::pair<int, int>, bool> is_providers;  // places
  int bad = 0;
  for (const CapturedConnection& each : company.connections()) {
    if (each.opener.host == kStranger || each.listener.host == kStranger) continue;
    traffic.between_members += each.opener.bytes + each.listener.bytes;
    const bool is_ours = each.opener.first.empty() || is_our_protocol(each.opener.first);
    if (!is_ours) is_providers[{each.listener.host, each.listener.port}] = true;
  }
  for (const CapturedConnection& each : company.connections()) {
    if (each.opener.host != kStranger && each.listener.host != kStranger) continue;
    if (each.opened_ns == 0) continue;  // refused by the kernel: nobody listens there any more
    traffic.to_stranger += each.listener.bytes;
    const bool is_ours = !is_providers.contains({each.listener.host, each.listener.port});
    if (is_turned_away(each, is_ours)) {
      ++traffic.turned_away;
    } else if (++bad < 10) {
      ADD_FAILURE() << describe(each);
    }
  }
  EXPECT_EQ(bad, 0);
  return traffic;
}

// Those that are told name the stranger, and no member.
void expect_that_refusals_are_told(const std::string& log) {
  std::stringstream lines(log);
  int told = 0;
  for (std::string line; std::getline(lines, line);) {
    if (!contains(line, " connection")) continue;
    ++told;
    EXPECT_TRUE(contains(line, " from 10.77.0.3:")) << line;
    EXPECT_TRUE(contains(line, " such until now in this process")) << line;
  }
  EXPECT_GE(told, kShape.ranks());
  EXPECT_LE(told, kShape.ranks() * 8) << "a flood of strangers is one of lines: " << log;
}

TEST(HostStrangers, are_not_accepted_at_any_port) {
  StrangeCompany company;
  Stranger stranger(company.hosts(), kStranger, {0, 1},
                    [&](const Place& place) { return company.overheard(place); });
  const auto attack_and_rest = [&](auto attack, bool vanishes) {
    stranger.start();
    std::this_thread::sleep_for(attack);
    stranger.rest();
    // Then what is open now is half open: nobody answers any more.
    if (vanishes) company.hosts().set_link(kStranger, false);
    std::this_thread::sleep_for(kRest);
  };
  attack_and_rest(kAttack, false);
  attack_and_rest(500ms, true);
  const Traffic traffic = expect_that_strangers_are_turned_away(company);
  EXPECT_GT(stranger.calls(), 200);
  EXPECT_GT(stranger.replays(), 50);
  EXPECT_GT(traffic.turned_away, 200);
  EXPECT_GT(traffic.between_members, 10'000'000u);
  EXPECT_LT(traffic.to_stranger, traffic.between_members / 100);
  if (!has_libfabric()) {  // a provider keeps what it likes
    for (const int host : {0, 1}) {
      EXPECT_EQ(connections_with(company.hosts(), host, kStranger), 0) << "host " << host;
    }
  }
  company.expect_health();
  company.finish();
  expect_that_refusals_are_told(company.log());
  std::printf("%d calls, %d of them replays; %llu bytes between members, %llu to the stranger\n",
              stranger.calls(), stranger.replays(),
              static_cast<unsigned long long>(traffic.between_members),
              static_cast<unsigned long long>(traffic.to_stranger));
}

// As a program of the stranger's host, and what it prints.
std::string fabric_stranger(const StrangeCompany& company, const std::string& provider) {
  std::string command = std::string(FABRIC_STRANGER) + " '" + provider + "' 10.77.0.3 5";
  for (const int host : {0, 1}) {
    for (const Place& place : listening_on(company.hosts(), host)) {
      command += " 10.77.0." + std::to_string(host + 1) + ":" + std::to_string(place.port);
    }
  }
  std::string said;
  std::thread([&] {
    company.hosts().enter(kStranger);
    FILE* const program = ::popen(command.c_str(), "r");
    char line[256];
    while (program != nullptr && std::fgets(line, sizeof line, program) != nullptr) said += line;
    EXPECT_TRUE(program != nullptr && ::pclose(program) == 0) << command << said;
  }).join();
  return said;
}

TEST(FabricStrangers, are_not_taken_for_members_by_libfabric) {
  const char* const asked = std::getenv("FI_PROVIDER");
  StrangeCompany company;
  const std::string said =
      fabric_stranger(company, asked == nullptr ? "net" : std::string(asked) + ";ofi_rxm");
  std::printf("carried to members, and failed:\n%s", said.c_str());
  company.expect_health();
  company.finish();
  // Both have come through the provider, and no further.
  const std::string log = company.log();
  EXPECT_TRUE(contains(log, "has refused a message: it was not sealed with our key")) << log;
  EXPECT_TRUE(contains(log, "has refused a write: who tells of it does not hold our key")) << log;
}

}  // namespace
}  // namespace catenary::testing
