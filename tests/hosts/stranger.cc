#include "tests/hosts/stranger.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "tests/support/rank_group.h"

namespace catenary::testing {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t kHosts = 0x0A'4D'00'01u;  // 10.77.0.1 is host 0
constexpr auto kBetweenRounds = 300ms;
constexpr int kMostReplays = 4;  // at a place, in each round

// States of a connection in /proc/net/tcp, by number.
constexpr unsigned kEstablished = 1;
constexpr unsigned kCloseWait = 8;
constexpr unsigned kListen = 10;

struct Line {
  std::uint32_t host = 0;
  unsigned port = 0;
  std::uint32_t other = 0;
  unsigned state = 0;
};

std::vector<Line> lines_of(const Hosts& hosts, int host) {
  std::vector<Line> lines;
  std::thread([&] {
    hosts.enter(host);
    std::ifstream table("/proc/thread-self/net/tcp");
    std::string text;
    std::getline(table, text);
    while (std::getline(table, text)) {
      Line line;
      unsigned other_port = 0;
      if (std::sscanf(text.c_str(), " %*d: %x:%x %x:%x %x", &line.host, &line.port, &line.other,
                      &other_port, &line.state) == 5) {
        lines.push_back(line);
      }
    }
  }).join();
  return lines;
}

// What nobody would take for a member's.
const std::string kGarbage[] = {
    std::string(300, '\xa5'),
    "GET / HTTP/1.1\r\nHost: 10.77.0.1\r\nUser-Agent: something that fills a greeting\r\n\r\n",
    std::string(12, '\0') + "ctnry-I2" + std::string(32, '\x11') + std::string(32, '\x22'),
    "ctnry-I2" + std::string(32, '\x11') + std::string(32, '\x22'),
    "ctnry",
    "",
};

void say(int fd, const std::string& text) {
  // Who was refused meanwhile need not be told.
  static_cast<void>(::send(fd, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
}

}  // namespace

std::vector<Place> listening_on(const Hosts& hosts, int host) {
  std::vector<Place> places;
  for (const Line& line : lines_of(hosts, host)) {
    if (line.state == kListen) places.push_back({host, static_cast<std::uint16_t>(line.port)});
  }
  return places;
}

int connections_with(const Hosts& hosts, int host, int other) {
  int count = 0;
  const std::uint32_t address = htonl(kHosts + static_cast<std::uint32_t>(other));
  for (const Line& line : lines_of(hosts, host)) {
    const bool is_kept = line.state == kEstablished || line.state == kCloseWait;
    count += line.other == address && is_kept ? 1 : 0;
  }
  return count;
}

Stranger::Stranger(const Hosts& hosts, int self, std::vector<int> members,
                   std::function<std::vector<std::string>(const Place&)> overheard)
    : hosts_(hosts), self_(self), members_(std::move(members)), overheard_(std::move(overheard)) {}

Stranger::~Stranger() {
  rest();
  for (const int fd : sockets_) ::close(fd);
}

void Stranger::start() {
  stop_ = false;
  thread_ = std::thread([this] { attack(); });
}

void Stranger::rest() {
  stop_ = true;
  if (thread_.joinable()) thread_.join();
}

void Stranger::attack() {
  hosts_.enter(self_);
  while (!stop_) {
    for (const int member : members_) {
      for (const Place& place : listening_on(hosts_, member)) attack(place);
    }
    forget_ended();
    std::this_thread::sleep_for(kBetweenRounds);
  }
}

// There would soon be no descriptor left.
void Stranger::forget_ended() {
  std::erase_if(sockets_, [](int fd) {
    char byte = 0;
    const ssize_t heard = ::recv(fd, &byte, 1, MSG_DONTWAIT);
    const bool is_open = heard > 0 || (heard < 0 && errno == EAGAIN);
    if (!is_open) ::close(fd);
    return !is_open;
  });
}

void Stranger::attack(const Place& place) {
  for (const std::string& garbage : kGarbage) say(call(place), garbage);
  const int half_closed = call(place);
  ::shutdown(half_closed, SHUT_WR);
  int replays = 0;
  for (const std::string& first : overheard_(place)) {
    if (++replays > kMostReplays) break;
    say(call(place), first);
    ++replays_;
  }
}

// -1 if nobody listens there any more.
int Stranger::call(const Place& place) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const timeval patience = {.tv_sec = 0, .tv_usec = 200'000};
  ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(kHosts + static_cast<std::uint32_t>(place.host));
  to.sin_port = htons(place.port);
  if (::connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) {
    ::close(fd);
    return -1;
  }
  sockets_.push_back(fd);
  ++calls_;
  return fd;
}

}  // namespace catenary::testing
