#include "src/transport/striped_port.h"

#include <sys/epoll.h>

#include <algorithm>

#include "src/base/error.h"

namespace catenary {

class StripedPort::Memory final : public PutMemory {
 public:
  explicit Memory(std::vector<std::unique_ptr<PutMemory>> parts) : parts_(std::move(parts)) {
    target_ = parts_.front()->target();
    for (std::size_t i = 0; i < target_.keys.size(); ++i) {
      const PutTarget part = parts_[i % parts_.size()]->target();
      CATENARY_ASSERT(part.address == target_.address);
      target_.keys[i] = part.keys[0];
    }
  }
  PutTarget target() const override { return target_; }
  const PutMemory* of_rail(std::size_t rail) const { return parts_[rail].get(); }

 private:
  std::vector<std::unique_ptr<PutMemory>> parts_;
  PutTarget target_;
};

// Passes on what a port tells, and counts what is under way on it.
class StripedPort::Rail final : public PortListener {
 public:
  explicit Rail(std::unique_ptr<PutPort> port) : port_(std::move(port)) {}

  PutPort& port() const { return *port_; }
  // What it has to carry, and has carried: less is better.
  std::pair<std::size_t, std::uint64_t> load() const { return {flying_, carried_bytes_}; }
  bool try_put(const Put& put) {
    if (!port_->try_put(put)) return false;
    ++flying_;
    carried_bytes_ += put.head.bytes.size() + put.tail.bytes.size();
    return true;
  }
  void progress(PortListener& listener) {
    listener_ = &listener;
    port_->progress(*this);
  }

 private:
  void put_done(std::uint64_t cookie) override {
    --flying_;
    listener_->put_done(cookie);
  }
  void put_failed(std::uint64_t cookie, const std::string& why) override {
    --flying_;
    listener_->put_failed(cookie, why);
  }
  void was_told(std::uint32_t told) override { listener_->was_told(told); }
  void was_cut(std::uint32_t told) override { listener_->was_cut(told); }
  void control_came(const ControlMessage& message) override { listener_->control_came(message); }
  void control_failed(int peer, const std::string& why) override {
    listener_->control_failed(peer, why);
  }
  void port_failed(const std::string& why) override { listener_->port_failed(why); }

  const std::unique_ptr<PutPort> port_;
  PortListener* listener_ = nullptr;  // within progress()
  std::size_t flying_ = 0;            // puts
  std::uint64_t carried_bytes_ = 0;
};

StripedPort::StripedPort(std::vector<std::unique_ptr<PutPort>> rails, std::size_t long_put)
    : long_put_(long_put) {
  CATENARY_ASSERT(rails.size() >= 2 && rails.size() <= kMostRails);
  for (auto& rail : rails) rails_.push_back(std::make_unique<Rail>(std::move(rail)));
}

StripedPort::~StripedPort() = default;

std::unique_ptr<PutMemory> StripedPort::register_memory(ByteSpan memory) {
  std::vector<std::unique_ptr<PutMemory>> parts;
  for (const auto& rail : rails_) parts.push_back(rail->port().register_memory(memory));
  return std::make_unique<Memory>(std::move(parts));
}

std::unique_ptr<PutMemory> StripedPort::register_source(ByteView memory) {
  std::vector<std::unique_ptr<PutMemory>> parts;
  for (const auto& rail : rails_) parts.push_back(rail->port().register_source(memory));
  return std::make_unique<Memory>(std::move(parts));
}

bool StripedPort::registers_sources() const { return rails_.front()->port().registers_sources(); }
bool StripedPort::gathers() const { return rails_.front()->port().gathers(); }

bool StripedPort::try_put(const Put& put) {
  const std::size_t bytes = put.head.bytes.size() + put.tail.bytes.size();
  if (bytes < long_put_) return try_put_over(0, put);
  const auto least_loaded =
      std::ranges::min_element(rails_, {}, [](const auto& rail) { return rail->load(); });
  const auto first = static_cast<std::size_t>(least_loaded - rails_.begin());
  for (std::size_t i = 0; i < rails_.size(); ++i) {
    if (try_put_over((first + i) % rails_.size(), put)) return true;
  }
  return false;
}

bool StripedPort::try_put_over(std::size_t rail, const Put& put) {
  const auto piece_of = [rail](const PutPiece& piece) {
    const auto* const memory = static_cast<const Memory*>(piece.memory);
    return PutPiece{memory == nullptr ? nullptr : memory->of_rail(rail), piece.bytes};
  };
  Put ours = put;
  ours.head = piece_of(put.head);
  ours.tail = piece_of(put.tail);
  ours.target.keys[0] = put.target.keys[rail];
  return rails_[rail]->try_put(ours);
}

bool StripedPort::try_send(int peer, const ControlMessage& message) {
  return rails_.front()->port().try_send(peer, message);
}

void StripedPort::progress(PortListener& listener) {
  for (const auto& rail : rails_) rail->progress(listener);
}

// Each is asked, since it counts what comes after that.
int StripedPort::wait_descriptor() {
  std::array<int, kMostRails> descriptors;
  for (std::size_t i = 0; i < rails_.size(); ++i) {
    descriptors[i] = rails_[i]->port().wait_descriptor();
    if (descriptors[i] < 0) return -1;
  }
  if (all_descriptors_) return all_descriptors_.get();
  UniqueFd made(::epoll_create1(EPOLL_CLOEXEC));
  if (!made) return -1;
  for (std::size_t i = 0; i < rails_.size(); ++i) {
    epoll_event event = {};
    event.events = EPOLLIN;
    if (::epoll_ctl(made.get(), EPOLL_CTL_ADD, descriptors[i], &event) != 0) return -1;
  }
  all_descriptors_ = std::move(made);
  return all_descriptors_.get();
}

bool StripedPort::is_quiet() const {
  return std::ranges::all_of(rails_, [](const auto& rail) { return rail->port().is_quiet(); });
}

void StripedPort::shut(Parting parting) noexcept {
  for (const auto& rail : rails_) rail->port().shut(parting);
}

}  // namespace catenary
