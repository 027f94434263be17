// Reading and writing the bytes of messages: little endian, bounded, never trusting.
//
// A reader that runs past the end, or meets a text longer than allowed, is no longer ok and reads
// zeros from then on, so a parser checks once, at its end. Values; nothing waits, nothing throws
// but std::bad_alloc, and never for a length that the bytes do not hold.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <string>
#include <string_view>

#include "src/base/types.h"

namespace catenary {

class WireWriter {
 public:
  WireWriter() { bytes_.reserve(256); }

  template <std::unsigned_integral Number>
  void number(Number value) {
    for (std::size_t i = 0; i < sizeof value; ++i) {
      bytes_.push_back(static_cast<std::byte>(std::uint64_t{value} >> (8 * i)));
    }
  }
  void bytes(ByteView view) { bytes_.insert(bytes_.end(), view.begin(), view.end()); }
  // Cut after `most` bytes.
  void text(std::string_view text, std::size_t most) {
    text = text.substr(0, most);
    number(static_cast<std::uint16_t>(text.size()));
    bytes(std::as_bytes(std::span(text.data(), text.size())));
  }

  std::size_t written() const { return bytes_.size(); }
  Bytes take() { return std::move(bytes_); }

 private:
  Bytes bytes_;
};

class WireReader {
 public:
  explicit WireReader(ByteView bytes) : left_(bytes) {}

  template <std::unsigned_integral Number>
  Number number() {
    std::uint64_t value = 0;
    const ByteView view = bytes(sizeof(Number));
    for (std::size_t i = 0; i < view.size(); ++i) {
      value |= std::to_integer<std::uint64_t>(view[i]) << (8 * i);
    }
    return static_cast<Number>(value);
  }
  // Empty if there are not as many.
  ByteView bytes(std::size_t count) {
    if (!ok_ || count > left_.size()) {
      ok_ = false;
      return {};
    }
    const ByteView view = left_.first(count);
    left_ = left_.subspan(count);
    return view;
  }
  template <std::size_t kCount>
  std::array<std::byte, kCount> array() {
    std::array<std::byte, kCount> result{};
    const ByteView view = bytes(kCount);
    std::copy(view.begin(), view.end(), result.begin());
    return result;
  }
  std::string text(std::size_t most) {
    const std::size_t count = number<std::uint16_t>();
    if (count > most) ok_ = false;
    const ByteView view = bytes(count);
    return std::string(reinterpret_cast<const char*>(view.data()), view.size());
  }

  bool ok() const { return ok_; }
  bool at_end() const { return ok_ && left_.empty(); }
  ByteView rest() const { return left_; }

 private:
  ByteView left_;
  bool ok_ = true;
};

}  // namespace catenary
