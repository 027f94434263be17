// Stranger: a host that is nobody's, and connects to every port on which members' hosts listen.
//
// It knows what a listener on the way would know: what members have said to each other first. It
// closes none of its connections but those that the other side has ended, and ends its own
// direction of some, so whatever ended the others was the other side.
// A thread of its own attacks from start() on; all others only ask. Throws Failure.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/hosts.h"

namespace catenary::testing {

// Where somebody listens: a host, as Hosts counts, and a port.
struct Place {
  int host = 0;
  std::uint16_t port = 0;
  bool operator==(const Place&) const = default;
};

// On which a host listens now for TCP over IPv4, as its kernel says.
std::vector<Place> listening_on(const Hosts& hosts, int host);
// How many connections with the other one a host's processes have not ended, or its kernel keeps
// for them to accept.
int connections_with(const Hosts& hosts, int host, int other);

class Stranger {
 public:
  // `overheard`: what members have said first to a place, each connection's by itself.
  Stranger(const Hosts& hosts, int self, std::vector<int> members,
           std::function<std::vector<std::string>(const Place&)> overheard);
  ~Stranger();
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;

  void start();
  // Makes no more connections, but leaves open those that it has made.
  void rest();
  int calls() const { return calls_; }
  int replays() const { return replays_; }

 private:
  void attack();
  void attack(const Place& place);
  int call(const Place& place);
  void forget_ended();

  const Hosts& hosts_;
  const int self_;
  const std::vector<int> members_;
  const std::function<std::vector<std::string>(const Place&)> overheard_;
  std::thread thread_;
  std::atomic<bool> stop_{false};
  std::atomic<int> calls_{0};
  std::atomic<int> replays_{0};
  std::vector<int> sockets_;
};

}  // namespace catenary::testing
