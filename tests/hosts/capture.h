// Capture: the connections that go over a host's card, as a packet socket there sees them.
//
// TCP over IPv4 only, on eth0. A thread of its own reads from start() on; nothing of what is seen
// before is lost, since the socket is there from the beginning. Throws Failure. Any thread may ask.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "tests/support/hosts.h"

namespace catenary::testing {

// What one end of a connection has said, and when it ended it, by a FIN or a RST.
struct CapturedEnd {
  int host = -1;  // as Hosts counts
  std::uint16_t port = 0;
  std::uint64_t bytes = 0;  // acknowledged or not, repeated ones once
  std::string first;        // as many as are kept
  std::int64_t ended_ns = 0;
  std::uint32_t next = 0;  // the number of the byte after those
};

struct CapturedConnection {
  CapturedEnd opener;
  CapturedEnd listener;
  std::int64_t opened_ns = 0;  // when the listener's kernel answered; 0: it has not
};

class Capture {
 public:
  // To be made before ranks are.
  Capture(const Hosts& hosts, int host);
  ~Capture();
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  void start();
  std::vector<CapturedConnection> connections() const;
  // Packets that found no room here since the last time. Not zero: what was seen says nothing.
  unsigned lost();

 private:
  using Name = std::tuple<int, std::uint16_t, int, std::uint16_t>;  // the opener's end first

  void read();
  void take(const std::uint8_t* packet, std::size_t bytes);

  int socket_ = -1;
  std::thread thread_;
  std::atomic<bool> stop_{false};
  mutable std::mutex mutex_;
  // Guarded by mutex_.
  std::map<Name, CapturedConnection> open_;     // the newest of each name
  std::vector<CapturedConnection> superseded_;  // whose ports were used again
};

}  // namespace catenary::testing
