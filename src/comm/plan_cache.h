// PlanCache: the plans of one communicator, compiled on first use and kept. What selects an
// algorithm for an operation is here too: it is asked with plain numbers and answers with a plan.
//
// Threads: under the communicator's issue lock. Nothing waits. Plans stay where they are, so runs
// may point to them while the communicator lives.
#pragma once

#include <memory>
#include <vector>

#include "src/collective/select.h"
#include "src/comm/rank_facts.h"
#include "src/engine/plan.h"

namespace catenary {

class PlanCache {
 public:
  // `longest`: the slices and slots of the links.
  PlanCache(int rank, int nranks, LinkTable& links, const AgreedFacts& facts, const Cut& longest,
            const AlgorithmRules& rules);

  struct Entry {
    const Algorithm* algorithm;
    int root;
    int window;
    bool scaled;
    Cut cut;
    std::vector<Plan> lanes;
  };
  struct Question {
    Collective kind;
    std::size_t count;  // as the collective means it
    std::size_t element_bytes;
    int root;
    bool scaled;
  };
  // The window depends on the very count where an algorithm cares for it; all else on the class of
  // the size, so that most questions are answered by a look at the answer before.
  const Entry& find(const Question& question) {
    const Entry* last = last_[static_cast<std::size_t>(question.kind)][size_class(question)];
    const bool hit = last != nullptr && last->root == question.root &&
                     last->scaled == question.scaled &&
                     last->window == window_for(*last->algorithm, last->cut, question);
    return hit ? *last : look_up(question);
  }

  // How a send or receive of so many bytes is cut, by both of its ends. They need no plan.
  const Cut& message_cut(std::size_t bytes) {
    const Cut* known = selector_.known_message_cut(bytes);
    return known != nullptr ? *known : first_message_cut(bytes);
  }

  // How long that would take.
  double estimate_ns(const Question& question) {
    return selector_.estimate_ns(question.kind, bytes_of(question));
  }

 private:
  // Of the longer buffer.
  std::size_t bytes_of(const Question& question) const {
    const auto parts = static_cast<std::size_t>(holds_part_per_rank(question.kind) ? nranks_ : 1);
    return question.count * question.element_bytes * parts;
  }
  std::size_t size_class(const Question& question) const {
    return Selector::size_class(bytes_of(question));
  }
  const Entry& look_up(const Question& question);
  const Entry& add(const Question& question, const Selection& selected, int window);
  int window_for(const Algorithm& algorithm, const Cut& cut, const Question& question) const {
    return algorithm.sends_ahead ? counted_window(algorithm, cut, question) : 1;
  }
  int counted_window(const Algorithm& algorithm, const Cut& cut, const Question& question) const;
  const Cut& first_message_cut(std::size_t bytes);
  void tell(const Question& question, const Selection& selected);

  const int rank_;
  const int nranks_;
  const int box_;
  LinkTable& links_;
  Selector selector_;
  std::vector<std::unique_ptr<Entry>> entries_;
  // By collective and size: what was asked for last.
  std::array<std::array<const Entry*, Selector::kSizeClasses>, kCollectiveCount> last_{};
  std::bitset<kCollectiveCount> said_not_ruled_;
};

}  // namespace catenary
