#include "transports/shm/transport.h"

#include <algorithm>
#include <optional>

#include "src/base/error.h"
#include "src/base/log.h"
#include "transports/shm/address.h"
#include "transports/shm/attach.h"

namespace catenary::shm {
namespace {

class ShmTransport final : public Transport {
 public:
  explicit ShmTransport(const TransportContext& context) : context_(context) {
    try {
      open();
    } catch (const Error& error) {
      absence_ = error.what();
      log_absence(error);
    }
  }

  std::string_view name() const override { return kName; }
  Bytes address() override { return address_; }
  std::string about() const override { return absence_; }
  bool reaches(ByteView peer_address) const override {
    return shm::reaches(address_, peer_address);
  }

  bool shares_memory() const override { return true; }

  std::vector<bool> attach(std::span<const Bytes> addresses, const Wait& wait) override {
    std::vector<bool> proven(addresses.size());
    const std::vector<int> group = reachable_ranks(*this, addresses);
    if (group.empty()) return proven;
    try {
      const auto self = std::ranges::find(group, context_.rank);
      const auto& leader = addresses[static_cast<std::size_t>(group[0])];
      Attached attached = attach_arena(context_, static_cast<int>(group.size()),
                                       static_cast<int>(self - group.begin()), std::move(door_),
                                       parse_address(leader)->door, wait);
      seat_.emplace(std::move(attached.arena), group, context_);
      heaps_.resize(addresses.size());
      for (std::size_t i = 0; i < group.size(); ++i) {
        const auto rank = static_cast<std::size_t>(group[i]);
        heaps_[rank] = parse_address(addresses[rank])->heap;
        proven[static_cast<std::size_t>(group[i])] = attached.members[i];
      }
    } catch (const Error& error) {
      // The answer of the seam to what cannot be attached; other transports may do better.
      log_absence(error);
    }
    return proven;
  }

  void note_crowding(bool is_crowded) override { seat_->note_crowding(is_crowded); }
  std::unique_ptr<SendLink> connect(const LinkSpec& spec) override {
    return seat_->connect(spec, context_.heap, [this, peer = spec.peer] { return reach(peer); });
  }
  std::unique_ptr<RecvLink> listen(const LinkSpec& spec) override {
    return seat_->listen(spec, context_.heap, reach(spec.peer));
  }
  bool has_come(const LinkSpec&) override { return true; }
  bool has_ended(int peer) const override {
    return catenary::has_ended(heaps_[static_cast<std::size_t>(peer)]);
  }
  Doorbell* doorbell() override { return seat_ ? seat_->doorbell() : nullptr; }

 private:
  // By its heap a process is known to be who it says.
  PeerReach reach(int peer) const {
    PeerHeap heap = peer_heap(peer);
    const bool is_known = heap.base != nullptr;
    return {std::move(heap), is_known ? process_memory(peer) : ProcessMemory()};
  }

  // Nothing, where it cannot be read: then it is copied from.
  PeerHeap peer_heap(int peer) const {
    try {
      return map_heap(heaps_[static_cast<std::size_t>(peer)]);
    } catch (const Error& error) {
      log_info(Subsystem::kShm, -1,
               format("Rank %d does not reach memory of rank %d where it lies: %s", context_.rank,
                      peer, error.what()));
      return {};
    }
  }

  // Of which it cannot map.
  ProcessMemory process_memory(int peer) const {
    if (context_.least_fetched == SIZE_MAX) return {};
    try {
      return ProcessMemory::of(heaps_[static_cast<std::size_t>(peer)]);
    } catch (const Error& error) {
      log_info(Subsystem::kShm, -1,
               format("Rank %d has nothing fetched from rank %d's memory: %s", context_.rank, peer,
                      error.what()));
      return {};
    }
  }

  // Without a door there is no address, and a rank without an address is reached by nobody.
  void open() {
    const auto neighbourhood = local_neighbourhood(context_.config->host_id);
    if (!neighbourhood) {
      throw_error(ErrorCode::kSystem, "this kernel names no boot id or namespaces in /proc");
    }
    DoorName name;
    fill_random(name);
    door_ = open_door(name);
    address_ = make_address(name, *neighbourhood, address_of(context_.heap));
  }

  void log_absence(const Error& error) const {
    log_info(
        Subsystem::kShm, -1,
        format("Rank %d shares no memory with other processes: %s", context_.rank, error.what()));
  }

  const TransportContext context_;
  UniqueFd door_;  // until attach()
  Bytes address_;
  std::string absence_;             // why it is empty
  std::vector<HeapAddress> heaps_;  // by rank
  std::optional<ArenaSeat> seat_;   // from a successful attach() on
};

}  // namespace

std::unique_ptr<Transport> make_transport(const TransportContext& context) {
  return std::make_unique<ShmTransport>(context);
}

}  // namespace catenary::shm
