#include "backend.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <cstring>

#include "memory.h"
#include "rendezvous.h"

namespace catenary_torch {

CatenaryBackend::CatenaryBackend(c10::intrusive_ptr<c10d::Store> store, int rank, int size,
                                 c10::intrusive_ptr<Options> options)
    : Backend(rank, size), store_(std::move(store)), options_(std::move(options)) {
  init();
  const std::string name =
      options_->group_name.empty() ? kBackendName : "process group " + options_->group_name;
  const Ids ids = meet(*store_, rank, size, options_->timeout);
  communicator_ = std::make_shared<Communicator>(ids.collectives, rank, size, name);
  messages_ = std::make_shared<Messages>(
      std::make_shared<Communicator>(ids.messages, rank, size, name + " (messages)"), rank, size);
  stream_ = std::make_shared<Stream>();
  side_ = std::make_shared<Stream>();
}

CatenaryBackend::~CatenaryBackend() {
  if (!stream_->idle()) communicator_->abort("the process group was dropped");
  communicator_->close();
  messages_->close();
}

void CatenaryBackend::shutdown() {
  stream_->wait();
  communicator_->close();
  messages_->close();
}

void CatenaryBackend::abort() {
  communicator_->abort("the process group was aborted");
  messages_->abort("the process group was aborted");
}

c10d::ErrorType CatenaryBackend::getError() {
  return communicator_->failure() ? c10d::ErrorType::COMM_ERROR : c10d::ErrorType::SUCCESS;
}

std::shared_ptr<c10::Allocator> CatenaryBackend::getMemAllocator() { return shared_memory(); }

at::Tensor CatenaryBackend::allocateTensor(long size, at::TensorOptions options) {
  return empty_in_shared_memory({size}, c10::typeMetaToScalarType(options.dtype()));
}

c10::intrusive_ptr<c10d::Backend> CatenaryBackend::split(
    const c10::intrusive_ptr<c10d::Store>& store, const std::vector<int>& ranks,
    const c10::intrusive_ptr<Options>& options) {
  const auto mine = std::find(ranks.begin(), ranks.end(), getRank());
  if (mine == ranks.end()) return nullptr;
  auto group_options = c10::make_intrusive<Options>(kBackendName, options->timeout);
  group_options->group_name = options->group_name;
  group_options->global_ranks_in_group = options->global_ranks_in_group;
  return c10::make_intrusive<CatenaryBackend>(store->clone(),
                                              static_cast<int>(mine - ranks.begin()),
                                              static_cast<int>(ranks.size()), group_options);
}

void CatenaryBackend::startCoalescing() {
  coalescing_ = true;
  coalesced_.clear();
}

CatenaryBackend::WorkPtr CatenaryBackend::endCoalescing() {
  coalescing_ = false;
  return c10::make_intrusive<CombinedWork>(getRank(), std::move(coalesced_));
}

CatenaryBackend::WorkPtr CatenaryBackend::noted(const c10::intrusive_ptr<Work>& work) {
  if (coalescing_) coalesced_.push_back(work);
  return work;
}

Operation CatenaryBackend::operation(c10d::OpType type, const char* title,
                                     Milliseconds timeout) const {
  Operation made;
  made.type = type;
  made.title = title;
  made.timeout =
      timeout == c10d::kUnsetTimeout || timeout == kNoTimeout ? options_->timeout : timeout;
  return made;
}

c10::intrusive_ptr<CatenaryWork> CatenaryBackend::run(Operation operation, const char* call,
                                                      const Issue& issue) {
  const bool copies_out = static_cast<bool>(operation.copy_out);
  auto work = c10::make_intrusive<CatenaryWork>(getRank(), ++sequence_, std::move(operation),
                                                communicator_);
  communicator_->require(issue(communicator_->get(), stream_->get()), call);
  work->started(*stream_, side_);
  if (copies_out) copying_out_.emplace_back(work);
  noted(work);
  return work;
}

void CatenaryBackend::settle_copies(bool copies) {
  if (!copies || copying_out_.empty()) return;
  for (const c10::weak_intrusive_ptr<CatenaryWork>& each : copying_out_) {
    const c10::intrusive_ptr<CatenaryWork> work = each.lock();
    if (!work || work->isCompleted()) continue;
    stream_->wait();
    work->settle();
  }
  copying_out_.clear();
}

at::Tensor CatenaryBackend::input(const at::Tensor& tensor, Operation& operation) {
  TORCH_CHECK(tensor.layout() == at::kStrided, "backend catenary: ", operation.title,
              " takes dense tensors only");
  TORCH_CHECK(tensor.is_cpu(), "backend catenary: No backend type associated with device type ",
              tensor.device().type(), "; it takes CPU tensors only");
  settle_copies(!is_plain(tensor));
  const at::Tensor plain = plain_copy(tensor);
  operation.kept.push_back(plain);
  return plain;
}

at::Tensor CatenaryBackend::output(const at::Tensor& tensor, Operation& operation) {
  TORCH_CHECK(tensor.layout() == at::kStrided, "backend catenary: ", operation.title,
              " takes dense tensors only");
  TORCH_CHECK(tensor.is_cpu(), "backend catenary: No backend type associated with device type ",
              tensor.device().type(), "; it takes CPU tensors only");
  settle_copies(!is_plain(tensor));
  const at::Tensor plain = plain_place(tensor);
  operation.kept.push_back(tensor);
  if (!plain.is_same(tensor)) copy_later(plain, tensor, operation);
  return plain;
}

at::Tensor CatenaryBackend::in_place(const at::Tensor& tensor, Operation& operation) {
  const at::Tensor plain = output(tensor, operation);
  if (!plain.is_same(tensor)) plain.copy_(tensor);
  return plain;
}

CatenaryBackend::Tensors CatenaryBackend::list(const Tensors& tensors, bool is_output,
                                               Operation& operation) {
  Tensors plain;
  for (const at::Tensor& tensor : tensors) {
    plain.push_back(is_output ? output(tensor, operation) : input(tensor, operation));
  }
  return plain;
}

void CatenaryBackend::check_root(std::int64_t root, const char* name) const {
  TORCH_CHECK(root >= 0 && root < getSize(), name, ": rank ", root, " is not in a group of ",
              getSize());
}

CatenaryBackend::WorkPtr CatenaryBackend::barrier(const c10d::BarrierOptions& options) {
  return run(operation(c10d::OpType::BARRIER, "catenary:barrier", options.timeout), "catBarrier",
             [](ncclComm_t comm, catStream_t stream) { return catBarrier(comm, stream); });
}

void CatenaryBackend::monitoredBarrier(const c10d::BarrierOptions& options, bool wait_all_ranks) {
  const Milliseconds timeout =
      options.timeout == c10d::kUnsetTimeout ? options_->timeout : options.timeout;
  monitored_barrier(*store_, getRank(), getSize(), monitored_barriers_++, timeout, wait_all_ranks);
}

CatenaryBackend::WorkPtr CatenaryBackend::send(Tensors& tensors, int to, int tag) {
  TORCH_CHECK(tensors.size() == 1, "backend catenary: send takes one tensor");
  TORCH_CHECK(to != getRank(), "backend catenary: a rank cannot send to itself");
  check_root(to, "send");
  Operation made = operation(c10d::OpType::SEND, "catenary:send", c10d::kUnsetTimeout);
  made.inputs = tensors;
  made.outputs = tensors;
  const at::Tensor plain = input(tensors[0], made);
  return noted(messages_->send(plain, to, tag, ++sequence_, std::move(made)));
}

CatenaryBackend::WorkPtr CatenaryBackend::recv(Tensors& tensors, int from, int tag) {
  TORCH_CHECK(tensors.size() == 1, "backend catenary: recv takes one tensor");
  TORCH_CHECK(from != getRank(), "backend catenary: a rank cannot receive from itself");
  check_root(from, "recv");
  Operation made = operation(c10d::OpType::RECV, "catenary:recv", c10d::kUnsetTimeout);
  made.inputs = tensors;
  made.outputs = tensors;
  const at::Tensor plain = output(tensors[0], made);
  return noted(messages_->receive(plain, from, tag, ++sequence_, std::move(made)));
}

CatenaryBackend::WorkPtr CatenaryBackend::recvAnysource(Tensors& tensors, int tag) {
  TORCH_CHECK(tensors.size() == 1, "backend catenary: recv takes one tensor");
  Operation made =
      operation(c10d::OpType::RECVANYSOURCE, "catenary:recvAnySource", c10d::kUnsetTimeout);
  made.inputs = tensors;
  made.outputs = tensors;
  const at::Tensor plain = output(tensors[0], made);
  return noted(messages_->receive(plain, kAnySource, tag, ++sequence_, std::move(made)));
}

}  // namespace catenary_torch
