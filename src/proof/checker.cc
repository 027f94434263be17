#include "src/proof/checker.h"

#include <algorithm>

#include "src/base/error.h"

namespace catenary::proof {

Verdict Checker::check(const ProofCase& which, const StepSource& source, Orders& orders) {
  verdict_ = {};
  if (!begin(which, source, orders)) return verdict_;
  for (int rank = which.ranks - 1; rank >= 0; --rank) ready_.push_back(rank);
  if (is_plain_) {
    go<true>();
  } else {
    go<false>();
  }
  if (verdict_.fault.empty()) check_end();
  return verdict_;
}

template <bool kPlain>
void Checker::go() {
  while (!ready_.empty() && verdict_.fault.empty()) {
    // Whoever was waited for last: he and what he needs are still in the caches.
    const int rank = ready_.back();
    ready_.pop_back();
    State& state = states_[static_cast<std::size_t>(rank)];
    Task task = state.task;  // in registers, as long as it is his turn
    while ((task.slices > 0 || next_task<kPlain>(rank, state, task)) &&
           (task.is_fold ? do_fold_slice<kPlain>(rank, state, task)
                         : do_slice<kPlain>(rank, state, task))) {
    }
    state.task = task;
    if (!verdict_.fault.empty()) verdict_.fault = where(rank, state) + ": " + verdict_.fault;
  }
}

// ---- Setting up

bool Checker::begin(const ProofCase& which, const StepSource& source, Orders& orders) {
  which_ = which;
  source_ = &source;
  per_rank_ = holds_part_per_rank(which.collective);
  capacity_ = which.link_slots > 0 ? which.link_slots : which.slots;
  in_flight_ = 0;
  chunk_count_ = source.chunks(place_of(which, 0));
  for (int rank = 0; rank < which.ranks; ++rank) {
    const int chunks = source.chunks(place_of(which, rank));
    if (chunks == chunk_count_ && chunks > 0) continue;
    verdict_.fault = format("rank %d cuts %d chunks, rank 0 %d", rank, chunks, chunk_count_);
    return false;
  }
  const int most_scratch = std::max(source.scratch(place_of(which, 0)), 0);
  for (int rank = 0; rank < which.ranks; ++rank) {
    const int scratch = std::max(source.scratch(place_of(which, rank)), 0);
    if (scratch == most_scratch) continue;
    verdict_.fault =
        format("rank %d declares %d chunks of scratch, rank 0 %d", rank, scratch, most_scratch);
    return false;
  }
  if (per_rank_ && chunk_count_ != which.ranks) {
    verdict_.fault = format("%d chunks where each of %d ranks has one", chunk_count_, which.ranks);
    return false;
  }
  most_steps_ = most_steps(which, chunk_count_);
  cut_parts();
  shape_.begin(which, chunk_count_, most_scratch);
  memory_.begin(which, orders, static_cast<std::size_t>(most_scratch) * slices_a_pass_);
  links_.reset(which.ranks);
  const auto ranks = static_cast<std::size_t>(which.ranks);
  ready_.clear();
  if (states_.size() < ranks) states_.resize(ranks);
  for (std::size_t i = 0; i < ranks; ++i) states_[i].begin();
  return true;
}

void Checker::cut_parts() {
  slices_a_pass_ = which_.slots - 1;
  const Slicing slicing = slicing_of(which_, chunk_count_);
  // An operation on nothing still tells its peers so.
  passes_ = std::max<std::size_t>(slicing.passes(), 1);
  if (passes_ > kMostPasses) {
    throw_error(ErrorCode::kInvalidArgument, "%zu passes are more than the %zu that can be checked",
                passes_, kMostPasses);
  }
  parts_.clear();
  outputs_ = 0;
  notes_openings_ = which_.opens_links_only;
  for (std::size_t pass = 0; pass < passes_; ++pass) {
    for (int chunk = 0; chunk < chunk_count_; ++chunk) {
      parts_.push_back(slicing.part(chunk, pass));
      if (chunk == 0 || !scatters(which_.collective)) outputs_ += parts_.back().count;
      notes_openings_ = notes_openings_ || parts_.back().count == 0;
    }
  }
  const auto is_one_slice = [](const Range& part) { return part.count == 1; };
  is_plain_ = !notes_openings_ && !which_.keeps_parts && passes_ == 1 &&
              std::ranges::all_of(parts_, is_one_slice);
  if (is_plain_) slices_a_pass_ = 1;
}

void Checker::begin_pass(int rank, State& state) {
  state.source.emplace(source_->steps(place_of(which_, rank)));
  state.steps = 0;
  state.parts = parts_.data() + state.pass * static_cast<std::size_t>(chunk_count_);
  state.own_message = {};
  memory_.forget_scratch(rank);
}

// ---- Pulling steps

// Pulls steps up to one that moves something.
template <bool kPlain>
bool Checker::next_task(int rank, State& state, Task& task) {
  do {
    if (state.is_done) return false;
    if (!state.source) begin_pass(rank, state);
    task.step = state.source->next();
    const bool goes_on =
        task.step == nullptr ? end_pass(state) : take_step<kPlain>(rank, state, task);
    if (!goes_on) return false;
  } while (task.slices == 0);
  return true;
}

bool Checker::end_pass(State& state) {
  if (const char* wrong = shape_.wrong_end()) return fail(wrong);
  state.source.reset();
  state.is_done = ++state.pass == passes_;
  return true;
}

// Makes a task of a step.
template <bool kPlain>
bool Checker::take_step(int rank, State& state, Task& task) {
  const Step& step = *task.step;
  task.slice = 0;
  if (++state.steps > most_steps_) {
    return fail("there is no end of steps, or more than can be checked");
  }
  if (state.pass == 0) {
    if (const char* wrong = shape_.wrong(step, rank)) return fail(wrong);
  }
  if (step.dst.buffer == Buffer::kCarry) return take_fold<kPlain>(rank, state, task);
  const Chunk& extent = step.dst ? step.dst : step.src;
  int label = 0;
  if (!label_of_task<kPlain>(rank, step.src, extent, label)) return false;
  task.is_fold = false;
  task.in = nullptr;
  bool opens_in = false;
  if (step.recv_from != kNobody) {
    task.in = &links_.at(step.recv_from, rank);
    if (!kPlain && notes_openings_) {
      opens_in = !task.in->opened_by_receiver;
      task.in->opened_by_receiver = true;
    }
  }
  bool opens_out = false;
  if (!open<kPlain>(rank, state, task, opens_out)) return false;
  const bool only_sends = task.in == nullptr && !step.dst && step.src.buffer == Buffer::kInput;
  if (step.send_to == rank && only_sends) state.own_message = step.src;
  size_task<kPlain>(state, task, extent, label, opens_in, opens_out);
  return true;
}

// Pulls the steps of a fold, all at once, as they are one task.
template <bool kPlain>
bool Checker::take_fold(int rank, State& state, Task& task) {
  const Chunk extent = task.step->dst;
  state.fold_begin = task.step->src;
  int label = 0;
  if (!label_of_task<kPlain>(rank, state.fold_begin, extent, label)) return false;
  task.is_fold = true;
  task.in = nullptr;
  state.fold.clear();
  state.fold_ready = 0;
  const bool is_empty = !kPlain && part_of(state, extent).count == 0;
  for (;;) {
    Link& in = links_.at(task.step->recv_from, rank);
    if (!is_empty || !in.opened_by_receiver) state.fold.push_back(task.step->recv_from);
    in.opened_by_receiver = true;
    if (task.step->dst.buffer != Buffer::kCarry) break;
    task.step = state.source->next();
    if (task.step == nullptr) return fail("a fold without end");
    ++state.steps;
    if (state.pass > 0) continue;
    if (const char* wrong = shape_.wrong(*task.step, rank)) return fail(wrong);
  }
  const Chunk& result = task.step->dst;
  if (which_.keeps_parts && result && label_of(which_, rank, result) != label) {
    return fail("a fold and its result may differ in length");
  }
  bool opens_out = false;
  if (!open<kPlain>(rank, state, task, opens_out)) return false;
  size_task<kPlain>(state, task, extent, label, is_empty && !state.fold.empty(), opens_out);
  return true;
}

// The link to whom a step sends, if it does.
template <bool kPlain>
bool Checker::open(int rank, const State& state, Task& task, bool& opens) {
  task.out = nullptr;
  if (task.step->send_to == kNobody) return true;
  task.out = &links_.at(rank, task.step->send_to);
  if (kPlain || !notes_openings_) return true;
  opens = !task.out->opened_by_sender;
  task.out->opened_by_sender = true;
  if (opens || !which_.opens_links_only || state.pass > 0) return true;
  return fail("sends a message that is not the first on its link");
}

// What both ends of a task's messages must agree on. The part is a rank's own affair where all
// parts are equally long.
template <bool kPlain>
bool Checker::label_of_task(int rank, const Chunk& src, const Chunk& extent, int& label) {
  if (kPlain || !which_.keeps_parts) {
    label = per_rank_ ? 0 : shape_.part_of(extent);
    return true;
  }
  label = label_of(which_, rank, extent);
  const bool same = !src || label_of(which_, rank, src) == label;
  return (same && label != kNobody) || fail("src and dst may differ in length");
}

// How many slices a task has. The first message on a link is sent even if it carries no data.
template <bool kPlain>
void Checker::size_task(const State& state, Task& task, const Chunk& extent, int label,
                        bool opens_in, bool opens_out) {
  if constexpr (kPlain) {
    task.frame = frame_of(label, 0, 0);
    task.slices = 1;
    return;
  }
  const Range& part = part_of(state, extent);
  task.is_empty = part.count == 0;
  task.frame = frame_of(label, state.pass, task.is_empty ? kNoSlice : 0);
  task.slices = static_cast<std::uint32_t>(part.count);
  if (!task.is_empty) return;
  if (!opens_in) task.in = nullptr;
  if (!opens_out) task.out = nullptr;
  task.slices = opens_in || opens_out ? 1 : 0;
}

// ---- Moving slices

bool Checker::has_room(const Task& task) {
  if (task.out == nullptr || task.out->messages < capacity_) return true;
  task.out->sender_waits = true;
  return false;
}

template <bool kPlain>
bool Checker::do_slice(int rank, const State& state, Task& task) {
  const Step& step = *task.step;
  if (task.in != nullptr && task.in->messages == 0) {
    task.in->receiver_waits = true;
    return false;
  }
  if (!has_room(task)) return false;
  Fingerprint value = kUndefined;
  const bool reads = step.src && moves_data<kPlain>(task);
  if (reads && !read<kPlain>(rank, state, task, step.src, value)) return false;
  const bool was_reduced = reads && task.in != nullptr;
  if (task.in != nullptr) {
    Fingerprint received;
    if (!receive(task, step.recv_from, *task.in, received)) return false;
    value = !was_reduced          ? received
            : step.received_first ? reduced(received, value)
                                  : reduced(value, received);
  }
  if (step.dst && moves_data<kPlain>(task) && !keep<kPlain>(rank, state, task, was_reduced, value))
    return false;
  if (task.out != nullptr) send(task, value);
  end_slice(task);
  ++verdict_.moves;
  return true;
}

template <bool kPlain>
bool Checker::do_fold_slice(int rank, State& state, Task& task) {
  for (; state.fold_ready < state.fold.size(); ++state.fold_ready) {
    Link& link = links_.at(state.fold[state.fold_ready], rank);
    if (link.messages > 0) continue;
    link.receiver_waits = true;
    return false;
  }
  if (!has_room(task)) return false;
  Fingerprint value = kEmptyFold;
  Fingerprint operand;
  if (state.fold_begin && moves_data<kPlain>(task)) {
    if (!read<kPlain>(rank, state, task, state.fold_begin, operand)) return false;
    value = folded(value, operand);
  }
  for (const int from : state.fold) {
    if (!receive(task, from, links_.at(from, rank), operand)) return false;
    value = folded(value, operand);
    // The engine may read it in place only now.
    if (from != rank || !state.own_message || !moves_data<kPlain>(task)) continue;
    if (!per_rank_ && part_of_frame(task.frame) != shape_.part_of(state.own_message)) {
      return fail("sends itself another message before it folds the first");
    }
    if (!read<kPlain>(rank, state, task, state.own_message, operand)) return false;
  }
  if (task.step->dst && moves_data<kPlain>(task) && !keep<kPlain>(rank, state, task, true, value))
    return false;
  if (task.out != nullptr) send(task, value);
  verdict_.moves += state.fold.size();
  end_slice(task);
  state.fold_ready = 0;
  return true;
}

template <bool kPlain>
std::size_t Checker::element_of(const State& state, const Task& task, const Chunk& chunk) const {
  const auto index = static_cast<std::size_t>(chunk.index);
  const std::size_t slice = kPlain ? 0 : task.slice;
  if (chunk.buffer == Buffer::kScratch) return kPlain ? index : index * slices_a_pass_ + slice;
  return state.parts[index].offset + slice;
}

template <bool kPlain>
bool Checker::read(int rank, const State& state, const Task& task, const Chunk& chunk,
                   Fingerprint& value) {
  const std::size_t at = element_of<kPlain>(state, task, chunk);
  const char* wrong = chunk.buffer == Buffer::kInput ? memory_.read_input(rank, at, value)
                      : chunk.buffer == Buffer::kOutput
                          ? memory_.read_output(rank, chunk.index, at, value)
                          : memory_.read_scratch(rank, at, value);
  return wrong == nullptr || fail(wrong);
}

template <bool kPlain>
bool Checker::keep(int rank, const State& state, const Task& task, bool was_reduced,
                   Fingerprint& value) {
  const Chunk& chunk = task.step->dst;
  const std::size_t at = element_of<kPlain>(state, task, chunk);
  if (chunk.buffer == Buffer::kScratch) {
    verdict_.scratch_chunks = std::max(verdict_.scratch_chunks, chunk.index + 1);
    memory_.write_scratch(rank, at, value);
    return true;
  }
  if (memory_.write_output(rank, chunk.index, at, was_reduced, value)) return true;
  return fail(memory_.refusal());
}

bool Checker::receive(const Task& task, int from, Link& link, Fingerprint& value) {
  if (link.front.frame != task.frame) {
    return fail(format("expects %s from rank %d, which sent %s", text_of_frame(task.frame).c_str(),
                       from, text_of_frame(link.front.frame).c_str()));
  }
  value = link.front.value;
  links_.pop(link);
  --in_flight_;
  if (link.sender_waits) {
    link.sender_waits = false;
    ready_.push_back(from);
  }
  return true;
}

void Checker::send(const Task& task, const Fingerprint& value) {
  Link& link = *task.out;
  links_.push(link, value, task.frame);
  ++in_flight_;
  if (link.receiver_waits) {
    link.receiver_waits = false;
    ready_.push_back(task.step->send_to);
  }
}

// ---- Judging the end

bool Checker::fail(std::string_view what) {
  verdict_.fault = what;
  return false;
}

std::string Checker::where(int rank, const State& state) {
  return format("rank %d, pass %d, step %u, slice %d", rank, state.pass,
                state.steps == 0 ? 0 : state.steps - 1, state.task.slice);
}

bool Checker::check_end() {
  constexpr int kMostNamed = 8;
  std::string waiting;
  int found = 0;
  for (int rank = 0; rank < which_.ranks; ++rank) {
    const State& state = states_[static_cast<std::size_t>(rank)];
    if (state.is_done || ++found > kMostNamed) continue;
    waiting += format("%s rank %d at pass %d, step %u, slice %d for %s", found > 1 ? ";" : "", rank,
                      state.pass, state.steps - 1, state.task.slice, waiting_for(state).c_str());
  }
  if (found > 0) {
    if (found > kMostNamed) waiting += format("; and %d more", found - kMostNamed);
    verdict_.fault = "deadlock: there wait" + waiting;
    return false;
  }
  if (!check_links_empty()) return false;
  for (int rank = 0; rank < which_.ranks; ++rank) {
    if (!check_written(rank)) return false;
  }
  return true;
}

std::string Checker::waiting_for(const State& state) const {
  const Task& task = state.task;
  if (task.is_fold && state.fold_ready < state.fold.size()) {
    return format("a message from rank %d", state.fold[state.fold_ready]);
  }
  if (task.in != nullptr && task.in->messages == 0) {
    return format("a message from rank %d", task.step->recv_from);
  }
  return format("a slot to rank %d", task.step->send_to);
}

bool Checker::check_links_empty() {
  if (in_flight_ == 0) return true;
  for (int from = 0; from < which_.ranks; ++from) {
    for (int to = 0; to < which_.ranks; ++to) {
      const int left = links_.at(from, to).messages;
      if (left == 0) continue;
      verdict_.fault = format("rank %d leaves %d messages to rank %d unread, the first %s", from,
                              left, to, text_of_frame(links_.at(from, to).front.frame).c_str());
      return false;
    }
  }
  return false;
}

// Every element of the lane's range.
bool Checker::check_written(int rank) {
  if (!has_output(which_, rank) || memory_.written(rank) == outputs_) return true;
  for (const Range& part : parts_) {
    for (std::size_t at = part.offset; at < part.offset + part.count; ++at) {
      if (memory_.is_written(rank, at)) continue;
      verdict_.fault = format("rank %d never writes output[%zu]", rank, at);
      return false;
    }
  }
  return false;
}

}  // namespace catenary::proof
