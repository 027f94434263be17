// The part of Communicator that makes tasks of requests and puts them on streams.
#include <algorithm>

#include "src/base/scope_exit.h"
#include "src/base/size_literals.h"
#include "src/comm/communicator.h"
#include "src/comm/overlap.h"
#include "src/device/process_life.h"

namespace catenary {
namespace {

std::vector<Stream*> streams_beside(const Stream& main, const Requests& requests) {
  std::vector<Stream*> others;
  const Stream* last = &main;
  requests.for_each_stream([&](Stream& stream) {
    if (&stream == last) return;
    last = &stream;
    if (&stream == &main || std::ranges::find(others, &stream) != others.end()) return;
    others.push_back(&stream);
  });
  return others;
}

// Who only sends could go on, and must wait for readers if he lends: where ranks outnumber cores,
// for a switch to each of them. Below so many bytes a copy is faster.
constexpr std::size_t kLeastRootedLoan = 128_KB;

// In place, what reduces or exchanges writes over what it lent, and must take every line back from
// its readers first. What only hands on leaves it alone.
bool overwrites_input(Collective kind) {
  return reduces(kind) || kind == Collective::kAllToAll || kind == Collective::kAllToAllV;
}

// What takes so long that it may be worth waking a thread for it.
constexpr std::size_t kLeastLong = 128_KB;

Extent extent_of(const Requests& requests, int nranks) {
  std::size_t bytes = 0;
  for (const OperationRequest& request : requests.operations) {
    const int parts = holds_part_per_rank(request.kind) ? nranks : 1;
    bytes += request.count * element_bytes(request.type) * static_cast<std::size_t>(parts);
  }
  for (const MessageRequest& message : requests.messages) {
    bytes += message.count * element_bytes(message.type);
  }
  return bytes >= kLeastLong ? Extent::kLong : Extent::kShort;
}

bool gives_each_a_part(Collective kind) {
  return kind == Collective::kReduceScatter || kind == Collective::kReduceScatterV ||
         kind == Collective::kScatter;
}

}  // namespace

// What it takes to know the plan. Ranks know only their own counts of an AlltoAllv.
PlanCache::Question Communicator::plan_question(const OperationRequest& request) {
  return {.kind = request.kind,
          .count = request.kind == Collective::kAllToAllV ? 0 : request.count,
          .element_bytes = element_bytes(request.type),
          .root = has_root(request.kind) ? request.root : 0,
          .scaled = request.reduction.scaling.from != Scaling::From::kNothing};
}

// Whether buffers share memory in another way than the last time, where it matters: for what may be
// lent, or must be copied. The API has refused whole buffers that lie askew.
[[gnu::always_inline]] inline bool Communicator::lies_otherwise(const Recipe& recipe,
                                                                const OperationRequest& request) {
  const bool has_parts = holds_part_per_rank(request.kind) || request.parts != nullptr;
  if (!recipe.may_lend && !has_parts) return false;
  const Overlap overlap = overlap_of(request, rank_, nranks_);
  if (recipe.may_lend) return overlap != recipe.overlap;
  return (overlap == Overlap::kAskew) != (recipe.overlap == Overlap::kAskew);
}

Recipe& Communicator::recipe_for(const OperationRequest& request) {
  RecipeBook& book = recipes_[static_cast<std::size_t>(request.kind)];
  Recipe* const last = book.last(request);
  return last != nullptr && !lies_otherwise(*last, request) ? *last : look_up(book, request);
}

[[gnu::noinline]] Recipe& Communicator::look_up(RecipeBook& book, const OperationRequest& request) {
  Recipe* const found = book.find(request);
  if (found != nullptr && !lies_otherwise(*found, request)) return *found;
  Recipe& recipe = found != nullptr ? *found : book.next();
  fill_recipe(recipe, request);
  return recipe;
}

[[gnu::always_inline]] inline void Communicator::add_operation(const OperationRequest& request,
                                                               GroupRun& run,
                                                               std::size_t steps_done) {
  Recipe& recipe = recipe_for(request);
  if (recipe.opens_on != nullptr && steps_done == 0) {
    prepare_for_run(*recipe.opens_on, recipe.first_bytes);
  }
  if (recipe.asks_for_stores) choose_stores(recipe, request);
  const std::uint64_t ticket = collective_turn_.take();
  for (int lane = 0; lane < recipe.lanes; ++lane) {
    run.add({.spec = recipe.specs[static_cast<std::size_t>(lane)],
             .input = request.input,
             .output = request.output,
             .turn = collective_turn_,
             .ticket = ticket,
             .lanes = recipe.lanes,
             .steps_done = steps_done});
  }
}

[[gnu::always_inline]] inline std::unique_ptr<GroupRun> Communicator::make_run(
    const Requests& requests, std::size_t steps_done) {
  std::unique_ptr<GroupRun> run = runs_.take();
  run->begin(*this);
  for (const OperationRequest& request : requests.operations) {
    add_operation(request, *run, steps_done);
  }
  if (!requests.messages.empty()) messages_->add(requests.messages, *run);
  return run;
}

// Of a single operation, what is left of it.
TaskPtr Communicator::task_for(const Requests& requests, std::size_t steps_done) {
  TaskPtr task(make_run(requests, steps_done).release());
  count_up(runs_begun_);
  return task;
}

[[gnu::always_inline]] inline void Communicator::put(Stream& stream, std::unique_ptr<GroupRun> run,
                                                     Extent extent) {
  TaskPtr task(run.release());
  count_up(runs_begun_);
  // What the stream does not take was never begun.
  ScopeExit take_back([&] {
    if (task == nullptr) return;  // it was taken all the same
    delete task.release();
    count_down(runs_begun_);
  });
  stream.enqueue(std::move(task), extent);
  take_back.release();
}

// Turns are taken and streams are joined under one lock, or two threads could enqueue on one stream
// in the other order than they took their turns. A failure in between breaks the order of turns,
// and the peers may already count on us: it is the communicator's.
void Communicator::submit(const Requests& requests, Event* after) {
  require_not_forked();  // a child could wait for a lock that no thread of its own holds
  issue_lock_.lock_often();
  const std::lock_guard lock(issue_lock_, std::adopt_lock);
  if (left_.load(std::memory_order_acquire)) {
    throw_error(ErrorCode::kInvalidUsage, "rank %d has left the communicator", rank_);
  }
  try {
    if (after != nullptr || !try_at_once(requests)) submit_run(requests, after);
  } catch (const std::exception& error) {
    fail(as_error(error), true);
    throw_failure();
  }
}

[[gnu::noinline]] void Communicator::submit_run(const Requests& requests, Event* after) {
  std::unique_ptr<GroupRun> run = make_run(requests, 0);
  if (after != nullptr) {
    enqueue_aside(requests, std::move(run), *after);
  } else if (requests.on_one_stream()) {
    put(requests.first_stream(), std::move(run), extent_of(requests, nranks_));
  } else {
    enqueue_on_all(requests, std::move(run));
  }
}

// A stream of each group member waits for the whole group, before and after, as if the group had
// been posted on every one of them.
void Communicator::enqueue_on_all(const Requests& requests, std::unique_ptr<GroupRun> run) {
  Stream& main = requests.first_stream();
  const std::vector<Stream*> others = streams_beside(main, requests);
  for (Stream* other : others) {
    Event before(false);
    other->record(before);
    main.wait_event(before);
  }
  put(main, std::move(run), extent_of(requests, nranks_));
  Event after(false);
  main.record(after);
  for (Stream* other : others) other->wait_event(after);
}

// On a stream of its own, behind what is on the requests' streams.
void Communicator::enqueue_aside(const Requests& requests, std::unique_ptr<GroupRun> run,
                                 Event& after) {
  Stream& aside = device_.create_inner_stream();
  for (Stream* stream : streams_beside(aside, requests)) {
    Event before(false);
    stream->record(before);
    aside.wait_event(before);
  }
  put(aside, std::move(run), extent_of(requests, nranks_));
  aside.record(after);
  device_.retire(aside);
}

// What may be lent, staged, fetched and written past the caches, and what must be copied.
void Communicator::set_sharing(Recipe& recipe, RunSpec& spec, const OperationRequest& request,
                               std::size_t request_bytes, bool takes_nothing_back) {
  recipe.may_lend = request_bytes >= least_loan_;
  spec.in_place = recipe.may_lend && recipe.overlap == Overlap::kInPlace;
  if (recipe.overlap == Overlap::kAskew) {
    CATENARY_ASSERT(recipe.lanes == 1);  // as algorithms.cc makes sure
    spec.copied_input = input_bytes(request, nranks_);
  }
  // Of what is written in place by the peer who read it the owner takes no line back.
  const bool takes_back = spec.in_place && overwrites_input(request.kind) && !takes_nothing_back;
  const bool holds_up = has_root(request.kind) && device_.executor().crowded();
  const std::size_t least = takes_back ? least_in_place_
                            : holds_up ? std::min(least_in_place_, kLeastRootedLoan)
                                       : 0;
  const bool lends = request_bytes >= least;
  spec.least_loan = lends ? least_loan_ : SIZE_MAX;
  spec.least_staged = least_staged_;
  recipe.copies_exceed_caches = stores_.copies_exceed_caches(request_bytes);
  recipe.remembers_output = request_bytes >= RecentOutputs::kLeastBytes;
  recipe.asks_for_stores = recipe.remembers_output || recipe.copies_exceed_caches;
  recipe.touched_bytes = touched_bytes(request, recipe.overlap, rank_, nranks_);
  const auto ranks = static_cast<std::size_t>(nranks_);
  recipe.written_bytes = request_bytes / (gives_each_a_part(request.kind) ? ranks : 1);
  // Of operands the kernel would make a copy that is of no other use. And a root that could go on
  // is not to be held up by it.
  if (!reduces(request.kind) && !holds_up) {
    spec.fetching =
        stores_.fetching(request_bytes, recipe.copies_exceed_caches, has_root(request.kind));
  }
}

// Whether output goes past the caches: where it does not fit into them together with what else is
// touched, or where they do not hold it now. But a root that sums alone what several others have is
// slower the second way (256 KB and 1 MB 0.8 times as fast on an EPYC); what one other has takes as
// long either way.
void Communicator::choose_stores(Recipe& recipe, const OperationRequest& request) {
  const bool is_input =
      overwrites_input(request.kind) && overlap_of(request, rank_, nranks_) == Overlap::kInPlace;
  const ByteView output(static_cast<const std::byte*>(request.output), recipe.written_bytes);
  const bool exceeds =
      recipe.copies_exceed_caches && !stores_.fit_if_lent(output, recipe.touched_bytes);
  const bool was_there =
      !exceeds && (!recipe.remembers_output || stores_.was_there(output, recipe.touched_bytes));
  const bool sums_alone = request.kind == Collective::kReduce && nranks_ > 2;
  const bool past_caches = exceeds || (!is_input && !was_there && !sums_alone);
  for (RunSpec& spec : recipe.specs) spec.past_caches = past_caches;
}

void Communicator::fill_recipe(Recipe& recipe, const OperationRequest& request) {
  recipe.repeatable = false;  // in case this throws
  const PlanCache::Entry& entry = plans_->find(plan_question(request));
  recipe.type = request.type;
  recipe.reduction = request.reduction.name;
  recipe.root = request.root;
  recipe.mark = request.mark;
  recipe.count = request.count;
  recipe.lanes = static_cast<int>(entry.lanes.size());
  recipe.overlap = overlap_of(request, rank_, nranks_);

  RunSpec spec;
  if (reduces(request.kind)) {
    spec.kernels = &kernels::reduce_kernels(request.type, request.reduction.op, isa_);
  }
  spec.scaling = request.reduction.scaling;
  spec.divisor = request.reduction.divisor;
  spec.rank = rank_;
  const std::size_t parts =
      holds_part_per_rank(request.kind) ? static_cast<std::size_t>(nranks_) : 1;
  const std::size_t request_bytes = request.count * parts * element_bytes(request.type);
  set_sharing(recipe, spec, request, request_bytes, entry.lanes.front().takes_nothing_back);
  spec.descriptor.kind = request.kind;
  spec.descriptor.type = request.type;
  spec.descriptor.reduction = reduces(request.kind) ? request.reduction.name : Reduction::kNone;
  spec.descriptor.algorithm = static_cast<std::uint8_t>(entry.algorithm - algorithms().data());
  spec.descriptor.root = has_root(request.kind) ? request.root : 0;
  spec.descriptor.mark = request.mark;
  spec.descriptor.count = request.count;
  spec.descriptor = whole(spec.descriptor);
  spec.parts = request.parts;
  if (request.kind == Collective::kAllGatherV)
    spec.descriptor.root = digest_of(request.parts->output);
  if (request.kind == Collective::kReduceScatterV)
    spec.descriptor.root = digest_of(request.parts->input);

  const std::size_t bytes = element_bytes(request.type);
  for (int lane = 0; lane < recipe.lanes; ++lane) {
    const auto index = static_cast<std::size_t>(lane);
    spec.plan = &entry.lanes[index];
    spec.scratch = &scratch_[index];
    const Partition partition = request.parts != nullptr
                                    ? Partition::uneven(*request.parts, bytes, lane, recipe.lanes)
                                    : partition_for(request.kind, request.count, bytes,
                                                    spec.plan->chunk_count, lane, recipe.lanes);
    spec.slicing = Slicing(partition, entry.cut.slice_bytes, entry.cut.slices_per_pass());
    spec.stamp = ++last_stamp_;
    recipe.specs[index] = spec;
  }
  const std::vector<PlannedStep>& steps = entry.lanes.front().steps;
  recipe.opens_on = nullptr;
  if (!steps.empty()) {
    const PlannedStep& first = steps.front();
    const Partition& partition = recipe.specs[0].slicing.partition();
    const std::size_t sent = partition.chunk(first.extent).count * bytes;
    if (sent <= kHeadDataBytes) recipe.opens_on = first.send;
    recipe.first_bytes = sent;
  }
  const bool may_repeat = Recipe::is_repeatable(request);
  const auto may_be_staged = [](const PlannedStep& step) { return step.fan_out != FanOut::kNone; };
  const bool may_be_copied = !recipe.may_lend || std::ranges::none_of(steps, may_be_staged);
  const bool may_be_short = may_repeat && recipe.lanes == 1 && may_be_copied;
  recipe.short_steps = may_be_short ? ShortSteps(recipe.specs[0]) : ShortSteps();
  recipe.repeatable = may_repeat;
}

}  // namespace catenary
