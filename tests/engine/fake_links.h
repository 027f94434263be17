// Links and a communicator that do what a test says, and tell what was done to them.
#pragma once

#include <cstring>
#include <exception>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "src/engine/group_run.h"

namespace catenary {

inline constexpr std::size_t kCount = 4096;

struct FakeSend final : SendLink {
  ByteSpan try_acquire(std::size_t bytes) override {
    if (room == 0) return {};
    slot.resize(bytes);
    return slot;
  }
  void commit(std::size_t bytes) override {
    committed = bytes;
    ++commits;
    --room;
    sent.emplace_back(slot.begin(), slot.begin() + static_cast<std::ptrdiff_t>(bytes));
    if (watched != nullptr) watched_at_commit = *watched;
  }
  void commit_quietly(std::size_t bytes) override {
    commit(bytes);
    ++quiet_commits;
  }
  void ring_lightly() noexcept override { ++rings; }
  bool try_flush() override { return !lent; }
  bool is_flushed_by_commit() const noexcept override { return flushed_by_commit; }
  std::optional<Loan> try_lend(ByteView memory, const Terms& terms) override {
    if (memory.data() == unmapped) return std::nullopt;
    lent = memory.data();
    wanted_at = terms.result;
    return Loan{7, memory.size(), terms.result != nullptr ? 0 : Loan::kNowhere};
  }
  void withdraw() noexcept override { withdrawn = true; }
  bool is_written_to() noexcept override { return written_to; }
  bool try_help(const Combination& combination) override {
    helped_with = combination.name;
    return pieces > 0 && pieces-- > 0;
  }

  Bytes slot;
  int room = 1'000'000;  // for so many messages
  std::vector<Bytes> sent;
  bool flushed_by_commit = true;
  std::size_t committed = 0;
  int commits = 0;
  int quiet_commits = 0;  // of those
  int rings = 0;
  const std::byte* lent = nullptr;
  const std::byte* wanted_at = nullptr;  // what the peer makes of it
  bool withdrawn = false;
  bool written_to = false;              // by the peer, as if a result were wanted
  int pieces = 0;                       // that the peer would have us copy
  std::uint32_t helped_with = 0;        // what we would make of them
  const std::byte* unmapped = nullptr;  // memory that nobody else can map
  const std::byte* watched = nullptr;   // a byte, and what it was when the message went
  std::byte watched_at_commit{};
};

struct FakeRecv final : RecvLink {
  ByteView try_peek() override {
    if (hidden_looks == 0) return message;
    --hidden_looks;
    return {};
  }
  void release() override {
    released = true;
    ++releases;
    if (on_release) on_release();
    message = {};
    if (later.empty()) return;
    message = later.front();
    later.erase(later.begin());
  }
  void release_quietly() override {
    release();
    ++quiet_releases;
  }
  void ring_lightly() noexcept override { ++rings; }
  ByteView borrow(const Loan& loan, std::byte*, bool) override {
    return ByteView(memory).subspan(loan.offset, loan.bytes);
  }
  void read(std::byte* to, ByteView from) override {
    bytes_read += from.size();
    RecvLink::read(to, from);
  }
  bool still_lent() const override { return !withdrawn; }
  Copied copy_together(ByteView borrowed, const Taking& taking) override {
    ++asked;
    copied_past_caches = taking.past_caches;
    combination = taking.operand != nullptr ? taking.combination.name : 0;
    const Copied now = asked <= copied.size() ? copied[asked - 1] : Copied::kNothing;
    if (now != Copied::kDone) return now;
    if (taking.operand != nullptr) {
      taking.combination.combine(taking.into, taking.operand, borrowed, {taking.operand_last},
                                 taking.past_caches);
    } else {
      std::memcpy(taking.into, borrowed.data(), borrowed.size());
    }
    return now;
  }
  bool is_helped() noexcept override { return helped; }
  void forbid_help() noexcept override { forbidden = true; }
  bool reaches_results() const noexcept override { return reaches; }
  std::byte* place_for_result(const Loan& loan) override { return result.data() + loan.result; }
  bool try_begin_writing(ByteView) override { return writes = !withdrawn; }
  void write_result(std::byte* at, ByteView data, bool past_caches) override {
    written_outside = written_outside || !writes;
    RecvLink::write_result(at, data, past_caches);
  }
  void end_writing() override {
    writes = false;
    if (after_writing) after_writing();
  }

  Bytes message;
  int hidden_looks = 0;        // at it, before it comes
  std::vector<Bytes> later;    // what comes once the message is released
  std::size_t bytes_read = 0;  // by the link, which may have a way of its own
  Bytes memory = Bytes(kCount, std::byte{3});
  Bytes result = Bytes(kCount, std::byte{9});  // where the peer wants what is made of a loan
  bool reaches = true;                         // that place
  bool writes = false;
  bool written_outside = false;  // of the time that the peer knows of
  std::function<void()> after_writing;
  std::vector<Copied> copied;  // what comes of a copy that both make, each time it is asked for
  std::size_t asked = 0;
  bool copied_past_caches = false;
  std::uint32_t combination = 0;  // with an operand, of what was copied last
  bool helped = false;            // the peer has a piece of it
  bool forbidden = false;
  bool withdrawn = false;
  bool released = false;
  int releases = 0;
  int quiet_releases = 0;  // of those
  int rings = 0;
  std::function<void()> on_release;
};

struct FakeOwner final : RunOwner {
  bool may_go_on_in_trouble() override { return true; }
  void check_peers(const GroupRun&) override {}
  bool poll_transports() override { return moves_bytes; }
  Task::Wakers wakers() override { return {}; }
  bool has_time() const noexcept override { return waits; }
  void begins(const Descriptor&) noexcept override {}
  bool run_failed(const std::exception&) noexcept override { return true; }
  void run_over(GroupRun&) noexcept override {}
  void short_run_over() noexcept override {}
  int open_to_writers() const { return open_to_writers_; }
  bool moves_bytes = false;
  bool waits = true;  // a thread does
};

}  // namespace catenary
