// StripedPort: one port over several, the rails, which may be cards of their own.
//
// A put goes whole over one rail: a long one over that which has the least to carry, a short one
// over the first, as control messages do. Since ports order nothing, that is all there is to it; a
// peer may have another number of rails. Rails are of one kind: what one says of itself is true of
// all.
//
// Threads, owner and failure are PutPort's. A rail that fails ends them all.
#pragma once

#include <memory>
#include <vector>

#include "src/base/size_literals.h"
#include "src/base/unique_fd.h"
#include "src/transport/put_port.h"

namespace catenary {

class StripedPort final : public PutPort {
 public:
  // Puts of fewer bytes are short: their time is that of the calls.
  static constexpr std::size_t kLongPut = 8_KB;

  // Two rails, or up to kMostRails. A rail's number is its place. `long_put`: from which size on a
  // put is long.
  explicit StripedPort(std::vector<std::unique_ptr<PutPort>> rails,
                       std::size_t long_put = kLongPut);
  ~StripedPort() override;

  std::unique_ptr<PutMemory> register_memory(ByteSpan memory) override;
  std::unique_ptr<PutMemory> register_source(ByteView memory) override;
  bool registers_sources() const override;
  bool gathers() const override;
  bool try_put(const Put& put) override;
  bool try_send(int peer, const ControlMessage& message) override;
  void progress(PortListener& listener) override;
  int wait_descriptor() override;
  bool is_quiet() const override;
  void shut(Parting parting) noexcept override;

 private:
  class Memory;
  class Rail;

  bool try_put_over(std::size_t rail, const Put& put);

  const std::size_t long_put_;
  std::vector<std::unique_ptr<Rail>> rails_;
  UniqueFd all_descriptors_;  // made when first asked for
};

}  // namespace catenary
