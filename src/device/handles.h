// Handles: what the C boundary gives out for streams and events.
//
// A handle is the address of a slot in a table that is never unmapped, so that a handle of a
// destroyed object, or any other value, is told apart without touching memory that is not ours.
// Slots are used again as late as possible. Threads: any. Nothing waits. Failure: throws
// kMemoryAllocation when the table is full.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <new>

#include "src/base/mapping.h"
#include "src/device/device_error.h"

namespace catenary {

class Event;
class Stream;

}  // namespace catenary

struct CUstream_st {
  std::atomic<catenary::Stream*> object;
};
struct CUevent_st {
  std::atomic<catenary::Event*> object;
};

namespace catenary {

template <typename Slot, typename Object>
class HandleTable {
 public:
  HandleTable() : memory_(Mapping::anonymous(kSlots * sizeof(Slot))) {}

  Slot* insert(Object& object) {
    const std::lock_guard lock(mutex_);
    Slot* slot = nullptr;
    if (used_.load() < kSlots) {
      slot = new (slots() + used_.load()) Slot{&object};
      used_.fetch_add(1);
    } else if (!free_.empty()) {
      slot = free_.front();
      free_.pop_front();
      slot->object.store(&object);
    } else {
      throw DeviceError(DeviceStatus::kMemoryAllocation,
                        format("%zu streams or events exist already; destroy some", kSlots));
    }
    return slot;
  }

  // Null if the handle stands for nothing.
  Object* find(const Slot* handle) const noexcept {
    const auto offset =
        reinterpret_cast<std::uintptr_t>(handle) - reinterpret_cast<std::uintptr_t>(memory_.data());
    if (offset % sizeof(Slot) != 0 || offset / sizeof(Slot) >= used_.load()) return nullptr;
    return handle->object.load(std::memory_order_acquire);
  }

  // Takes the handle back; null if it stood for nothing, or another thread was faster.
  Object* remove(Slot* handle) {
    if (find(handle) == nullptr) return nullptr;
    const std::lock_guard lock(mutex_);
    Object* object = handle->object.exchange(nullptr);
    if (object != nullptr) free_.push_back(handle);
    return object;
  }

 private:
  static constexpr std::size_t kSlots = std::size_t{1} << 20;
  Slot* slots() const noexcept { return reinterpret_cast<Slot*>(memory_.data()); }

  const Mapping memory_;
  std::atomic<std::size_t> used_{0};  // slots that were ever given out
  std::mutex mutex_;
  std::deque<Slot*> free_;
};

HandleTable<CUstream_st, Stream>& stream_handles();
HandleTable<CUevent_st, Event>& event_handles();

}  // namespace catenary
