#include "src/proof/loans.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <queue>

#include "src/base/error.h"

namespace catenary::proof {
namespace {

// By rank: how many of its steps are known to be over.
using Clock = std::vector<std::uint32_t>;

// Clocks are as long as a multiple of this, so that compilers work on so many at once.
constexpr std::size_t kClockBlock = 16;

void learn(Clock& mine, const std::uint32_t* told) {
  for (std::uint32_t* at = mine.data(); at != mine.data() + mine.size(); at += kClockBlock) {
    for (std::size_t i = 0; i < kClockBlock; ++i) at[i] = std::max(at[i], told[i]);
    told += kClockBlock;
  }
}

constexpr std::size_t index(int value) { return static_cast<std::size_t>(value); }

struct Loan {
  std::size_t lent_at;  // step of the lender
  int borrower;
  std::size_t number;  // of the message, among those to that borrower
  Chunk chunk;
  std::size_t taken_at = 0;  // step of the borrower
};

class World {
 public:
  World(const Algorithm& algorithm, const ProofCase& which, int window, const LendingSource& source)
      : algorithm_(algorithm),
        which_(which),
        window_(window),
        source_(source),
        schedules_(index(which.ranks)),
        loans_(index(which.ranks)) {}

  std::string run() {
    if (!find_loans()) return "";
    const std::size_t entries = (index(which_.ranks) + kClockBlock - 1) / kClockBlock * kClockBlock;
    clocks_.assign(index(which_.ranks), Clock(entries));
    wires_.resize(index(which_.ranks) * index(which_.ranks));
    for (int rank = 0; rank < which_.ranks; ++rank) ready_.push(rank);
    while (!ready_.empty() && fault_.empty()) {
      const int rank = ready_.front();
      ready_.pop();
      while (fault_.empty() && try_step(rank)) {
      }
    }
    return fault_;
  }

 private:
  // What senders knew when they sent: a clock for each message, one after the other.
  struct Wire {
    Clock sent;
    std::size_t taken = 0;  // numbers of those
  };

  Place place(int rank) const {
    Place at = place_of(which_, rank);
    at.window = window_;
    return at;
  }
  const std::vector<Step>& steps(int rank) {
    std::optional<Schedule>& schedule = schedules_[index(rank)];
    if (!schedule) schedule = schedule_of(algorithm_, place(rank));
    return schedule->steps;
  }
  Wire& wire(int from, int to) { return wires_[index(from) * index(which_.ranks) + index(to)]; }

  // Of what may be lent in place, what is written over at all. Whether there is any.
  bool find_loans() {
    bool found = false;
    for (int rank = 0; rank < which_.ranks; ++rank) {
      if (!has_input(which_, rank)) continue;
      steps(rank);
      for (Loan& loan :
           loans_in_place(rank, source_(algorithm_, place(rank), *schedules_[index(rank)]))) {
        if (!is_written_over(rank, loan)) continue;
        loan.taken_at = taken_at(rank, loan);
        loans_[index(rank)].push_back(loan);
        found = true;
      }
    }
    return found;
  }

  std::vector<Loan> loans_in_place(int rank, const std::vector<Lending>& lendings) {
    std::vector<Loan> loans;
    std::vector<std::size_t> sent(index(which_.ranks));
    for (std::size_t i = 0; i < lendings.size(); ++i) {
      const int peer = steps(rank)[i].send_to;
      if (peer == kNobody) continue;
      const std::size_t number = sent[index(peer)]++;
      const Lending& lending = lendings[i];
      if (!lending.in_place || lending.chunk.buffer != Buffer::kInput) continue;
      loans.push_back({i, peer, number, lending.chunk});
    }
    return loans;
  }

  bool is_written_over(int rank, const Loan& loan) {
    for (std::size_t i = loan.lent_at; i < steps(rank).size(); ++i) {
      if (writes_over(rank, loan, steps(rank)[i])) return true;
    }
    return false;
  }

  std::size_t taken_at(int rank, const Loan& loan) {
    std::size_t before = loan.number;
    for (std::size_t i = 0; i < steps(loan.borrower).size(); ++i) {
      if (steps(loan.borrower)[i].recv_from == rank && before-- == 0) return i;
    }
    return SIZE_MAX - 1;  // never
  }

  bool try_step(int rank) {
    Clock& mine = clocks_[index(rank)];
    const std::size_t now = mine[index(rank)];
    if (now == steps(rank).size()) return false;
    const Step& step = steps(rank)[now];
    if (step.recv_from != kNobody) {
      Wire& wire = this->wire(step.recv_from, rank);
      if (wire.taken == wire.sent.size()) return false;
      const std::uint32_t* told = wire.sent.data() + wire.taken;
      learn(mine, told);
      wire.taken += mine.size();
      if (wire.taken == wire.sent.size()) {
        wire.sent.clear();
        wire.taken = 0;
      }
    }
    judge(rank, now, mine);
    ++mine[index(rank)];
    if (step.send_to != kNobody) {
      Clock& sent = wire(rank, step.send_to).sent;
      sent.insert(sent.end(), mine.begin(), mine.end());
      if (step.send_to != rank) ready_.push(step.send_to);
    }
    return true;
  }

  void judge(int rank, std::size_t now, const Clock& known) {
    const Step& step = steps(rank)[now];
    if (step.dst.buffer != Buffer::kOutput) return;
    for (const Loan& loan : loans_[index(rank)]) {
      if (loan.lent_at > now || !writes_over(rank, loan, step)) continue;
      if (known[index(loan.borrower)] > loan.taken_at) continue;
      fault_ = format(
          "rank %d lends input %d to rank %d in step %zu, and in place writes over it in step %zu, "
          "perhaps before it is taken",
          rank, loan.chunk.index, loan.borrower, loan.lent_at, now);
    }
  }

  // But for what is copied onto itself.
  bool writes_over(int rank, const Loan& loan, const Step& step) const {
    return step.dst.buffer == Buffer::kOutput && lies_over(rank, loan.chunk, step.dst) &&
           (step.recv_from != kNobody || step.src != loan.chunk);
  }

  // In the layouts that NCCL documents for working in place.
  bool lies_over(int rank, const Chunk& given, const Chunk& written) const {
    const bool gathered = gathers(which_.collective);
    if (gathered == scatters(which_.collective)) return written.index == given.index;
    return (gathered ? written.index : given.index) == rank;
  }

  const Algorithm& algorithm_;
  const ProofCase which_;
  const int window_;
  const LendingSource& source_;
  std::vector<std::optional<Schedule>> schedules_;  // by rank, once they are looked at
  std::vector<std::vector<Loan>> loans_;            // by rank
  std::vector<Clock> clocks_;
  std::vector<Wire> wires_;  // by sender and receiver
  std::queue<int> ready_;
  std::string fault_;
};

}  // namespace

std::string unsafe_loan(const Algorithm& algorithm, const ProofCase& which,
                        const std::set<int>& windows, const LendingSource& source) {
  if (is_point_to_point(which.collective)) return "";  // their buffers belong to two operations
  for (const int window : windows) {
    std::string fault = World(algorithm, which, window, source).run();
    if (!fault.empty()) return fault;
  }
  return "";
}

}  // namespace catenary::proof
