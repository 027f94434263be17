#include "src/base/mapping.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>

#include "src/base/error.h"
#include "src/base/size_literals.h"

namespace catenary {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

std::byte* map_or_throw(std::size_t bytes, int flags, int fd, std::uint64_t offset,
                        int access = PROT_READ | PROT_WRITE) {
  void* base = ::mmap(nullptr, bytes, access, flags, fd, static_cast<off_t>(offset));
  if (base == MAP_FAILED) {
    throw_system_error(format("cannot map %zu bytes of memory (see ulimit -v and the memory "
                              "limit of the container)",
                              bytes),
                       errno);
  }
  return static_cast<std::byte*>(base);
}

}  // namespace

Mapping Mapping::shared(int fd, std::size_t bytes, std::uint64_t offset) {
  return Mapping(map_or_throw(bytes, MAP_SHARED | MAP_NORESERVE, fd, offset), bytes);
}

Mapping Mapping::try_reserve(std::size_t bytes) noexcept {
  void* base =
      ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return base != MAP_FAILED ? Mapping(static_cast<std::byte*>(base), bytes) : Mapping();
}

Mapping Mapping::of_peer(int fd, std::size_t bytes, bool is_writable) {
  const int access = PROT_READ | (is_writable ? PROT_WRITE : 0);
  Mapping mapping(map_or_throw(bytes, MAP_SHARED | MAP_NORESERVE, fd, 0, access), bytes);
  // The kernel would fill a sparse file with pages in order to dump it.
  ::madvise(mapping.data(), bytes, MADV_DONTDUMP);
  return mapping;
}

Mapping Mapping::anonymous(std::size_t bytes) {
  return Mapping(map_or_throw(bytes, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0), bytes);
}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  if (this != &other) {
    if (base_ != nullptr) ::munmap(base_, bytes_);
    base_ = std::exchange(other.base_, nullptr);
    bytes_ = std::exchange(other.bytes_, 0);
  }
  return *this;
}

Mapping::~Mapping() {
  if (base_ != nullptr) ::munmap(base_, bytes_);
}

void populate(std::byte* at, std::size_t bytes) noexcept {
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23  // since Linux 5.14
#endif
  ::madvise(at, bytes, MADV_POPULATE_WRITE);
}

void map_by_reading(const std::byte* at, std::size_t bytes) noexcept {
  constexpr std::size_t kMappedAtOnce = 64_KB;  // fault_around_bytes, as it is mostly
  const auto touch = [at](std::size_t offset) {
    static_cast<void>(*static_cast<const volatile std::byte*>(at + offset));
  };
  for (std::size_t done = 0; done < bytes; done += kMappedAtOnce) touch(done);
  if (bytes > 0) touch(bytes - 1);  // what is mapped together begins at multiples of it
}

void prefer_large_pages(std::byte* at, std::size_t bytes) noexcept {
  ::madvise(at, bytes, MADV_HUGEPAGE);
}

UniqueFd create_memfd(const char* name, std::size_t bytes) {
  UniqueFd fd(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) throw_system_error("cannot create a memfd for shared memory", errno);
  if (::ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) {
    throw_system_error(format("cannot size a memfd to %zu bytes", bytes), errno);
  }
  if (::fcntl(fd.get(), F_ADD_SEALS, kSeals) != 0) throw_system_error("cannot seal a memfd", errno);
  return fd;
}

void check_memfd(int fd, std::size_t bytes) {
  struct stat status = {};
  if (::fstat(fd, &status) != 0) throw_system_error("cannot stat a received memfd", errno);
  const int seals = ::fcntl(fd, F_GET_SEALS);
  if (seals < 0 || (seals & kSeals) != kSeals) {
    throw_error(ErrorCode::kSystem, "a peer sent shared memory that is not a sealed memfd");
  }
  if (static_cast<std::size_t>(status.st_size) != bytes) {
    throw_error(ErrorCode::kSystem, "a peer sent %lld bytes of shared memory where %zu belong",
                static_cast<long long>(status.st_size), bytes);
  }
}

}  // namespace catenary
