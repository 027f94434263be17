#include "tests/hosts/capture.h"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "tests/support/processes.h"
#include "tests/support/rank_group.h"

namespace catenary::testing {
namespace {

constexpr std::size_t kKept = 512;                // of what an end says first
constexpr std::size_t kRead = 60 + 60 + kKept;    // of a packet: with the longest headers
constexpr int kRoom = 256 * 1024 * 1024;          // for what comes while the reader sleeps
constexpr std::uint32_t kHosts = 0x0A'4D'00'01u;  // 10.77.0.1 is host 0

int open_socket() {
  // Of one protocol alone it would show nothing that goes out.
  const int fd = ::socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, htons(ETH_P_ALL));
  if (fd < 0) return fd;
  ::setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &kRoom, sizeof kRoom);
  sockaddr_ll card = {};
  card.sll_family = AF_PACKET;
  card.sll_protocol = htons(ETH_P_ALL);
  card.sll_ifindex = static_cast<int>(::if_nametoindex("eth0"));
  if (::bind(fd, reinterpret_cast<sockaddr*>(&card), sizeof card) == 0) return fd;
  ::close(fd);
  return -1;
}

// Where a segment's bytes lie in what its end has said.
void add(CapturedEnd& end, std::uint32_t number, const std::uint8_t* data, std::size_t seen,
         std::size_t bytes) {
  const auto ahead =
      static_cast<std::int32_t>(number + static_cast<std::uint32_t>(bytes) - end.next);
  const auto at =
      static_cast<std::int64_t>(end.bytes) + static_cast<std::int32_t>(number - end.next);
  if (at >= 0 && static_cast<std::size_t>(at) < kKept && seen > 0) {
    const std::size_t kept = std::min(seen, kKept - static_cast<std::size_t>(at));
    end.first.resize(std::max(end.first.size(), static_cast<std::size_t>(at) + kept));
    std::memcpy(end.first.data() + at, data, kept);
  }
  if (ahead <= 0) return;
  end.bytes += static_cast<std::uint32_t>(ahead);
  end.next += static_cast<std::uint32_t>(ahead);
}

}  // namespace

Capture::Capture(const Hosts& hosts, int host) {
  std::thread([&] {
    hosts.enter(host);
    socket_ = open_socket();
  }).join();
  require(socket_ >= 0, "no packet socket could be opened");
}

Capture::~Capture() {
  stop_ = true;
  if (thread_.joinable()) thread_.join();
  ::close(socket_);
}

void Capture::start() {
  thread_ = std::thread([this] { read(); });
}

void Capture::read() {
  std::array<std::uint8_t, kRead> packet;
  while (!stop_) {
    pollfd state = {socket_, POLLIN, 0};
    if (::poll(&state, 1, 50) <= 0) continue;
    const ssize_t bytes = ::recv(socket_, packet.data(), packet.size(), MSG_DONTWAIT);
    if (bytes > 0) take(packet.data(), static_cast<std::size_t>(bytes));
  }
}

void Capture::take(const std::uint8_t* packet, std::size_t seen) {
  iphdr ip;
  tcphdr tcp;
  if (seen < sizeof ip) return;
  std::memcpy(&ip, packet, sizeof ip);
  const std::size_t tcp_at = std::size_t{ip.ihl} * 4;
  if (ip.version != 4 || ip.protocol != IPPROTO_TCP || seen < tcp_at + sizeof tcp) return;
  std::memcpy(&tcp, packet + tcp_at, sizeof tcp);
  const std::size_t data_at = tcp_at + std::size_t{tcp.doff} * 4;
  const std::size_t bytes = std::max<std::size_t>(ntohs(ip.tot_len), data_at) - data_at;
  const int from = static_cast<int>(ntohl(ip.saddr) - kHosts);
  const int to = static_cast<int>(ntohl(ip.daddr) - kHosts);
  const std::uint16_t from_port = ntohs(tcp.source);
  const std::uint16_t to_port = ntohs(tcp.dest);
  const std::lock_guard lock(mutex_);
  if (tcp.syn && !tcp.ack) {
    CapturedConnection& made = open_[{from, from_port, to, to_port}];
    const std::uint32_t next = ntohl(tcp.seq) + 1;
    if (made.opener.host >= 0 && made.opener.next - made.opener.bytes == next) return;  // repeated
    if (made.opener.host >= 0) superseded_.push_back(made);
    made = {};
    made.opener = {.host = from, .port = from_port, .first = {}, .next = next};
    made.listener = {.host = to, .port = to_port, .first = {}};
    return;
  }
  const auto by_opener = open_.find({from, from_port, to, to_port});
  const auto by_listener = open_.find({to, to_port, from, from_port});
  const bool opens = by_opener != open_.end();
  if (!opens && by_listener == open_.end()) return;
  CapturedConnection& connection = opens ? by_opener->second : by_listener->second;
  CapturedEnd& end = opens ? connection.opener : connection.listener;
  if (tcp.syn) {
    end.next = ntohl(tcp.seq) + 1;
    connection.opened_ns = monotonic_ns();
  }
  if (bytes > 0 && !tcp.rst) {
    const std::size_t there = seen > data_at ? std::min(seen - data_at, bytes) : 0;
    add(end, ntohl(tcp.seq), packet + data_at, there, bytes);
  }
  if ((tcp.fin || tcp.rst) && end.ended_ns == 0) end.ended_ns = monotonic_ns();
}

std::vector<CapturedConnection> Capture::connections() const {
  const std::lock_guard lock(mutex_);
  std::vector<CapturedConnection> all = superseded_;
  for (const auto& [name, connection] : open_) all.push_back(connection);
  return all;
}

unsigned Capture::lost() {
  tpacket_stats counts = {};
  socklen_t bytes = sizeof counts;
  ::getsockopt(socket_, SOL_PACKET, PACKET_STATISTICS, &counts, &bytes);
  return counts.tp_drops;
}

}  // namespace catenary::testing
