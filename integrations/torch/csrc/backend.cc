#include "backend.h"

#include <c10/util/Exception.h>
#include <torch/csrc/utils/pybind.h>

#include <algorithm>
#include <cstring>

#include "attendants.h"
#include "ends.h"
#include "marks.h"
#include "memory.h"
#include "rendezvous.h"

namespace catenary_torch {
namespace {

// Whether this thread of Python's handles an exception, as in `finally` on its way out. The end of
// an iteration is none, nor is an exit that claims success.
bool handles_an_exception() {
  const py::gil_scoped_acquire python;
  PyObject* type = nullptr;
  PyObject* value = nullptr;
  PyObject* trace = nullptr;
  PyErr_GetExcInfo(&type, &value, &trace);
  const py::object owned[] = {py::reinterpret_steal<py::object>(type),
                              py::reinterpret_steal<py::object>(value),
                              py::reinterpret_steal<py::object>(trace)};
  if (value == nullptr || value == Py_None) return false;
  for (PyObject* harmless : {PyExc_StopIteration, PyExc_StopAsyncIteration, PyExc_GeneratorExit}) {
    if (PyErr_GivenExceptionMatches(value, harmless)) return false;
  }
  if (!PyErr_GivenExceptionMatches(value, PyExc_SystemExit)) return true;
  const py::object code = owned[1].attr("code");
  return !code.is_none() && !code.equal(py::int_(0));
}

// The library counts ranks within the group.
std::string who_is_who(const std::vector<std::uint64_t>& global_ranks) {
  constexpr std::size_t kMost = 32;
  bool same = true;
  std::string text;
  for (std::size_t i = 0; i < global_ranks.size(); ++i) {
    same = same && global_ranks[i] == i;
    if (i < kMost) text += (i == 0 ? "" : ", ") + std::to_string(global_ranks[i]);
  }
  if (same) return "";
  if (global_ranks.size() > kMost) text += ", ...";
  return " (ranks from 0 on of this group are ranks " + text + " of all)";
}

void check_tag(int tag) {
  TORCH_CHECK(tag >= 0, "backend catenary: a tag is not negative, as ", tag, " is");
}

}  // namespace

CatenaryBackend::CatenaryBackend(c10::intrusive_ptr<c10d::Store> store, int rank, int size,
                                 c10::intrusive_ptr<Options> options)
    : Backend(rank, size), store_(std::move(store)), options_(std::move(options)) {
  init();
  const std::string name =
      options_->group_name.empty() ? kBackendName : "process group " + options_->group_name;
  const Ids ids = meet(*store_, rank, size, options_->timeout);
  const std::string remark = who_is_who(options_->global_ranks_in_group);
  communicator_ = std::make_shared<Communicator>(ids.collectives, rank, size, name, remark);
  messages_ = std::make_shared<Messages>(
      std::make_shared<Communicator>(ids.messages, rank, size, name + " (messages)", remark), rank,
      size);
  stream_ = std::make_shared<Stream>();
}

CatenaryBackend::~CatenaryBackend() {
  if (!stream_->idle()) communicator_->abort("the process group was dropped");
  settle_all(*communicator_);
  settle_all(messages_->communicator());
  if (!ended_.load()) communicator_->close();
  messages_->close();
}

void CatenaryBackend::shutdown() {
  stream_->wait();
  settle_all(*communicator_);
  settle_all(messages_->communicator());
  const std::exception_ptr disagreement = ended_.exchange(true) ? nullptr : end_collectives();
  messages_->close();
  if (disagreement) std::rethrow_exception(disagreement);
}

// Who cleans up after an exception is to end with that one, and holds up nobody's hearing of it.
std::exception_ptr CatenaryBackend::end_collectives() {
  using std::chrono::steady_clock;
  const Milliseconds patience = std::min(options_->timeout, patience_.granted());
  const bool is_last = patience_.is_last();
  const bool in_trouble = handles_an_exception();
  std::exception_ptr disagreement;
  bool in_vain = false;
  if (is_last || in_trouble) {
    const auto until = steady_clock::now() + (in_trouble ? Milliseconds(0) : patience);
    disagreement = communicator_->finalize(in_trouble ? Milliseconds(0) : patience);
    communicator_->close();
    if (is_last) {
      const std::exception_ptr of_another = Ends::of_process().settle(until);
      if (!disagreement) disagreement = of_another;
    }
  } else {
    disagreement = Ends::of_process().end(communicator_, patience, in_vain);
  }
  patience_.end(in_vain ? patience : Milliseconds(0));
  return in_trouble ? nullptr : disagreement;
}

void CatenaryBackend::abort() {
  communicator_->abort("the process group was aborted");
  messages_->abort("the process group was aborted");
}

c10d::ErrorType CatenaryBackend::getError() {
  const bool failed = communicator_->failure() || messages_->communicator().failure();
  return failed ? c10d::ErrorType::COMM_ERROR : c10d::ErrorType::SUCCESS;
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
  const std::lock_guard lock(mutex_);
  coalescing_ = std::this_thread::get_id();
  coalesced_.clear();
}

CatenaryBackend::WorkPtr CatenaryBackend::endCoalescing() {
  const std::lock_guard lock(mutex_);
  coalescing_ = {};
  return c10::make_intrusive<CombinedWork>(getRank(), std::move(coalesced_));
}

CatenaryBackend::WorkPtr CatenaryBackend::noted(const c10::intrusive_ptr<Work>& work) {
  const std::lock_guard lock(mutex_);
  if (coalescing_ == std::this_thread::get_id()) coalesced_.push_back(work);
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
  const std::uint32_t mark = mark_of(operation);
  auto work = c10::make_intrusive<CatenaryWork>(getRank(), ++sequence_, std::move(operation),
                                                communicator_);
  {
    const std::lock_guard lock(mutex_);
    look_at_recent();
    communicator_->throw_if_failed();
    work->copy_in(*stream_);
    communicator_->mark(mark);
    communicator_->require(issue(communicator_->get(), stream_->get()), call);
    work->copy_out(*stream_);
    work->started(*stream_);
    recent_.emplace_back(work);
  }
  noted(work);
  return work;
}

void CatenaryBackend::look_at_recent() {
  std::erase_if(recent_, [](const c10::weak_intrusive_ptr<CatenaryWork>& each) {
    const c10::intrusive_ptr<CatenaryWork> work = each.lock();
    return !work || work->look();
  });
}

void CatenaryBackend::settle_all(const Communicator& communicator) {
  for (const c10::intrusive_ptr<CatenaryWork>& work : Watch::of_process().works_of(communicator)) {
    if (work->look()) work->settle();
  }
}

at::Tensor CatenaryBackend::place(const at::Tensor& tensor, Operation& operation, Type type) {
  TORCH_CHECK(tensor.layout() == at::kStrided, "backend catenary: ", operation.title,
              " takes dense tensors only");
  TORCH_CHECK(tensor.is_cpu(), "backend catenary: No backend type associated with device type ",
              tensor.device().type(), "; it takes CPU tensors only");
  if (!operation.element) operation.element = tensor.scalar_type();
  at::Tensor place = plain_place(tensor, type.value_or(tensor.scalar_type()));
  operation.kept.push_back(place);
  return place;
}

at::Tensor CatenaryBackend::input(const at::Tensor& tensor, Operation& operation, Type type) {
  at::Tensor plain = place(tensor, operation, type);
  if (!plain.is_same(tensor)) {
    operation.copies_in.emplace_back([plain, tensor] { write(plain, tensor); });
  }
  return plain;
}

at::Tensor CatenaryBackend::output(const at::Tensor& tensor, Operation& operation, Type type) {
  at::Tensor plain = place(tensor, operation, type);
  if (!plain.is_same(tensor)) {
    operation.copies_out.emplace_back([plain, tensor] { write(tensor, plain); });
  }
  return plain;
}

at::Tensor CatenaryBackend::in_place(const at::Tensor& tensor, Operation& operation, Type type,
                                     bool has_result) {
  at::Tensor plain = input(tensor, operation, type);
  if (has_result && !plain.is_same(tensor)) {
    operation.copies_out.emplace_back([plain, tensor] { write(tensor, plain); });
  }
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
  check_tag(tag);
  check_root(to, "send");
  Operation made = operation(c10d::OpType::SEND, "catenary:send", c10d::kUnsetTimeout);
  made.inputs = tensors;
  made.outputs = tensors;
  const at::Tensor plain = input(tensors[0], made);
  copy_in_now(made);
  return noted(messages_->send(plain, to, tag, ++sequence_, std::move(made)));
}

CatenaryBackend::WorkPtr CatenaryBackend::recv(Tensors& tensors, int from, int tag) {
  TORCH_CHECK(tensors.size() == 1, "backend catenary: recv takes one tensor");
  TORCH_CHECK(from != getRank(), "backend catenary: a rank cannot receive from itself");
  check_tag(tag);
  check_root(from, "recv");
  Operation made = operation(c10d::OpType::RECV, "catenary:recv", c10d::kUnsetTimeout);
  made.inputs = tensors;
  made.outputs = tensors;
  const at::Tensor plain = output(tensors[0], made);
  return noted(messages_->receive(plain, from, tag, ++sequence_, std::move(made)));
}

CatenaryBackend::WorkPtr CatenaryBackend::recvAnysource(Tensors& tensors, int tag) {
  TORCH_CHECK(tensors.size() == 1, "backend catenary: recv takes one tensor");
  TORCH_CHECK(getSize() > 1,
              "backend catenary: a rank alone in its group has nobody to receive from");
  check_tag(tag);
  Operation made =
      operation(c10d::OpType::RECVANYSOURCE, "catenary:recvAnySource", c10d::kUnsetTimeout);
  made.inputs = tensors;
  made.outputs = tensors;
  const at::Tensor plain = output(tensors[0], made);
  return noted(messages_->receive(plain, kAnySource, tag, ++sequence_, std::move(made)));
}

}  // namespace catenary_torch
