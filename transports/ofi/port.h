// OfiPort: a PutPort (src/transport/put_port.h) over one endpoint of libfabric.
//
// Puts are writes that carry 32 bits, control messages are messages, and everything ends up in one
// completion queue. How many operations are under way is counted here, because providers accept
// more than they carry. Whatever a provider says of its memory, that registration is local, keys
// are its own, addresses virtual, is heeded; where we choose keys, they are random, since they are
// all that guards the memory of software providers.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "src/base/mapping.h"
#include "src/transport/put_port.h"
#include "transports/ofi/library.h"

namespace catenary::ofi {

class OfiPort final : public PutPort {
 public:
  // `events`: for how many completions there is room that nobody has looked at.
  OfiPort(const fi_info& info, std::size_t events);
  ~OfiPort() override;

  // Where peers reach us, as the provider writes it.
  const Bytes& name() const { return name_; }
  // The names of all ranks in order; nobody can be reached before. Those that are empty never can.
  // `seals`: what puts to each rank say beside what they tell, where the provider has room for it:
  // not all have keys for what tells something without a byte of data, and members alone can know
  // the seals. Ours is that of rank `self`.
  void meet(const std::vector<Bytes>& names, const std::vector<std::uint32_t>& seals, int self);
  bool has_room_for_seals() const;

  std::unique_ptr<PutMemory> register_memory(ByteSpan memory) override;
  std::unique_ptr<PutMemory> register_source(ByteView memory) override;
  bool registers_sources() const override;
  bool gathers() const override;
  bool try_put(const Put& put) override;
  bool try_send(int peer, const ControlMessage& message) override;
  void progress(PortListener& listener) override;
  int wait_descriptor() override;
  bool is_quiet() const override { return free_.size() == operations_.size(); }
  void shut(Parting parting) noexcept override;

 private:
  class Memory;
  // What libfabric gives back when an operation is over. The context comes first, and lies still.
  struct Operation {
    fi_context2 context;
    enum class Kind { kPut, kSend, kReceive } kind;
    std::uint32_t index;  // of its control message
    int peer;
    std::uint64_t cookie;
  };

  void open(std::size_t events);
  void open_queue(std::size_t events);
  // One that the provider does not take yet is posted later.
  void post_receive(Operation& receive);
  void post_what_waits();
  void take_cut_write(std::uint64_t data, const std::string& why, PortListener& listener);
  void take_failed_receive(Operation& receive, const std::string& why, PortListener& listener);
  ByteSpan message_of(const Operation& operation) const;
  Operation* take_operation();
  // Whether it was accepted. What failed for good is told at the next progress().
  bool accepted(ssize_t result, Operation& operation);
  void settle() noexcept;
  void abandon() noexcept;
  void take_completion(const fi_cq_data_entry& entry, PortListener& listener);
  void take_error(PortListener& listener);
  std::string place_of(int peer) const;
  void tell_failure(const Operation& operation, const std::string& why, PortListener& listener);

  Info info_;
  // What the endpoint's operations use, and so outlives it.
  Mapping control_;  // a message for each operation and receive
  std::vector<Operation> receives_;
  std::vector<Operation> operations_;
  std::vector<Operation*> unposted_;   // receives
  std::uint32_t failed_receives_ = 0;  // since anything went well
  // Closed from the last to the first.
  Owned<fid_fabric> fabric_;
  Owned<fid_domain> domain_;
  Owned<fid_av> addresses_;
  Owned<fid_cq> queue_;
  int queue_descriptor_ = -1;  // below 0 where the provider has none
  std::unique_ptr<PutMemory> control_memory_;
  Owned<fid_ep> endpoint_;
  class Caller;
  std::unique_ptr<Caller> caller_;

  Bytes name_;
  std::vector<fi_addr_t> peers_;  // by rank
  std::vector<std::uint32_t> seals_;
  std::uint32_t own_seal_ = 0;
  std::vector<Operation*> free_;
  struct Failure {
    Operation* operation;
    int number;
  };
  std::vector<Failure> failures_;  // of posting, not yet told
};

}  // namespace catenary::ofi
