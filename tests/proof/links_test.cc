// Links of many ranks are not cleared from case to case, but known by a number to be old; numbers
// are used again.
#include "src/proof/links.h"

#include <gtest/gtest.h>

namespace catenary::proof {
namespace {

TEST(Links, are_unused_again_after_any_number_of_resets) {
  for (int resets = 1; resets <= 520; ++resets) {
    Links links;
    links.reset(200);
    links.push(links.at(3, 4), {1, 2}, 3);
    for (int i = 0; i < resets; ++i) links.reset(i % 2 == 0 ? 190 : 200);
    links.reset(200);
    EXPECT_EQ(links.at(3, 4).messages, 0) << resets;
  }
}

}  // namespace
}  // namespace catenary::proof
