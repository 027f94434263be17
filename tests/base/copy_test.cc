#include "src/base/copy.h"

#include <gtest/gtest.h>

#include <vector>

namespace catenary {
namespace {

using Copy = void (*)(void* out, const void* in, std::size_t bytes);

void expect_exact_copies(Copy copy_bytes) {
  std::vector<unsigned char> source(5000);
  for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<unsigned char>(i * 7 + 1);
  for (const std::size_t bytes : {0, 1, 15, 16, 63, 64, 65, 127, 128, 129, 191, 1021, 4096, 4099}) {
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

TEST(Copy, streaming_copies_these_bytes_and_no_others) { expect_exact_copies(copy_streaming); }

}  // namespace
}  // namespace catenary
