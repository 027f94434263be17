#include "transports/ofi/port.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "src/base/error.h"
#include "src/base/refusals.h"
#include "src/base/scope_exit.h"
#include "src/transport/put_control.h"

namespace catenary::ofi {
namespace {

constexpr auto kSettling = std::chrono::milliseconds(25);
constexpr std::size_t kReceives = 128;         // posted for control messages
constexpr std::size_t kMostOperations = 1024;  // of ours under way
constexpr std::size_t kReadAtOnce = 16;
constexpr int kReadsAPoll = 4;
constexpr std::uint32_t kMostFailedReceives = 10'000;  // one after the other

void check(int result, const char* what) {
  if (result != 0) throw_fabric_error(what, result);
}

template <typename T, typename Open>
Owned<T> opened(const char* what, const Open& open) {
  T* object = nullptr;
  check(open(&object), what);
  return Owned<T>(object);
}

// `ofi_rxd` repeats what was lost, and says again what has come, only when it is called.
bool needs_calls(const fi_info& info) {
  return std::string_view(info.fabric_attr->prov_name).ends_with("ofi_rxd");
}

// Whether a provider's queue gives something to sleep on. What `net` of 1.17 gives is readable all
// the time; with that of `sockets` nothing is gained; and `ofi_rxd` repeats what was lost only when
// it is called.
bool tells_of_news(std::string_view name) {
  return name != "net" && name != "sockets" && !name.ends_with("ofi_rxd");
}

std::string_view name_of(const fi_info& info) { return info.fabric_attr->prov_name; }

bool is_rxm(const fi_info& info) { return name_of(info).find("ofi_rxm") != std::string_view::npos; }

bool is_efa(const fi_info& info) { return name_of(info).starts_with("efa"); }

void refuse_word(std::string_view provider) {
  note_refusal(Refused::kWrite, "an endpoint of libfabric's " + std::string(provider), "",
               "who tells of it does not hold our key");
}

bool has_mode(const fi_info& info, int bit) { return (info.domain_attr->mr_mode & bit) != 0; }

}  // namespace

class OfiPort::Memory final : public PutMemory {
 public:
  Memory(const OfiPort& port, ByteView memory, std::uint64_t access) {
    const fi_info& info = *port.info_;
    fid_mr* region = nullptr;
    int result = -FI_ENOKEY;
    // A random key may be taken already, if keys are short.
    for (int tries = 0; tries < 64 && result == -FI_ENOKEY; ++tries) {
      result = ::fi_mr_reg(port.domain_.get(), memory.data(), memory.size(), access, 0,
                           has_mode(info, FI_MR_PROV_KEY) ? 0 : random_key_for(info), 0, &region,
                           nullptr);
    }
    check(result, "registering memory");
    region_.reset(region);
    const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
    target_.address = has_mode(info, FI_MR_VIRT_ADDR) ? address : 0;
    target_.keys.fill(::fi_mr_key(region));
  }

  PutTarget target() const override { return target_; }
  void* descriptor() const { return ::fi_mr_desc(region_.get()); }

 private:
  static std::uint64_t random_key_for(const fi_info& info) {
    std::uint64_t key = 0;
    fill_random(std::as_writable_bytes(std::span(&key, 1)));
    const std::size_t bytes = info.domain_attr->mr_key_size;
    return bytes >= sizeof key ? key : key & ((std::uint64_t{1} << 8 * bytes) - 1);
  }

  Owned<fid_mr> region_;
  PutTarget target_;
};

// Calls a provider now and then, so that a peer which has not heard that its message came need not
// wait until this rank has something to do again. The provider must be safe to call from several
// threads. No call begins once exit() has, which may take libfabric down.
class OfiPort::Caller {
 public:
  explicit Caller(fid_cq& queue) {
    static const bool watches_exit = std::atexit(end_calls) == 0;
    if (!watches_exit) return;
    sigset_t all;
    sigset_t before;
    sigfillset(&all);  // signals are the program's
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    const ScopeExit restore([&] { ::pthread_sigmask(SIG_SETMASK, &before, nullptr); });
    thread_ = std::make_unique<std::jthread>([&queue](const std::stop_token& stop) {
      constexpr std::chrono::milliseconds kPause{2};
      while (!stop.stop_requested()) {
        std::this_thread::sleep_for(kPause);
        under_way.fetch_add(1);
        fi_cq_data_entry none;
        if (!exiting) ::fi_cq_read(&queue, &none, 0);
        under_way.fetch_sub(1);
      }
    });
  }
  ~Caller() {
    if (::getpid() != process_) thread_.release();  // a forked child has no such thread to wait for
  }

 private:
  static void end_calls() {
    exiting = true;
    while (under_way > 0) std::this_thread::yield();
  }

  static constinit inline std::atomic<bool> exiting{false};
  static constinit inline std::atomic<int> under_way{0};
  const pid_t process_ = ::getpid();
  std::unique_ptr<std::jthread> thread_;
};

OfiPort::OfiPort(const fi_info& info, std::size_t events) : info_(copy_of(&info)) {
  const std::size_t most = std::clamp(info_->tx_attr->size, std::size_t{16}, kMostOperations);
  operations_.resize(most);
  receives_.resize(kReceives);
  control_ = Mapping::anonymous((most + kReceives) * kControlBytes);
  std::uint32_t index = 0;
  for (Operation& receive : receives_) {
    receive.kind = Operation::Kind::kReceive;
    receive.index = index++;
  }
  for (Operation& operation : operations_) {
    operation.index = index++;
    free_.push_back(&operation);
  }
  open(events + most + kReceives);
}

OfiPort::~OfiPort() { shut(Parting::kInPeace); }

void OfiPort::open(std::size_t events) {
  fi_info* const info = info_.get();
  if (needs_calls(*info)) info->domain_attr->threading = FI_THREAD_SAFE;
  fabric_ = opened<fid_fabric>("opening a fabric", [&](fid_fabric** made) {
    return library().open_fabric(info->fabric_attr, made, nullptr);
  });
  domain_ = opened<fid_domain>("opening a domain", [&](fid_domain** made) {
    return ::fi_domain(fabric_.get(), info, made, nullptr);
  });
  fi_av_attr table = {};
  table.type = FI_AV_TABLE;
  addresses_ = opened<fid_av>("opening an address table", [&](fid_av** made) {
    return ::fi_av_open(domain_.get(), &table, made, nullptr);
  });
  open_queue(events);
  endpoint_ = opened<fid_ep>("opening an endpoint", [&](fid_ep** made) {
    return ::fi_endpoint(domain_.get(), info, made, nullptr);
  });
  check(::fi_ep_bind(endpoint_.get(), &addresses_->fid, 0), "binding an address table");
  check(::fi_ep_bind(endpoint_.get(), &queue_->fid, FI_TRANSMIT | FI_RECV),
        "binding a completion queue");
  check(::fi_enable(endpoint_.get()),
        ("enabling an endpoint of " + std::string(name_of(*info))).c_str());
  control_memory_ = register_memory({control_.data(), control_.bytes()});
  for (Operation& receive : receives_) post_receive(receive);
  std::size_t bytes = 0;
  ::fi_getname(&endpoint_->fid, nullptr, &bytes);  // says how long it is
  name_.resize(bytes);
  check(::fi_getname(&endpoint_->fid, name_.data(), &bytes), "asking for our own address");
  name_.resize(bytes);
  if (needs_calls(*info)) caller_ = std::make_unique<Caller>(*queue_);
}

void OfiPort::open_queue(std::size_t events) {
  fi_cq_attr attributes = {};
  attributes.format = FI_CQ_FORMAT_DATA;
  attributes.size = events;
  attributes.wait_obj = FI_WAIT_FD;
  fid_cq* queue = nullptr;
  if (tells_of_news(name_of(*info_)) &&
      ::fi_cq_open(domain_.get(), &attributes, &queue, nullptr) == 0) {
    queue_.reset(queue);
    const bool has_one = ::fi_control(&queue_->fid, FI_GETWAIT, &queue_descriptor_) == 0;
    if (!has_one) queue_descriptor_ = -1;
    return;
  }
  attributes.wait_obj = FI_WAIT_NONE;
  queue_ = opened<fid_cq>("opening a completion queue", [&](fid_cq** made) {
    return ::fi_cq_open(domain_.get(), &attributes, made, nullptr);
  });
}

// Cards check the keys of memory themselves, and have 32 bits, all of which we need.
bool OfiPort::has_room_for_seals() const {
  return info_->domain_attr->cq_data_size >= 8 && !is_efa(*info_) &&
         !name_of(*info_).starts_with("verbs");
}

void OfiPort::meet(const std::vector<Bytes>& names, const std::vector<std::uint32_t>& seals,
                   int self) {
  seals_ = has_room_for_seals() ? seals : std::vector<std::uint32_t>(names.size(), 0);
  own_seal_ = seals_[static_cast<std::size_t>(self)];
  peers_.assign(names.size(), FI_ADDR_UNSPEC);
  for (std::size_t rank = 0; rank < names.size(); ++rank) {
    if (names[rank].empty()) continue;
    const int count =
        ::fi_av_insert(addresses_.get(), names[rank].data(), 1, &peers_[rank], 0, nullptr);
    if (count != 1) {
      throw_error(ErrorCode::kSystem, "libfabric does not take the address of rank %zu", rank);
    }
  }
}

std::unique_ptr<PutMemory> OfiPort::register_memory(ByteSpan memory) {
  return std::make_unique<Memory>(*this, memory, FI_WRITE | FI_REMOTE_WRITE | FI_SEND | FI_RECV);
}

std::unique_ptr<PutMemory> OfiPort::register_source(ByteView memory) {
  return std::make_unique<Memory>(*this, memory, FI_WRITE);
}

// What EFA's provider does with two pieces that tell something is no write of the card, but
// messages and copies (efa_rdm_rma.c).
bool OfiPort::gathers() const { return info_->tx_attr->iov_limit >= 2 && !is_efa(*info_); }

bool OfiPort::registers_sources() const { return has_mode(*info_, FI_MR_LOCAL); }

ByteSpan OfiPort::message_of(const Operation& operation) const {
  return {control_.data() + operation.index * kControlBytes, kControlBytes};
}

void OfiPort::post_receive(Operation& receive) {
  const ByteSpan message = message_of(receive);
  std::ranges::fill(message, std::byte{0});  // a shorter one does not pass for the last one
  const auto& memory = static_cast<const Memory&>(*control_memory_);
  const ssize_t result = ::fi_recv(endpoint_.get(), message.data(), message.size(),
                                   memory.descriptor(), FI_ADDR_UNSPEC, &receive.context);
  // There is room for as many as we ever post; a provider may still want to be turned.
  if (result == -FI_EAGAIN) {
    unposted_.push_back(&receive);
  } else {
    check(static_cast<int>(result), "posting a receive");
  }
}

void OfiPort::post_what_waits() {
  while (!unposted_.empty()) {
    Operation* const receive = unposted_.back();
    unposted_.pop_back();
    post_receive(*receive);
    if (!unposted_.empty() && unposted_.back() == receive) return;  // not yet, again
  }
}

OfiPort::Operation* OfiPort::take_operation() {
  if (free_.empty()) return nullptr;
  Operation* const operation = free_.back();
  free_.pop_back();
  return operation;
}

bool OfiPort::accepted(ssize_t result, Operation& operation) {
  if (result == 0) return true;
  if (result == -FI_EAGAIN) {
    free_.push_back(&operation);
    return false;
  }
  failures_.push_back({&operation, static_cast<int>(result)});
  return true;
}

bool OfiPort::try_put(const Put& put) {
  Operation* const operation = take_operation();
  if (operation == nullptr) return false;
  operation->kind = Operation::Kind::kPut;
  operation->peer = put.peer;
  operation->cookie = put.cookie;
  iovec from[2];
  void* descriptors[2];
  std::size_t pieces = 0;
  std::size_t bytes = 0;
  for (const PutPiece& piece : {put.head, put.tail}) {
    if (piece.bytes.empty()) continue;
    const auto* const memory = static_cast<const Memory*>(piece.memory);
    from[pieces] = {const_cast<std::byte*>(piece.bytes.data()), piece.bytes.size()};
    descriptors[pieces++] = memory == nullptr ? nullptr : memory->descriptor();
    bytes += piece.bytes.size();
  }
  const fi_rma_iov to = {put.target.address, bytes, put.target.keys[0]};
  fi_msg_rma message = {};
  message.msg_iov = from;
  message.desc = descriptors;
  message.iov_count = pieces;
  message.addr = peers_[static_cast<std::size_t>(put.peer)];
  message.rma_iov = &to;
  message.rma_iov_count = 1;
  message.context = &operation->context;
  message.data = std::uint64_t{seals_[static_cast<std::size_t>(put.peer)]} << 32 | put.told;
  // Some versions of EFA's provider write in software what is injected.
  const bool is_small = bytes <= info_->tx_attr->inject_size && !is_efa(*info_);
  const std::uint64_t flags = FI_REMOTE_CQ_DATA | FI_COMPLETION | (is_small ? FI_INJECT : 0);
  return accepted(::fi_writemsg(endpoint_.get(), &message, flags), *operation);
}

bool OfiPort::try_send(int peer, const ControlMessage& message) {
  Operation* const operation = take_operation();
  if (operation == nullptr) return false;
  operation->kind = Operation::Kind::kSend;
  operation->peer = peer;
  const ByteSpan copy = message_of(*operation);
  std::ranges::copy(message, copy.begin());
  const auto& memory = static_cast<const Memory&>(*control_memory_);
  return accepted(::fi_send(endpoint_.get(), copy.data(), copy.size(), memory.descriptor(),
                            peers_[static_cast<std::size_t>(peer)], &operation->context),
                  *operation);
}

void OfiPort::progress(PortListener& listener) {
  if (!endpoint_) return;
  if (!unposted_.empty()) post_what_waits();
  std::vector<Failure> failures;
  failures.swap(failures_);
  for (const Failure& failure : failures) {
    tell_failure(*failure.operation, error_text(failure.number), listener);
  }
  fi_cq_data_entry entries[kReadAtOnce];
  for (int reads = 0; reads < kReadsAPoll; ++reads) {
    const ssize_t count = ::fi_cq_read(queue_.get(), entries, kReadAtOnce);
    if (count == -FI_EAVAIL) {
      take_error(listener);
      continue;
    }
    if (count == -FI_EAGAIN || count == -FI_EINTR) return;
    if (count < 0) {
      return listener.port_failed("libfabric's completion queue: " +
                                  error_text(static_cast<int>(count)));
    }
    for (ssize_t i = 0; i < count; ++i) take_completion(entries[i], listener);
    if (count < static_cast<ssize_t>(kReadAtOnce)) return;
  }
}

void OfiPort::take_completion(const fi_cq_data_entry& entry, PortListener& listener) {
  failed_receives_ = 0;
  // What a peer's write told has no operation of ours, whatever the context says. Some providers
  // set the flag of what was told at both ends.
  const bool is_ours = (entry.flags & (FI_SEND | FI_RECV | FI_WRITE)) != 0;
  if ((entry.flags & FI_REMOTE_WRITE) != 0 || !is_ours) {
    if (entry.data >> 32 != own_seal_) return refuse_word(name_of(*info_));
    return listener.was_told(static_cast<std::uint32_t>(entry.data));
  }
  auto* const operation = static_cast<Operation*>(entry.op_context);
  if (operation == nullptr) {
    return listener.port_failed("libfabric completed what it does not name");
  }
  switch (operation->kind) {
    case Operation::Kind::kReceive: {
      ControlMessage message;
      std::ranges::copy(message_of(*operation), message.begin());
      post_receive(*operation);
      return listener.control_came(message);
    }
    case Operation::Kind::kPut:
      free_.push_back(operation);
      return listener.put_done(operation->cookie);
    case Operation::Kind::kSend: free_.push_back(operation); return;
  }
}

void OfiPort::take_error(PortListener& listener) {
  fi_cq_err_entry entry = {};
  const ssize_t count = ::fi_cq_readerr(queue_.get(), &entry, 0);
  if (count == -FI_EAGAIN) return;
  // Some providers give the number a sign.
  std::string why = error_text(entry.err);
  if (entry.prov_errno != 0 && entry.prov_errno != entry.err) {
    char buffer[128] = "";
    const char* const text =
        ::fi_cq_strerror(queue_.get(), entry.prov_errno, entry.err_data, buffer, sizeof buffer);
    if (text != nullptr) why += format(" [%d: %s]", entry.prov_errno, text);
  }
  if (count == 1 && (entry.flags & FI_REMOTE_WRITE) != 0) {
    return take_cut_write(entry.data, why, listener);
  }
  auto* const operation = static_cast<Operation*>(entry.op_context);
  if (count != 1 || operation == nullptr || entry.flags == 0) {
    return listener.port_failed("libfabric failed without saying at what: " + why);
  }
  if (operation->kind == Operation::Kind::kReceive)
    return std::abs(entry.err) == FI_ETRUNC ? post_receive(*operation)
                                            : take_failed_receive(*operation, why, listener);
  tell_failure(*operation, why, listener);
}

// Over sockets it may have been a stranger's, who does not know our seal. A card takes writes of
// members only, and does not say whose it was.
void OfiPort::take_cut_write(std::uint64_t data, const std::string& why, PortListener& listener) {
  if (!has_room_for_seals()) return listener.port_failed("a peer's write failed: " + why);
  if (data >> 32 == own_seal_) listener.was_cut(static_cast<std::uint32_t>(data));
}

// Whose message it was is not known. A stranger may go in the middle of one, or send more than any
// of ours has, and that members are alive is watched elsewhere. But an endpoint that can receive
// nothing is broken.
void OfiPort::take_failed_receive(Operation& receive, const std::string& why,
                                  PortListener& listener) {
  if (++failed_receives_ > kMostFailedReceives)
    return listener.port_failed("libfabric receives nothing any more: " + why);
  post_receive(receive);
}

void OfiPort::tell_failure(const Operation& operation, const std::string& why,
                           PortListener& listener) {
  const Operation was = operation;
  free_.push_back(&operations_[static_cast<std::size_t>(&operation - operations_.data())]);
  const std::string where = why + " (at " + place_of(was.peer) + ")";
  if (was.kind == Operation::Kind::kPut) {
    listener.put_failed(was.cookie, where);
  } else {
    listener.control_failed(was.peer, where);
  }
}

// As libfabric writes it: "fi_sockaddr_in://10.0.0.1:41234".
std::string OfiPort::place_of(int peer) const {
  char name[256];
  char text[256] = "";
  std::size_t name_bytes = sizeof name;
  std::size_t text_bytes = sizeof text;
  const fi_addr_t address = peers_[static_cast<std::size_t>(peer)];
  if (::fi_av_lookup(addresses_.get(), address, name, &name_bytes) != 0) return "no known place";
  ::fi_av_straddr(addresses_.get(), name, text, &text_bytes);
  return {text, ::strnlen(text, sizeof text)};
}

int OfiPort::wait_descriptor() {
  if (queue_descriptor_ < 0 || !unposted_.empty() || !failures_.empty()) return -1;
  fid* queues[] = {&queue_->fid};
  return ::fi_trywait(fabric_.get(), queues, 1) == FI_SUCCESS ? queue_descriptor_ : -1;
}

// Two ports that meet at once both connect, and one of the two connections is refused. ofi_rxm
// looks for that every 10 ms; what it has not seen when it is closed, libfabric 1.17 leaves open
// for good.
void OfiPort::settle() noexcept {
  const auto settled = std::chrono::steady_clock::now() + kSettling;
  while (std::chrono::steady_clock::now() < settled) {
    static_cast<void>(::fi_cq_read(queue_.get(), nullptr, 0));
    std::this_thread::sleep_for(kSettling / 25);
  }
}

// What nobody calls any more moves nothing, unless a card does; so it may stay as it is until the
// process ends. Its memory it gives back.
void OfiPort::abandon() noexcept {
  control_memory_.reset();
  static_cast<void>(endpoint_.release());
  static_cast<void>(queue_.release());
  static_cast<void>(addresses_.release());
  static_cast<void>(domain_.release());
  static_cast<void>(fabric_.release());
}

// Over TCP ofi_rxm crashes, from 1.17 to 2.4 at least, as it closes a connection in the middle of a
// peer's write (github.com/ofiwg/libfabric/issues/11828).
void OfiPort::shut(Parting parting) noexcept {
  caller_.reset();
  if (!endpoint_) return;
  const bool has_card = name_of(*info_).starts_with("verbs");
  if (is_rxm(*info_) && !has_card && parting == Parting::kInTheMiddle) return abandon();
  if (is_rxm(*info_)) settle();
  endpoint_.reset();
}

}  // namespace catenary::ofi
