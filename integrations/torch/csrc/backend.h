// Backend: torch's c10d backend on Catenary, for CPU tensors.
//
// A process group has two communicators: one for collectives, whose operations run one after the
// other on one stream, and one for messages (messages.h), on streams of their own, so that neither
// waits for the other. An operation is enqueued by the calling thread; whoever waits drives it.
//
// Tensors are used where they lie. What is not laid out one element behind the other, or has a type
// that the library cannot reduce, goes through a copy.
//
// Threads: as with all c10d backends, calls of one group come in one order on all ranks. Waiting:
// the constructor for all ranks; shutdown() for what is under way, and a while for other ranks to
// come to it; monitoredBarrier(); sparse all-reduce for a part of it. Failure: c10::Error for bad
// arguments, DistBackendError for the rest.
#pragma once

#include <catenary/collectives.h>

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <vector>

#include "elements.h"
#include "messages.h"
#include "parts.h"
#include "patience.h"
#include "work.h"

namespace catenary_torch {

inline constexpr const char* kBackendName = "catenary";

class CatenaryBackend final : public c10d::Backend {
 public:
  using Work = c10d::Work;
  using Tensors = std::vector<at::Tensor>;
  using Milliseconds = std::chrono::milliseconds;
  using WorkPtr = c10::intrusive_ptr<Work>;

  CatenaryBackend(c10::intrusive_ptr<c10d::Store> store, int rank, int size,
                  c10::intrusive_ptr<Options> options);
  ~CatenaryBackend() override;

  const std::string getBackendName() const override { return kBackendName; }
  // Not ours: torch makes of them those of a group that is split off.
  c10::intrusive_ptr<Options> getBackendOptions() override {
    return c10::make_intrusive<Options>(*options_);
  }
  void setTimeout(Milliseconds timeout) override { options_->timeout = timeout; }
  bool supportsSplitting() const override { return true; }
  bool supportsCoalescing() const override { return true; }
  bool supportsTensorAlloc(c10::DeviceIndex) override { return true; }
  void startCoalescing() override;
  WorkPtr endCoalescing() override;
  c10::intrusive_ptr<Backend> split(const c10::intrusive_ptr<c10d::Store>& store,
                                    const std::vector<int>& ranks,
                                    const c10::intrusive_ptr<Options>& options) override;
  std::shared_ptr<c10::Allocator> getMemAllocator() override;
  at::Tensor allocateTensor(long size, at::TensorOptions options) override;
  void abort() override;
  void shutdown() override;
  c10d::ErrorType getError() override;
  void setSequenceNumberForGroup() override {}  // all ranks begin with 0
  std::uint64_t getSequenceNumberForGroup() override { return sequence_; }

  WorkPtr broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override;
  WorkPtr allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override;
  WorkPtr allreduce_sparse(Tensors& tensors, const c10d::AllreduceOptions& options) override;
  WorkPtr allreduce_coalesced(Tensors& tensors,
                              const c10d::AllreduceCoalescedOptions& options) override;
  WorkPtr reduce(Tensors& tensors, const c10d::ReduceOptions& options) override;
  WorkPtr allgather(std::vector<Tensors>& outputs, Tensors& inputs,
                    const c10d::AllgatherOptions& options) override;
  WorkPtr _allgather_base(at::Tensor& output, at::Tensor& input,
                          const c10d::AllgatherOptions& options) override;
  WorkPtr allgather_coalesced(std::vector<Tensors>& outputs, Tensors& inputs,
                              const c10d::AllgatherOptions& options) override;
  WorkPtr allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                          const c10d::AllgatherOptions& options) override;
  WorkPtr gather(std::vector<Tensors>& outputs, Tensors& inputs,
                 const c10d::GatherOptions& options) override;
  WorkPtr scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                  const c10d::ScatterOptions& options) override;
  WorkPtr reduce_scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                         const c10d::ReduceScatterOptions& options) override;
  WorkPtr _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                               const c10d::ReduceScatterOptions& options) override;
  WorkPtr reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                          const c10d::ReduceScatterOptions& options) override;
  WorkPtr alltoall_base(at::Tensor& output, at::Tensor& input,
                        std::vector<std::int64_t>& output_splits,
                        std::vector<std::int64_t>& input_splits,
                        const c10d::AllToAllOptions& options) override;
  WorkPtr alltoall(Tensors& outputs, Tensors& inputs,
                   const c10d::AllToAllOptions& options) override;
  WorkPtr send(Tensors& tensors, int to, int tag) override;
  WorkPtr recv(Tensors& tensors, int from, int tag) override;
  WorkPtr recvAnysource(Tensors& tensors, int tag) override;
  WorkPtr barrier(const c10d::BarrierOptions& options) override;
  void monitoredBarrier(const c10d::BarrierOptions& options, bool wait_all_ranks) override;

 private:
  using Issue = std::function<ncclResult_t(ncclComm_t, catStream_t)>;

  // Enqueues an operation of the collective stream; `call` names what `issue` calls.
  c10::intrusive_ptr<CatenaryWork> run(Operation operation, const char* call, const Issue& issue);
  WorkPtr noted(const c10::intrusive_ptr<Work>& work);
  Operation operation(c10d::OpType type, const char* title, Milliseconds timeout) const;
  // Whoever waits for what is done by now shall hear that it went well, whatever comes.
  void look_at_recent();
  void settle_all(const Communicator& communicator);
  std::exception_ptr end_collectives();
  // Memory that the library can use, of the tensor's type or another: the tensor itself, or a place
  // that the operation copies it to, and its results from. Complex numbers stay complex.
  using Type = std::optional<at::ScalarType>;
  at::Tensor place(const at::Tensor& tensor, Operation& operation, Type type);
  at::Tensor in_place(const at::Tensor& tensor, Operation& operation, Type type, bool has_result);
  at::Tensor input(const at::Tensor& tensor, Operation& operation, Type type = std::nullopt);
  at::Tensor output(const at::Tensor& tensor, Operation& operation, Type type = std::nullopt);
  Tensors list(const Tensors& tensors, bool is_output, Operation& operation);
  void check_root(std::int64_t root, const char* name) const;

  WorkPtr reduce_many(Tensors tensors, int root, const c10d::ReduceOp& op, Operation operation);
  WorkPtr scatter_many(const Tensors& outputs, const Tensors& inputs, const c10d::ReduceOp& op,
                       Operation operation);
  WorkPtr gather_many(const Tensors& outputs, const Tensors& inputs, Operation operation);

  const c10::intrusive_ptr<c10d::Store> store_;
  const c10::intrusive_ptr<Options> options_;
  std::shared_ptr<Communicator> communicator_;
  std::shared_ptr<Stream> stream_;
  std::shared_ptr<Messages> messages_;
  std::atomic<std::uint64_t> sequence_{0};
  std::uint64_t monitored_barriers_ = 0;
  Patience patience_;
  std::atomic<bool> ended_{false};  // its collectives; who ends them closes their communicator
  std::mutex mutex_;                // callbacks call from threads of their own
  std::vector<c10::weak_intrusive_ptr<CatenaryWork>> recent_;  // guarded by mutex_
  std::thread::id coalescing_;                                 // guarded by mutex_
  std::vector<WorkPtr> coalesced_;                             // guarded by mutex_
};

}  // namespace catenary_torch
