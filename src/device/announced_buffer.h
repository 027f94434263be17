// AnnouncedBuffer: memory of the user that stays where it is, with its pages, because the user has
// said so (ncclCommRegister, ncclCommWindowRegister), until this is destroyed. What is Memory's own
// need not be announced.
//
// Threads: any. Nothing waits. Owner: who made it; all of the process are found by one look.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace catenary {

class AnnouncedBuffer {
 public:
  AnnouncedBuffer(const void* base, std::size_t bytes);
  ~AnnouncedBuffer();
  AnnouncedBuffer(const AnnouncedBuffer&) = delete;
  AnnouncedBuffer& operator=(const AnnouncedBuffer&) = delete;

  struct Found {
    std::span<const std::byte> memory;
    std::uint64_t number;  // that no other one ever has
  };
  // The longest that `pointer` points into.
  static std::optional<Found> find(const void* pointer);

 private:
  std::uint64_t number_;
};

}  // namespace catenary
