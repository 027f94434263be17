// Rounds: what is known of the variants of a point while they are measured in turns, and what
// follows from it: which are out of the running, and whether the question is answered.
//
// Pure; nothing waits or fails.
#pragma once

#include <cstddef>
#include <vector>

namespace catenary {

// Communicators for each variant, which take turns: how fast one is depends on where its memory
// happens to lie, and that is not what is asked.
inline constexpr std::size_t kReplicas = 2;

// So much of the values lie below it; 0.5 is the median. Of one value at least.
double quantile(std::vector<double> values, double part);

// What is known of a variant. The n-th samples of all that are still in the running were taken one
// after the other, so that what disturbs them disturbs them alike.
struct Runner {
  bool is_algorithm = true;  // else the library's own choice, which is one of the others once more
  int iterations = 1;
  int lead_in = 0;
  bool is_out = false;
  std::vector<double> ns;

  // The mean of what its communicators take, by turns; of each so much of the times count.
  double typical(double part) const;
  double median() const { return typical(0.5); }
};

// Whether it is clear if one takes at most `close` times as long as another: the median of their
// ratios is known within an interval, by counting.
bool is_clear(const Runner& one, const Runner& other, double close);

// Takes out of the running what is far behind. Whether it is clear how good the judged one is:
// whether it takes at most `close` times as long as the best algorithm.
bool sift(std::vector<Runner>& runners, std::size_t judged, double close);

// The algorithm in the running that takes the least time.
std::size_t best_of(const std::vector<Runner>& runners);

// Leaves in the running, and without times, only the judged one, the two best of the other
// algorithms, and what is no algorithm. The others keep their times.
void start_again(std::vector<Runner>& runners, std::size_t judged);

}  // namespace catenary
