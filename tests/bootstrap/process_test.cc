// Ranks as processes: how their ends are noticed, and how the root bears up.

#include <sys/resource.h>

#include <thread>

#include "tests/bootstrap/process_crew.h"

namespace catenary {
namespace {

constexpr std::int64_t kOneSecond = 1'000'000'000;

// Joins rank `rank` of `nranks`; process 0 is the root.
std::unique_ptr<Membership> join(ProcessCrew& crew, int rank, int nranks) {
  const Config config = loopback();
  if (rank == 0) crew.publish_id(config);
  const UniqueId id = crew.wait_id();
  crew.at(rank).stage = kReady;
  auto membership = std::make_unique<Membership>(id, rank, nranks, within_ms(20000), config);
  crew.at(rank).joined_ns = now_ns();
  crew.at(rank).stage = kJoined;
  return membership;
}

void record_fault(ProcessCrew& crew, int rank, Membership& membership, std::int64_t ms = 5000) {
  if (const auto fault = fault_soon(membership, ms)) crew.at(rank).record(*fault);
}

void start_pollers(ProcessCrew& crew, int first, int last, int nranks) {
  for (int rank = first; rank < last; ++rank) {
    crew.start(rank, [&crew, nranks](int mine) {
      const auto membership = join(crew, mine, nranks);
      record_fault(crew, mine, *membership);
    });
  }
}

void expect_fault(ProcessCrew& crew, int rank, const std::string& part, std::int64_t since_ns) {
  ASSERT_TRUE(crew.wait_stage(rank, kFinished, 6000)) << "rank " << rank;
  const ProcessCrew::Rank& record = crew.at(rank);
  EXPECT_EQ(record.code, static_cast<int>(ErrorCode::kRemote)) << "rank " << rank;
  EXPECT_NE(std::string(record.text).find(part), std::string::npos) << record.text;
  EXPECT_LT(record.fault_ns - since_ns, kOneSecond) << "rank " << rank;
}

std::string named(const ProcessCrew& crew, int rank) {
  return "rank " + std::to_string(rank) + " (" + ProcessName::mine().host + ":" +
         std::to_string(crew.pid(rank)) + ") ended unexpectedly";
}

TEST(ProcessDeath, is_named_by_every_survivor) {
  ProcessCrew crew;
  start_pollers(crew, 0, 4, 4);
  for (int rank = 0; rank < 4; ++rank) ASSERT_TRUE(crew.wait_stage(rank, kJoined));
  const std::int64_t when = crew.kill_now(2);
  std::int64_t slowest = 0;
  for (const int rank : {0, 1, 3}) {
    expect_fault(crew, rank, named(crew, 2), when);
    slowest = std::max(slowest, crew.at(rank).fault_ns - when);
  }
  std::printf("slowest notice of a death: %.2f ms\n", static_cast<double>(slowest) / 1e6);
}

TEST(ProcessDeath, of_the_root_names_its_rank) {
  ProcessCrew crew;
  start_pollers(crew, 0, 4, 4);
  for (int rank = 0; rank < 4; ++rank) ASSERT_TRUE(crew.wait_stage(rank, kJoined));
  const std::int64_t when = crew.kill_now(0);
  for (const int rank : {1, 2, 3}) expect_fault(crew, rank, named(crew, 0), when);
}

TEST(ProcessDeath, of_the_root_names_all_its_ranks_but_those_that_left) {
  ProcessCrew crew;
  crew.start(0, [&crew](int) {
    std::unique_ptr<Membership> members[3];
    const Config config = loopback();
    crew.publish_id(config);
    run_ranks(3, [&](int rank) {
      members[rank] =
          std::make_unique<Membership>(crew.wait_id(), rank, 4, within_ms(5000), config);
    });
    members[1]->leave();
    crew.at(0).stage = kJoined;
    ::pause();
  });
  start_pollers(crew, 3, 4, 4);
  ASSERT_TRUE(crew.wait_stage(0, kJoined));
  ASSERT_TRUE(crew.wait_stage(3, kJoined));
  const std::int64_t when = crew.kill_now(0);
  expect_fault(crew, 3, "ranks 0, 2 (", when);
}

TEST(ProcessDeath, is_named_rightly_although_the_roots_process_ends_on_the_news) {
  constexpr int kRanks = 60;
  ProcessCrew crew;
  crew.start(0, [&crew](int rank) {
    const auto membership = join(crew, rank, kRanks);
    while (!membership->poll()) {
    }
    ::_exit(1);
  });
  start_pollers(crew, 1, kRanks, kRanks);
  for (int rank = 0; rank < kRanks; ++rank) ASSERT_TRUE(crew.wait_stage(rank, kJoined));
  const std::int64_t when = crew.kill_now(1);
  for (int rank = 2; rank < kRanks; ++rank) expect_fault(crew, rank, named(crew, 1), when);
}

TEST(ProcessDeath, ending_without_a_goodbye_is_one) {
  ProcessCrew crew;
  start_pollers(crew, 0, 2, 3);
  crew.start(2, [&crew](int rank) {
    const auto membership = join(crew, rank, 3);
    ::_exit(0);
  });
  for (const int rank : {0, 1}) expect_fault(crew, rank, named(crew, 2), now_ns());
}

TEST(ProcessDeath, during_the_rendezvous_fails_those_who_wait) {
  ProcessCrew crew;
  start_pollers(crew, 0, 3, 4);
  for (int rank = 0; rank < 3; ++rank) ASSERT_TRUE(crew.wait_stage(rank, kReady));
  ::usleep(200'000);  // until they wait for rank 3
  const std::string text = named(crew, 2);
  const std::int64_t when = crew.kill_now(2);
  for (const int rank : {0, 1}) expect_fault(crew, rank, text, when);
}

TEST(ProcessDeath, late_comers_hear_of_an_earlier_one) {
  ProcessCrew crew;
  crew.start(0, [&crew](int rank) {
    try {
      join(crew, rank, 4);
    } catch (const Error& error) {
      crew.at(rank).record(error);
      crew.at(rank).stage = kJoined;
    }
    ::pause();  // the root stays
  });
  start_pollers(crew, 1, 3, 4);
  for (int rank = 0; rank < 3; ++rank) ASSERT_TRUE(crew.wait_stage(rank, kReady));
  ::usleep(200'000);
  const std::string text = named(crew, 2);
  crew.kill_now(2);
  ASSERT_TRUE(crew.wait_stage(0, kJoined));
  const std::int64_t when = now_ns();
  start_pollers(crew, 3, 4, 4);
  expect_fault(crew, 3, text, when);
}

TEST(ProcessDeath, of_the_root_during_the_rendezvous_names_its_rank) {
  ProcessCrew crew;
  start_pollers(crew, 0, 3, 4);
  for (int rank = 0; rank < 3; ++rank) ASSERT_TRUE(crew.wait_stage(rank, kReady));
  ::usleep(200'000);
  const std::string text = named(crew, 0);
  const std::int64_t when = crew.kill_now(0);
  for (const int rank : {1, 2}) expect_fault(crew, rank, text, when);
}

TEST(ProcessDeath, is_seen_although_a_forked_child_lives_on) {
  ProcessCrew crew;
  start_pollers(crew, 0, 2, 3);
  crew.start(2, [&crew](int rank) {
    const auto membership = join(crew, rank, 3);
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(20);
      ::pause();
      ::_exit(0);
    }
    crew.at(rank).helper_pid = child;
    ::pause();
  });
  for (const int rank : {0, 1}) ASSERT_TRUE(crew.wait_stage(rank, kJoined));
  while (crew.at(2).helper_pid == 0) ::usleep(200);
  const std::int64_t when = crew.kill_now(2);
  for (const int rank : {0, 1}) expect_fault(crew, rank, named(crew, 2), when);
  ::kill(crew.at(2).helper_pid, SIGKILL);
}

TEST(Goodbye, is_no_death_even_if_the_process_ends_at_once) {
  for (const int leaver : {0, 1}) {  // the root's process, and another
    ProcessCrew crew;
    for (int rank = 0; rank < 3; ++rank) {
      crew.start(rank, [&crew, leaver](int mine) {
        const auto membership = join(crew, mine, 3);
        membership->barrier(within_ms(5000));
        if (mine == leaver) {
          membership->leave();
          ::_exit(0);
        }
        record_fault(crew, mine, *membership, 300);
      });
    }
    for (int rank = 0; rank < 3; ++rank) {
      if (rank == leaver) continue;
      ASSERT_TRUE(crew.wait_stage(rank, kFinished));
      EXPECT_EQ(crew.at(rank).code, 0) << crew.at(rank).text;
    }
  }
}

TEST(Root, serves_on_after_rank_0_has_left) {
  ProcessCrew crew;
  crew.start(0, [&crew](int rank) {
    join(crew, rank, 4)->leave();
    ::pause();
  });
  start_pollers(crew, 1, 4, 4);
  for (int rank = 0; rank < 4; ++rank) ASSERT_TRUE(crew.wait_stage(rank, kJoined));
  ::usleep(50'000);
  const std::int64_t when = crew.kill_now(3);
  for (const int rank : {1, 2}) expect_fault(crew, rank, named(crew, 3), when);
}

TEST(Root, gathers_64_processes_soon) {
  constexpr int kRanks = ProcessCrew::kMost;
  ProcessCrew crew;
  for (int rank = 0; rank < kRanks; ++rank) {
    crew.start(rank, [&crew](int mine) {
      const Config config = loopback();
      if (mine == 0) crew.publish_id(config);
      const UniqueId id = crew.wait_id();
      crew.at(mine).stage = kReady;
      crew.wait_gate();
      Membership membership(id, mine, kRanks, within_ms(20000), config);
      crew.at(mine).joined_ns = now_ns();
      crew.at(mine).stage = kJoined;
      if (membership.all_gather(Bytes(256), within_ms(20000)).size() != std::size_t{kRanks}) {
        throw_error(ErrorCode::kInternal, "the all-gather lacks parts");
      }
    });
  }
  for (int rank = 0; rank < kRanks; ++rank) ASSERT_TRUE(crew.wait_stage(rank, kReady, 20000));
  const std::int64_t begin = now_ns();
  crew.open_gate();
  std::int64_t last = 0;
  for (int rank = 0; rank < kRanks; ++rank) {
    ASSERT_TRUE(crew.wait_stage(rank, kFinished, 20000));
    EXPECT_EQ(crew.at(rank).code, 0) << crew.at(rank).text;
    last = std::max(last, crew.at(rank).joined_ns);
  }
  std::printf("64 processes joined in %.1f ms\n", static_cast<double>(last - begin) / 1e6);
  EXPECT_LT(last - begin, 5 * kOneSecond);
}

TEST(Root, does_not_spin_when_the_process_has_no_descriptors_left) {
  ProcessCrew crew;
  crew.start(0, [&crew](int rank) {
    crew.publish_id(loopback());
    create_unique_id(loopback());  // whatever is opened once per process is open now
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    const int next = ::dup(0);
    limit.rlim_cur = static_cast<rlim_t>(next) + 1;
    ::setrlimit(RLIMIT_NOFILE, &limit);  // `next` was the last one
    crew.at(rank).stage = kReady;
    crew.wait_gate();
    rusage before{};
    ::getrusage(RUSAGE_SELF, &before);
    ::usleep(300'000);
    rusage after{};
    ::getrusage(RUSAGE_SELF, &after);
    const auto microseconds = [](const rusage& usage) {
      return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1'000'000 + usage.ru_utime.tv_usec +
             usage.ru_stime.tv_usec;
    };
    const auto spent = microseconds(after) - microseconds(before);
    ::close(next);
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &limit);
    if (spent > 100'000) throw_error(ErrorCode::kInternal, "spun for %ld us", spent);
    crew.at(rank).stage = kJoined;
    Membership membership(crew.wait_id(), 0, 2, within_ms(5000), loopback());
    membership.barrier(within_ms(5000));
  });
  ASSERT_TRUE(crew.wait_stage(0, kReady));
  crew.start(1, [&crew](int) {
    Membership membership(crew.wait_id(), 1, 2, within_ms(10000), loopback());
    membership.barrier(within_ms(5000));
  });
  crew.open_gate();
  for (const int rank : {0, 1}) {
    ASSERT_TRUE(crew.wait_stage(rank, kFinished, 10000));
    EXPECT_EQ(crew.at(rank).code, 0) << crew.at(rank).text;
  }
}

}  // namespace
}  // namespace catenary
