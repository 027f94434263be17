// A port that passes everything on, for those that do something else with some of it.
#pragma once

#include <memory>
#include <utility>

#include "src/transport/put_port.h"

namespace catenary::test {

class PassingPort : public PutPort {
 public:
  explicit PassingPort(std::unique_ptr<PutPort> port) : port_(std::move(port)) {}
  std::unique_ptr<PutMemory> register_memory(ByteSpan memory) override {
    return port_->register_memory(memory);
  }
  std::unique_ptr<PutMemory> register_source(ByteView memory) override {
    return port_->register_source(memory);
  }
  bool registers_sources() const override { return port_->registers_sources(); }
  bool gathers() const override { return port_->gathers(); }
  bool try_put(const Put& put) override { return port_->try_put(put); }
  bool try_send(int peer, const ControlMessage& message) override {
    return port_->try_send(peer, message);
  }
  void progress(PortListener& listener) override { port_->progress(listener); }
  bool is_quiet() const override { return port_->is_quiet(); }
  void shut(Parting parting) noexcept override { port_->shut(parting); }

 private:
  std::unique_ptr<PutPort> port_;
};

}  // namespace catenary::test
