// Proves that what an algorithm may lend in place (src/collective/lending.h) is not written over
// before it is taken: all ranks run, every message carries what its sender knows of everyone's
// progress, and whoever writes over what it has lent must know that the borrower is past the step
// that reads it. So it holds for every order of execution, not only for one. And that where a
// result may be put by the peer who makes it, nobody else looks from the loan on until it is said
// to be there. And that what two ranks put into both of their outputs is looked at by nobody, since
// it is there for certain only once the operation is over.
//
// The schedules must be proved otherwise: pairing is taken for granted. Every message is taken to
// be sent, while those of empty chunks are not: where one is lent none is empty, since chunks
// differ by one cut at most, and an exchange of uneven parts in place is as long both ways.
//
// Keeps its memory from one case to the next. One thread at a time; nothing waits or fails.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "src/collective/algorithms.h"
#include "src/collective/lending.h"
#include "src/proof/proof_case.h"
#include "src/proof/written_schedules.h"

namespace catenary::proof {

// What may be lent of a schedule, as lendings() finds it, or what a test makes of that.
using LendingSource = std::function<std::vector<Lending>(const Algorithm&, const Place&,
                                                         const Schedule&, const TrafficOf&)>;

class LoanChecker {
 public:
  // The first loan that is not safe, in words; empty if all are. `schedules`: of that case.
  std::string unsafe_loan(const Algorithm& algorithm, const ProofCase& which,
                          WrittenSchedules& schedules, const LendingSource& source = lendings_of);

 private:
  static std::vector<Lending> lendings_of(const Algorithm& algorithm, const Place& at,
                                          const Schedule& mine, const TrafficOf& traffic_of) {
    return lendings(algorithm, at, mine, traffic_of);
  }

  // Of input that lies where a rank's own output will.
  struct Loan {
    int target;             // the chunk of output
    std::uint32_t lent_at;  // step of the lender
    Chunk chunk;
    int borrower;
    std::uint32_t taken_at;  // step of the borrower
  };
  // What senders knew when they sent, for messages that are not taken yet: the first and the last
  // of a chain of clocks.
  struct Wire {
    std::uint32_t first = kNoClock;
    std::uint32_t last = kNoClock;
  };
  static constexpr std::uint32_t kNoClock = UINT32_MAX;

  bool find_loans(const Algorithm& algorithm, const LendingSource& source);
  void find_loans_of(int rank, const std::vector<Lending>& lendings);
  void judge_returns(int rank, const std::vector<Lending>& lendings);
  std::string fault_of_return(int rank, std::uint32_t lent_at, const Chunk& returned);
  std::string fault_of_exchange(int rank, std::uint32_t lent_at, const Chunk& exchanged);
  std::string fault_of_keeping(int rank, std::uint32_t lent_at, std::uint32_t kept_at);
  std::uint32_t sent_at(int rank, int sender, std::uint32_t taken_at);
  int target_of(int rank, const Chunk& given) const;
  void note_writers(int rank);
  bool is_written_over(const Loan& loan, const std::vector<Step>& steps) const;
  std::uint32_t taken_at(int rank, int borrower, std::uint32_t lent_at);

  void begin_clocks();
  bool try_step(int rank);
  void judge(int rank, std::uint32_t now, const Step& step);
  void tell(int rank, int peer);
  void learn(std::uint32_t* known, Wire& wire);
  std::uint32_t* clock(std::uint32_t index) { return clocks_.data() + index * stride_; }
  Wire& wire(int from, int to) {
    return wires_[static_cast<std::size_t>(from) * static_cast<std::size_t>(which_.ranks) +
                  static_cast<std::size_t>(to)];
  }

  ProofCase which_;
  WrittenSchedules* schedules_ = nullptr;
  std::vector<std::vector<Loan>> loans_;  // by rank; by target, for one rank
  // Of the rank whose loans are looked for: by chunk of output, the steps that write it.
  std::vector<std::vector<std::uint32_t>> writers_;

  // How many steps of each rank are known to be over. The first are the ranks' own, then come those
  // of messages under way, and those to be used again, in a chain.
  std::vector<std::uint32_t> clocks_;
  std::vector<std::uint32_t> next_;  // of a chain, by clock
  std::uint32_t free_ = kNoClock;
  std::size_t stride_ = 0;   // from clock to clock
  std::vector<Wire> wires_;  // by sender and receiver
  std::vector<int> ready_;
  std::string fault_;
};

}  // namespace catenary::proof
