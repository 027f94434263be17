// RegistrationCache: which of the user's memory is registered with a port as a source of puts.
//
// Blocks are registered whole, when first sent from, and stay so: to register costs as much as
// to send many messages. Nobody tells when a block is freed. Instead each use asks whether what is
// at that address is still what was registered, for whatever comes to lie there later has
// other pages and another number. A block that cannot be registered (a limit on locked memory, say)
// is not tried again, and the log says why.
//
// Threads: one at a time. Nothing waits. Owner: the cache holds what it registered until the block
// is seen to be gone, or kMost others were used since; who puts from it holds it, too. The port
// outlives both. Failure: none but std::bad_alloc.
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "src/transport/put_port.h"
#include "src/transport/transport.h"

namespace catenary {

class RegistrationCache {
 public:
  static constexpr std::size_t kMost = 256;

  RegistrationCache(PutPort& port, BlockFinder find) : port_(port), find_(std::move(find)) {}

  // What `memory` lies in, registered. Null if it lies in no block, or in one that cannot be.
  std::shared_ptr<const PutMemory> find(ByteView memory);

 private:
  struct Entry {
    UserBlock block;
    std::shared_ptr<const PutMemory> memory;  // null: it cannot be registered
    std::uint64_t used = 0;
  };

  std::shared_ptr<const PutMemory> try_register(ByteView memory) const;
  void make_room();
  bool is_gone(const Entry& entry) const;

  PutPort& port_;
  const BlockFinder find_;
  std::map<const std::byte*, Entry> entries_;  // by where the block begins
  std::uint64_t uses_ = 0;
};

}  // namespace catenary
