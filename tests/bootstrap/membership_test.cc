#include "src/bootstrap/membership.h"

#include <algorithm>
#include <atomic>
#include <barrier>
#include <set>

#include "src/bootstrap/authenticate.h"
#include "src/bootstrap/caller.h"
#include "src/bootstrap/session.h"
#include "src/bootstrap/tcp.h"
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
    for (const std::size_t count :
         {std::size_t{0}, std::size_t{1}, std::size_t{1000}, kMaxGatherBytes}) {
      const auto parts = membership.all_gather(
          bytes_for(rank, count + static_cast<std::size_t>(rank) * (count == 1)), within_ms(5000));
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

TEST(Join, names_the_missing_ranks) {
  const Config config = loopback();
  const UniqueId id = create_unique_id(config);
  const int present[] = {0, 1, 3};
  const auto errors =
      run_ranks(3, [&](int index) { Membership(id, present[index], 5, within_ms(700), config); });
  for (const auto& error : errors)
    expect_error(error, ErrorCode::kTimeout, "ranks 2, 4 of 5 did not come within 0.");
}

TEST(Join, refuses_ranks_out_of_range) {
  const Config config = loopback();
  const UniqueId id = create_unique_id(config);
  for (const auto& [rank, nranks] : {std::pair{2, 2}, {-1, 2}, {0, 0}, {0, kMaxRanks + 1}}) {
    const auto errors = run_ranks(1, [&, rank = rank, nranks = nranks](int) {
      Membership(id, rank, nranks, within_ms(1000), config);
    });
    EXPECT_TRUE(errors[0].has_value());
    EXPECT_EQ(errors[0]->code(), ErrorCode::kInvalidArgument);
  }
}

TEST(Join, a_duplicate_rank_is_an_error_for_everyone) {
  const Config config = loopback();
  const UniqueId id = create_unique_id(config);
  const int ranks[] = {0, 1, 1};
  const auto errors =
      run_ranks(3, [&](int index) { Membership(id, ranks[index], 3, within_ms(5000), config); });
  for (const auto& error : errors) {
    expect_error(error, ErrorCode::kInvalidArgument, "claim rank 1");
  }
}

TEST(Join, a_different_number_of_ranks_is_an_error_for_everyone) {
  const Config config = loopback();
  const UniqueId id = create_unique_id(config);
  const int nranks[] = {4, 4, 3};
  const auto errors =
      run_ranks(3, [&](int rank) { Membership(id, rank, nranks[rank], within_ms(5000), config); });
  for (const auto& error : errors) {
    expect_error(error, ErrorCode::kInvalidArgument, "ranks disagree");
  }
}

TEST(Join, another_version_of_the_library_is_an_error_for_everyone) {
  const Config config = loopback();
  const UniqueId id = create_unique_id(config);
  const Rendezvous rendezvous = decode_unique_id(id);
  const auto errors = run_ranks(2, [&](int rank) {
    if (rank == 0) Membership(id, 0, 2, within_ms(5000), config);
    Connection connection = connect_once(rendezvous.root, within_ms(1000));
    UnsharedFd fd = std::move(connection.fd);
    const Key key =
        prove_both(fd.get(), rendezvous.secret, Side::kInitiator, kControlPurpose, within_ms(1000));
    RootLine line(ControlChannel(std::move(fd), key, Side::kInitiator),
                  {library_version() + 1, 1, 2, ProcessName::mine()}, "");
    line.wait_for([] { return false; }, within_ms(5000), "a refusal");
  });
  for (const auto& error : errors) {
    expect_error(error, ErrorCode::kInvalidArgument, "Mismatched NCCL version detected : rank 1");
  }
}

TEST(Join, can_be_cancelled_and_tells_the_others) {
  const Config config = loopback();
  const UniqueId id = create_unique_id(config);
  std::atomic<bool> cancelled = false;
  const std::int64_t begin = now_ns();
  const auto errors = run_ranks(3, [&](int rank) {
    if (rank == 2) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      cancelled.store(true, std::memory_order_release);
      return;
    }
    Membership(id, rank, 3, {Deadline::after_ms(10000), rank == 0 ? &cancelled : nullptr}, config);
  });
  expect_error(errors[0], ErrorCode::kInvalidUsage, "aborted");
  expect_error(errors[1], ErrorCode::kRemote, "rank 0 (");
  EXPECT_LT(now_ns() - begin, 2'000'000'000);
}

TEST(Join, can_be_cancelled_while_the_root_is_not_there) {
  Config config = loopback();
  config.comm_id = free_address();
  const UniqueId id = create_unique_id(config);
  std::atomic<bool> cancelled = false;
  const auto errors = run_ranks(2, [&](int rank) {
    if (rank == 1) Membership(id, 1, 2, {Deadline::after_ms(10000), &cancelled}, config);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    cancelled.store(true, std::memory_order_release);
  });
  expect_error(errors[1], ErrorCode::kInvalidUsage, "aborted while connecting");
}

TEST(Join, waits_for_a_root_that_comes_late) {
  Config config = loopback();
  config.comm_id = free_address();
  expect_no_errors(run_ranks(3, [&](int rank) {
    if (rank == 0) std::this_thread::sleep_for(std::chrono::milliseconds(200));
    Membership membership(create_unique_id(config), rank, 3, within_ms(5000), config);
    membership.barrier(within_ms(5000));
  }));
}

TEST(Join, says_so_if_the_root_never_comes) {
  Config config = loopback();
  config.comm_id = free_address();
  const auto errors = run_ranks(2, [&](int rank) {
    if (rank == 1) Membership(create_unique_id(config), 1, 2, within_ms(150), config);
  });
  expect_error(errors[1], ErrorCode::kSystem,
               "rank 1 cannot reach the root at " + config.comm_id + ": Connection refused");
}

TEST(Join, an_id_can_be_used_again_and_again) {
  const Config config = loopback();
  const UniqueId id = create_unique_id(config);
  std::set<std::uint64_t> sessions;
  for (int round = 0; round < 3; ++round) {
    std::atomic<std::uint64_t> session = 0;
    expect_no_errors(run_ranks(3, [&](int rank) {
      Membership membership(id, rank, 3, within_ms(5000), config);
      session.store(membership.session());
    }));
    sessions.insert(session.load());
  }
  EXPECT_EQ(sessions.size(), 3u);
}

TEST(Join, communicators_of_one_comm_id_do_not_mix) {
  Config config = loopback();
  config.comm_id = free_address();
  constexpr int kRounds = 20;
  constexpr int kRanks = 4;
  std::vector<std::vector<std::uint64_t>> sessions(kRanks);
  expect_no_errors(run_ranks(kRanks, [&](int rank) {
    std::vector<std::unique_ptr<Membership>> kept;
    for (int round = 0; round < kRounds; ++round) {
      // Every other communicator is of half as many ranks; all stay alive.
      const int nranks = round % 2 == 0 ? kRanks : kRanks / 2;
      if (rank >= nranks) continue;
      kept.push_back(std::make_unique<Membership>(create_unique_id(config), rank, nranks,
                                                  within_ms(5000), config));
      sessions[static_cast<std::size_t>(rank)].push_back(kept.back()->session());
      if (round % 3 == 0) kept.back()->barrier(within_ms(5000));
    }
  }));
  EXPECT_EQ(sessions[0].size(), std::size_t{kRounds});
  EXPECT_EQ(std::set(sessions[0].begin(), sessions[0].end()).size(), std::size_t{kRounds});
  EXPECT_EQ(sessions[0], sessions[1]);
  EXPECT_EQ(sessions[2], sessions[3]);
  for (std::size_t i = 0; i < sessions[2].size(); ++i)
    EXPECT_EQ(sessions[2][i], sessions[0][2 * i]);
}

TEST(Join, at_a_comm_id_the_timeout_tells_of_those_who_wait_for_another_number) {
  Config config = loopback();
  config.comm_id = free_address();
  const auto errors = run_ranks(2, [&](int rank) {
    Membership(create_unique_id(config), rank, rank == 0 ? 2 : 3, within_ms(rank == 0 ? 200 : 600),
               config);
  });
  expect_error(errors[0], ErrorCode::kTimeout, "for a communicator of 3 ranks");
}

TEST(Join, a_failed_rendezvous_can_be_repeated) {
  Config config = loopback();
  config.comm_id = free_address();
  const auto errors = run_ranks(2, [&](int rank) {
    if (rank == 0) Membership(create_unique_id(config), rank, 2, within_ms(700), config);
  });
  expect_error(errors[0], ErrorCode::kTimeout, "rank 1 of 2 did not come");
  expect_no_errors(run_ranks(2, [&](int rank) {
    // Rank 1 still has to hear of the first attempt.
    if (rank == 1) {
      EXPECT_THROW(Membership(create_unique_id(config), rank, 2, within_ms(5000), config), Error);
    }
    Membership(create_unique_id(config), rank, 2, within_ms(5000), config);
  }));
}

TEST(Join, works_over_ipv6) {
  Config config = loopback();
  config.socket_family = "AF_INET6";
  const UniqueId id = create_unique_id(config);
  expect_no_errors(run_ranks(2, [&](int rank) {
    Membership(id, rank, 2, within_ms(5000), config).barrier(within_ms(5000));
  }));
}

TEST(AllGather, refuses_more_than_its_bound) {
  const Config config = loopback();
  const UniqueId id = create_unique_id(config);
  const auto errors = run_ranks(1, [&](int) {
    Membership(id, 0, 1, within_ms(5000), config)
        .all_gather(Bytes(kMaxGatherBytes + 1), within_ms(1000));
  });
  expect_error(errors[0], ErrorCode::kInternal, "65536 are the most");
}

TEST(AllGather, names_who_does_not_come) {
  const Config config = loopback();
  const UniqueId id = create_unique_id(config);
  std::barrier done(3);
  const auto errors = run_ranks(3, [&](int rank) {
    Membership membership(id, rank, 3, within_ms(5000), config);
    if (rank == 1) {
      done.arrive_and_wait();
      throw Error(*fault_soon(membership));
    }
    try {
      membership.barrier(within_ms(150));
    } catch (const Error&) {
      done.arrive_and_wait();
      throw;
    }
  });
  for (const auto& error : errors)
    expect_error(error, ErrorCode::kTimeout, "rank 1 of 3 did not come");
}

TEST(AllGather, fails_soon_if_a_rank_has_left) {
  const Config config = loopback();
  const UniqueId id = create_unique_id(config);
  const auto errors = run_ranks(3, [&](int rank) {
    Membership membership(id, rank, 3, within_ms(5000), config);
    if (rank != 1) membership.barrier(within_ms(5000));
  });
  EXPECT_FALSE(errors[1].has_value());
  expect_error(errors[0], ErrorCode::kRemote, "rank 1 (");
  expect_error(errors[2], ErrorCode::kRemote, "rank 1 (");
}

TEST(AllGather, is_not_slowed_by_threads_that_poll) {
  const Config config = loopback();
  const UniqueId id = create_unique_id(config);
  const std::int64_t begin = now_ns();
  expect_no_errors(run_ranks(2, [&](int rank) {
    Membership membership(id, rank, 2, within_ms(5000), config);
    std::atomic<bool> stop = false;
    std::thread poller([&] {
      while (!stop.load()) {
        EXPECT_FALSE(membership.poll().has_value());
        std::this_thread::sleep_for(std::chrono::microseconds(200));
      }
    });
    for (int round = 0; round < 400; ++round) membership.barrier(within_ms(5000));
    stop.store(true);
    poller.join();
  }));
  EXPECT_LT(now_ns() - begin, 1'500'000'000);
}

TEST(Fault, reported_by_one_rank_reaches_all_and_stays) {
  const Config config = loopback();
  const UniqueId id = create_unique_id(config);
  const auto errors = run_ranks(4, [&](int rank) {
    Membership membership(id, rank, 4, within_ms(5000), config);
    membership.barrier(within_ms(5000));
    if (rank == 2) membership.report(Error(ErrorCode::kInvalidUsage, "counts differ"));
    const auto fault = fault_soon(membership);
    ASSERT_TRUE(fault.has_value());
    membership.report(Error(ErrorCode::kInternal, "a second fault"));
    EXPECT_STREQ(membership.poll()->what(), fault->what());
    throw Error(*fault);
  });
  for (const auto& error : errors) expect_error(error, ErrorCode::kInvalidUsage, "counts differ");
}

TEST(Fault, ends_an_all_gather) {
  const Config config = loopback();
  const UniqueId id = create_unique_id(config);
  const auto errors = run_ranks(2, [&](int rank) {
    Membership membership(id, rank, 2, within_ms(5000), config);
    if (rank == 1) return membership.report(Error(ErrorCode::kSystem, "no memory"));
    membership.barrier(within_ms(5000));
  });
  expect_error(errors[0], ErrorCode::kSystem, "no memory");
}

// What others have claimed within the next moments.
std::vector<ClaimMessage> claims_soon(Membership& membership, std::size_t count) {
  std::vector<ClaimMessage> claims;
  const Deadline deadline = Deadline::after_ms(count > 0 ? 2000 : 50);
  while (!deadline.passed() && (claims.size() < count || count == 0)) {
    EXPECT_FALSE(membership.poll().has_value());
    for (ClaimMessage& claim : membership.take_claims()) claims.push_back(std::move(claim));
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return claims;
}

TEST(Claim, of_one_rank_is_told_to_all_others) {
  const Config config = loopback();
  const UniqueId id = create_unique_id(config);
  std::barrier done(3);
  expect_no_errors(run_ranks(3, [&](int rank) {
    Membership membership(id, rank, 3, within_ms(5000), config);
    membership.claim(bytes_for(rank, kMaxClaimBytes));
    std::set<int> claimants;
    for (const ClaimMessage& claim : claims_soon(membership, 2)) {
      EXPECT_EQ(claim.claim, bytes_for(claim.rank, kMaxClaimBytes));
      claimants.insert(claim.rank);
    }
    claimants.insert(rank);
    EXPECT_EQ(claimants.size(), 3u);
    done.arrive_and_wait();
  }));
}

TEST(Claim, that_many_ranks_make_alike_is_told_once) {
  constexpr int kRanks = 16;
  const Config config = loopback();
  const UniqueId id = create_unique_id(config);
  std::atomic<int> told = 0;
  expect_no_errors(run_ranks(kRanks, [&](int rank) {
    Membership membership(id, rank, kRanks, within_ms(5000), config);
    for (int again = 0; again < 5; ++again) membership.claim(bytes_for(0, 24));
    membership.barrier(within_ms(5000));  // behind all claims, and what came of them
    membership.poll();
    told += static_cast<int>(membership.take_claims().size());
    membership.barrier(within_ms(5000));
  }));
  EXPECT_EQ(told, kRanks - 1);
}

TEST(Claim, that_nobody_takes_costs_no_more_than_so_much) {
  const Config config = loopback();
  const UniqueId id = create_unique_id(config);
  expect_no_errors(run_ranks(2, [&](int rank) {
    Membership membership(id, rank, 2, within_ms(5000), config);
    for (int i = 0; rank == 1 && i < 2000; ++i) {
      membership.claim(std::as_bytes(std::span(&i, 1)));
    }
    membership.barrier(within_ms(5000));
    membership.barrier(within_ms(5000));
    const std::vector<ClaimMessage> claims = membership.take_claims();
    EXPECT_EQ(claims.size(), rank == 0 ? 256u : 0u);
    membership.barrier(within_ms(5000));
  }));
}

TEST(Claim, too_long_to_be_one_ends_the_connection) {
  const Config config = loopback();
  const UniqueId id = create_unique_id(config);
  const auto errors = run_ranks(2, [&](int rank) {
    Membership membership(id, rank, 2, within_ms(5000), config);
    membership.barrier(within_ms(5000));
    if (rank == 1) membership.claim(Bytes(kMaxClaimBytes + 1));
    if (const auto fault = fault_soon(membership)) throw Error(*fault);
  });
  expect_error(errors[0], ErrorCode::kRemote, "rank 1 (");
}

TEST(Goodbye, of_a_thread_is_no_death) {
  const Config config = loopback();
  const UniqueId id = create_unique_id(config);
  std::barrier gone(3);
  std::barrier watched(2);
  expect_no_errors(run_ranks(3, [&](int rank) {
    Membership membership(id, rank, 3, within_ms(5000), config);
    if (rank == 0) membership.leave();
    gone.arrive_and_wait();
    if (rank == 0) return;
    EXPECT_FALSE(fault_soon(membership, 100).has_value());
    watched.arrive_and_wait();
    membership.report(Error(ErrorCode::kSystem, "still connected"));
    EXPECT_TRUE(fault_soon(membership).has_value());
  }));
}

TEST(Goodbye, may_be_said_twice_and_ends_nothing_but_the_connection) {
  const Config config = loopback();
  const UniqueId id = create_unique_id(config);
  expect_no_errors(run_ranks(2, [&](int rank) {
    Membership membership(id, rank, 2, within_ms(5000), config);
    membership.leave();
    membership.leave();
    EXPECT_FALSE(membership.poll().has_value());
  }));
}

}  // namespace
}  // namespace catenary
