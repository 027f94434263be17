// The part of the conformance suite that is about memory that stays as it is: transports that share
// memory lend it, and no others; some of those send it from where it lies.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "src/base/error.h"
#include "tests/transport/conformance.h"

namespace catenary::test {
namespace {

using Copied = RecvLink::Copied;
constexpr std::size_t kLentBytes = 100'000;

void commit_loan(Rank& self, SendLink& link, const Loan& loan) {
  ByteSpan slot;
  self.wait_until([&] { return !(slot = link.try_acquire(sizeof loan)).empty(); });
  std::memcpy(slot.data(), &loan, sizeof loan);
  link.commit(sizeof loan);
}

// Commits a loan of our part of the heap, filled with `message`; the peer's end must be there.
void lend(Rank& self, SendLink& link, std::uint64_t message) {
  const ByteSpan memory = self.heap().part(self.rank).first(kLentBytes);
  fill(memory, message);
  const std::optional<Loan> loan = link.try_lend(memory, {});
  require(loan.has_value(), "nothing is lent");
  commit_loan(self, link, *loan);
}

// Whether it is told to be the peer's fault.
template <typename Act>
bool is_peers_fault(const Act& act) {
  try {
    act();
  } catch (const Error& error) {
    return error.code() == ErrorCode::kRemote;
  }
  return false;
}

ByteView borrow(Rank& self, RecvLink& link, std::byte* into = nullptr, bool together = false) {
  ByteView view;
  self.wait_until([&] { return !(view = link.try_peek()).empty(); });
  Loan loan;
  require(view.size() == sizeof loan, "a message that is no loan");
  std::memcpy(&loan, view.data(), sizeof loan);
  return link.borrow(loan, into, together);
}

}  // namespace

TEST_P(Conformance, what_is_lent_is_read_where_it_lies) {
  run_ranks(GetParam(), 3, [](Rank& self) {
    const auto to = self.connect(self.next());
    const auto from = self.listen(self.previous());
    self.barrier();
    const ByteSpan memory = self.heap().part(self.rank);
    require(to->try_lend(memory, {}).has_value() == self.transport().shares_memory(),
            "who shares memory can lend, and nobody else");
    std::byte elsewhere[64];
    require(!to->try_lend(elsewhere, {}), "memory outside of the heap is lent");
    if (!self.transport().shares_memory()) return;
    for (std::uint64_t message = 0; message < 20; ++message) {
      const auto number = [&](int rank) { return message * 8 + static_cast<std::uint64_t>(rank); };
      lend(self, *to, number(self.rank));
      require(!to->try_flush() || message > 0, "taken before anybody could");
      if (message == 0) self.barrier();
      check(borrow(self, *from), kLentBytes, number(self.previous()));
      require(from->still_lent(), "withdrawn by nobody");
      from->release();
      self.wait_until([&] { return to->try_flush(); });
    }
  });
}

// By the kernel, of which every test rank is a process of one user: once for each message, to where
// it is wanted, or else to a place of the link's.
TEST_P(Conformance, what_cannot_be_mapped_is_fetched) {
  const std::size_t most = GetParam().slot_bytes;
  run_ranks(GetParam(), 2, [&](Rank& self) {
    if (!self.transport().shares_memory()) return;
    const auto to = self.connect(self.next());
    const auto from = self.listen(self.previous());
    self.barrier();
    Bytes memory(kLentBytes);
    Bytes taken(kLentBytes);
    require(!to->try_lend(ByteView(memory).first(kLeastFetched - 1), {Fetching::kByReceiver}),
            "too little is lent");
    for (std::uint64_t message = 0; message < 20; ++message) {
      const bool has_a_place = message % 2 == 0 || most < kLeastFetched;
      const std::size_t bytes = has_a_place ? kLentBytes : most;
      fill(ByteSpan(memory).first(bytes), message);
      const std::optional<Loan> loan =
          to->try_lend(ByteView(memory).first(bytes), {Fetching::kByReceiver});
      require(loan && loan->bytes == bytes, "nothing is lent");
      commit_loan(self, *to, *loan);
      const ByteView got = borrow(self, *from, has_a_place ? taken.data() : nullptr);
      check(got, bytes, message);
      require((got.data() == taken.data()) == has_a_place, "it lies elsewhere");
      require(from->still_lent(), "withdrawn by nobody");
      from->release();
      self.wait_until([&] { return to->try_flush(); });
      self.barrier();
    }
  });
}

// Devices' memory, or what a process keeps from the kernel: it goes through slots.
TEST_P(Conformance, what_the_kernel_does_not_read_is_not_lent) {
  run_ranks(GetParam(), 2, [](Rank& self) {
    if (!self.transport().shares_memory()) return;
    const auto to = self.connect(self.next());
    const auto from = self.listen(self.previous());
    self.barrier();
    const Mapping unreadable = Mapping::try_reserve(kLentBytes);
    require(!to->try_lend({unreadable.data(), kLentBytes}, {Fetching::kByReceiver}),
            "what has no pages is lent");
    self.barrier();
  });
}

// Whoever has freed it must not take the reader with it.
TEST_P(Conformance, what_is_not_there_any_more_is_not_fetched) {
  run_ranks(GetParam(), 2, [](Rank& self) {
    if (!self.transport().shares_memory()) return;
    const auto from = self.listen(self.previous());
    for (const std::uint64_t address : {std::uint64_t{0}, std::uint64_t{4096}, ~std::uint64_t{0}}) {
      require(is_peers_fault([&] {
                from->borrow({Loan::kInProcess | address, 2048});
              }),
              "what is not there is read");
    }
  });
}

TEST_P(Conformance, what_stays_is_sent_from_where_it_lies) {
  const std::size_t most = GetParam().slot_bytes;
  constexpr std::size_t kRounds = 6;
  run_ranks(GetParam(), 2, [&](Rank& self) {
    const auto bytes_of = [&](std::uint64_t message) { return most - message * 131 % (most / 2); };
    if (self.rank == 0) {
      const auto link = self.connect(1);
      std::vector<Bytes> memory(GetParam().slots, Bytes(most));
      for (std::uint64_t message = 0; message < kRounds * memory.size(); ++message) {
        Bytes& whole = memory[message % memory.size()];
        const std::size_t bytes = bytes_of(message);
        const std::size_t skip = std::min<std::size_t>(message % 3 * 24, bytes - 1);
        ByteSpan slot;
        self.wait_until([&] { return !(slot = link->try_acquire(bytes)).empty(); });
        fill(ByteSpan(whole).first(bytes), message);
        std::copy_n(whole.begin(), skip, slot.begin());
        const ByteView rest = ByteView(whole).subspan(skip, bytes - skip);
        if (link->sends_in_place(rest)) {
          link->commit_in_place(skip, rest);
        } else {
          link->commit_from(skip, rest);
        }
        if ((message + 1) % memory.size() != 0) continue;
        self.wait_until([&] { return link->try_flush(); });
        for (Bytes& one : memory) std::ranges::fill(one, std::byte{0xee});
      }
    } else {
      const auto link = self.listen(0);
      for (std::uint64_t message = 0; message < kRounds * GetParam().slots; ++message) {
        self.receive(*link, bytes_of(message), message);
      }
    }
    self.barrier();
  });
}

TEST_P(Conformance, who_borrows_can_tell_what_was_withdrawn) {
  run_ranks(GetParam(), 2, [](Rank& self) {
    if (!self.transport().shares_memory()) return;
    const auto to = self.connect(self.next());
    const auto from = self.listen(self.previous());
    self.barrier();
    to->withdraw();  // nothing is lent, so nothing happens
    lend(self, *to, 5);
    check(borrow(self, *from), kLentBytes, 5);
    require(from->still_lent(), "withdrawn before");
    self.barrier();
    to->withdraw();
    self.barrier();
    require(!from->still_lent(), "withdrawn unseen");
  });
}

constexpr std::size_t kWantedBytes = 50'000;

// Commits a loan of the first half of our part of the heap, and returns the other half, where the
// peer may put what it makes of it.
ByteView lend_and_want(Rank& self, SendLink& link) {
  const ByteSpan memory = self.heap().part(self.rank);
  const ByteSpan wanted = memory.subspan(kWantedBytes, kWantedBytes);
  const std::optional<Loan> loan =
      link.try_lend(memory.first(kWantedBytes), {.result = wanted.data()});
  require(loan.has_value(), "nothing is lent");
  commit_loan(self, link, *loan);
  return wanted;
}

std::byte* place_for_result(Rank& self, RecvLink& link) {
  ByteView view;
  self.wait_until([&] { return !(view = link.try_peek()).empty(); });
  Loan loan;
  std::memcpy(&loan, view.data(), sizeof loan);
  require(link.reaches_results() && loan.result != Loan::kNowhere, "no result is wanted");
  return link.place_for_result(loan);
}

TEST_P(Conformance, results_are_put_where_they_are_wanted) {
  run_ranks(GetParam(), 3, [](Rank& self) {
    if (!self.transport().shares_memory()) return;
    const auto to = self.connect(self.next());
    const auto from = self.listen(self.previous());
    self.barrier();
    for (std::uint64_t message = 0; message < 20; ++message) {
      const auto number = [&](int rank) { return message * 8 + static_cast<std::uint64_t>(rank); };
      const ByteView wanted = lend_and_want(self, *to);
      std::byte* const place = place_for_result(self, *from);
      Bytes result(kWantedBytes);
      fill(result, number(self.rank));
      require(from->try_begin_writing({place, 1}), "withdrawn by nobody");
      from->write_result(place, result, message % 2 == 0);
      from->end_writing();
      from->release();
      self.wait_until([&] { return to->try_flush(); });
      check(wanted, kWantedBytes, number(self.next()));
      self.barrier();
    }
    std::byte elsewhere[64];
    const std::optional<Loan> loan =
        to->try_lend(self.heap().part(self.rank).first(64), {.result = elsewhere});
    require(loan && loan->result == Loan::kNowhere, "a place outside of the heap is offered");
  });
}

// Who takes its memory back has it to itself once nobody is writing any more.
TEST_P(Conformance, who_writes_a_result_is_seen) {
  run_ranks(GetParam(), 2, [](Rank& self) {
    if (!self.transport().shares_memory()) return;
    if (self.rank == 0) {
      const auto to = self.connect(1);
      self.barrier();
      const ByteView wanted = lend_and_want(self, *to);
      self.barrier();
      to->withdraw();
      self.wait_until([&] { return !to->is_written_to(); });
      check(wanted, kWantedBytes, 7);
      self.barrier();
    } else {
      const auto from = self.listen(0);
      self.barrier();
      std::byte* const place = place_for_result(self, *from);
      require(from->try_begin_writing({place, 1}), "withdrawn by nobody");
      self.barrier();
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      Bytes result(kWantedBytes);
      fill(result, 7);
      from->write_result(place, result, false);
      from->end_writing();
      self.barrier();
      require(!from->try_begin_writing({place, 1}), "what was withdrawn may be written to");
    }
  });
}

// Of what lies in both heaps: whoever lent it copies some of it, if it has nothing else to do.
TEST_P(Conformance, long_copies_are_made_together) {
  constexpr std::size_t kBytes = 4 * TestHeap::kPartBytes;
  run_ranks(GetParam(), 2, [](Rank& self) {
    if (!self.transport().shares_memory()) return;
    const ByteSpan from_there = self.heap().parts(0, 4);
    const ByteSpan to_here = self.heap().parts(4, 4);
    if (self.rank == 0) {
      const auto to = self.connect(1);
      self.barrier();
      for (std::uint64_t message = 0; message < 20; ++message) {
        require(!to->try_help({}), "there is nothing to help with");
        fill(from_there, message);
        commit_loan(self, *to, *to->try_lend(from_there, {}));
        self.wait_until([&] { return to->try_help({}) || to->try_flush(); });
        self.wait_until([&] { return to->try_flush() || to->try_help({}); });
        self.wait_until([&] { return to->try_flush(); });
        self.barrier();
      }
    } else {
      const auto from = self.listen(0);
      self.barrier();
      for (std::uint64_t message = 0; message < 20; ++message) {
        const ByteView lent = borrow(self, *from);
        std::memset(to_here.data(), 0xee, kBytes);
        Bytes elsewhere(kBytes);
        require(from->copy_together(lent, {elsewhere.data(), false}) == Copied::kNothing,
                "the peer was to write outside of the heap");
        const ByteView too_short = lent.first(RecvLink::kLeastCopiedTogether - 1);
        require(from->copy_together(too_short, {to_here.data(), false}) == Copied::kNothing,
                "a short copy is made by two");
        self.wait_until([&] {
          return from->copy_together(lent, {to_here.data(), message % 2 == 0}) == Copied::kDone;
        });
        require(!from->is_helped(), "all is there");
        check(to_here, kBytes, message);
        from->release();
        self.barrier();
      }
    }
  });
}

// The second of two bytes less the first, so that their order shows. Whoever makes a piece lets the
// other one have the next.
void subtract(void* out, const void* a, const void* b, std::size_t count) {
  const auto* const left = static_cast<const char*>(a);
  std::transform(left, left + count, static_cast<const char*>(b), static_cast<char*>(out),
                 [](int one, int other) { return static_cast<char>(other - one); });
  std::this_thread::yield();
}
void subtract_streaming(void* out, const void* const* sources, int /*two*/, std::size_t count) {
  subtract(out, sources[0], sources[1], count);
}

// The same of what is combined with an operand of the receiver's, by a sender that does so as well:
// until it had its part in something. The last message says so in its first byte.
TEST_P(Conformance, long_sums_are_made_together) {
  constexpr std::size_t kBytes = 2 * TestHeap::kPartBytes;
  run_ranks(GetParam(), 2, [](Rank& self) {
    if (!self.transport().shares_memory()) return;
    const Combination sum{subtract, subtract_streaming, 1, 5};
    Combination other = sum;
    other.name = 6;
    const ByteSpan lent = self.heap().parts(0, 2);
    const ByteSpan operand = self.heap().parts(2, 2);
    const ByteSpan result = self.heap().parts(4, 2);
    if (self.rank == 0) {
      const auto to = self.connect(1);
      int pieces = 0;
      self.barrier();
      for (std::uint64_t message = 0; message < 20 || lent[0] == std::byte{0}; ++message) {
        fill(lent, message);
        lent[0] = std::byte{message >= 19 && pieces > 0};
        commit_loan(self, *to, *to->try_lend(lent, {}));
        self.wait_until([&] {
          require(!to->try_help(other), "it is to be made in another way");
          if (to->try_help(sum)) ++pieces;
          return to->try_flush();
        });
        self.barrier();
      }
    } else {
      const auto from = self.listen(0);
      self.barrier();
      std::byte is_last{0};
      for (std::uint64_t message = 0; is_last == std::byte{0}; ++message) {
        const ByteView borrowed = borrow(self, *from);
        is_last = borrowed[0];
        fill(operand, message + 100);
        const bool in_place = message % 3 == 0;
        const RecvLink::Taking taking{in_place ? operand.data() : result.data(), message % 2 == 0,
                                      operand.data(), sum, message % 5 == 0};
        Bytes expected(kBytes);
        sum.combine(expected.data(), operand.data(), borrowed, {taking.operand_last}, false);
        RecvLink::Taking astray = taking;
        astray.operand = expected.data();
        require(from->copy_together(borrowed, astray) == Copied::kNothing,
                "the peer was to read outside of the heap");
        const ByteView too_short = borrowed.first(RecvLink::kLeastCombinedTogether - 1);
        require(from->copy_together(too_short, taking) == Copied::kNothing,
                "a short sum is made by two");
        self.wait_until([&] { return from->copy_together(borrowed, taking) == Copied::kDone; });
        require(std::memcmp(taking.into, expected.data(), kBytes) == 0, "a wrong sum");
        from->release();
        self.barrier();
      }
    }
  });
}

// The same of what lies in neither, by the kernel.
TEST_P(Conformance, long_fetches_are_made_together) {
  constexpr std::size_t kBytes = std::size_t{1} << 20;
  run_ranks(GetParam(), 2, [](Rank& self) {
    if (!self.transport().shares_memory()) return;
    Bytes memory(kBytes);
    if (self.rank == 0) {
      const auto to = self.connect(1);
      self.barrier();
      for (std::uint64_t message = 0; message < 20; ++message) {
        fill(memory, message);
        commit_loan(self, *to, *to->try_lend(memory, {Fetching::kByReceiver}));
        self.wait_until([&] { return to->try_flush() || to->try_help({}); });
        self.wait_until([&] {
          to->try_help({});
          return to->try_flush();
        });
        self.barrier();
      }
    } else {
      const auto from = self.listen(0);
      self.barrier();
      for (std::uint64_t message = 0; message < 20; ++message) {
        std::memset(memory.data(), 0xee, kBytes);
        const ByteView lent = borrow(self, *from, memory.data(), true);
        require(lent.data() == memory.data(), "it was to be put here");
        self.wait_until([&] {
          return from->copy_together(lent, {memory.data(), false}) == Copied::kDone;
        });
        require(!from->is_helped(), "all is there");
        check(memory, kBytes, message);
        from->release();
        self.barrier();
      }
    }
  });
}

// Rank 0 has two readers. Nobody has to wait for them, and what they have not taken stays.
TEST_P(Conformance, what_lies_on_the_stage_is_read_there) {
  constexpr std::uint64_t kMessages = 40;
  run_ranks(GetParam(), 3, [](Rank& self) {
    if (!self.transport().shares_memory()) return;
    const std::size_t bytes = GetParam().slot_bytes;
    if (self.rank == 0) {
      const auto first = self.connect(1);
      const auto second = self.connect(2);
      Stage* const stage = first->stage();
      require(stage != nullptr && stage == second->stage(), "there is not one stage");
      Bytes memory(bytes);
      for (std::uint64_t message = 0; message < kMessages; ++message) {
        std::byte* place = nullptr;
        self.wait_until([&] { return (place = stage->try_place(bytes)) != nullptr; });
        fill(memory, message);
        stage->write(place, memory);
        for (SendLink* link : {first.get(), second.get()}) {
          commit_loan(self, *link, link->lend_staged({place, bytes}));
          require(GetParam().is_faulty() || link->try_flush(), "somebody has to be waited for");
        }
      }
      // Each of them has kept the last one.
      self.barrier();
      require(stage->try_place(stage->most_bytes()) == nullptr, "what somebody reads is free");
      const int holder = stage->holder();
      require(holder == 1 || holder == 2, "nobody holds it");
      self.barrier();
      self.wait_until([&] { return stage->try_place(stage->most_bytes()) != nullptr; });
      require(stage->try_place(stage->most_bytes() + 1) == nullptr, "it is longer than it says");
    } else {
      const auto from = self.listen(0);
      for (std::uint64_t message = 0; message < kMessages; ++message) {
        const bool dawdles = self.rank == 2 && message % 8 == 0;
        if (dawdles) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        check(borrow(self, *from), bytes, message);
        require(from->still_lent(), "withdrawn by nobody");
        if (message + 1 < kMessages) from->release();
      }
      self.barrier();
      self.barrier();
      from->release();
    }
  });
}

TEST_P(Conformance, loans_beyond_the_stage_are_refused) {
  run_ranks(GetParam(), 3, [](Rank& self) {
    if (!self.transport().shares_memory()) return;
    const auto to = self.connect(self.next());
    const auto from = self.listen(self.previous());
    // It is of whole pages, as long as all others, and a kilobyte longer than a message.
    const std::uint64_t end = (to->stage()->most_bytes() + 1024 + 63) / 4096 * 4096;
    from->borrow({Loan::kOnStage | (end - 64), 64});
    for (const Loan loan : {Loan{Loan::kOnStage | end, 1}, Loan{Loan::kOnStage | (end - 1), 2},
                            Loan{Loan::kOnStage, end + 1}, Loan{Loan::kOnStage, ~end}}) {
      require(is_peers_fault([&] { from->borrow(loan); }), "a loan beyond the stage is read");
    }
    self.barrier();
  });
}

TEST_P(Conformance, loans_beyond_the_heap_are_refused) {
  run_ranks(GetParam(), 2, [](Rank& self) {
    const auto from = self.listen(self.previous());
    self.barrier();  // the heap of a rank that has left is nowhere to be found
    const std::size_t size = self.heap().shared().bytes;
    for (const Loan loan : {Loan{size, 1}, Loan{size - 1, 2}, Loan{~std::uint64_t{0}, 2},
                            Loan{1, ~std::uint64_t{0}}}) {
      require(is_peers_fault([&] { from->borrow(loan); }), "a loan beyond the heap is read");
    }
    if (!self.transport().shares_memory()) return;
    require(is_peers_fault([&] {
              from->place_for_result({0, 2, size - 1});
            }),
            "a result is put beyond the heap");
  });
}

}  // namespace catenary::test
