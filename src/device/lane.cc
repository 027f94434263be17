#include "src/device/lane.h"

#include "src/device/executor.h"
#include "src/device/thread.h"

namespace catenary {

void Lane::run(Job& job) {
  {
    const std::lock_guard lock(mutex_);
    if (!started_) start_thread(name_, [this] { serve(); });
    started_ = true;
    (last_ != nullptr ? last_->next_ : first_) = &job;
    last_ = &job;
  }
  changed_.notify_one();
}

void Lane::serve() {
  for (;;) {
    Job* job = nullptr;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return first_ != nullptr; });
      job = first_;
      first_ = job->next_;
      if (first_ == nullptr) last_ = nullptr;
    }
    job->execute();
    job->finished_.store(true, std::memory_order_release);  // from here on the job may be gone
    executor_.nudge();
  }
}

}  // namespace catenary
