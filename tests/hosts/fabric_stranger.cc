// A stranger that speaks libfabric: calls at members' endpoints as a peer would that nobody has
// told them of, for some seconds.
//
// usage: fabric_stranger <provider> <own address> <seconds> <address:port> ...
//
// It sends what looks like control messages, writes to memory by guessed keys, and tells of writes
// that never were, of which some have no memory to be written to, so that there is no key to guess.
// Prints how many of each the provider has carried to the other side, as far as it says so. Its own
// end says nothing about theirs, so failures are no errors.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

enum Kind : int { kSend, kWrite, kWord, kKinds };
constexpr const char* kNames[kKinds] = {"sends", "writes", "words"};

struct Operation {
  fi_context2 context;
  Kind kind = kSend;
  bool is_free = true;
};

struct Stranger {
  fid_fabric* fabric = nullptr;
  fid_domain* domain = nullptr;
  fid_av* addresses = nullptr;
  fid_cq* queue = nullptr;
  fid_ep* endpoint = nullptr;
  std::vector<fi_addr_t> members;
  std::array<Operation, 64> operations;
  std::array<char, 4096> bytes;
  long carried[kKinds] = {};
  long failed[kKinds] = {};
  std::uint64_t random = 1;
  std::uint64_t next() { return random = random * 6364136223846793005u + 1442695040888963407u; }
};

fi_info* find(const char* provider, const char* own) {
  fi_info* const hints = fi_allocinfo();
  hints->caps = FI_MSG | FI_RMA;
  hints->mode = FI_CONTEXT | FI_CONTEXT2;
  hints->ep_attr->type = FI_EP_RDM;
  hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
  hints->fabric_attr->prov_name = ::strdup(provider);
  fi_info* found = nullptr;
  const int result = fi_getinfo(FI_VERSION(1, 17), own, nullptr, FI_SOURCE, hints, &found);
  fi_freeinfo(hints);
  return result == 0 ? found : nullptr;
}

bool open(Stranger& stranger, fi_info* info) {
  fi_av_attr table = {};
  table.type = FI_AV_TABLE;
  fi_cq_attr attributes = {};
  attributes.format = FI_CQ_FORMAT_CONTEXT;
  return fi_fabric(info->fabric_attr, &stranger.fabric, nullptr) == 0 &&
         fi_domain(stranger.fabric, info, &stranger.domain, nullptr) == 0 &&
         fi_av_open(stranger.domain, &table, &stranger.addresses, nullptr) == 0 &&
         fi_cq_open(stranger.domain, &attributes, &stranger.queue, nullptr) == 0 &&
         fi_endpoint(stranger.domain, info, &stranger.endpoint, nullptr) == 0 &&
         fi_ep_bind(stranger.endpoint, &stranger.addresses->fid, 0) == 0 &&
         fi_ep_bind(stranger.endpoint, &stranger.queue->fid, FI_TRANSMIT | FI_RECV) == 0 &&
         fi_enable(stranger.endpoint) == 0;
}

bool meet(Stranger& stranger, const std::string& place) {
  const std::size_t colon = place.rfind(':');
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(std::atoi(place.c_str() + colon + 1)));
  ::inet_pton(AF_INET, place.substr(0, colon).c_str(), &address.sin_addr);
  stranger.members.push_back(FI_ADDR_UNSPEC);
  return fi_av_insert(stranger.addresses, &address, 1, &stranger.members.back(), 0, nullptr) == 1;
}

// Of a message on some link, of the first ones, or a credit of one.
std::uint64_t forged_word(Stranger& stranger) {
  const std::uint64_t link = stranger.next() >> 40 & 15;
  const std::uint64_t slot = stranger.next() >> 40 & 15;
  const bool is_credit = (stranger.next() >> 40 & 3) == 0;
  return is_credit ? std::uint64_t{1} << 31 | link << 11 | 1 : link << 11 | slot;
}

ssize_t post(Stranger& stranger, Operation& operation, fi_addr_t member) {
  iovec from = {stranger.bytes.data(), 112};  // as long as a control message
  if (operation.kind == kSend) {
    return fi_send(stranger.endpoint, from.iov_base, from.iov_len, nullptr, member,
                   &operation.context);
  }
  const fi_rma_iov to = {0, from.iov_len, stranger.next()};
  const bool has_memory = operation.kind == kWrite;
  fi_msg_rma message = {};
  message.msg_iov = &from;
  message.iov_count = has_memory ? 1 : 0;
  message.addr = member;
  message.rma_iov = &to;
  message.rma_iov_count = has_memory ? 1 : 0;
  message.context = &operation.context;
  message.data = forged_word(stranger);
  return fi_writemsg(stranger.endpoint, &message, FI_REMOTE_CQ_DATA | FI_COMPLETION);
}

void take_completions(Stranger& stranger) {
  for (int i = 0; i < 64; ++i) {
    fi_cq_entry entry = {};
    const ssize_t count = fi_cq_read(stranger.queue, &entry, 1);
    if (count == -FI_EAVAIL) {
      fi_cq_err_entry error = {};
      if (fi_cq_readerr(stranger.queue, &error, 0) != 1 || error.op_context == nullptr) continue;
      auto* const operation = static_cast<Operation*>(error.op_context);
      operation->is_free = true;
      ++stranger.failed[operation->kind];
    } else if (count == 1) {
      auto* const operation = static_cast<Operation*>(entry.op_context);
      operation->is_free = true;
      ++stranger.carried[operation->kind];
    } else {
      return;
    }
  }
}

void attack(Stranger& stranger, double seconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  for (std::uint64_t i = 0; std::chrono::steady_clock::now() < end; ++i) {
    take_completions(stranger);
    for (Operation& operation : stranger.operations) {
      if (!operation.is_free) continue;
      operation.kind = static_cast<Kind>((stranger.next() >> 40) % kKinds);
      operation.is_free = false;
      const fi_addr_t member = stranger.members[i % stranger.members.size()];
      if (post(stranger, operation, member) != 0) operation.is_free = true;
      break;
    }
  }
  // A write that breaks off ends who uses ofi_rxm: that is known, and not what this is about.
  const auto rest = end + std::chrono::milliseconds(300);
  while (std::chrono::steady_clock::now() < rest) take_completions(stranger);
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 5) return 2;
  static Stranger stranger;
  fi_info* const info = find(arguments[1], arguments[2]);
  if (info == nullptr || !open(stranger, info)) {
    std::fprintf(stderr, "fabric_stranger: no endpoint of %s at %s\n", arguments[1], arguments[2]);
    return 1;
  }
  for (int i = 4; i < count; ++i) {
    if (!meet(stranger, arguments[i])) return 1;
  }
  attack(stranger, std::atof(arguments[3]));
  for (int kind = 0; kind < kKinds; ++kind) {
    std::printf("%s %ld %ld\n", kNames[kind], stranger.carried[kind], stranger.failed[kind]);
  }
  std::fflush(stdout);
  std::_Exit(0);  // libfabric has nothing more to do for us
}
