#include "src/device/heap.h"

#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <iterator>

#include "src/base/error.h"
#include "src/base/rounding.h"

namespace catenary {
namespace {

std::size_t limit_of(int resource) {
  rlimit limit = {};
  const bool is_limited = ::getrlimit(resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  return is_limited ? static_cast<std::size_t>(limit.rlim_cur) : SIZE_MAX;
}

// Asked beforehand: a file beyond the limit of its size costs a signal and not just an error.
// Peers' heaps are mapped as well, and other things want address space, too.
std::size_t within_limits(std::size_t bytes) {
  return std::min({bytes, limit_of(RLIMIT_FSIZE), limit_of(RLIMIT_AS) / 4}) / Heap::kAlignment *
         Heap::kAlignment;
}

}  // namespace

Heap::Heap(std::size_t bytes) : bytes_(within_limits(bytes)) {
  while (bytes_ >= kLeastBytes && !try_map()) bytes_ = bytes_ / 2 / kAlignment * kAlignment;
  if (bytes_ < kLeastBytes) {
    throw_error(ErrorCode::kSystem,
                "no room for device memory: the limits of this process (ulimit -v, -f) leave less "
                "than %zu bytes",
                kLeastBytes);
  }
  if (::getrandom(base_, sizeof(Token), 0) != sizeof(Token))
    throw_system_error("cannot draw random numbers", errno);
  gaps_.emplace(kFirstOffset, bytes_ - kFirstOffset);
}

// Reserves more address space than needed, and maps the memfd onto the aligned part of it.
bool Heap::try_map() {
  fd_ = create_memfd("catenary-memory", bytes_);
  reserved_ = Mapping::try_reserve(bytes_ + kAlignment);
  if (!reserved_) return false;
  const auto start = reinterpret_cast<std::uintptr_t>(reserved_.data());
  base_ = reserved_.data() + (round_up(start, kAlignment) - start);
  void* mapped = ::mmap(base_, bytes_, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_NORESERVE | MAP_FIXED, fd_.get(), 0);
  if (mapped == MAP_FAILED) return false;
  ::madvise(base_, bytes_, MADV_DONTDUMP);
  return true;
}

std::byte* Heap::take(std::size_t bytes) {
  const std::size_t whole = round_up(bytes, kAlignment);
  const auto gap = std::ranges::find_if(gaps_, [&](const auto& g) { return g.second >= whole; });
  if (whole < bytes || gap == gaps_.end()) return nullptr;
  const auto [offset, length] = *gap;
  gaps_.erase(gap);
  if (length > whole) gaps_.emplace(offset + whole, length - whole);
  ::madvise(base_ + offset, whole, MADV_DODUMP);
  return base_ + offset;
}

void Heap::give_back(std::byte* base, std::size_t bytes) {
  std::size_t offset = static_cast<std::size_t>(base - base_);
  std::size_t length = round_up(bytes, kAlignment);
  // Frees the pages of the memfd, for all who map it. If that cannot be, they are only kept.
  ::madvise(base, length, MADV_REMOVE);
  ::madvise(base, length, MADV_DONTDUMP);
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
