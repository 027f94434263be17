// What a run does not copy into slots: it lends memory, its own or that of the stage.
#include <algorithm>
#include <utility>

#include "src/base/copy.h"
#include "src/base/scope_exit.h"
#include "src/engine/schedule_run.h"

namespace catenary {

// Lends what a step sends, if it may and the peer can borrow it, or has it sent from where it lies.
// Where that cannot be done with input, because nobody else can map it or it is not registered, it
// may be with the copy of it that is kept: not by a root, which is done once it has copied to slots
// or the stage.
std::optional<ScheduleRun::Lent> ScheduleRun::try_lend(const PlannedStep& step, Slice slice) {
  const Chunk& chunk = step.lending.chunk;
  if (slice.bytes < spec_.least_loan || !chunk) return std::nullopt;
  if (spec_.in_place && !step.lending.in_place) return std::nullopt;
  const auto lent_of = [&](const Chunk& lent, bool is_copy) -> std::optional<Lent> {
    const ByteView memory(source(lent, slice), slice.bytes);
    const bool in_exchange = !is_copy && may_exchange(step, slice);
    const Chunk& result = in_exchange ? step.lending.exchanged : step.lending.returned;
    const std::optional<Loan> loan =
        step.send->try_lend(memory, {spec_.fetching, target(result, slice)});
    if (!loan && !step.send->sends_in_place(memory)) return std::nullopt;
    const bool is_exchanged = in_exchange && loan && loan->result != Loan::kNowhere;
    return Lent{memory, loan, is_copy, is_exchanged};
  };
  if (const std::optional<Lent> lent = lent_of(chunk, chunk != step.src)) return lent;
  const bool is_copied = chunk == step.src && step.dst.buffer == Buffer::kOutput;
  const bool is_staged = step.fan_out != FanOut::kNone;
  // In place the copy is what could not be lent.
  const bool may_lend_copy =
      is_copied && !is_staged && !spec_.in_place && !has_root(spec_.descriptor.kind);
  return may_lend_copy ? lent_of(step.dst, true) : std::nullopt;
}

// What goes to several peers and cannot be lent lies where all of them can read it, once its first
// copy has been made.
bool ScheduleRun::may_stage(const PlannedStep& step, Slice slice) const {
  const bool is_scaled = scaled_ && step.src.buffer == Buffer::kInput;
  if (step.fan_out == FanOut::kNone || is_scaled) return false;
  const bool as_fanned_out = spec_.least_staged == RunSpec::kAsFannedOut;
  return slice.offset + slice.rest >=
         (as_fanned_out ? least_fanned_out(step.fan_out) : spec_.least_staged);
}

// False: it has to wait for room. That is for what was sent in earlier passes and operations, which
// peers take without anything of this pass; what this pass holds itself is not waited for.
bool ScheduleRun::begin_to_stage(const PlannedStep& step, Slice slice) {
  if (slice.offset > 0 || is_being_staged(step)) return true;
  Stage& there = *step.send->stage();
  std::byte* const memory = there.try_place(slice.rest);
  const bool is_first_of_pass = !staged_.chunk || staged_.pass != pass_;
  if (memory == nullptr && is_first_of_pass && slice.rest <= there.most_bytes()) {
    waits_for_ = there.holder();
    return false;
  }
  staged_ = {.chunk = step.src, .pass = pass_, .stage = &there, .memory = memory};
  return true;
}

std::optional<ScheduleRun::Lent> ScheduleRun::stage(const PlannedStep& step, Slice slice) {
  if (!is_being_staged(step) || staged_.memory == nullptr || staged_.bytes < slice.offset) {
    return std::nullopt;
  }
  const ByteView memory(staged_.memory + slice.offset, slice.bytes);
  if (staged_.bytes < slice.offset + slice.bytes) {
    const ByteView as_it_is(source(step.src, slice), slice.bytes);
    step.send->stage()->write(staged_.memory + slice.offset, as_it_is);
    staged_.bytes = slice.offset + slice.bytes;
  }
  return Lent{.memory = memory, .loan = step.send->lend_staged(memory)};
}

// Whether we may offer what a step sends for what the same peer sends us: it is as long, and we
// could put ours where that peer wants it. That pays where memory is what takes time; what caches
// hold is better read, and in place there is nothing to keep in the same go.
bool ScheduleRun::may_exchange(const PlannedStep& step, Slice slice) const {
  const bool is_whole = slice.bytes == slice.rest;
  if (!step.lending.exchanged || spec_.in_place || !spec_.past_caches || !is_whole) return false;
  const std::size_t theirs = spec_.slicing.part(step.lending.exchanged, pass_).count;
  return slice.offset == 0 && theirs * element_bytes_ == slice.bytes &&
         step.exchanges_on->reaches_results();
}

// The peer's part has come as a loan, or as a message. If that is in exchange, too, each of us puts
// its own part into both outputs, and what we wait for is there when our loan has been taken.
// False: our part is kept, and theirs is to be taken as ever. Only what the loan says counts: a
// slice is a part of it if it came after may_go_whole() had looked.
bool ScheduleRun::do_exchanged_slice(const PlannedStep& step, Slice slice) {
  if (result_ == nullptr) {
    const OwnPart own = std::exchange(own_part_, {});
    copy_streaming(own.to, own.from, own.bytes);
    return false;
  }
  const std::byte* const from = own_part_.from + slice.offset;
  std::byte* const to = own_part_.to + slice.offset;
  for (std::size_t at = 0; at < slice.bytes; at += kWrittenAtATime) {
    const std::size_t now = std::min(kWrittenAtATime, slice.bytes - at);
    if (!step.recv->try_begin_writing({result_ + at, now})) {
      throw withdrawn(spec_.rank, spec_.descriptor, step.recv_from);
    }
    const ScopeExit end([&] { step.recv->end_writing(); });
    copy_streaming_twice(to + at, result_ + at, from + at, now);
  }
  check_still_lent(*step.recv, step.recv_from);
  if (slice.bytes < slice.rest) return true;
  own_part_ = {};
  step.recv->release();
  return true;
}

void ScheduleRun::check_still_lent(const RecvLink& link, int peer) const {
  if (!link.still_lent()) throw withdrawn(spec_.rank, spec_.descriptor, peer);
}

void ScheduleRun::withdraw() const noexcept {
  if (!started_) return;
  for (const SendTo& sent : spec_.plan->sends) sent.link->withdraw();
}

// Keeps what was borrowed, or what it makes with an operand of our own, with the peer's help if it
// has the time. False: that still has a part of it; the step is tried again.
bool ScheduleRun::take_together(const PlannedStep& step, ByteView borrowed, const std::byte* own,
                                std::byte* kept) {
  is_copied_ = false;
  if (kept == nullptr) return true;
  // What is read where it is written is in the caches already.
  const bool past_caches = spec_.past_caches && step.for_good && kept != own;
  const RecvLink::Copied copied =
      step.recv->copy_together(borrowed, {.into = kept,
                                          .past_caches = past_caches,
                                          .operand = own,
                                          .combination = combination_,
                                          .operand_last = step.received_first});
  is_copied_ = copied == RecvLink::Copied::kDone;
  copying_ = copied == RecvLink::Copied::kUnderWay ? step.recv : nullptr;
  if (is_copied_ && own != nullptr && step.dst.buffer == Buffer::kOutput) {
    finish_average(kept, borrowed.size());
  }
  if (copying_ == nullptr) return true;
  waits_for_ = step.recv_from;
  return false;
}

bool ScheduleRun::help() {
  return may_help() && std::ranges::any_of(spec_.plan->sends, [this](const SendTo& sent) {
           return sent.link->try_help(combination_);
         });
}

void ScheduleRun::forbid_writer() noexcept {
  if (copying_ != nullptr) copying_->forbid_help();
}

int ScheduleRun::writer() const noexcept {
  if (!started_) return kNobody;
  if (copying_ != nullptr && copying_->is_helped()) return waits_for_;
  for (const SendTo& sent : spec_.plan->sends) {
    if (sent.link->is_written_to()) return sent.peer;
  }
  return kNobody;
}

}  // namespace catenary
