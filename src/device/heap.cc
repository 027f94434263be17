#include "src/device/heap.h"

#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <iterator>

#include "src/base/error.h"

namespace catenary {
namespace {

constexpr std::size_t round_up(std::size_t value, std::size_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// Half of what the limits leave, since peers are mapped too. Asked for beforehand, because a file
// beyond the limit of its size costs a signal and not just an error.
std::size_t within_limits(std::size_t bytes) {
  for (const auto resource : {RLIMIT_AS, RLIMIT_FSIZE}) {
    rlimit limit = {};
    if (::getrlimit(resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
      bytes = std::min(bytes, static_cast<std::size_t>(limit.rlim_cur) / 2);
    }
  }
  return std::max(round_up(bytes, Heap::kAlignment), 2 * Heap::kAlignment);
}

}  // namespace

// Reserves more address space than needed, and maps the memfd onto the aligned part of it.
Heap::Heap(std::size_t bytes) : bytes_(within_limits(bytes)) {
  fd_ = create_memfd("catenary-memory", bytes_);
  reserved_ = Mapping::anonymous(bytes_ + kAlignment);
  const auto start = reinterpret_cast<std::uintptr_t>(reserved_.data());
  base_ = reserved_.data() + (round_up(start, kAlignment) - start);
  void* mapped = ::mmap(base_, bytes_, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_NORESERVE | MAP_FIXED, fd_.get(), 0);
  if (mapped == MAP_FAILED)
    throw_system_error(format("cannot map %zu bytes of device memory", bytes_), errno);
  if (::getrandom(base_, sizeof(Token), 0) != sizeof(Token))
    throw_system_error("cannot draw random numbers", errno);
  gaps_.emplace(kFirstOffset, bytes_ - kFirstOffset);
}

std::byte* Heap::take(std::size_t bytes) {
  const std::size_t whole = round_up(bytes, kAlignment);
  const auto gap = std::ranges::find_if(gaps_, [&](const auto& g) { return g.second >= whole; });
  if (whole < bytes || gap == gaps_.end()) return nullptr;
  const auto [offset, length] = *gap;
  gaps_.erase(gap);
  if (length > whole) gaps_.emplace(offset + whole, length - whole);
  return base_ + offset;
}

void Heap::give_back(std::byte* base, std::size_t bytes) {
  std::size_t offset = static_cast<std::size_t>(base - base_);
  std::size_t length = round_up(bytes, kAlignment);
  // Frees the pages of the memfd, for all who map it. If that cannot be, they are only kept.
  ::madvise(base, length, MADV_REMOVE);
  auto next = gaps_.lower_bound(offset);
  if (next != gaps_.end() && next->first == offset + length) {
    length += next->second;
    next = gaps_.erase(next);
  }
  if (next != gaps_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == offset) {
      before->second += length;
      return;
    }
  }
  gaps_.emplace(offset, length);
}

}  // namespace catenary
