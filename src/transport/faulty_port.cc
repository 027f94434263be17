#include "src/transport/faulty_port.h"

#include <functional>
#include <optional>
#include <utility>
#include <vector>

namespace catenary {
namespace {

constexpr std::size_t kMostHeld = 64;

class FaultyPort final : public PutPort, private PortListener {
 public:
  FaultyPort(std::unique_ptr<PutPort> inside, const PortFaults& faults)
      : inside_(std::move(inside)), faults_(faults), state_(faults.seed) {}

  std::unique_ptr<PutMemory> register_memory(ByteSpan memory) override {
    return inside_->register_memory(memory);
  }
  std::unique_ptr<PutMemory> register_source(ByteView memory) override {
    return inside_->register_source(memory);
  }
  bool registers_sources() const override { return inside_->registers_sources(); }
  bool gathers() const override { return faults_.seed % 2 == 0 && inside_->gathers(); }

  bool try_put(const Put& put) override {
    if (refuses()) return false;
    if (faults_.fails_after_puts != 0 && puts_ >= faults_.fails_after_puts) {
      put_failed(put.cookie, "as the test asked");
      return true;
    }
    const bool taken = take({put, {}, 0});
    if (taken) ++puts_;
    return taken;
  }

  bool try_send(int peer, const ControlMessage& message) override {
    return !refuses() && take({{}, message, peer});
  }

  void progress(PortListener& listener) override {
    inside_->progress(*this);
    let_go();
    tell(listener);
  }

  bool is_quiet() const override { return held_.empty() && events_.empty() && inside_->is_quiet(); }
  void shut(Parting parting) noexcept override { inside_->shut(parting); }

 private:
  using Event = std::function<void(PortListener&)>;
  struct Operation {
    Put put;
    std::optional<ControlMessage> message;  // of a send
    int peer = 0;
  };

  void put_done(std::uint64_t cookie) override {
    events_.push_back([=](PortListener& to) { to.put_done(cookie); });
  }
  void put_failed(std::uint64_t cookie, const std::string& why) override {
    events_.push_back([=](PortListener& to) { to.put_failed(cookie, why); });
  }
  void was_told(std::uint32_t told) override {
    events_.push_back([=](PortListener& to) { to.was_told(told); });
  }
  void was_cut(std::uint32_t told) override {
    events_.push_back([=](PortListener& to) { to.was_cut(told); });
  }
  void control_came(const ControlMessage& message) override {
    events_.push_back([=](PortListener& to) { to.control_came(message); });
  }
  void control_failed(int peer, const std::string& why) override {
    events_.push_back([=](PortListener& to) { to.control_failed(peer, why); });
  }
  void port_failed(const std::string& why) override {
    events_.push_back([=](PortListener& to) { to.port_failed(why); });
  }

  bool take(Operation operation) {
    if (!holds()) return goes_out(operation);
    if (held_.size() == kMostHeld) return false;
    held_.push_back(std::move(operation));
    return true;
  }
  bool goes_out(const Operation& operation) {
    return operation.message ? inside_->try_send(operation.peer, *operation.message)
                             : inside_->try_put(operation.put);
  }

  void let_go() {
    for (std::size_t tries = held_.size(); tries > 0; --tries) {
      if (holds()) continue;
      std::swap(held_[next_random() % held_.size()], held_.back());
      if (goes_out(held_.back())) held_.pop_back();
    }
  }

  // Those that come while the listener is told wait for the next turn.
  void tell(PortListener& listener) {
    std::vector<Event> now;
    now.swap(events_);
    while (!now.empty()) {
      std::swap(now[next_random() % now.size()], now.back());
      const Event event = std::move(now.back());
      now.pop_back();
      if (holds()) {
        events_.push_back(event);
      } else {
        event(listener);
      }
    }
  }

  bool refuses() {
    if (refusing_ != 0) {
      --refusing_;
      return true;
    }
    if (next_random() % 1000 >= faults_.refusals_in_1000) return false;
    refusing_ = faults_.refused_tries;
    return true;
  }
  bool holds() { return next_random() % 1000 < faults_.holds_in_1000; }

  // splitmix64 (Steele, Lea, Flood 2014).
  std::uint64_t next_random() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }

  const std::unique_ptr<PutPort> inside_;
  const PortFaults faults_;
  std::uint64_t state_;
  std::uint64_t puts_ = 0;
  std::uint32_t refusing_ = 0;
  std::vector<Operation> held_;
  std::vector<Event> events_;
};

}  // namespace

std::unique_ptr<PutPort> make_faulty_port(std::unique_ptr<PutPort> inside,
                                          const PortFaults& faults) {
  return std::make_unique<FaultyPort>(std::move(inside), faults);
}

}  // namespace catenary
