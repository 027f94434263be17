#include "src/proof/loans.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <queue>

#include "src/base/error.h"

namespace catenary {
namespace {

// By rank: how many of its steps are known to be over.
using Clock = std::vector<std::uint32_t>;

constexpr std::size_t index(int value) { return static_cast<std::size_t>(value); }

struct Loan {
  std::size_t lent_at;   // step of the lender
  std::size_t taken_at;  // step of the borrower
  int borrower;
  Chunk chunk;
};

class World {
 public:
  World(const Algorithm& algorithm, const ProofCase& which, int window, const LendingSource& source)
      : which_(which),
        clocks_(index(which.ranks), Clock(index(which.ranks))),
        wires_(index(which.ranks) * index(which.ranks)) {
    std::vector<Place> places;
    for (int rank = 0; rank < which.ranks; ++rank) {
      places.push_back(place_of(which, rank));
      places.back().window = window;
      schedules_.push_back(schedule_of(algorithm, places.back()));
    }
    for (int rank = 0; rank < which.ranks; ++rank) {
      const Schedule& mine = schedules_[index(rank)];
      loans_.emplace_back();
      if (!has_input(which, rank)) continue;
      loans_.back() = loans_in_place(rank, source(algorithm, places[index(rank)], mine));
    }
  }

  std::string run() {
    const bool lends =
        std::ranges::any_of(loans_, [](const auto& loans) { return !loans.empty(); });
    if (!lends) return "";
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
  // What senders knew when they sent, message by message.
  struct Wire {
    std::vector<Clock> sent;
    std::size_t taken = 0;
  };

  const std::vector<Step>& steps(int rank) const { return schedules_[index(rank)].steps; }
  Wire& wire(int from, int to) { return wires_[index(from) * index(which_.ranks) + index(to)]; }

  std::vector<Loan> loans_in_place(int rank, const std::vector<Lending>& found) const {
    std::vector<Loan> loans;
    std::map<int, std::size_t> sent;
    for (std::size_t i = 0; i < found.size(); ++i) {
      const int peer = steps(rank)[i].send_to;
      if (peer == kNobody) continue;
      const std::size_t number = sent[peer]++;
      if (!found[i].in_place || found[i].chunk.buffer != Buffer::kInput) continue;
      loans.push_back({i, taken_at(rank, peer, number), peer, found[i].chunk});
    }
    return loans;
  }

  // Where the peer takes our message of that number.
  std::size_t taken_at(int rank, int peer, std::size_t number) const {
    for (std::size_t i = 0; i < steps(peer).size(); ++i) {
      if (steps(peer)[i].recv_from == rank && number-- == 0) return i;
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
      const Clock told = std::move(wire.sent[wire.taken++]);
      for (std::size_t i = 0; i < mine.size(); ++i) mine[i] = std::max(mine[i], told[i]);
    }
    judge(rank, now, mine);
    ++mine[index(rank)];
    if (step.send_to != kNobody) {
      wire(rank, step.send_to).sent.push_back(mine);
      if (step.send_to != rank) ready_.push(step.send_to);
    }
    return true;
  }

  void judge(int rank, std::size_t now, const Clock& known) {
    const Step& step = steps(rank)[now];
    if (step.dst.buffer != Buffer::kOutput) return;
    for (const Loan& loan : loans_[index(rank)]) {
      if (loan.lent_at > now || !lies_over(rank, loan.chunk, step.dst)) continue;
      if (step.recv_from == kNobody && step.src == loan.chunk) continue;  // onto itself
      if (known[index(loan.borrower)] > loan.taken_at) continue;
      fault_ = format(
          "rank %d lends input %d to rank %d in step %zu, and in place writes over it in step %zu, "
          "perhaps before it is taken",
          rank, loan.chunk.index, loan.borrower, loan.lent_at, now);
    }
  }

  // In the layouts that NCCL documents for working in place.
  bool lies_over(int rank, const Chunk& given, const Chunk& written) const {
    const bool gathered = gathers(which_.collective);
    if (gathered == scatters(which_.collective)) return written.index == given.index;
    return (gathered ? written.index : given.index) == rank;
  }

  const ProofCase which_;
  std::vector<Schedule> schedules_;
  std::vector<std::vector<Loan>> loans_;  // by rank
  std::vector<Clock> clocks_;
  std::vector<Wire> wires_;  // by sender and receiver
  std::queue<int> ready_;
  std::string fault_;
};

}  // namespace

std::string unsafe_loan(const Algorithm& algorithm, const ProofCase& which,
                        const LendingSource& source) {
  if (is_point_to_point(which.collective)) return "";  // their buffers belong to two operations
  std::string fault = World(algorithm, which, 1, source).run();
  if (fault.empty() && algorithm.sends_ahead) fault = World(algorithm, which, 4, source).run();
  return fault;
}

}  // namespace catenary
