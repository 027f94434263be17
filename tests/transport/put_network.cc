#include "tests/transport/put_network.h"

#include <algorithm>

namespace catenary::test {

class PutNetwork::Memory final : public PutMemory {
 public:
  Memory(PutNetwork& network, ByteSpan memory) : network_(network), key_(network.next_key_++) {
    network_.memory_.emplace(key_, memory);
  }
  ~Memory() override { network_.memory_.erase(key_); }
  PutTarget target() const override { return {0, key_}; }

 private:
  PutNetwork& network_;
  const std::uint64_t key_;
};

class PutNetwork::Port final : public PutPort {
 public:
  Port(PutNetwork& network, int rank) : network_(network), rank_(rank) {}

  std::unique_ptr<PutMemory> register_memory(ByteSpan memory) override {
    return std::make_unique<Memory>(network_, memory);
  }
  bool try_put(const Put& put) override { return network_.put(rank_, put); }
  bool try_send(int peer, const ControlMessage& message) override {
    network_.inbox(peer).messages.push_back(message);
    return true;
  }
  void progress(PortListener& listener) override {
    network_.turn();
    Inbox now;
    Inbox& inbox = network_.inbox(rank_);
    now.done.swap(inbox.done);
    now.told.swap(inbox.told);
    now.messages.swap(inbox.messages);
    for (const std::uint64_t cookie : now.done) listener.put_done(cookie);
    for (const std::uint32_t told : now.told) listener.was_told(told);
    for (const ControlMessage& message : now.messages) listener.control_came(message);
  }
  bool is_quiet() const override { return network_.inbox(rank_).flying == 0; }
  void shut() noexcept override {
    network_.inbox(rank_).is_open = false;
    std::erase_if(network_.flights_, [this](const Flight& flight) { return flight.from == rank_; });
  }

 private:
  PutNetwork& network_;
  const int rank_;
};

std::unique_ptr<PutPort> PutNetwork::add_port() {
  inboxes_.emplace_back();
  return std::make_unique<Port>(*this, static_cast<int>(inboxes_.size()) - 1);
}

bool PutNetwork::put(int from, const Put& put) {
  Flight flight{from, put, {put.bytes.begin(), put.bytes.end()}, {}, {}};
  for (std::size_t at = 0; at < put.bytes.size(); at += kPieceBytes) flight.pieces.push_back(at);
  std::ranges::shuffle(flight.pieces, random_);
  flight.again.assign(
      flight.pieces.begin(),
      flight.pieces.begin() + static_cast<std::ptrdiff_t>(random_() % (flight.pieces.size() + 1)));
  flights_.push_back(std::move(flight));
  ++inbox(from).flying;
  return true;
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
      inbox(flight.put.peer).told.push_back(flight.put.told);
      continue;
    }
    if (!std::ranges::equal(flight.source, flight.put.bytes)) {
      throw std::runtime_error("what was put changed before that was done");
    }
    inbox(flight.from).done.push_back(flight.put.cookie);
    --inbox(flight.from).flying;
    flights_.erase(flights_.begin() + static_cast<std::ptrdiff_t>(which));
  }
}

void PutNetwork::write(const Flight& flight, std::size_t begin) {
  if (!inbox(flight.put.peer).is_open) return;
  const auto memory = memory_.find(flight.put.target.key);
  const std::size_t to = flight.put.target.address + begin;
  const std::size_t bytes = std::min(kPieceBytes, flight.put.bytes.size() - begin);
  if (memory == memory_.end() || to + bytes > memory->second.size()) {
    throw std::runtime_error("a put beyond the memory that was given");
  }
  std::ranges::copy(flight.put.bytes.subspan(begin, bytes), memory->second.subspan(to).begin());
}

}  // namespace catenary::test
