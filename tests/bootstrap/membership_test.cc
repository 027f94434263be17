#include "src/bootstrap/membership.h"

#include <algorithm>
#include <atomic>
#include <barrier>
#include <set>

#include "tests/bootstrap/bootstrap_support.h"

namespace catenary {
namespace {

Bytes bytes_for(int rank, std::size_t count) {
  Bytes bytes(count);
  for (std::size_t i = 0; i < count; ++i) {
    bytes[i] = static_cast<std::byte>(static_cast<std::size_t>(rank) * 31 + i);
  }
  return bytes;
}

class MembershipOf : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, MembershipOf, ::testing::Values(1, 2, 8));

TEST_P(MembershipOf, ranks_agree_on_session_and_keys) {
  const int nranks = GetParam();
  const Config config = loopback();
  const UniqueId id = create_unique_id(config);
  std::vector<std::uint64_t> sessions(static_cast<std::size_t>(nranks));
  std::vector<Key> keys(static_cast<std::size_t>(nranks));
  expect_no_errors(run_ranks(nranks, [&](int rank) {
    const Membership membership(id, rank, nranks, within_ms(5000), config);
    sessions[static_cast<std::size_t>(rank)] = membership.session();
    keys[static_cast<std::size_t>(rank)] = membership.derive_key("links");
    EXPECT_NE(membership.derive_key("links"), membership.derive_key("other"));
  }));
  EXPECT_EQ(std::set(sessions.begin(), sessions.end()).size(), 1u);
  EXPECT_EQ(std::set(keys.begin(), keys.end()).size(), 1u);
}

TEST_P(MembershipOf, all_gather_gives_everybody_all_parts_in_order) {
  const int nranks = GetParam();
  const Config config = loopback();
  const UniqueId id = create_unique_id(config);
  expect_no_errors(run_ranks(nranks, [&](int rank) {
    Membership membership(id, rank, nranks, within_ms(5000), config);
    for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{1000}, kMaxGatherBytes}) {
      const auto parts =
          membership.all_gather(bytes_for(rank, count + static_cast<std::size_t>(rank) * (count == 1)),
                                within_ms(5000));
      ASSERT_EQ(parts.size(), static_cast<std::size_t>(nranks));
      for (int other = 0; other < nranks; ++other) {
        EXPECT_EQ(parts[static_cast<std::size_t>(other)],
                  bytes_for(other, count + static_cast<std::size_t>(other) * (count == 1)));
      }
    }
    membership.barrier(within_ms(5000));
    EXPECT_FALSE(membership.poll().has_value());
  }));
}

}  // namespace
}  // namespace catenary
