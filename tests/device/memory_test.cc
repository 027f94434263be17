#include "src/device/memory.h"

#include <dirent.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "src/base/mapping.h"
#include "src/base/rounding.h"
#include "src/device/device_error.h"
#include "src/topology/machine.h"

namespace catenary {
namespace {

int open_descriptors() {
  DIR* folder = ::opendir("/proc/self/fd");
  int count = 0;
  while (::readdir(folder) != nullptr) ++count;
  ::closedir(folder);
  return count;
}

DeviceStatus status_of_free(Memory& memory, void* base, MemoryKind kind) {
  try {
    memory.free(base, kind);
  } catch (const DeviceError& error) {
    return error.status();
  }
  return DeviceStatus{};
}

TEST(Memory, can_be_mapped_a_second_time_from_what_find_tells) {
  Memory memory;
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{300}, std::size_t{70'000},
                                  Memory::kPooledBytes + 1, std::size_t{5} << 20}) {
    std::byte* base = memory.allocate(bytes, MemoryKind::kDevice, 3);
    std::memset(base, 0x5a, bytes);
    const auto block = memory.find(base + bytes - 1);
    ASSERT_TRUE(block);
    EXPECT_EQ(block->base, base);
    EXPECT_EQ(block->bytes, bytes);
    EXPECT_EQ(block->device, 3);
    const Heap& heap = *memory.heap();
    check_memfd(heap.fd(), heap.bytes());
    const Mapping peer = Mapping::shared(heap.fd(), heap.bytes());
    EXPECT_EQ(std::memcmp(peer.data() + block->offset, base, bytes), 0);
    peer.data()[block->offset] = std::byte{7};
    EXPECT_EQ(base[0], std::byte{7});
    memory.free(base, MemoryKind::kDevice);
    EXPECT_FALSE(memory.find(base));
  }
}

std::size_t pages_in(std::size_t bytes) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return divide_up(bytes, page);
}

std::size_t pages_that_are_there(std::byte* base, std::size_t bytes) {
  std::vector<unsigned char> pages(pages_in(bytes));
  EXPECT_EQ(::mincore(base, bytes, pages.data()), 0);
  return static_cast<std::size_t>(
      std::ranges::count_if(pages, [](unsigned char page) { return page % 2 == 1; }));
}

// As a device's is, and pinned memory. Who takes half of what is left gives it out himself.
TEST(Memory, is_there_when_it_is_allocated_if_plenty_is_left) {
  Memory memory;
  for (const std::size_t bytes :
       {std::size_t{1} << 16, std::size_t{300'000}, std::size_t{1} << 20, std::size_t{2'000'000}}) {
    for (const MemoryKind kind : {MemoryKind::kDevice, MemoryKind::kHost}) {
      std::byte* base = memory.allocate(bytes, kind, 0);
      EXPECT_EQ(pages_that_are_there(base, bytes), pages_in(bytes)) << bytes;
      memory.free(base, kind);
    }
  }
  const std::size_t half = memory_left_to_us() / 2;
  std::byte* base = memory.allocate(half, MemoryKind::kDevice, 0);
  EXPECT_EQ(pages_that_are_there(base, half), 0u);
  memory.free(base, MemoryKind::kDevice);
}

TEST(Memory, is_aligned) {
  Memory memory;
  const auto address = [&](std::size_t bytes) {
    return reinterpret_cast<std::uintptr_t>(memory.allocate(bytes, MemoryKind::kDevice, 0));
  };
  EXPECT_EQ(address(1) % 256, 0u);
  EXPECT_EQ(address(5000) % 4096, 0u);
  EXPECT_EQ(address(Memory::kPooledBytes * 3) % Heap::kAlignment, 0u);
}

TEST(Memory, knows_its_blocks_from_other_memory) {
  Memory memory;
  int local = 0;
  std::byte* base = memory.allocate(1000, MemoryKind::kHost, 0);
  EXPECT_FALSE(memory.find(&local));
  EXPECT_FALSE(memory.find(nullptr));
  EXPECT_FALSE(memory.find(base + 1000));
  EXPECT_EQ(status_of_free(memory, &local, MemoryKind::kHost), DeviceStatus::kInvalidValue);
  EXPECT_EQ(status_of_free(memory, base + 1, MemoryKind::kHost), DeviceStatus::kInvalidValue);
  EXPECT_EQ(status_of_free(memory, base, MemoryKind::kDevice), DeviceStatus::kInvalidValue);
  memory.free(base, MemoryKind::kHost);
  EXPECT_EQ(status_of_free(memory, base, MemoryKind::kHost), DeviceStatus::kInvalidValue);
}

TEST(Memory, needs_few_descriptors_for_many_blocks) {
  Memory memory;
  const int before = open_descriptors();
  for (int i = 0; i < 5000; ++i)
    memory.allocate(static_cast<std::size_t>(i) + 1, MemoryKind::kDevice, 0);
  EXPECT_LE(open_descriptors() - before, 2);
  for (int i = 0; i < 50; ++i) {
    memory.free(memory.allocate(std::size_t{8} << 20, MemoryKind::kDevice, 0), MemoryKind::kDevice);
  }
  EXPECT_LE(open_descriptors() - before, 2);
}

TEST(Memory, blocks_never_overlap) {
  Memory memory;
  std::minstd_rand random(1);
  struct Held {
    std::byte* base;
    std::size_t bytes;
    unsigned char mark;
  };
  std::vector<Held> held;
  for (int i = 0; i < 2000; ++i) {
    const std::size_t bytes = 1 + random() % (std::size_t{1} << (8 + random() % 10));
    const auto mark = static_cast<unsigned char>(i);
    std::byte* base = memory.allocate(bytes, MemoryKind::kDevice, 0);
    std::memset(base, mark, bytes);
    held.push_back({base, bytes, mark});
    if (random() % 3 == 0) {
      const std::size_t at = random() % held.size();
      const Held gone = held[at];
      EXPECT_EQ(gone.base[0], std::byte{gone.mark});
      EXPECT_EQ(gone.base[gone.bytes - 1], std::byte{gone.mark});
      memory.free(gone.base, MemoryKind::kDevice);
      held[at] = held.back();
      held.pop_back();
    }
  }
  for (const Held& each : held) {
    for (std::size_t i = 0; i < each.bytes; ++i) ASSERT_EQ(each.base[i], std::byte{each.mark});
  }
}

TEST(Memory, tells_when_there_is_no_more) {
  Memory memory;
  for (const std::size_t bytes : {SIZE_MAX, SIZE_MAX / 2, std::size_t{1} << 60}) {
    try {
      memory.allocate(bytes, MemoryKind::kDevice, 0);
      FAIL() << bytes << " bytes were granted";
    } catch (const DeviceError& error) {
      EXPECT_EQ(error.status(), DeviceStatus::kMemoryAllocation);
    }
  }
}

TEST(Memory, of_one_device_can_be_freed_at_once) {
  Memory memory;
  std::byte* first = memory.allocate(100, MemoryKind::kDevice, 1);
  std::byte* second = memory.allocate(std::size_t{3} << 20, MemoryKind::kDevice, 1);
  std::byte* other = memory.allocate(100, MemoryKind::kDevice, 2);
  memory.free_all(1);
  EXPECT_FALSE(memory.find(first));
  EXPECT_FALSE(memory.find(second));
  EXPECT_TRUE(memory.find(other));
}

TEST(Memory, serves_many_threads) {
  Memory memory;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&memory, t] {
      for (int i = 0; i < 500; ++i) {
        std::byte* base = memory.allocate(64 + static_cast<std::size_t>(i), MemoryKind::kDevice, t);
        std::memset(base, t, 64);
        EXPECT_EQ(memory.find(base)->device, t);
        EXPECT_EQ(base[63], std::byte(t));
        memory.free(base, MemoryKind::kDevice);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Heap, joins_what_is_given_back_into_gaps) {
  constexpr std::size_t kUnit = Heap::kAlignment;
  Heap heap(9 * kUnit);  // one of them is the heap's own
  std::vector<std::byte*> units;
  while (std::byte* unit = heap.take(kUnit)) units.push_back(unit);
  ASSERT_EQ(units.size(), 8u);
  for (const int index : {1, 3, 2}) heap.give_back(units[static_cast<std::size_t>(index)], kUnit);
  EXPECT_EQ(heap.take(3 * kUnit + 1), nullptr);
  EXPECT_EQ(heap.take(3 * kUnit), units[1]);
  EXPECT_EQ(heap.take(1), nullptr);
  heap.give_back(units[7], kUnit);
  EXPECT_EQ(heap.take(1), units[7]);
}

TEST(Heap, gives_pages_back_to_all_who_map_it) {
  Heap heap(4 * Heap::kAlignment);
  const Mapping peer = Mapping::shared(heap.fd(), heap.bytes());
  std::byte* base = heap.take(Heap::kAlignment);
  base[5] = std::byte{1};
  const std::byte& seen = peer.data()[base - heap.base() + 5];
  EXPECT_EQ(seen, std::byte{1});
  heap.give_back(base, Heap::kAlignment);
  EXPECT_EQ(seen, std::byte{0});
}

}  // namespace
}  // namespace catenary
