// Two groups of ranks that exchange chunks, as one of them sees it: so many messages to give, so
// many to take, one at a time, never more ahead than links hold.
//
// Pure; any thread. give(i) and take(i) are the steps of the i-th message each way; what they refer
// to outlives the range. A range and no coroutine, since it is the innermost of
// those that schedules are made of, and a frame for each round would take longer than its steps.
#pragma once

#include <iterator>
#include <utility>

#include "src/collective/schedule.h"

namespace catenary {

template <class Give, class Take>
class Exchange {
 public:
  Exchange(int window, int gives, int takes, Give give, Take take)
      : ahead_(window - 1), gives_(gives), takes_(takes), give_(give), take_(take) {}

  class Iterator {
   public:
    const Step& operator*() const { return step_; }
    Iterator& operator++() {
      step_ = of_->next(given_, taken_);
      return *this;
    }
    bool operator==(std::default_sentinel_t) const {
      return step_.send_to == kNobody && step_.recv_from == kNobody;
    }

   private:
    friend class Exchange;
    explicit Iterator(const Exchange* of) : of_(of), step_(of->next(given_, taken_)) {}
    const Exchange* of_;
    int given_ = 0;
    int taken_ = 0;
    Step step_;
  };

  Iterator begin() const { return Iterator(this); }
  std::default_sentinel_t end() const { return {}; }

 private:
  // Gives while no more than `ahead_` messages have been given more than taken, or there is nothing
  // left to take. A step that deals with nobody at the end.
  Step next(int& given, int& taken) const {
    const bool gives = given < gives_ && (given <= taken + ahead_ || taken == takes_);
    if (gives) return give_(given++);
    return taken < takes_ ? take_(taken++) : Step{};
  }

  int ahead_;
  int gives_;
  int takes_;
  Give give_;
  Take take_;
};

template <class Give, class Take>
Exchange<Give, Take> exchange(int window, int gives, int takes, Give give, Take take) {
  return {window, gives, takes, std::move(give), std::move(take)};
}

}  // namespace catenary
