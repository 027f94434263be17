#include "tests/support/hosts.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/support/rank_group.h"

namespace catenary::testing {
namespace {

std::string inside(pid_t place, const std::string& command) {
  return "nsenter -t " + std::to_string(place) + " -n " + command;
}

bool succeeds(const std::string& command) {
  return std::system((command + " >/dev/null 2>&1").c_str()) == 0;
}

// Of the switch.
std::string port(int host, int card) {
  return "port" + std::to_string(host + 1) + "-" + std::to_string(card);
}

// In a child, since it cannot be undone.
bool can_unshare() {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(::unshare(CLONE_NEWNET) == 0 ? 0 : 1);
  int status = 1;
  return child > 0 && ::waitpid(child, &status, 0) == child && status == 0;
}

}  // namespace

std::string why_no_hosts() {
  if (::geteuid() != 0) return "network namespaces need root";
  if (!can_unshare()) return std::string("no network namespace can be made here");
  for (const char* tool : {"ip -V", "tc -V", "nsenter --version"}) {
    if (!succeeds(tool)) return std::string("this machine lacks ") + tool;
  }
  return "";
}

Hosts::Hosts(int count, int mbit_s, int cards) {
  switch_ = add_namespace();
  for (int card = 0; card < cards; ++card) {
    const std::string lan = "lan" + std::to_string(card);
    run(switch_, "ip link add " + lan + " type bridge");
    run(switch_, "ip link set " + lan + " up");
  }
  for (int host = 0; host < count; ++host) {
    hosts_.push_back(add_namespace());
    run(hosts_.back(), "ip link set lo up");
    for (int card = 0; card < cards; ++card) join(host, card, mbit_s);
  }
}

Hosts::~Hosts() {
  for (const pid_t host : hosts_) ::kill(host, SIGKILL);
  ::kill(switch_, SIGKILL);
  for (const pid_t host : hosts_) ::waitpid(host, nullptr, 0);
  ::waitpid(switch_, nullptr, 0);
}

pid_t Hosts::add_namespace() {
  int ready[2];
  require(::pipe2(ready, O_CLOEXEC) == 0, "pipe2");
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  require(child >= 0, "fork");
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent || ::unshare(CLONE_NEWNET) != 0) ::_exit(1);
    if (::write(ready[1], "", 1) != 1) ::_exit(1);
    for (;;) ::pause();
  }
  ::close(ready[1]);
  char byte = 0;
  const bool is_ready = ::read(ready[0], &byte, 1) == 1;
  ::close(ready[0]);
  require(is_ready, "no network namespace could be made");
  return child;
}

void Hosts::join(int host, int card, int mbit_s) const {
  const std::string number = std::to_string(host + 1);
  const std::string net = std::to_string(77 + card);
  const std::string eth = "eth" + std::to_string(card);
  const pid_t place = hosts_[static_cast<std::size_t>(host)];
  run(switch_, "ip link add " + port(host, card) + " type veth peer name " + eth + " netns " +
                   std::to_string(place));
  run(switch_, "ip link set " + port(host, card) + " master lan" + std::to_string(card) + " up");
  run(place, "ip addr add 10." + net + ".0." + number + "/24 dev " + eth);
  run(place, "ip addr add fd" + net + "::" + number + "/64 dev " + eth + " nodad");
  run(place, "ip link set " + eth + " up");
  if (mbit_s == 0) return;
  run(place, "tc qdisc add dev " + eth + " root tbf rate " + std::to_string(mbit_s) +
                 "mbit burst 128kb latency 20ms");
}

void Hosts::run(pid_t place, const std::string& command) {
  require(std::system(inside(place, command).c_str()) == 0, command + " failed");
}

void Hosts::enter(int host) const {
  const std::string path =
      "/proc/" + std::to_string(hosts_[static_cast<std::size_t>(host)]) + "/ns/net";
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  require(fd >= 0 && ::setns(fd, CLONE_NEWNET) == 0,
          "cannot enter a host: " + std::string(std::strerror(errno)));
  ::close(fd);
}

void Hosts::set_link(int host, bool up, int card) const {
  run(switch_, "ip link set " + port(host, card) + (up ? " up" : " down"));
}

// Each takes the other for a machine that the switch knows nothing of.
void Hosts::lose_path(int one, int other) const {
  const std::pair<int, int> ways[] = {{one, other}, {other, one}};
  for (const auto& [from, to] : ways) {
    run(hosts_[static_cast<std::size_t>(from)],
        "ip neigh replace 10.77.0." + std::to_string(to + 1) +
            " lladdr 02:00:00:00:00:01 dev eth0 nud permanent");
  }
}

void Hosts::find_path(int one, int other) const {
  const std::pair<int, int> ways[] = {{one, other}, {other, one}};
  for (const auto& [from, to] : ways) {
    run(hosts_[static_cast<std::size_t>(from)],
        "ip neigh del 10.77.0." + std::to_string(to + 1) + " dev eth0");
  }
}

}  // namespace catenary::testing
