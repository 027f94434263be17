#include "src/proof/loans.h"

#include <algorithm>

#include "src/base/error.h"
#include "src/base/rounding.h"

namespace catenary::proof {
namespace {

// Clocks are as long as a multiple of this, so that compilers work on so many at once.
constexpr std::size_t kClockBlock = 16;
constexpr int kNowhere = -1;
constexpr std::uint32_t kNeverTaken = UINT32_MAX - 1;

constexpr std::size_t index(int value) { return static_cast<std::size_t>(value); }

// But for what is copied onto itself.
bool writes_over(const Chunk& given, const Step& step) {
  return step.recv_from != kNobody || step.src != given;
}

}  // namespace

std::string LoanChecker::unsafe_loan(const Algorithm& algorithm, const ProofCase& which,
                                     WrittenSchedules& schedules, const LendingSource& source) {
  if (is_point_to_point(which.collective)) return "";  // their buffers belong to two operations
  which_ = which;
  schedules_ = &schedules;
  fault_.clear();
  if (!find_loans(algorithm, source) || !fault_.empty()) return fault_;
  begin_clocks();
  while (!ready_.empty() && fault_.empty()) {
    const int rank = ready_.back();
    ready_.pop_back();
    while (fault_.empty() && try_step(rank)) {
    }
  }
  return fault_;
}

// ---- What is lent

// Of what may be lent in place, what is written over at all. Whether there is any.
bool LoanChecker::find_loans(const Algorithm& algorithm, const LendingSource& source) {
  const TrafficOf traffic_of = [this](int rank) -> const Traffic& {
    return schedules_->traffic_of(rank);
  };
  bool found = false;
  loans_.resize(std::max(loans_.size(), index(which_.ranks)));
  for (int rank = 0; rank < which_.ranks; ++rank) {
    loans_[index(rank)].clear();
    if (!has_input(which_, rank)) continue;
    Place at = place_of(which_, rank);
    at.window = schedules_->window();
    const std::vector<Lending> lendings = source(algorithm, at, schedules_->of(rank), traffic_of);
    find_loans_of(rank, lendings);
    judge_returns(rank, lendings);
    found = found || !loans_[index(rank)].empty();
  }
  return found;
}

void LoanChecker::find_loans_of(int rank, const std::vector<Lending>& lendings) {
  const std::vector<Step>& steps = schedules_->of(rank).steps;
  std::vector<Loan>& loans = loans_[index(rank)];
  note_writers(rank);
  for (std::uint32_t i = 0; i < lendings.size(); ++i) {
    const Lending& lending = lendings[i];
    const int borrower = steps[i].send_to;
    if (borrower == kNobody || !lending.in_place || lending.chunk.buffer != Buffer::kInput)
      continue;
    const Loan loan{target_of(rank, lending.chunk), i, lending.chunk, borrower, kNeverTaken};
    if (!is_written_over(loan, steps)) continue;
    loans.push_back(loan);
    loans.back().taken_at = taken_at(rank, borrower, i);
  }
  std::ranges::stable_sort(loans, {}, &Loan::target);
}

// The chunk of output that lies over that of input, in the layouts that NCCL documents for working
// in place.
int LoanChecker::target_of(int rank, const Chunk& given) const {
  const bool gathered = gathers(which_.collective);
  if (gathered == scatters(which_.collective)) return given.index;
  if (gathered) return rank;
  return given.index == rank ? 0 : kNowhere;
}

void LoanChecker::note_writers(int rank) {
  for (std::vector<std::uint32_t>& steps : writers_) steps.clear();
  const std::vector<Step>& steps = schedules_->of(rank).steps;
  for (std::uint32_t i = 0; i < steps.size(); ++i) {
    const Chunk& dst = steps[i].dst;
    if (dst.buffer != Buffer::kOutput) continue;
    if (index(dst.index) >= writers_.size()) writers_.resize(index(dst.index) + 1);
    writers_[index(dst.index)].push_back(i);
  }
}

bool LoanChecker::is_written_over(const Loan& loan, const std::vector<Step>& steps) const {
  if (loan.target == kNowhere || index(loan.target) >= writers_.size()) return false;
  return std::ranges::any_of(writers_[index(loan.target)], [&](std::uint32_t step) {
    return step >= loan.lent_at && writes_over(loan.chunk, steps[step]);
  });
}

// The step of the borrower that takes the message which a rank sends in a step.
std::uint32_t LoanChecker::taken_at(int rank, int borrower, std::uint32_t lent_at) {
  const auto sends = schedules_->traffic_of(rank).sends_to(borrower);
  const auto number = std::ranges::lower_bound(sends, lent_at) - sends.begin();
  const auto receives = schedules_->traffic_of(borrower).receives_from(rank);
  return number < std::ssize(receives) ? receives[static_cast<std::size_t>(number)] : kNeverTaken;
}

// ---- What is put where it is wanted

void LoanChecker::judge_returns(int rank, const std::vector<Lending>& lendings) {
  for (std::uint32_t i = 0; i < lendings.size() && fault_.empty(); ++i) {
    const Chunk& returned = lendings[i].returned;
    const Chunk& exchanged = lendings[i].exchanged;
    const auto tell = [&](const char* what, const Chunk& there, const std::string& fault) {
      if (fault.empty()) return;
      fault_ = format("rank %d asks rank %d in step %u to put %s into output %d, %s", rank,
                      schedules_->of(rank).steps[i].send_to, i, what, there.index, fault.c_str());
    };
    if (returned) tell("a result", returned, fault_of_return(rank, i, returned));
    if (exchanged) tell("its part", exchanged, fault_of_exchange(rank, i, exchanged));
  }
}

std::string LoanChecker::fault_of_return(int rank, std::uint32_t lent_at, const Chunk& returned) {
  const std::vector<Step>& steps = schedules_->of(rank).steps;
  const int borrower = steps[lent_at].send_to;
  const std::uint32_t made_at = taken_at(rank, borrower, lent_at);
  if (made_at == kNeverTaken) return "which never takes the message";
  const Step& makes = schedules_->of(borrower).steps[made_at];
  if (makes.send_to != rank) return format("which sends it nothing in its step %u", made_at);
  const bool is_of_fold = makes.src.buffer == Buffer::kCarry || makes.dst.buffer == Buffer::kCarry;
  if (!makes.src || is_of_fold) return format("which does not sum the two in its step %u", made_at);
  const std::uint32_t kept_at = taken_at(borrower, rank, made_at);
  if (kept_at == kNeverTaken || kept_at <= lent_at) return "and takes it too early or never";
  const Step& keeps = steps[kept_at];
  if (keeps.dst != returned || keeps.src || keeps.send_to != kNobody)
    return format("and does something else with it in step %u", kept_at);
  for (std::uint32_t i = 0; i < steps.size(); ++i) {
    const Step& step = steps[i];
    if (step.dst == returned && i != kept_at) return format("which step %u writes as well", i);
    if (step.src == returned && i <= kept_at) return format("which step %u reads before", i);
    const bool is_over = step.src.buffer == Buffer::kInput && i != lent_at &&
                         target_of(rank, step.src) == returned.index;
    if (is_over) return format("while step %u reads what lies there in place", i);
  }
  return "";
}

// The peer puts there what it has sent us, as it takes what we lend; if it does not ask for the
// same, we take what it has sent.
std::string LoanChecker::fault_of_exchange(int rank, std::uint32_t lent_at,
                                           const Chunk& exchanged) {
  const std::vector<Step>& steps = schedules_->of(rank).steps;
  const int peer = steps[lent_at].send_to;
  const auto keeps = std::ranges::find(steps, exchanged, &Step::dst);
  if (keeps == steps.end()) return "where nothing comes";
  const auto kept_at = static_cast<std::uint32_t>(keeps - steps.begin());
  if (keeps->recv_from != peer || keeps->src || keeps->send_to != kNobody)
    return format("where step %u puts something else", kept_at);
  const std::string fault = fault_of_keeping(rank, lent_at, kept_at);
  if (!fault.empty()) return fault;
  const std::vector<Step>& theirs = schedules_->of(peer).steps;
  const std::uint32_t sent_at = this->sent_at(rank, peer, kept_at);
  const std::uint32_t taken_at = this->taken_at(rank, peer, lent_at);
  if (sent_at == kNeverTaken || taken_at == kNeverTaken) return "which sends or takes nothing";
  if (theirs[sent_at].src.buffer != Buffer::kInput || theirs[sent_at].recv_from != kNobody)
    return format("which may have changed since its step %u", sent_at);
  for (std::uint32_t i = sent_at + 1; i < taken_at; ++i) {
    if (theirs[i].recv_from != kNobody)
      return format("which takes another message in its step %u", i);
  }
  return taken_at < sent_at ? "which takes ours before it sends" : "";
}

// Of our own part, too, the copy is made as late as that.
std::string LoanChecker::fault_of_keeping(int rank, std::uint32_t lent_at, std::uint32_t kept_at) {
  const std::vector<Step>& steps = schedules_->of(rank).steps;
  if (kept_at < lent_at) return format("which comes in step %u already", kept_at);
  for (std::uint32_t i = 0; i < steps.size(); ++i) {
    const Step& step = steps[i];
    const bool is_between = lent_at < i && i < kept_at;
    if (is_between && step.recv_from != kNobody)
      return format("and takes another message in step %u", i);
    for (const std::uint32_t written_at : {lent_at, kept_at}) {
      const Chunk& there = steps[written_at].dst;
      if (step.src == there) return format("and reads output %d in step %u", there.index, i);
      if (step.dst == there && i != written_at)
        return format("and writes output %d in step %u", there.index, i);
    }
  }
  return "";
}

// The step of a sender that sends what a rank takes in a step.
std::uint32_t LoanChecker::sent_at(int rank, int sender, std::uint32_t taken_at) {
  const auto receives = schedules_->traffic_of(rank).receives_from(sender);
  const auto number = std::ranges::lower_bound(receives, taken_at) - receives.begin();
  const auto sends = schedules_->traffic_of(sender).sends_to(rank);
  return number < std::ssize(sends) ? sends[static_cast<std::size_t>(number)] : kNeverTaken;
}

// ---- Who knows of it

void LoanChecker::begin_clocks() {
  const std::size_t ranks = index(which_.ranks);
  stride_ = round_up(ranks, kClockBlock);
  clocks_.assign(ranks * stride_, 0);
  next_.assign(ranks, kNoClock);
  free_ = kNoClock;
  wires_.assign(ranks * ranks, {});
  ready_.clear();
  for (int rank = which_.ranks - 1; rank >= 0; --rank) ready_.push_back(rank);
}

bool LoanChecker::try_step(int rank) {
  const std::vector<Step>& steps = schedules_->of(rank).steps;
  const std::uint32_t now = clock(static_cast<std::uint32_t>(rank))[index(rank)];
  if (now == steps.size()) return false;
  const Step& step = steps[now];
  if (step.recv_from != kNobody) {
    Wire& wire = this->wire(step.recv_from, rank);
    if (wire.first == kNoClock) return false;
    learn(clock(static_cast<std::uint32_t>(rank)), wire);
  }
  if (step.dst.buffer == Buffer::kOutput) judge(rank, now, step);
  ++clock(static_cast<std::uint32_t>(rank))[index(rank)];
  if (step.send_to != kNobody) tell(rank, step.send_to);
  return true;
}

// Puts what a rank knows at the end of a wire.
void LoanChecker::tell(int rank, int peer) {
  std::uint32_t sent = free_;
  if (sent == kNoClock) {
    sent = static_cast<std::uint32_t>(next_.size());
    next_.push_back(kNoClock);
    clocks_.resize(clocks_.size() + stride_);
  } else {
    free_ = next_[sent];
  }
  next_[sent] = kNoClock;
  std::copy_n(clock(static_cast<std::uint32_t>(rank)), stride_, clock(sent));
  Wire& wire = this->wire(rank, peer);
  (wire.first == kNoClock ? wire.first : next_[wire.last]) = sent;
  wire.last = sent;
  if (peer != rank) ready_.push_back(peer);
}

void LoanChecker::learn(std::uint32_t* known, Wire& wire) {
  const std::uint32_t sent = wire.first;
  const std::uint32_t* told = clock(sent);
  for (const std::uint32_t* const end = known + stride_; known != end; known += kClockBlock) {
    for (std::size_t i = 0; i < kClockBlock; ++i) known[i] = std::max(known[i], told[i]);
    told += kClockBlock;
  }
  wire.first = next_[sent];
  next_[sent] = free_;
  free_ = sent;
}

void LoanChecker::judge(int rank, std::uint32_t now, const Step& step) {
  const std::uint32_t* known = clock(static_cast<std::uint32_t>(rank));
  for (const Loan& loan :
       std::ranges::equal_range(loans_[index(rank)], step.dst.index, {}, &Loan::target)) {
    if (loan.lent_at > now || !writes_over(loan.chunk, step)) continue;
    if (known[index(loan.borrower)] > loan.taken_at) continue;
    fault_ = format(
        "rank %d lends input %d to rank %d in step %u, and in place writes over it in step %u, "
        "perhaps before it is taken",
        rank, loan.chunk.index, loan.borrower, loan.lent_at, now);
  }
}

}  // namespace catenary::proof
