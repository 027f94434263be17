// Hosts: network namespaces that stand for machines, joined by switches, one for each of their
// cards.
//
// Each is kept by a process that does nothing else and dies with the test, however that ends; what
// lies in a namespace goes with its last process. Nothing has a name outside of them, so nothing is
// left and tests do not meet. Needs root and the tools ip, tc and nsenter.
//
// Host i (from 0) has the interface eth0 with 10.77.0.i+1 and fd77::i+1, and as further cards eth1
// with 10.78.0.i+1 and so on.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace catenary::testing {

// Why there can be no hosts here; empty if there can.
std::string why_no_hosts();

class Hosts {
 public:
  // Throws Failure. `mbit_s`: what each link carries, 0 for all it can.
  explicit Hosts(int count, int mbit_s = 0, int cards = 1);
  ~Hosts();
  Hosts(const Hosts&) = delete;
  Hosts& operator=(const Hosts&) = delete;

  // From now on the calling thread, and what it starts, lives on that host.
  void enter(int host) const;
  // Pulls the plug of a host's card, or puts it back.
  void set_link(int host, bool up, int card = 0) const;
  // What these two send each other over IPv4 is lost from now on; to all others nothing changes.
  void lose_path(int one, int other) const;
  void find_path(int one, int other) const;

 private:
  pid_t add_namespace();
  void join(int host, int card, int mbit_s) const;
  static void run(pid_t place, const std::string& command);

  pid_t switch_ = 0;
  std::vector<pid_t> hosts_;
};

}  // namespace catenary::testing
