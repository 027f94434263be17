#include "src/proof/links.h"

#include <algorithm>
#include <type_traits>

#include "src/base/error.h"
#include "src/base/size_literals.h"

namespace catenary::proof {
namespace {

static_assert(std::is_trivially_copyable_v<Link> && sizeof(Link) == 32);

// Rows begin at different places of cache lines and sets.
std::size_t stride_for(std::size_t ranks) { return ranks + (ranks >= 64 ? 2 : 0); }

// Up to here links are cleared; tables of more are not, but links in them when first used.
constexpr std::size_t kSmallBytes = 1_MB;
constexpr std::uint16_t kMostEpochs = UINT16_MAX;

}  // namespace

std::string text_of_frame(std::uint64_t frame) {
  const int part = part_of_frame(frame);
  const auto pass = static_cast<unsigned>(frame >> 16 & 0xffff);
  const auto slice = static_cast<unsigned>(frame & 0xffff);
  const std::string what = slice == kNoSlice ? std::string("no data") : format("slice %u", slice);
  return format("%s of chunk %d in pass %u", what.c_str(), part, pass);
}

void Links::reset(int ranks) {
  const auto size = static_cast<std::size_t>(ranks);
  stride_ = stride_for(size);
  const std::size_t bytes = size * stride_ * sizeof(Link);
  if (bytes <= kSmallBytes) {
    if (!small_) small_ = Mapping::anonymous(kSmallBytes);
    std::fill_n(small_.data(), bytes, std::byte{0});
    links_ = reinterpret_cast<Link*>(small_.data());
    epoch_ = 0;
  } else {
    if (bytes > large_.bytes() || large_epoch_ == kMostEpochs) {
      // Surveys begin with few ranks and end with many: so it grows a few times and not often.
      const std::size_t room = std::max(bytes, 2 * large_.bytes());
      large_ = {};
      large_ = Mapping::anonymous(room);
      prefer_large_pages(large_.data(), room);
      large_epoch_ = 0;
    }
    links_ = reinterpret_cast<Link*>(large_.data());
    epoch_ = ++large_epoch_;
  }
  pool_.clear();
  pool_.push_back({});
  free_ = 0;
}

}  // namespace catenary::proof
