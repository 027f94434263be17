#include "tests/transport/conformance.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <thread>

#include "src/base/error.h"

namespace catenary::test {
namespace {

std::vector<std::size_t> edge_sizes(std::size_t slot_bytes) {
  std::vector<std::size_t> sizes = {1,    7,    8,    55,   56,   57,   63,         64,
                                    65,   127,  128,  255,  256,  1079, 1080,       1081,
                                    1535, 4095, 4096, 4097, 8191, 8192, slot_bytes, slot_bytes - 1};
  std::erase_if(sizes, [&](std::size_t bytes) { return bytes > slot_bytes; });
  return sizes;
}

// Commits until the link takes no more, or `most`; returns how many it took.
std::uint64_t fill_up(Rank& self, SendLink& link, std::size_t bytes, std::uint64_t most) {
  std::uint64_t sent = 0;
  for (int failures = 0; failures < 200 && sent < most;) {
    if (self.try_send(link, bytes, sent)) {
      ++sent;
      failures = 0;
    } else {
      ++failures;
      self.transport().poll();
    }
  }
  return sent;
}

// As above, for a link that must be full some day: what it holds is bounded.
std::uint64_t fill_up(Rank& self, SendLink& link, std::size_t bytes) {
  const std::uint64_t most = (64u << 20) / bytes;
  const std::uint64_t sent = fill_up(self, link, bytes, most);
  require(sent < most, "a link took 64 MB and was not full");
  return sent;
}

}  // namespace

std::vector<Variant> standard_variants(
    RunAs run_as, std::unique_ptr<Transport> (*make)(const TransportContext&)) {
  const std::string prefix = run_as == RunAs::kThreads ? "threads" : "processes";
  const Faults delays = {.seed = 7, .delays_in_1000 = 300, .starved_tries = 5};
  Variant plain = {prefix, make, run_as};
  Variant starved = {prefix + "_starved", make, run_as, 2, 64};
  Variant delayed = {prefix + "_delayed", make, run_as, 8, 8192, delays};
  Variant both = {prefix + "_starved_delayed", make, run_as, 2, 1152, delays};
  return {plain, starved, delayed, both};
}

TEST_P(Conformance, every_size_arrives_in_order) {
  const std::vector<std::size_t> sizes = edge_sizes(GetParam().slot_bytes);
  const std::uint64_t messages = 3 * GetParam().slots * sizes.size();
  run_ranks(GetParam(), 2, [&](Rank& self) {
    if (self.rank == 0) {
      const auto link = self.connect(1);
      for (std::uint64_t i = 0; i < messages; ++i) self.send(*link, sizes[i % sizes.size()], i);
    } else {
      const auto link = self.listen(0);
      for (std::uint64_t i = 0; i < messages; ++i) self.receive(*link, sizes[i % sizes.size()], i);
      require(link->try_peek().empty(), "more arrived than was sent");
    }
    self.barrier();
  });
}

TEST_P(Conformance, full_rings_in_both_directions_do_not_deadlock) {
  const std::size_t bytes = GetParam().slot_bytes;
  run_ranks(GetParam(), 2, [&](Rank& self) {
    const auto to_peer = self.connect(self.next());
    const auto from_peer = self.listen(self.next());
    const std::uint64_t sent = fill_up(self, *to_peer, bytes);
    require(sent >= GetParam().slots, "a link is full before its slots are");
    self.barrier();
    constexpr std::uint64_t kMessages = 500;
    std::uint64_t to_send = sent;
    std::uint64_t to_receive = 0;
    self.wait_until([&] {
      if (to_send < kMessages && self.try_send(*to_peer, bytes, to_send)) ++to_send;
      if (to_receive < kMessages && self.try_receive(*from_peer, bytes, to_receive)) ++to_receive;
      return to_send >= kMessages && to_receive >= kMessages;
    });
    self.barrier();
  });
}

TEST_P(Conformance, acquiring_and_peeking_again_give_the_same_slot) {
  const std::array<std::size_t, 2> sizes = {60, std::min<std::size_t>(GetParam().slot_bytes, 1100)};
  run_ranks(GetParam(), 2, [&](Rank& self) {
    if (self.rank == 0) {
      const auto link = self.connect(1);
      for (std::uint64_t i = 0; i < 10; ++i) {
        const std::size_t bytes = sizes[i % 2];
        ByteSpan span;
        self.wait_until([&] { return !(span = link->try_acquire(bytes)).empty(); });
        require(link->try_acquire(bytes).data() == span.data(), "acquired another slot");
        fill(span, i);
        link->commit(bytes);
      }
    } else {
      const auto link = self.listen(0);
      for (std::uint64_t i = 0; i < 10; ++i) {
        ByteView view;
        self.wait_until([&] { return !(view = link->try_peek()).empty(); });
        require(link->try_peek().data() == view.data(), "peeked another slot");
        check(view, sizes[i % 2], i);
        link->release();
      }
    }
    self.barrier();
  });
}

TEST_P(Conformance, a_commit_may_be_shorter_than_what_was_acquired) {
  const std::size_t slot_bytes = GetParam().slot_bytes;
  run_ranks(GetParam(), 2, [&](Rank& self) {
    const std::vector<std::size_t> sizes = edge_sizes(slot_bytes);
    if (self.rank == 0) {
      const auto link = self.connect(1);
      for (std::size_t i = 0; i < sizes.size(); ++i) {
        ByteSpan span;
        self.wait_until([&] { return !(span = link->try_acquire(slot_bytes)).empty(); });
        fill(span, i);
        link->commit(sizes[i]);
      }
    } else {
      const auto link = self.listen(0);
      for (std::size_t i = 0; i < sizes.size(); ++i) self.receive(*link, sizes[i], i);
    }
    self.barrier();
  });
}

TEST_P(Conformance, data_may_lie_elsewhere_and_change_once_it_is_committed) {
  const std::vector<std::size_t> sizes = edge_sizes(GetParam().slot_bytes);
  const std::uint64_t messages = 2 * GetParam().slots * sizes.size();
  run_ranks(GetParam(), 2, [&](Rank& self) {
    if (self.rank == 0) {
      const auto link = self.connect(1);
      std::vector<std::byte> elsewhere(GetParam().slot_bytes);
      for (std::uint64_t i = 0; i < messages; ++i) {
        const std::size_t bytes = sizes[i % sizes.size()];
        const std::size_t skip = i % 3 * (bytes - 1) / 2;  // nothing, a half, all but one
        ByteSpan span;
        self.wait_until([&] { return !(span = link->try_acquire(bytes)).empty(); });
        fill(ByteSpan(elsewhere).first(bytes), i);
        std::copy_n(elsewhere.begin(), skip, span.begin());
        link->commit_from(skip, ByteView(elsewhere).subspan(skip, bytes - skip));
        std::fill(elsewhere.begin(), elsewhere.end(), std::byte{0xee});
        if (i % 5 == 0) self.send(*link, bytes, i);
      }
      self.wait_until([&] { return link->try_flush(); });
    } else {
      const auto link = self.listen(0);
      for (std::uint64_t i = 0; i < messages; ++i) {
        self.receive(*link, sizes[i % sizes.size()], i);
        if (i % 5 == 0) self.receive(*link, sizes[i % sizes.size()], i);
      }
    }
    self.barrier();
  });
}

// As a rank looks for what a peer sent to it although it expects nothing.
TEST_P(Conformance, what_was_flushed_has_come_although_nobody_listens) {
  run_ranks(GetParam(), 3, [&](Rank& self) {
    constexpr LinkSpec kUnexpected = {0, Channel::kCollective};
    const bool shares_memory = self.transport().shares_memory();
    if (self.rank == 0) {
      const auto unexpected = self.connect(1);
      const auto expected = self.connect(1, Channel::kPointToPoint);
      self.send(*unexpected, 40, 7);
      self.send(*expected, 40, 8);
      self.wait_until([&] { return unexpected->try_flush() && expected->try_flush(); });
      self.barrier();
    } else if (self.rank == 1) {
      const auto expected = self.listen(0, Channel::kPointToPoint);
      self.receive(*expected, 40, 8);
      self.wait_until([&] { return self.transport().has_come(kUnexpected); });
      require(self.transport().has_come({2, Channel::kCollective}) == shares_memory,
              "who never sent has come");
      const auto link = self.listen(0);
      self.receive(*link, 40, 7);
      self.barrier();
    } else {
      self.barrier();
    }
    self.barrier();
  });
}

TEST_P(Conformance, spans_stay_as_they_are_until_given_back) {
  for (const std::size_t bytes : {std::size_t{8}, GetParam().slot_bytes}) {
    run_ranks(GetParam(), 2, [&](Rank& self) {
      if (self.rank == 0) {
        const auto link = self.connect(1);
        self.send(*link, bytes, 0);
        self.barrier();  // the peer holds message 0
        fill_up(self, *link, bytes, 5000);
        self.barrier();
      } else {
        const auto link = self.listen(0);
        ByteView held;
        self.wait_until([&] { return !(held = link->try_peek()).empty(); });
        self.barrier();
        self.barrier();
        self.settle();
        check(held, bytes, 0);
      }
    });
  }
}

TEST_P(Conformance, an_acquired_span_keeps_what_was_written_while_others_move) {
  const std::size_t bytes = GetParam().slot_bytes;
  run_ranks(GetParam(), 2, [&](Rank& self) {
    const auto to_peer = self.connect(self.next());
    const auto from_peer = self.listen(self.next());
    self.send(*to_peer, bytes, 0);
    ByteSpan held;
    self.wait_until([&] { return !(held = to_peer->try_acquire(bytes)).empty(); });
    fill(held, 1);
    self.receive(*from_peer, bytes, 0);
    self.settle();
    check(held, bytes, 1);
    to_peer->commit(bytes);
    self.receive(*from_peer, bytes, 1);
    self.barrier();
  });
}

TEST_P(Conformance, a_full_link_does_not_hold_up_the_other_channel) {
  const std::size_t bytes = GetParam().slot_bytes;
  run_ranks(GetParam(), 2, [&](Rank& self) {
    if (self.rank == 0) {
      const auto collective = self.connect(1, Channel::kCollective);
      const auto direct = self.connect(1, Channel::kPointToPoint);
      const std::uint64_t sent = fill_up(self, *collective, bytes);
      for (std::uint64_t i = 0; i < 50; ++i) self.send(*direct, bytes, 1000 + i);
      self.barrier();
      for (std::uint64_t i = 0; i < 10; ++i) self.send(*collective, 1, sent + i);
      self.barrier();
    } else {
      const auto collective = self.listen(0, Channel::kCollective);
      const auto direct = self.listen(0, Channel::kPointToPoint);
      for (std::uint64_t i = 0; i < 50; ++i) self.receive(*direct, bytes, 1000 + i);
      self.barrier();
      ByteView view;
      for (std::uint64_t i = 0, ends = 0; ends < 10; ++i) {
        self.wait_until([&] { return !(view = collective->try_peek()).empty(); });
        const bool is_end = view.size() == 1;
        check(view, is_end ? 1 : bytes, i);
        ends += is_end ? 1 : 0;
        collective->release();
      }
      self.barrier();
    }
  });
}

TEST_P(Conformance, a_rank_sends_to_itself) {
  const std::size_t bytes = GetParam().slot_bytes;
  for (const int nranks : {1, 2}) {
    run_ranks(GetParam(), nranks, [&](Rank& self) {
      const auto to_self = self.connect(self.rank);
      const auto from_self = self.listen(self.rank);
      for (std::uint64_t i = 0; i < 100; ++i) {
        self.send(*to_self, bytes, i);
        self.receive(*from_self, bytes, i);
      }
      self.barrier();
    });
  }
}

TEST_P(Conformance, what_was_sent_survives_the_link_that_sent_it) {
  const std::uint64_t messages = GetParam().slots;
  const std::size_t bytes = GetParam().slot_bytes;
  run_ranks(GetParam(), 2, [&](Rank& self) {
    if (self.rank == 0) {
      auto link = self.connect(1);
      for (std::uint64_t i = 0; i < messages; ++i) self.send(*link, bytes, i);
      link.reset();
      self.barrier();
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
      const auto link = self.listen(0);
      for (std::uint64_t i = 0; i < messages; ++i) self.receive(*link, bytes, i);
      self.barrier();
    }
  });
}

TEST_P(Conformance, what_was_flushed_survives_the_rank_that_sent_it) {
  const std::uint64_t messages = GetParam().slots;
  const std::size_t bytes = GetParam().slot_bytes;
  run_ranks(GetParam(), 2, [&](Rank& self) {
    if (self.rank == 0) {
      const auto link = self.connect(1);
      for (std::uint64_t i = 0; i < messages; ++i) self.send(*link, bytes, i);
      self.wait_until([&] { return link->try_flush(); });
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
      const auto link = self.listen(0);
      // Until it is read, the sender may still need us in order to get rid of it.
      self.wait_until([&] { return !link->try_peek().empty(); });
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
      for (std::uint64_t i = 0; i < messages; ++i) self.receive(*link, bytes, i);
    }
  });
}

TEST_P(Conformance, every_pair_of_ranks_is_linked_both_ways) {
  for (const int nranks : {3, 4}) {
    run_ranks(GetParam(), nranks, [&](Rank& self) {
      constexpr std::uint64_t kMessages = 40;
      const std::size_t bytes = GetParam().slot_bytes;
      std::vector<std::unique_ptr<SendLink>> sends;
      std::vector<std::unique_ptr<RecvLink>> recvs;
      for (int peer = 0; peer < nranks; ++peer) sends.push_back(self.connect(peer));
      for (int peer = 0; peer < nranks; ++peer) recvs.push_back(self.listen(peer));
      const auto label = [&](int from, int to, std::uint64_t i) {
        return i * 64 + static_cast<std::uint64_t>(from * nranks + to);
      };
      std::vector<std::uint64_t> sent(sends.size());
      std::vector<std::uint64_t> received(recvs.size());
      self.wait_until([&] {
        bool all_done = true;
        for (std::size_t p = 0; p < sends.size(); ++p) {
          const int peer = static_cast<int>(p);
          if (sent[p] < kMessages &&
              self.try_send(*sends[p], bytes, label(self.rank, peer, sent[p]))) {
            ++sent[p];
          }
          if (received[p] < kMessages &&
              self.try_receive(*recvs[p], bytes, label(peer, self.rank, received[p]))) {
            ++received[p];
          }
          all_done = all_done && sent[p] == kMessages && received[p] == kMessages;
        }
        return all_done;
      });
      self.barrier();
    });
  }
}

// Sleeps without a look in between until `ready` holds: only news ends that in time. For who rings
// `lightly` it does look, as executors do. Where nothing tells, looks. Whether it has slept on a
// descriptor.
bool sleep_until(Rank& self, const std::function<bool()>& ready, bool lightly = false) {
  constexpr int kLong_ms = 5'000;
  constexpr std::int64_t kLong_ns = kLong_ms * std::int64_t{1'000'000};
  Doorbell* const bell = self.transport().doorbell();
  while (bell != nullptr && !ready()) {
    const Doorbell::Ticket tickets[] = {{bell, bell->announce()}};
    bool is_ready = ready();
    const std::int64_t start = now_ns();
    if (!is_ready && lightly) {
      Doorbell::wait_any(tickets, Doorbell::kSettled_ns);
      is_ready = ready();
    }
    if (!is_ready) Doorbell::wait_any(tickets, kLong_ns);
    bell->retract();
    if (is_ready) return false;
    require(now_ns() - start < kLong_ns, "a ring was lost");
  }
  bool has_slept = false;
  for (int descriptor = 0; bell == nullptr && descriptor >= 0 && !ready();) {
    descriptor = self.transport().wait_descriptor();
    self.transport().poll();
    if (descriptor < 0 || ready()) continue;
    pollfd waited = {descriptor, POLLIN, 0};
    require(::poll(&waited, 1, kLong_ms) == 1, "news were lost");
    has_slept = true;
    self.transport().poll();
  }
  self.wait_until(ready);
  return has_slept;
}

TEST_P(Conformance, a_sleeper_is_always_woken) {
  constexpr std::uint64_t kRounds = 10'000;
  run_ranks(GetParam(), 2, [&](Rank& self) {
    const auto to_peer = self.connect(self.next());
    const auto from_peer = self.listen(self.next());
    const bool is_rung = self.transport().doorbell() != nullptr;
    const std::uint64_t rounds = is_rung ? kRounds : kRounds / 20;
    bool has_slept = false;
    for (std::uint64_t i = 0; i < rounds; ++i) {
      if (self.rank == 0) self.send(*to_peer, 8, i);
      has_slept |= sleep_until(self, [&] { return !from_peer->try_peek().empty(); });
      self.receive(*from_peer, 8, i);
      if (self.rank == 1) self.send(*to_peer, 8, i);
    }
    const bool has_descriptor = self.transport().name() == "tcp" && !GetParam().is_faulty();
    require(has_slept || !has_descriptor, "there is nothing to sleep on");
    self.barrier();
  });
}

TEST_P(Conformance, a_sender_that_sleeps_on_a_full_link_is_woken) {
  run_ranks(GetParam(), 2, [&](Rank& self) {
    constexpr std::uint64_t kMessages = 200;
    const std::size_t bytes = GetParam().slot_bytes;
    if (self.rank == 0) {
      const auto link = self.connect(1);
      for (std::uint64_t i = 0; i < kMessages; ++i) {
        sleep_until(self, [&] { return !link->try_acquire(bytes).empty(); });
        self.send(*link, bytes, i);
      }
    } else {
      const auto link = self.listen(0);
      for (std::uint64_t i = 0; i < kMessages; ++i) {
        if (i % 16 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        self.receive(*link, bytes, i);
      }
    }
    self.barrier();
  });
}

TEST_P(Conformance, sleepers_are_woken_by_who_rings_without_a_fence) {
  run_ranks(GetParam(), 2, [&](Rank& self) {
    const std::uint64_t messages = self.transport().doorbell() != nullptr ? 10'000 : 500;
    const auto to_peer = self.connect(self.next());
    const auto from_peer = self.listen(self.next());
    for (std::uint64_t i = 0; i < messages && self.rank == 0; ++i) {
      sleep_until(
          self, [&] { return !to_peer->try_acquire(8).empty(); }, true);
      const ByteSpan span = to_peer->try_acquire(8);
      std::memcpy(span.data(), &i, 8);
      to_peer->commit_quietly(8);
      to_peer->ring_lightly();
      require(!to_peer->is_flushed_by_commit() || to_peer->try_flush(), "a commit has not flushed");
    }
    for (std::uint64_t i = 0; i < messages && self.rank == 1; ++i) {
      sleep_until(
          self, [&] { return !from_peer->try_peek().empty(); }, true);
      const ByteView view = from_peer->try_peek();
      require(view.size() == 8 && std::memcmp(view.data(), &i, 8) == 0, "another message came");
      from_peer->release_quietly();
      from_peer->ring_lightly();
    }
    self.barrier();
  });
}

TEST_P(Conformance, a_link_is_made_once) {
  run_ranks(GetParam(), 2, [&](Rank& self) {
    const auto link = self.connect(self.next());
    try {
      self.connect(self.next());
    } catch (const Error& error) {
      require(error.code() == ErrorCode::kInternal, "the wrong error");
      self.barrier();
      return;
    }
    throw std::runtime_error("the same link was made twice");
  });
}

TEST_P(Conformance, addresses_that_are_none_are_not_reached) {
  run_ranks(GetParam(), 2, [&](Rank& self) {
    const Bytes mine = self.transport().address();
    require(self.transport().reaches(mine), "a rank does not reach itself");
    require(!self.transport().reaches({}), "an empty address is reached");
    for (std::size_t bytes = 1; bytes < mine.size(); ++bytes) {
      require(!self.transport().reaches(ByteView(mine).first(bytes)), "half an address is reached");
    }
    Bytes other = mine;
    for (std::byte& each : other) each ^= std::byte{0x5a};
    require(!self.transport().reaches(other), "another address is reached");
    self.barrier();
  });
}

TEST_P(Conformance, a_group_can_be_made_again_and_again) {
  for (int i = 0; i < 20; ++i) {
    run_ranks(GetParam(), 2, [&](Rank& self) {
      const auto to_peer = self.connect(self.next());
      const auto from_peer = self.listen(self.next());
      self.send(*to_peer, 60, 1);
      self.receive(*from_peer, 60, 1);
      self.barrier();
    });
  }
}

}  // namespace catenary::test
