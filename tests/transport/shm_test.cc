// What is special about shared memory: the door, strangers at it, and what may go wrong there.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <fstream>
#include <set>
#include <thread>

#include "src/base/error.h"
#include "src/base/mapping.h"
#include "src/bootstrap/handshake.h"
#include "tests/transport/attached_ranks.h"
#include "transports/shm/address.h"
#include "transports/shm/attach.h"
#include "transports/shm/transport.h"

namespace catenary::test {
namespace {

const Config kConfig;

TransportContext context_of(int rank, int nranks, const std::array<std::byte, 32>& key) {
  TransportContext context;
  context.rank = rank;
  context.nranks = nranks;
  context.key = key;
  context.slot_bytes = 4096;
  context.slots = 4;
  context.config = &kConfig;
  return context;
}

using Ranks = std::vector<std::unique_ptr<Transport>>;
using Verdicts = std::vector<std::vector<bool>>;

std::vector<Bytes> addresses_of(const Ranks& ranks) {
  std::vector<Bytes> addresses;
  for (const auto& rank : ranks) addresses.push_back(rank->address());
  return addresses;
}

// All ranks but the null ones attach, each on a thread.
Verdicts attach_all(const Ranks& ranks, const std::vector<Bytes>& addresses,
                    std::int64_t timeout_ms = 10'000) {
  Verdicts verdicts(ranks.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (ranks[i] == nullptr) continue;
    threads.emplace_back([&, i] {
      verdicts[i] = ranks[i]->attach(addresses, Wait{Deadline::after_ms(timeout_ms)});
    });
  }
  for (std::thread& thread : threads) thread.join();
  return verdicts;
}

Ranks make_ranks(int nranks, const std::array<std::byte, 32>& key) {
  Ranks ranks;
  for (int i = 0; i < nranks; ++i) {
    ranks.push_back(shm::make_transport(context_of(i, nranks, key)));
  }
  return ranks;
}

std::string door_text(ByteView address) {
  std::string text = "catenary-";
  const DoorName door = shm::parse_address(address)->door;
  for (const std::byte each : door) {
    text += format("%02x", std::to_integer<unsigned>(each));
  }
  return text;
}

UniqueFd knock_as_stranger(ByteView address) {
  UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  sockaddr_un name = {};
  name.sun_family = AF_UNIX;
  const std::string text = door_text(address);
  text.copy(name.sun_path + 1, text.size());
  const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  EXPECT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&name), bytes), 0);
  return socket;
}

void say(const UniqueFd& socket, ByteView bytes) {
  ::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
}

bool is_listed(const std::string& door) {
  std::ifstream sockets("/proc/net/unix");
  for (std::string line; std::getline(sockets, line);) {
    if (line.find(door) != std::string::npos) return true;
  }
  return false;
}

TEST(Shm, strangers_at_the_door_harm_nobody) {
  const Ranks ranks = make_ranks(3, random_test_key());
  const std::vector<Bytes> addresses = addresses_of(ranks);
  std::vector<UniqueFd> strangers;
  for (std::size_t bytes = 0; bytes < 100; bytes += 7) {
    strangers.push_back(knock_as_stranger(addresses[0]));
    say(strangers.back(), Bytes(bytes, std::byte{0xa5}));
  }
  // One that speaks the protocol but does not know the key, and one that leaves at once.
  strangers.push_back(knock_as_stranger(addresses[0]));
  say(strangers.back(), make_greeting(Side::kInitiator, Nonce{}));
  say(strangers.back(), Bytes(68, std::byte{0x11}));
  knock_as_stranger(addresses[0]).reset();
  const Verdicts verdicts = attach_all(ranks, addresses);
  for (const auto& verdict : verdicts) EXPECT_EQ(verdict, std::vector<bool>(3, true));
}

TEST(Shm, a_room_full_of_silent_strangers_is_emptied) {
  const Ranks ranks = make_ranks(2, random_test_key());
  const std::vector<Bytes> addresses = addresses_of(ranks);
  std::vector<UniqueFd> strangers;
  for (int i = 0; i < 100; ++i) strangers.push_back(knock_as_stranger(addresses[0]));
  for (const auto& verdict : attach_all(ranks, addresses)) {
    EXPECT_EQ(verdict, std::vector<bool>(2, true));
  }
}

TEST(Shm, who_holds_another_key_is_not_attached) {
  Ranks ranks = make_ranks(3, random_test_key());
  ranks[1] = shm::make_transport(context_of(1, 3, random_test_key()));
  const Verdicts verdicts = attach_all(ranks, addresses_of(ranks), 500);
  EXPECT_EQ(verdicts[0], (std::vector<bool>{true, false, true}));
  EXPECT_EQ(verdicts[1], std::vector<bool>(3, false));
  EXPECT_TRUE(verdicts[2][0]);
}

TEST(Shm, who_has_other_slots_is_not_attached_nor_waited_for) {
  const auto key = random_test_key();
  Ranks ranks = make_ranks(2, key);
  TransportContext other = context_of(1, 2, key);
  other.slots *= 2;
  ranks[1] = shm::make_transport(other);
  const std::int64_t start = now_ns();
  const Verdicts verdicts = attach_all(ranks, addresses_of(ranks), 20'000);
  EXPECT_LT(now_ns() - start, 5'000'000'000) << "waited for a rank that had been turned away";
  EXPECT_FALSE(verdicts[0][1]);
  EXPECT_EQ(verdicts[1], std::vector<bool>(2, false));
}

TEST(Shm, who_never_comes_is_not_attached_and_holds_up_only_to_the_deadline) {
  Ranks ranks = make_ranks(3, random_test_key());
  const std::vector<Bytes> addresses = addresses_of(ranks);
  ranks[1] = nullptr;
  const std::int64_t start = now_ns();
  const Verdicts verdicts = attach_all(ranks, addresses, 300);
  EXPECT_LT(now_ns() - start, 3'000'000'000);
  EXPECT_EQ(verdicts[0], (std::vector<bool>{true, false, true}));
  EXPECT_TRUE(verdicts[2][0]);
}

TEST(Shm, followers_of_a_dead_leader_answer_at_once) {
  Ranks ranks = make_ranks(3, random_test_key());
  const std::vector<Bytes> addresses = addresses_of(ranks);
  ranks[0] = nullptr;
  const std::int64_t start = now_ns();
  const Verdicts verdicts = attach_all(ranks, addresses, 20'000);
  EXPECT_LT(now_ns() - start, 5'000'000'000);
  EXPECT_EQ(verdicts[1], std::vector<bool>(3, false));
  EXPECT_EQ(verdicts[2], std::vector<bool>(3, false));
}

TEST(Shm, an_abort_ends_the_attaching) {
  for (std::size_t rank = 0; rank < 2; ++rank) {
    const Ranks ranks = make_ranks(2, random_test_key());
    const std::vector<Bytes> addresses = addresses_of(ranks);
    std::atomic<bool> cancelled{false};
    std::thread aborter([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      cancelled = true;
    });
    const std::int64_t start = now_ns();
    const auto verdict = ranks[rank]->attach(addresses, Wait{Deadline::never(), &cancelled});
    EXPECT_LT(now_ns() - start, 5'000'000'000);
    EXPECT_FALSE(verdict[1 - rank]);
    aborter.join();
  }
}

TEST(Shm, memory_that_is_not_a_sealed_memfd_is_refused) {
  DoorName name = {};
  fill_random(name);
  const auto context = context_of(1, 2, random_test_key());
  const RingArenaShape shape = arena_shape(context, 2);
  const std::size_t bytes = shape.bytes();
  const UniqueFd door = open_door(name);
  const UniqueFd unsealed(::memfd_create("catenary-test", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(unsealed.get(), static_cast<off_t>(bytes)), 0);
  const UniqueFd too_small = create_memfd("catenary-test", bytes / 2);
  const DoorPact pact = shm::make_pact(context, shape);
  for (const UniqueFd* memory : {&unsealed, &too_small}) {
    std::vector<bool> mapped;
    std::thread host([&] {
      mapped = hand_out(door.get(), memory->get(), 2, pact, Wait{Deadline::after_ms(10'000)});
    });
    try {
      shm::attach_arena(context, 2, 1, UniqueFd(), name, Wait{Deadline::after_ms(10'000)});
      ADD_FAILURE() << "accepted bad memory";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kSystem) << error.what();
    }
    host.join();
    EXPECT_FALSE(mapped[1]) << "the host takes a visitor that refused its memory for attached";
  }
}

TEST(Shm, ranks_with_other_host_ids_do_not_reach_each_other) {
  Config other = kConfig;
  other.host_id = "another-host";
  const auto key = random_test_key();
  TransportContext context = context_of(1, 2, key);
  context.config = &other;
  const auto here = shm::make_transport(context_of(0, 2, key));
  const auto there = shm::make_transport(context);
  EXPECT_FALSE(here->reaches(there->address()));
  EXPECT_FALSE(there->reaches(here->address()));
  EXPECT_TRUE(there->reaches(there->address()));
}

TEST(Shm, a_killed_process_leaves_nothing_and_its_peer_goes_on) {
  const auto key = random_test_key();
  const Holdings before = Holdings::now();
  int doors[2];
  ASSERT_EQ(::pipe(doors), 0);
  const UniqueFd read_end(doors[0]);
  UniqueFd write_end(doors[1]);
  const auto here = shm::make_transport(context_of(0, 2, key));
  const Bytes mine = here->address();
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const auto there = shm::make_transport(context_of(1, 2, key));
    const Bytes theirs = there->address();
    if (::write(write_end.get(), theirs.data(), theirs.size()) < 0) ::_exit(1);
    there->attach(std::vector<Bytes>{mine, theirs}, Wait{Deadline::after_ms(10'000)});
    const auto link = there->connect({0, Channel::kCollective});
    fill(link->try_acquire(100), 3);
    link->commit(100);
    ::pause();
    ::_exit(1);
  }
  write_end.reset();
  Bytes theirs(512);
  const ssize_t bytes = ::read(read_end.get(), theirs.data(), theirs.size());
  ASSERT_GT(bytes, 0);
  theirs.resize(static_cast<std::size_t>(bytes));
  const auto verdict =
      here->attach(std::vector<Bytes>{mine, theirs}, Wait{Deadline::after_ms(10'000)});
  EXPECT_EQ(verdict, std::vector<bool>(2, true));
  const auto from_child = here->listen({1, Channel::kCollective});
  const auto to_child = here->connect({1, Channel::kCollective});
  ByteView view;
  while ((view = from_child->try_peek()).empty()) std::this_thread::yield();
  ::kill(child, SIGKILL);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_NO_THROW(check(view, 100, 3));
  for (int i = 0; i < 4; ++i) {
    fill(to_child->try_acquire(4096), 1);
    to_child->commit(4096);
  }
  EXPECT_TRUE(to_child->try_acquire(4096).empty());
  EXPECT_FALSE(is_listed(door_text(mine)));
  EXPECT_FALSE(is_listed(door_text(theirs)));
  EXPECT_EQ(Holdings::now().shared_mappings, before.shared_mappings + 1);
}

TEST(Shm, a_damaged_ring_is_the_peers_fault_and_not_a_crash) {
  const Ranks ranks = make_ranks(2, random_test_key());
  attach_all(ranks, addresses_of(ranks));
  const auto sender = ranks[0]->connect({1, Channel::kCollective});
  const auto receiver = ranks[1]->listen({0, Channel::kCollective});
  // The head of a slot: sequence and length, then what is inline.
  const ByteSpan span = sender->try_acquire(8);
  sender->commit(8);
  auto& bytes = *reinterpret_cast<std::atomic<std::uint32_t>*>(span.data() - 4);
  bytes.store(1u << 30);
  try {
    receiver->try_peek();
    ADD_FAILURE() << "believed a length of 1 GB";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kRemote);
  }
}

// In how many places messages of rank 0 lie.
std::size_t places_used(bool is_crowded) {
  Variant variant{.name = "shm", .make = shm::make_transport};
  std::atomic<std::size_t> used = 0;
  run_ranks(variant, 2, [&](Rank& rank) {
    constexpr std::size_t kBytes = 4000;
    constexpr int kMessages = 4000;
    rank.transport().note_crowding(is_crowded);
    std::set<const std::byte*> places;
    if (rank.rank == 0) {
      const auto link = rank.connect(1);
      for (int i = 0; i < kMessages; ++i) {
        ByteSpan slot;
        rank.wait_until([&] { return !(slot = link->try_acquire(kBytes)).empty(); });
        places.insert(slot.data());
        link->commit(kBytes);
      }
      used = places.size();
      rank.drain();
    } else {
      const auto link = rank.listen(0);
      for (int i = 0; i < kMessages; ++i) {
        rank.wait_until([&] { return !link->try_peek().empty(); });
        link->release();
      }
    }
    rank.barrier();
  });
  return used;
}

// A belt keeps more of the sender's cache busy than ranks that share a core have to spare.
TEST(Shm, messages_keep_to_their_slots_where_ranks_are_crowded) {
  const std::size_t slots = Variant{}.slots;
  EXPECT_LE(places_used(true), slots + Shuttles::kOfEach);
  EXPECT_GT(places_used(false), slots + Shuttles::kOfEach);
}

TEST(Shm, what_two_ranks_exchange_goes_round_few_places) {
  Variant variant{.name = "shm", .make = shm::make_transport};
  run_ranks(variant, 2, [&](Rank& rank) {
    constexpr std::size_t kBytes = 4000;
    const auto to_peer = rank.connect(rank.next());
    const auto from_peer = rank.listen(rank.next());
    std::set<const std::byte*> places;
    for (std::uint64_t i = 0; i < 100; ++i) {
      ByteSpan slot;
      rank.wait_until([&] { return !(slot = to_peer->try_acquire(kBytes)).empty(); });
      places.insert(slot.data());
      to_peer->commit(kBytes);
      rank.wait_until([&] { return !from_peer->try_peek().empty(); });
      from_peer->release();
    }
    require(places.size() <= Shuttles::kAll, "used more places than there are shuttles");
    rank.barrier();
  });
}

TEST(Shm, many_ranks_attach_at_once) {
  const Ranks ranks = make_ranks(24, random_test_key());
  for (const auto& verdict : attach_all(ranks, addresses_of(ranks))) {
    EXPECT_EQ(verdict, std::vector<bool>(24, true));
  }
}

TEST(Shm, an_arena_larger_than_the_address_space_is_an_answer) {
  const auto key = random_test_key();
  TransportContext context = context_of(0, 1, key);
  context.slots = 1u << 30;
  context.slot_bytes = 1u << 26;
  const auto rank = shm::make_transport(context);
  EXPECT_EQ(rank->attach(std::vector<Bytes>{rank->address()}, Wait{}), std::vector<bool>{false});
}

}  // namespace
}  // namespace catenary::test
