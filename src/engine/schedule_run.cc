#include "src/engine/schedule_run.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <utility>

#include "src/base/copy.h"
#include "src/base/error.h"
#include "src/base/scope_exit.h"

namespace catenary {

Task::Progress ScheduleRun::advance() {
  awaited_ = nullptr;
  if (!started_) {
    started_ = true;
    if (spec_.copied_input > 0) take_input();
    if (spec_.scaling.from == Scaling::From::kMemory) take_scalar();
    if (spec_.plan->scratch_count > 0) take_scratch();
  }
  bool moved = false;
  const std::span<const PlannedStep> steps = spec_.plan->steps;
  for (; pass_ < passes_; ++pass_, step_ = 0) {
    for (const PlannedStep& step : steps.subspan(step_)) {
      const std::size_t before = slice_;
      const bool done = do_step(step);
      moved = moved || done || slice_ != before;
      if (!done) return moved ? Task::Progress::kSome : Task::Progress::kNone;
      ++step_;
      slice_ = 0;
    }
  }
  // A transport that stages what it sends needs polling until it has left, and who polls once this
  // is over?
  for (const SendTo& sent : spec_.plan->sends) {
    if (sent.link->try_flush()) continue;
    waits_for_ = sent.peer;
    return moved ? Task::Progress::kSome : Task::Progress::kNone;
  }
  waits_for_ = kNobody;
  input_copy_.reset();
  return Task::Progress::kDone;
}

std::vector<bool> ScheduleRun::opened_peers(int nranks) const {
  std::vector<bool> peers(static_cast<std::size_t>(nranks));
  const auto open = [&peers](int peer) {
    if (peer != kNobody) peers[static_cast<std::size_t>(peer)] = true;
  };
  const std::vector<PlannedStep>& steps = spec_.plan->steps;
  const std::size_t reached = pass_ > 0 ? steps.size() : std::min(step_ + 1, steps.size());
  for (std::size_t i = 0; i < reached; ++i) {
    open(steps[i].recv_from);
    const auto first = spec_.plan->fold_sources.begin() + steps[i].fold_first;
    std::for_each(first, first + steps[i].fold_count,
                  [&](const FoldSource& source) { open(source.recv_from); });
  }
  return peers;
}

inline bool ScheduleRun::do_slice(const PlannedStep& step, Slice slice, bool first) {
  if (step.fold_count > 0) return do_fold_slice(step, slice, first);
  return slice.bytes < kLeastLoan ? do_short_slice(step, slice, first)
                                  : do_long_slice(step, slice, first);
}

// Does the slices of one step that can be done now; true once all are. The first message of an
// operation on a link is sent even if it carries no data: it opens with the descriptor.
bool ScheduleRun::do_step(const PlannedStep& step) {
  if (is_lone_) {
    return do_slice(step, {.offset = 0, .bytes = lone_.bytes, .rest = lone_.bytes}, true);
  }
  const Range part = spec_.slicing.part(step.extent, pass_);
  const std::size_t slices = spec_.slicing.slices(part);
  for (;;) {
    const bool first = pass_ == 0 && slice_ == 0;
    if (slice_ >= slices && !(first && slices == 0)) return true;
    Slice slice = slices > 0 ? slice_of(part) : Slice{};
    const bool is_last = slice.bytes == slice.rest || may_go_whole(step, slice);
    if (is_last) slice.bytes = slice.rest;
    if (!do_slice(step, slice, first)) return false;
    if (slices == 0) return true;
    slice_ = is_last ? slices : slice_ + 1;
  }
}

inline ScheduleRun::Slice ScheduleRun::slice_of(const Range& part) {
  const Range range = spec_.slicing.slice(part, slice_);
  const std::size_t offset = range.offset - part.offset;
  return {.offset = offset * element_bytes_,
          .bytes = range.count * element_bytes_,
          .rest = (part.count - offset) * element_bytes_};
}

// What is copied into a slot first in the next pass, during the last step of this one. Out of
// place memory has enough to do: a rank's own part is copied or summed, too.
ByteView ScheduleRun::sent_next(const PlannedStep& step, const Slice& slice) const {
  const Plan& plan = *spec_.plan;
  const bool is_last = &step == &plan.steps.back() && pass_ + 1 < passes_;
  if (!copies_input_ || !spec_.in_place || !is_last || !plan.sent_first) return {};
  const Range part = spec_.slicing.part(plan.sent_first, pass_ + 1);
  const std::size_t bytes = part.count * element_bytes_;
  if (slice.offset >= bytes) return {};
  const std::byte* const next = spec_.input + part.offset * element_bytes_ + slice.offset;
  return {next, std::min(slice.bytes, bytes - slice.offset)};
}

// Whether what is left of the pass's part can be one message: all of it is there, and is lent; or
// the message that has come is such a one, and nothing else is to be done with it than to keep it,
// or what the two ranks may make of it together.
// Not where its last slice would be too short to be part of a loan.
bool ScheduleRun::may_go_whole(const PlannedStep& step, const Slice& slice) {
  if (slice.bytes < kLeastLoan || step.fold_count > 0) return false;
  const std::size_t tail = slice.rest % slice.bytes;
  if (tail != 0 && tail < kLeastLoan) return false;
  if (step.recv == nullptr) {
    if (step.send == nullptr) return false;
    // A copy would have to be made of all before any of it could go.
    const Slice whole = {.offset = slice.offset, .bytes = slice.rest, .rest = slice.rest};
    const std::optional<Lent> lent = try_lend(step, whole);
    if (lent) return lent->loan && !lent->is_copy;
    return may_stage(step, whole) && is_being_staged(step) &&
           staged_.bytes >= slice.offset + slice.rest;
  }
  const bool ends_here = step.send == nullptr && (!step.src || combination_.name != 0);
  if (!ends_here && !goes_back(step)) return false;
  const std::optional<Loan> loan = loan_in(step.recv->try_peek(), slice.bytes);
  if (!loan || loan->bytes <= slice.bytes || loan->bytes < slice.rest) return false;
  return ends_here || wants_result(*loan, *step.recv);
}

// Whether it goes to whom its operand came from.
bool ScheduleRun::goes_back(const PlannedStep& step) {
  return step.send != nullptr && step.send_to == step.recv_from && step.src;
}

bool ScheduleRun::do_long_slice(const PlannedStep& step, Slice slice, bool first) {
  borrowed_ = false;
  result_ = nullptr;
  LongSlice work = {.slice = slice,
                    .first = first,
                    .own = source(step.src, slice),
                    .kept = target(step.dst, slice)};
  if (step.recv != nullptr) {
    const Taken taken = take_operand(step, work);
    if (taken != Taken::kOperand) return taken == Taken::kAll;
  }
  if (step.send != nullptr && !open_message(step, work)) return false;
  move_long_slice(step, work);
  return true;
}

// Looks for what the peer sent, and does what needs no message of ours.
ScheduleRun::Taken ScheduleRun::take_operand(const PlannedStep& step, LongSlice& work) {
  const Slice slice = work.slice;
  const bool sends = step.send != nullptr;
  // Not before there is a slot to pass it on in: what is kept may still be needed until then.
  std::byte* const into = sends || work.own != nullptr ? nullptr : work.kept;
  const bool opens = work.first && step.opens_recv;
  const ByteView received = peek(step, *step.recv, step.recv_from, opens, slice, into);
  if (received.data() == nullptr) return Taken::kNothing;
  if (result_ != nullptr && goes_back(step)) {
    return do_returned_slice(step, slice, work.first, received) ? Taken::kAll : Taken::kNothing;
  }
  if (own_part_.bytes > 0 && do_exchanged_slice(step, slice)) return Taken::kAll;
  work.received = received.data();
  if (helps_ && borrowed_ && !sends && (work.own == nullptr || combination_.name != 0)) {
    if (!take_together(step, received, work.own, work.kept)) return Taken::kNothing;
    if (is_copied_) {
      work.received = work.kept;
      work.own = nullptr;
    }
  }
  return Taken::kOperand;
}

// Opens the message that passes it on, once there is a slot, and decides where the peer will find
// the data: where they lie, lent or as the link sends them, or in the slot.
bool ScheduleRun::open_message(const PlannedStep& step, LongSlice& work) {
  const Slice slice = work.slice;
  work.lent = try_lend(step, slice);
  if (!work.lent && may_stage(step, slice)) {
    if (!begin_to_stage(step, slice)) return false;
    work.lent = stage(step, slice);
  }
  const bool opens = work.first && step.opens_send;
  work.slot = acquire(step, opens, work.lent ? work.lent->message_bytes() : slice.bytes);
  if (work.slot == nullptr) return false;
  if (!work.lent && may_send_from_memory(step, slice)) {
    const bool is_input = step.src.buffer == Buffer::kInput;
    if (computes(work.received, work.own, is_input)) {
      work.sent_from = work.kept;
    } else if (!borrowed_) {
      work.sent_from = work.received != nullptr ? work.received : work.own;
    }
  }
  if (work.lent && work.lent->is_exchanged)
    own_part_ = {work.own, std::exchange(work.kept, nullptr), slice.bytes};
  return true;
}

// All is there: computes or copies, sends what open_message() has opened, and gives back what was
// received.
void ScheduleRun::move_long_slice(const PlannedStep& step, const LongSlice& work) {
  const auto& [slice, first, received, own, kept, slot, sent_from, lent] = work;
  const bool receives = step.recv != nullptr;
  const bool sends = step.send != nullptr;
  const bool opens_send = first && step.opens_send;
  const bool is_input = step.src.buffer == Buffer::kInput;
  std::byte* sent_copy = lent || sent_from != nullptr ? nullptr : slot;
  // The peer reads soon what it is lent, and so does who sends from memory.
  const bool is_read_soon = kept == sent_from || (lent && lent->memory.data() == kept);
  const bool past_caches = spec_.past_caches && step.for_good && !is_read_soon;
  copies_input_ = copies_input_ || (sent_copy != nullptr && own != nullptr && is_input);
  // The own copy is made in the same go, which takes less time than the peer waits longer.
  const bool in_one_go = past_caches && sent_copy != nullptr && kept != own &&
                         !step.send->writes_past_caches(slice.bytes);
  const bool is_lent_copy = lent && lent->is_copy;
  const bool sends_first = sends && !receives && (step.dst || sent_from != nullptr) && !scaled_ &&
                           !is_lent_copy && !in_one_go;
  if (sends_first) {  // so that the peer need not wait until we have our own copy
    apply(step, nullptr, own, is_input, {.passed_on = sent_copy}, slice.bytes);
    send(step, opens_send, lent, slot, sent_from, slice.bytes);
    sent_copy = nullptr;
  }
  apply(step, received, own, is_input,
        {.kept = kept,
         .passed_on = sent_copy,
         .past_caches = past_caches,
         .soon = sent_next(step, slice)},
        slice.bytes);
  if (borrowed_) check_still_lent(*step.recv, step.recv_from);
  if (sends && !sends_first) send(step, opens_send, lent, slot, sent_from, slice.bytes);
  if (receives) release(*step.recv, slice);
}

// The peer that lent the operand wants the result in its own memory: there it is put, and a word
// takes the place of the message.
bool ScheduleRun::do_returned_slice(const PlannedStep& step, Slice slice, bool first,
                                    ByteView received) {
  const bool opens_send = first && step.opens_send;
  std::byte* const slot = acquire(step, opens_send, sizeof(Loan));
  if (slot == nullptr) return false;
  const std::byte* const own = source(step.src, slice);
  std::byte* const kept = target(step.dst, slice);
  for (std::size_t at = 0; at < slice.bytes; at += kWrittenAtATime) {
    const std::size_t now = std::min(kWrittenAtATime, slice.bytes - at);
    if (!step.recv->try_begin_writing({result_ + at, now}))
      throw withdrawn(spec_.rank, spec_.descriptor, step.send_to);
    const ScopeExit end([&] { step.recv->end_writing(); });
    compute_for_both(step, received.data() + at, own + at, kept != nullptr ? kept + at : nullptr,
                     result_ + at, now);
  }
  check_still_lent(*step.recv, step.recv_from);
  const Lent word{.memory = received, .loan = Loan{Loan::kReturned, slice.bytes}};
  send(step, opens_send, word, slot, nullptr, slice.bytes);
  release(*step.recv, slice);
  return true;
}

// One that is too short to be lent, or to be sent from where it lies.
bool ScheduleRun::do_short_slice(const PlannedStep& step, Slice slice, bool first) {
  const std::byte* received = nullptr;
  std::byte* passed_on = nullptr;
  const bool opens_send = first && step.opens_send;
  const bool opens_recv = first && step.opens_recv;
  const bool receives = step.recv != nullptr && (slice.bytes > 0 || opens_recv);
  const bool sends = step.send != nullptr && (slice.bytes > 0 || opens_send);
  if (receives) {
    received = peek(step, *step.recv, step.recv_from, opens_recv, slice).data();
    if (received == nullptr) return false;
  }
  if (sends) {
    passed_on = acquire(step, opens_send, slice.bytes);
    if (passed_on == nullptr) return false;
  }
  const bool is_input = step.src.buffer == Buffer::kInput;
  const std::byte* own = source(step.src, slice);
  std::byte* kept = target(step.dst, slice);
  const bool is_computed = computes(received, own, is_input);
  const std::byte* const as_it_is = received != nullptr ? received : own;
  if (is_computed && slice.bytes > 0) {
    compute(step, received, own, is_input, {.kept = kept, .passed_on = passed_on}, slice.bytes);
  }
  if (sends) {  // before the own copy is made, for which the peer need not wait
    if (!is_computed && slice.bytes > 0) std::memcpy(passed_on, as_it_is, slice.bytes);
    step.send->commit((opens_send ? opening_bytes(slice.bytes) : 0) + slice.bytes);
  }
  if (!is_computed && slice.bytes > 0) copy_unless_same(kept, as_it_is, slice.bytes);
  if (receives) step.recv->release();
  return true;
}

bool ScheduleRun::do_fold_slice(const PlannedStep& step, Slice slice, bool first) {
  borrowed_ = false;
  constexpr int kFewSources = 16;
  std::array<const void*, kFewSources> few;
  std::vector<const void*> many;
  const void** operands = few.data();
  if (step.fold_count > kFewSources) {
    many.resize(static_cast<std::size_t>(step.fold_count));
    operands = many.data();
  }
  const FoldSource* sources = &spec_.plan->fold_sources[static_cast<std::size_t>(step.fold_first)];
  const auto is_sent = [&](const FoldSource& s) {
    return s.recv != nullptr && (slice.bytes > 0 || (first && s.opens_recv));
  };
  for (int i = 0; i < step.fold_count; ++i) {
    const FoldSource& from = sources[i];
    operands[i] = source(from.own, slice);
    if (!is_sent(from)) continue;
    operands[i] = peek(step, *from.recv, from.recv_from, first && from.opens_recv, slice).data();
    if (operands[i] == nullptr) return false;
  }
  const bool opens_send = first && step.opens_send;
  const bool sends = step.send != nullptr && (slice.bytes > 0 || opens_send);
  const std::optional<Lent> lent = sends ? try_lend(step, slice) : std::nullopt;
  std::byte* passed_on =
      sends ? acquire(step, opens_send, lent ? lent->message_bytes() : slice.bytes) : nullptr;
  if (sends && passed_on == nullptr) return false;
  std::byte* kept = target(step.dst, slice);
  const bool from_memory = kept != nullptr && sends && !lent && may_send_from_memory(step, slice);
  if (slice.bytes > 0) {
    std::byte* out = kept != nullptr ? kept : passed_on;
    const std::size_t count = elements_in(slice.bytes);
    if (scaled_ && sources[0].own.buffer == Buffer::kInput) {
      // Only the first operand is ever our own here: others would have come as scaled messages.
      spec_.kernels->scale(out, operands[0], spec_.scaling.value, count);
      operands[0] = out;
    }
    const bool past_caches = spec_.past_caches && step.for_good;
    const auto fold = past_caches ? spec_.kernels->fold_streaming : spec_.kernels->fold;
    fold(out, operands, step.fold_count, count);
    if (step.dst.buffer == Buffer::kOutput) finish_average(kept, slice.bytes);
    if (passed_on != nullptr && passed_on != out && !lent && !from_memory) {
      step.send->write(passed_on, {out, slice.bytes});
    }
  }
  if (borrowed_) {
    for (int i = 0; i < step.fold_count; ++i) {
      if (is_sent(sources[i])) check_still_lent(*sources[i].recv, sources[i].recv_from);
    }
  }
  if (sends) {
    send(step, opens_send, lent, passed_on, from_memory ? kept : nullptr, slice.bytes);
  }
  for (int i = 0; i < step.fold_count; ++i) {
    if (is_sent(sources[i])) release(*sources[i].recv, slice);
  }
  return true;
}

bool ScheduleRun::may_send_from_memory(const PlannedStep& step, Slice slice) {
  return slice.bytes >= kLeastFromMemory && step.send->spares_copy();
}

// What acquire() has opened. The bytes lie in the slot, unless they are lent or lie in `memory`.
void ScheduleRun::send(const PlannedStep& step, bool opening, const std::optional<Lent>& lent,
                       std::byte* slot, const std::byte* memory, std::size_t bytes) {
  if (memory != nullptr) {
    step.send->commit_from(opening ? opening_bytes(bytes) : 0, {memory, bytes});
    return;
  }
  if (lent && !lent->loan) {
    step.send->commit_in_place(opening ? opening_bytes(bytes) : 0, lent->memory);
    return;
  }
  if (lent) std::memcpy(slot, &*lent->loan, sizeof *lent->loan);
  const std::size_t sent = lent ? lent->message_bytes() : bytes;
  step.send->commit((opening ? opening_bytes(sent) : 0) + sent);
}

// The data of the next message on a link, null data while there is none. `into`: where it may be
// put already, if the link has to copy it.
inline ByteView ScheduleRun::peek(const PlannedStep& step, RecvLink& link, int peer, bool opening,
                                  Slice slice, std::byte* into) {
  const ByteView message = link.try_peek();
  if (message.empty()) {
    waits_for_ = peer;
    awaited_ = &link;
    return {};
  }
  if (opening) check_opening(step, message, peer);
  const std::size_t bytes = slice.bytes;
  const Payload payload = payload_of(message, opening,
                                     {.bytes = bytes,
                                      .rest = slice.rest,
                                      .most = slice.offset + slice.rest,
                                      .may_be_returned = step.is_returned,
                                      .together = helps_ && into != nullptr},
                                     link, into);
  if (payload.data == nullptr) {
    throw wrong_length(spec_.rank, spec_.descriptor, peer, message, opening, bytes);
  }
  borrowed_ = borrowed_ || payload.lent;
  if (payload.result != nullptr) result_ = payload.result;
  return {payload.data, bytes};
}

// Once all is taken that the message brings.
inline void ScheduleRun::release(RecvLink& link, Slice slice) {
  if (slice.rest == slice.bytes || !holds_more(link.try_peek(), slice.bytes)) {
    link.release();
  }
}

// Room for a slice in the next slot of a step's send link, null while there is none.
inline std::byte* ScheduleRun::acquire(const PlannedStep& step, bool opening, std::size_t bytes) {
  const std::size_t skip = opening ? opening_bytes(bytes) : 0;
  const ByteSpan slot = step.send->try_acquire(skip + bytes);
  if (slot.empty()) {
    waits_for_ = step.send_to;
    return nullptr;
  }
  if (opening) {
    const Descriptor mine = opening_of(step, spec_.rank);
    std::memcpy(slot.data(), &mine, sizeof mine);
  }
  return slot.data() + skip;
}

// It goes between two ranks in one step.
inline Descriptor ScheduleRun::opening_of(const PlannedStep& step, int sender) const {
  const Descriptor& mine = spec_.descriptor;
  if (mine.kind != Collective::kAllToAllV) return mine;
  return catenary::opening_of(mine, sender, spec_.slicing.partition().chunk(step.extent).count);
}

inline void ScheduleRun::check_opening(const PlannedStep& step, ByteView message, int peer) const {
  Descriptor theirs;
  if (message.size() >= sizeof theirs) {
    std::memcpy(&theirs, message.data(), sizeof theirs);
    if (expected_ == theirs || opening_of(step, peer) == theirs) return;
  }
  throw Disagreement(spec_.rank, opening_of(step, peer), peer, theirs);
}

}  // namespace catenary
