#include "src/proof/links.h"

#include <algorithm>
#include <type_traits>

#include "src/base/error.h"

namespace catenary {
namespace {

static_assert(std::is_trivially_copyable_v<Link> && sizeof(Link) == 32);

// Rows begin at different places of cache lines and sets.
std::size_t stride_for(std::size_t ranks) { return ranks + (ranks >= 64 ? 2 : 0); }

// Up to here it is cheaper to clear memory than to have it cleared by the kernel.
constexpr std::size_t kSmallBytes = 1024 * 1024;

}  // namespace

std::string Message::text() const {
  const std::string what =
      slice == kNoSlice ? std::string("no data") : format("slice %d", static_cast<int>(slice));
  return format("%s of chunk %u in pass %d", what.c_str(), part, static_cast<int>(pass));
}

void Links::reset(int ranks) {
  ranks_ = static_cast<std::size_t>(ranks);
  stride_ = stride_for(ranks_);
  const std::size_t bytes = ranks_ * stride_ * sizeof(Link);
  if (bytes > kSmallBytes || bytes > memory_.bytes()) {
    memory_ = {};
    memory_ = Mapping::anonymous(std::max(bytes, kSmallBytes));
    links_ = reinterpret_cast<Link*>(memory_.data());
  } else {
    std::fill_n(memory_.data(), bytes, std::byte{0});
  }
  pool_.clear();
  pool_.push_back({});
  free_ = 0;
}

void Links::push_behind(Link& link, const Message& message) {
  std::uint32_t node = free_;
  if (node == 0) {
    node = static_cast<std::uint32_t>(pool_.size());
    pool_.push_back({});
  } else {
    free_ = pool_[node].more;
  }
  pool_[node] = {message, 0};
  std::uint32_t* end = &link.more;
  while (*end != 0) end = &pool_[*end].more;
  *end = node;
}

void Links::pop_behind(Link& link) {
  const std::uint32_t node = link.more;
  link.front = pool_[node].message;
  link.more = pool_[node].more;
  pool_[node].more = free_;
  free_ = node;
}

}  // namespace catenary
