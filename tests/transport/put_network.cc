#include "tests/transport/put_network.h"

#include <algorithm>

namespace catenary::test {

class PutNetwork::Memory final : public PutMemory {
 public:
  Memory(PutNetwork& network, int port, ByteView memory)
      : network_(network), key_(network.next_key_++) {
    network_.registered_.emplace(this, Registered<ByteView>{port, memory});
  }
  Memory(PutNetwork& network, int port, ByteSpan memory) : Memory(network, port, ByteView(memory)) {
    network_.memory_.emplace(key_, Registered<ByteSpan>{port, memory});
  }
  ~Memory() override {
    network_.memory_.erase(key_);
    network_.registered_.erase(this);
  }
  PutTarget target() const override {
    PutTarget target;
    target.keys.fill(key_);
    return target;
  }

 private:
  PutNetwork& network_;
  const std::uint64_t key_;
};

class PutNetwork::Port final : public PutPort {
 public:
  Port(PutNetwork& network, int number, std::vector<int> peers)
      : network_(network), number_(number), peers_(std::move(peers)) {}

  std::unique_ptr<PutMemory> register_memory(ByteSpan memory) override {
    return std::make_unique<Memory>(network_, number_, memory);
  }
  std::unique_ptr<PutMemory> register_source(ByteView memory) override {
    return std::make_unique<Memory>(network_, number_, memory);
  }
  bool registers_sources() const override { return true; }
  bool gathers() const override { return network_.gathers_; }
  bool try_put(const Put& put) override {
    network_.put(number_, port_of(put.peer), put);
    return true;
  }
  bool try_send(int peer, const ControlMessage& message) override {
    network_.inbox(port_of(peer)).messages.push_back(message);
    return true;
  }
  void progress(PortListener& listener) override {
    network_.turn();
    Inbox now;
    Inbox& inbox = network_.inbox(number_);
    now.done.swap(inbox.done);
    now.told.swap(inbox.told);
    now.messages.swap(inbox.messages);
    for (const std::uint64_t cookie : now.done) listener.put_done(cookie);
    for (const std::uint32_t told : now.told) listener.was_told(told);
    for (const ControlMessage& message : now.messages) listener.control_came(message);
  }
  bool is_quiet() const override { return network_.inbox(number_).flying == 0; }
  void shut(Parting /*parting*/) noexcept override {
    network_.inbox(number_).is_open = false;
    std::erase_if(network_.flights_,
                  [this](const Flight& flight) { return flight.from == number_; });
  }

 private:
  int port_of(int rank) const {
    return peers_.empty() ? rank : peers_[static_cast<std::size_t>(rank)];
  }

  PutNetwork& network_;
  const int number_;
  const std::vector<int> peers_;
};

std::unique_ptr<PutPort> PutNetwork::add_port(std::vector<int> peers) {
  inboxes_.emplace_back();
  const int number = static_cast<int>(inboxes_.size()) - 1;
  return std::make_unique<Port>(*this, number, std::move(peers));
}

void PutNetwork::put(int from, int to, const Put& put) {
  Flight flight;
  flight.from = from;
  flight.to = to;
  flight.put = put;
  for (const PutPiece& piece : {put.head, put.tail}) {
    flight.source.insert(flight.source.end(), piece.bytes.begin(), piece.bytes.end());
  }
  check_source(flight);
  if (!gathers_ && !put.tail.bytes.empty()) throw std::runtime_error("a put of two pieces");
  for (std::size_t at = 0; at < flight.source.size(); at += kPieceBytes)
    flight.pieces.push_back(at);
  std::ranges::shuffle(flight.pieces, random_);
  flight.again.assign(
      flight.pieces.begin(),
      flight.pieces.begin() + static_cast<std::ptrdiff_t>(random_() % (flight.pieces.size() + 1)));
  flights_.push_back(std::move(flight));
  ++inbox(from).flying;
}

void PutNetwork::turn() {
  for (std::size_t moves = random_() % 8; moves > 0 && !flights_.empty(); --moves) {
    const std::size_t which = random_() % flights_.size();
    Flight& flight = flights_[which];
    auto& pieces = flight.is_told ? flight.again : flight.pieces;
    if (!pieces.empty()) {
      write(flight, pieces.back());
      pieces.pop_back();
      continue;
    }
    if (!flight.is_told) {
      flight.is_told = true;
      inbox(flight.to).told.push_back(flight.put.told);
      continue;
    }
    check_source(flight);
    inbox(flight.from).done.push_back(flight.put.cookie);
    --inbox(flight.from).flying;
    flights_.erase(flights_.begin() + static_cast<std::ptrdiff_t>(which));
  }
}

void PutNetwork::check_source(const Flight& flight) const {
  std::size_t at = 0;
  for (const PutPiece& piece : {flight.put.head, flight.put.tail}) {
    if (piece.bytes.empty()) continue;
    const auto memory = registered_.find(piece.memory);
    if (memory == registered_.end() || memory->second.port != flight.from) {
      throw std::runtime_error("what is put is not registered any more, or elsewhere");
    }
    const ByteView all = memory->second.bytes;
    const bool is_within = piece.bytes.data() >= all.data() &&
                           piece.bytes.data() + piece.bytes.size() <= all.data() + all.size();
    if (!is_within) throw std::runtime_error("what is put is not what is registered");
    if (!std::ranges::equal(piece.bytes, ByteView(flight.source).subspan(at, piece.bytes.size()))) {
      throw std::runtime_error("what was put changed before that was done");
    }
    at += piece.bytes.size();
  }
}

void PutNetwork::write(const Flight& flight, std::size_t begin) {
  if (!inbox(flight.to).is_open) return;
  const auto memory = memory_.find(flight.put.target.keys[0]);
  const std::size_t to = flight.put.target.address + begin;
  const std::size_t bytes = std::min(kPieceBytes, flight.source.size() - begin);
  if (memory == memory_.end() || memory->second.port != flight.to ||
      to + bytes > memory->second.bytes.size()) {
    throw std::runtime_error("a put beyond the memory that was given");
  }
  std::ranges::copy(ByteView(flight.source).subspan(begin, bytes),
                    memory->second.bytes.subspan(to).begin());
}

}  // namespace catenary::test
