// Tasks made of lambdas, for tests.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "src/device/task.h"

namespace catenary::testing {

class TestTask final : public Task {
 public:
  explicit TestTask(std::function<Progress()> body, Doorbell* bell = nullptr)
      : body_(std::move(body)), bell_(bell) {}
  Progress poll() override { return body_(); }
  void check() override {
    if (on_check) on_check();
  }
  bool fail(const std::exception& error) noexcept override {
    if (on_fail) on_fail(error.what());
    return ++failures_ >= failures_until_over;
  }
  Wakers wakers() override {
    const bool has_bell = bell_ != nullptr;
    return {{&bell_, has_bell ? std::size_t{1} : std::size_t{0}},
            descriptors,
            has_bell || !descriptors.empty()};
  }

  std::function<void()> on_check;
  std::function<void(const std::string&)> on_fail;
  int failures_until_over = 1;
  std::vector<int> descriptors;

 private:
  int failures_ = 0;
  std::function<Progress()> body_;
  Doorbell* bell_;
};

// A task that is done as soon as `condition()` holds.
template <typename Condition>
TaskPtr task_until(Condition condition, Doorbell* bell = nullptr) {
  return TaskPtr(new TestTask(
      [condition] { return condition() ? Task::Progress::kDone : Task::Progress::kNone; }, bell));
}

template <typename Body>
TaskPtr task_of(Body body) {
  return TaskPtr(new TestTask([body] {
    body();
    return Task::Progress::kDone;
  }));
}

}  // namespace catenary::testing
