#include "bench/perf/verify.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <type_traits>

#include "bench/perf/pattern.h"

namespace catenary::perf {
namespace {

constexpr std::size_t kTileBytes = 64 * 1024;
constexpr std::uint64_t kGuardWord = 0x5ca1ab1e0ddba115u;

// Where the bits of a float stand on a line without a break at zero.
template <typename Bits>
auto ordered(Bits bits) {
  using Signed = std::make_signed_t<Bits>;
  constexpr Bits kSign = static_cast<Bits>(Bits{1} << (8 * sizeof(Bits) - 1));
  return static_cast<Signed>((bits & kSign) != 0 ? static_cast<Bits>(kSign - bits) : bits);
}

template <typename Bits>
std::size_t count_different(const std::byte* actual, const std::byte* expected, std::size_t count,
                            int tolerance_ulp) {
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < count; ++i) {
    Bits a;
    Bits b;
    std::memcpy(&a, actual + i * sizeof(Bits), sizeof(Bits));
    std::memcpy(&b, expected + i * sizeof(Bits), sizeof(Bits));
    if (tolerance_ulp == 0) {
      wrong += a != b ? 1 : 0;
    } else {
      const auto x = ordered(a);
      const auto y = ordered(b);
      const auto distance =
          static_cast<std::uint64_t>(std::max(x, y)) - static_cast<std::uint64_t>(std::min(x, y));
      wrong += distance > static_cast<std::uint64_t>(tolerance_ulp) ? 1 : 0;
    }
  }
  return wrong;
}

std::size_t count_different(const std::byte* actual, const std::byte* expected, std::size_t count,
                            int tolerance_ulp, std::size_t type_bytes) {
  switch (type_bytes) {
    case 1: return count_different<std::uint8_t>(actual, expected, count, tolerance_ulp);
    case 2: return count_different<std::uint16_t>(actual, expected, count, tolerance_ulp);
    case 4: return count_different<std::uint32_t>(actual, expected, count, tolerance_ulp);
    case 8: return count_different<std::uint64_t>(actual, expected, count, tolerance_ulp);
    default: throw std::logic_error("no data type has that many bytes");
  }
}

std::string in_hexadecimal(const std::byte* element, std::size_t type_bytes) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, element, type_bytes);
  char text[24];
  std::snprintf(text, sizeof(text), "0x%0*llx", static_cast<int>(2 * type_bytes),
                static_cast<unsigned long long>(bits));
  return text;
}

}  // namespace

Tile::Tile(const std::vector<std::byte>& period, const DataType& type)
    : type_bytes_(type.bytes), periods_(kTileBytes / period.size() + 1) {
  elements_.reserve(periods_ * period.size());
  for (std::size_t i = 0; i < periods_; ++i) {
    elements_.insert(elements_.end(), period.begin(), period.end());
  }
}

std::span<const std::byte> Tile::run(std::size_t element, std::size_t count) const {
  const std::size_t phase = element % kPeriod;
  const std::size_t available = periods_ * kPeriod - phase;
  return {elements_.data() + phase * type_bytes_, std::min(available, count) * type_bytes_};
}

void Tile::fill(std::byte* elements, std::size_t count, std::size_t first) const {
  for (std::size_t done = 0; done < count;) {
    const auto piece = run(first + done, count - done);
    std::memcpy(elements + done * type_bytes_, piece.data(), piece.size());
    done += piece.size() / type_bytes_;
  }
}

std::size_t Tile::count_wrong(const std::byte* elements, std::size_t count, std::size_t first,
                              int tolerance_ulp) const {
  std::size_t wrong = 0;
  for (std::size_t done = 0; done < count;) {
    const auto piece = run(first + done, count - done);
    const std::byte* actual = elements + done * type_bytes_;
    const std::size_t here = piece.size() / type_bytes_;
    done += here;
    if (std::memcmp(actual, piece.data(), piece.size()) == 0) continue;
    wrong += count_different(actual, piece.data(), here, tolerance_ulp, type_bytes_);
  }
  return wrong;
}

std::string Tile::describe_first_wrong(const std::byte* elements, std::size_t count,
                                       std::size_t first, int tolerance_ulp) const {
  for (std::size_t i = 0; i < count; ++i) {
    const std::byte* actual = elements + i * type_bytes_;
    const std::byte* expected = run(first + i, 1).data();
    if (count_different(actual, expected, 1, tolerance_ulp, type_bytes_) == 0) continue;
    return "element " + std::to_string(i) + ": " + in_hexadecimal(actual, type_bytes_) +
           " instead of " + in_hexadecimal(expected, type_bytes_);
  }
  return "";
}

void fill_guard(std::byte* guard) {
  for (std::size_t at = 0; at < kGuardBytes; at += sizeof(kGuardWord)) {
    std::memcpy(guard + at, &kGuardWord, sizeof(kGuardWord));
  }
}

std::size_t count_touched(const std::byte* guard) {
  std::size_t touched = 0;
  for (std::size_t at = 0; at < kGuardBytes; at += sizeof(kGuardWord)) {
    touched += std::memcmp(guard + at, &kGuardWord, sizeof(kGuardWord)) != 0 ? 1 : 0;
  }
  return touched;
}

}  // namespace catenary::perf
