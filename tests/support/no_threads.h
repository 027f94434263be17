// A system that has no thread left.
#pragma once

#include <pthread.h>

#include <stdexcept>

namespace catenary::testing {

// No thread can be made while this lives: none has room for its stack.
class NoThreads {
 public:
  NoThreads() {
    pthread_attr_t impossible;
    expect_none(::pthread_getattr_default_np(&before_));
    expect_none(::pthread_attr_init(&impossible));
    expect_none(::pthread_attr_setstacksize(&impossible, std::size_t{1} << 60));
    expect_none(::pthread_setattr_default_np(&impossible));
  }
  ~NoThreads() { ::pthread_setattr_default_np(&before_); }
  NoThreads(const NoThreads&) = delete;
  NoThreads& operator=(const NoThreads&) = delete;

 private:
  static void expect_none(int error) {
    if (error != 0) throw std::runtime_error("the system keeps its threads");
  }

  pthread_attr_t before_;
};

}  // namespace catenary::testing
