#include "src/base/copy.h"

#include <gtest/gtest.h>

#include <vector>

namespace catenary {
namespace {

// Of lengths around vectors, lines, and the pieces of copy_by_vectors (1,984 bytes).
template <class Copy>
void expect_exact_copies(const Copy& copy_bytes) {
  std::vector<unsigned char> source(5000);
  for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<unsigned char>(i * 7 + 1);
  for (const std::size_t bytes :
       {0, 1, 15, 16, 63, 64, 65, 127, 128, 129, 191, 1021, 1983, 1984, 1985, 3968, 4096, 4099}) {
    for (std::size_t shift = 0; shift < 65; shift += 7) {
      std::vector<unsigned char> out(bytes + 256, 0xa5);
      copy_bytes(out.data() + shift, source.data() + shift / 2, bytes);
      std::vector<unsigned char> expected(bytes + 256, 0xa5);
      for (std::size_t i = 0; i < bytes; ++i) expected[shift + i] = source[shift / 2 + i];
      ASSERT_EQ(out, expected) << bytes << " bytes at " << shift;
    }
  }
}

TEST(Copy, copies_these_bytes_and_no_others) { expect_exact_copies(copy); }

TEST(Copy, vectors_copy_these_bytes_and_no_others) { expect_exact_copies(copy_by_vectors); }

TEST(Copy, streaming_copies_these_bytes_and_no_others) { expect_exact_copies(copy_streaming); }

TEST(Copy, streaming_and_fetching_copies_these_bytes_and_no_others) {
  for (const std::size_t soon : {0, 1, 100, 5000}) {
    const Bytes other(soon);
    expect_exact_copies([&other](void* out, const void* in, std::size_t bytes) {
      copy_streaming_and_fetch(out, in, bytes, other);
    });
  }
}

TEST(Copy, streaming_and_copying_copies_these_bytes_and_no_others_to_both_places) {
  expect_exact_copies([](void* out, const void* in, std::size_t bytes) {
    std::vector<unsigned char> second(bytes + 1);  // not null
    copy_streaming_and_copy(out, second.data(), in, bytes);
  });
  expect_exact_copies([](void* out, const void* in, std::size_t bytes) {
    std::vector<unsigned char> first(bytes + 64);
    copy_streaming_and_copy(first.data() + bytes % 64, out, in, bytes);
  });
}

TEST(Copy, streaming_twice_copies_these_bytes_and_no_others_to_both_places) {
  for (const std::size_t apart : {0, 1, 16, 64}) {
    expect_exact_copies([apart](void* out, const void* in, std::size_t bytes) {
      std::vector<unsigned char> second(bytes + 256);
      const auto lies_at = [](const void* place) {
        return reinterpret_cast<std::uintptr_t>(place) % 64;
      };
      std::size_t shift = 0;
      while (lies_at(second.data() + shift) != (lies_at(out) + apart) % 64) ++shift;
      copy_streaming_twice(out, second.data() + shift, in, bytes);
      const auto* const from = static_cast<const unsigned char*>(in);
      std::vector<unsigned char> expected(bytes + 256);
      std::copy_n(from, bytes, expected.begin() + static_cast<std::ptrdiff_t>(shift));
      ASSERT_EQ(second, expected) << bytes << " bytes, lines apart by " << apart;
    });
  }
}

}  // namespace
}  // namespace catenary
