// Shared heaps: memory of one process that its neighbours on the machine may read where it lies,
// and write results to.
//
// A process that has such a heap says where in /proc it can be opened. Whoever may, by the rules of
// the kernel for processes of one user, maps it, once for all communicators, and checks by the
// token at its beginning that it is the heap that was meant. Anything else is no error: then
// messages are copied.
//
// Threads: any. Nothing waits. Owner: whoever holds the PeerHeap. Failure: map_heap throws
// kSystem with the reason.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>

#include "src/base/mapping.h"
#include "src/base/types.h"

namespace catenary {

// Our own: a sealed memfd, mapped as a whole, that begins with a random token.
struct SharedHeap {
  static constexpr std::size_t kTokenBytes = 16;
  std::byte* base = nullptr;  // null: there is none
  std::size_t bytes = 0;
  int fd = -1;

  bool holds(ByteView memory) const {
    const auto offset = static_cast<std::size_t>(memory.data() - base);
    return base != nullptr && offset < bytes && memory.size() <= bytes - offset;
  }
};

// How a neighbour finds it.
struct HeapAddress {
  std::uint64_t bytes = 0;  // 0: there is none
  std::uint64_t base = 0;   // in its process
  std::uint64_t process_namespace = 0;
  std::uint32_t process = 0;
  std::int32_t fd = -1;
  std::array<std::byte, SharedHeap::kTokenBytes> token{};
};
static_assert(std::is_trivially_copyable_v<HeapAddress>);

HeapAddress address_of(const SharedHeap& heap);
// Whether the process of a heap is known to have ended.
bool has_ended(const HeapAddress& address);

// What one rank can reach of another's memory.
struct PeerHeap {
  std::shared_ptr<const Mapping> mapping;  // null where it is our own
  std::byte* base = nullptr;               // null: nothing
  std::size_t bytes = 0;
  bool is_writable = false;
};

PeerHeap map_heap(const HeapAddress& address);

// Where in a heap, or in a process, a message lies that is not copied. Travels in its place.
struct Loan {
  // With an address in place of an offset: outside of the heap, where only the kernel can read.
  static constexpr std::uint64_t kInProcess = std::uint64_t{1} << 63;
  // On the stage of who lends (stage_ring.h), and not in its heap.
  static constexpr std::uint64_t kOnStage = std::uint64_t{1} << 62;
  // The bytes are where the receiver had asked for them with a loan of its own.
  static constexpr std::uint64_t kReturned = ~std::uint64_t{0};
  static constexpr std::uint64_t kNowhere = ~std::uint64_t{0};

  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  // Where in the same heap the receiver may put what it makes of these bytes and would send back.
  std::uint64_t result = kNowhere;
};

}  // namespace catenary
