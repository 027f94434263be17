// A network of ports within one thread, that moves bytes as EFA may: a put goes in pieces, in any
// order, and is told once all are there; some are written again until it is done. All that is put
// must be registered with the port that it goes from, go to what the port that it goes to gave
// away, and stay so. What it does follows from a seed.
#pragma once

#include <map>
#include <memory>
#include <random>
#include <stdexcept>
#include <vector>

#include "src/transport/put_port.h"

namespace catenary::test {

class PutNetwork {
 public:
  explicit PutNetwork(unsigned seed) : random_(seed), gathers_(seed % 2 == 0) {}

  // The next port, from 0 on. `peers`: which one it means by each rank; empty: that of its number.
  // Ports may go before the network, and then get nothing any more.
  std::unique_ptr<PutPort> add_port(std::vector<int> peers = {});
  // Moves some pieces.
  void turn();

 private:
  static constexpr std::size_t kPieceBytes = 32;
  struct Flight {
    int from = 0;
    int to = 0;
    Put put;
    Bytes source;                     // as it must stay: both pieces
    std::vector<std::size_t> pieces;  // their beginnings; not yet written
    std::vector<std::size_t> again;   // to be written once more
    bool is_told = false;
  };
  struct Inbox {
    bool is_open = true;
    std::size_t flying = 0;
    std::vector<std::uint64_t> done;
    std::vector<std::uint32_t> told;
    std::vector<ControlMessage> messages;
  };
  class Port;
  class Memory;
  template <typename Span>
  struct Registered {
    int port;
    Span bytes;
  };

  void put(int from, int to, const Put& put);
  void check_source(const Flight& flight) const;
  void write(const Flight& flight, std::size_t begin);
  Inbox& inbox(int port) { return inboxes_[static_cast<std::size_t>(port)]; }

  std::mt19937 random_;
  const bool gathers_;
  std::vector<Inbox> inboxes_;
  std::vector<Flight> flights_;
  std::map<std::uint64_t, Registered<ByteSpan>> memory_;         // that was given away, by key
  std::map<const PutMemory*, Registered<ByteView>> registered_;  // all of it
  std::uint64_t next_key_ = 1;
};

}  // namespace catenary::test
