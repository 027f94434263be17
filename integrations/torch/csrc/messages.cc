#include "messages.h"

#include <c10/util/Exception.h>

#include <cstring>

#include "attendants.h"
#include "memory.h"

namespace catenary_torch {

using ReceivePtr = c10::intrusive_ptr<ReceiveWork>;

Messages::Messages(std::shared_ptr<Communicator> communicator, int rank, int size)
    : communicator_(std::move(communicator)), rank_(rank) {
  for (int i = 0; i < size; ++i) peers_.push_back(std::make_unique<Peer>());
}

Messages::~Messages() { close(); }

void Messages::close() {
  bool busy = false;
  bool asked = false;
  {
    const std::lock_guard lock(mutex_);
    busy = !posted_.empty();
    for (const std::unique_ptr<Peer>& each : peers_) {
      const bool receives = each->receive_stream && !each->receive_stream->idle();
      busy = busy || (each->send_stream && !each->send_stream->idle());
      busy = busy || (receives && !each->frame_is_due);
      asked = asked || receives;
    }
  }
  if (busy) communicator_->abort("the process group was shut down");
  if (busy || !asked) communicator_->close();
}

c10::intrusive_ptr<c10d::Work> Messages::send(const at::Tensor& tensor, int to, int tag,
                                              std::uint64_t sequence, Operation operation) {
  communicator_->throw_if_failed();
  const auto bytes = static_cast<std::size_t>(tensor.nbytes());
  auto frame = std::make_shared<Frame>();
  frame->header = {tag, static_cast<std::int32_t>(tensor.scalar_type()), bytes};
  if (bytes <= kShortBytes && bytes != 0) std::memcpy(frame->content, tensor.data_ptr(), bytes);
  operation.copies_out.emplace_back([frame] {});  // alive until it is sent
  auto work = c10::make_intrusive<SendWork>(rank_, sequence, std::move(operation), communicator_,
                                            shared_from_this(), to);
  const std::lock_guard lock(mutex_);
  Peer& receiver = peer(to);
  if (!receiver.send_stream) {
    receiver.send_stream = std::make_shared<Stream>();
  }
  catStream_t stream = receiver.send_stream->get();
  communicator_->require(
      ncclSend(frame.get(), kFrameBytes, ncclUint8, to, communicator_->get(), stream), "ncclSend");
  if (bytes > kShortBytes) {
    communicator_->require(
        ncclSend(tensor.data_ptr(), bytes, ncclUint8, to, communicator_->get(), stream),
        "ncclSend");
  }
  work->started(*receiver.send_stream);
  return work;
}

c10::intrusive_ptr<c10d::Work> Messages::receive(const at::Tensor& tensor, int from, int tag,
                                                 std::uint64_t sequence, Operation operation) {
  communicator_->throw_if_failed();
  auto work = c10::make_intrusive<ReceiveWork>(rank_, sequence, std::move(operation), communicator_,
                                               shared_from_this(), tensor, from, tag);
  Watch::of_process().add(work);
  const std::lock_guard lock(mutex_);
  const int first = from == kAnySource ? 0 : from;
  const int end = from == kAnySource ? static_cast<int>(peers_.size()) : from + 1;
  for (int each = first; each < end; ++each) {
    if (match_early(each, work)) return work;
  }
  posted_.push_back(work);
  for (int each = first; each < end; ++each) {
    if (each == rank_) continue;
    if (peer(each).has_held) take_early(each);
    ask_for_frame(each);
  }
  return work;
}

// A message that has come already, or whose frame has.
bool Messages::match_early(int from, const ReceivePtr& work) {
  Peer& sender = peer(from);
  for (auto early = sender.early.begin(); early != sender.early.end(); ++early) {
    if (early->header.tag != work->tag_ || early->wanted_by) continue;
    if (early->complete) {
      deliver(work, from, early->header, early->content.data_ptr());
      sender.early.erase(early);
    } else {
      early->wanted_by = work;
    }
    return true;
  }
  if (!sender.has_held || sender.frame.header.tag != work->tag_) return false;
  take(from, work);
  return true;
}

bool Messages::is_wanted(int from) const {
  for (const ReceivePtr& each : posted_) {
    if (each->from_ == from || each->from_ == kAnySource) return true;
  }
  return false;
}

ReceivePtr Messages::match_posted(int from, int tag) {
  for (auto each = posted_.begin(); each != posted_.end(); ++each) {
    const ReceivePtr work = *each;
    if (work->tag_ != tag || (work->from_ != from && work->from_ != kAnySource)) continue;
    posted_.erase(each);
    return work;
  }
  return nullptr;
}

void Messages::on_receive_stream(int from, const ReceivePtr& served, std::function<void()> then) {
  peer(from).receive_stream->call([self = shared_from_this(), served, then = std::move(then)] {
    const std::lock_guard lock(self->mutex_);
    std::exception_ptr error;
    if (self->communicator_->broken()) {
      error = self->communicator_->failure();
    } else {
      try {
        then();
        return;
      } catch (...) {
        error = std::current_exception();
      }
    }
    if (served) served->arrived(kAnySource, error);
    self->fail_all(error);
  });
}

void Messages::receive_into(void* memory, std::size_t bytes, int from) {
  communicator_->require(ncclRecv(memory, bytes, ncclUint8, from, communicator_->get(),
                                  peer(from).receive_stream->get()),
                         "ncclRecv");
}

void Messages::ask_for_frame(int from) {
  Peer& sender = peer(from);
  if (sender.frame_is_due || sender.has_held) return;
  if (!sender.receive_stream) sender.receive_stream = std::make_shared<Stream>();
  receive_into(&sender.frame, kFrameBytes, from);
  sender.frame_is_due = true;
  on_receive_stream(from, nullptr, [this, from] { frame_came(from); });
}

void Messages::frame_came(int from) {
  Peer& sender = peer(from);
  sender.frame_is_due = false;
  const Header header = sender.frame.header;
  const ReceivePtr work = match_posted(from, header.tag);
  if (header.bytes > kShortBytes) {
    sender.has_held = true;
    if (work) take(from, work);
    if (!work && is_wanted(from)) take_early(from);
  } else if (work) {
    deliver(work, from, header, sender.frame.content);
  } else {
    at::Tensor content =
        empty_in_shared_memory({static_cast<std::int64_t>(header.bytes)}, at::kByte);
    if (header.bytes != 0) std::memcpy(content.data_ptr(), sender.frame.content, header.bytes);
    sender.early.push_back({header, content, true, nullptr});
  }
  if (is_wanted(from)) ask_for_frame(from);
}

// Takes the long content whose frame is held, straight into the tensor that it is for.
void Messages::take(int from, const ReceivePtr& work) {
  Peer& sender = peer(from);
  const Header header = sender.frame.header;
  if (misfit(*work, from, header)) {
    take_early(from);
    sender.early.back().wanted_by = work;
    return;
  }
  sender.has_held = false;
  receive_into(work->tensor_.data_ptr(), header.bytes, from);
  on_receive_stream(from, work, [work, from] { work->arrived(from, nullptr); });
}

// Takes it into memory of ours.
void Messages::take_early(int from) {
  Peer& sender = peer(from);
  const Header header = sender.frame.header;
  sender.has_held = false;
  at::Tensor content = empty_in_shared_memory({static_cast<std::int64_t>(header.bytes)}, at::kByte);
  sender.early.push_back({header, content, false, nullptr});
  const auto early = std::prev(sender.early.end());
  receive_into(content.data_ptr(), header.bytes, from);
  on_receive_stream(from, nullptr, [this, from, early] {
    early->complete = true;
    if (!early->wanted_by) return;
    deliver(early->wanted_by, from, early->header, early->content.data_ptr());
    peer(from).early.erase(early);
  });
}

void Messages::deliver(const ReceivePtr& work, int from, const Header& header,
                       const void* content) {
  const std::exception_ptr error = misfit(*work, from, header);
  if (!error && header.bytes != 0) std::memcpy(work->tensor_.data_ptr(), content, header.bytes);
  work->arrived(from, error);
}

// Why a message cannot be what a receive waits for.
std::exception_ptr Messages::misfit(const ReceiveWork& work, int from, const Header& header) const {
  const auto room = static_cast<std::size_t>(work.tensor_.nbytes());
  const auto type = static_cast<std::int32_t>(work.tensor_.scalar_type());
  if (header.bytes == room && header.type == type) return nullptr;
  const bool known =
      header.type >= 0 && header.type < static_cast<std::int32_t>(at::ScalarType::NumOptions);
  return backend_error(
      c10::str("rank ", from, " sent ", header.bytes, " bytes of ",
               known ? at::toString(static_cast<at::ScalarType>(header.type)) : "no known type",
               " with tag ", header.tag, ", but the tensor to receive them has ", room, " of ",
               at::toString(work.tensor_.scalar_type())));
}

// A later receive throws as soon as it is called.
void Messages::fail_all(const std::exception_ptr& error) {
  for (const ReceivePtr& work : posted_) work->arrived(kAnySource, error);
  posted_.clear();
  for (const std::unique_ptr<Peer>& each : peers_) {
    for (Early& early : each->early) {
      if (early.wanted_by) early.wanted_by->arrived(kAnySource, error);
      early.wanted_by = nullptr;
    }
  }
}

SendWork::SendWork(int rank, std::uint64_t sequence, Operation operation,
                   std::shared_ptr<Communicator> communicator, std::shared_ptr<Messages> messages,
                   int to)
    : CatenaryWork(rank, sequence, std::move(operation), std::move(communicator)),
      messages_(std::move(messages)),
      to_(to) {}

void SendWork::linger() {
  const std::lock_guard lock(messages_->mutex_);
  if (done() || communicator_->failure()) return;
  try {
    if (messages_->peer(to_).has_held) messages_->take_early(to_);
    messages_->ask_for_frame(to_);
  } catch (const std::exception& error) {
    communicator_->abort(error.what());  // the Watch can tell nobody else
  }
}

ReceiveWork::ReceiveWork(int rank, std::uint64_t sequence, Operation operation,
                         std::shared_ptr<Communicator> communicator,
                         std::shared_ptr<Messages> messages, at::Tensor tensor, int from, int tag)
    : CatenaryWork(rank, sequence, std::move(operation), std::move(communicator)),
      messages_(std::move(messages)),
      tensor_(std::move(tensor)),
      from_(from),
      tag_(tag) {
  call_back_ = bool{recordFunctionEndCallback_};
}

int ReceiveWork::sourceRank() const {
  TORCH_CHECK(from_ == kAnySource || source_.load() != kAnySource,
              "the source of a receive is known once it is done");
  return source_.load() != kAnySource ? source_.load() : from_;
}

void ReceiveWork::arrived(int from, std::exception_ptr error) {
  bool call_back = false;
  {
    const std::lock_guard lock(done_mutex_);
    if (done_.load()) return;
    source_.store(from);
    if (error) fail_with(std::move(error));
    done_.store(true);
    call_back = call_back_;
  }
  done_changed_.notify_all();
  if (call_back) {
    Settlers::of_process().settle(
        c10::intrusive_ptr<ReceiveWork>::unsafe_reclaim_from_nonowning(this));
  }
}

void ReceiveWork::wait_until_done() {
  std::unique_lock lock(done_mutex_);
  done_changed_.wait(lock, [this] { return done_.load(); });
}

void ReceiveWork::settle_by_itself() {
  const std::lock_guard lock(done_mutex_);
  if (call_back_) return;
  call_back_ = true;
  if (done_.load()) {
    Settlers::of_process().settle(
        c10::intrusive_ptr<ReceiveWork>::unsafe_reclaim_from_nonowning(this));
  }
}

}  // namespace catenary_torch
