// RingQueue: a first-in first-out queue that allocates only when it grows. One thread at a time.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace catenary {

template <typename T>
class RingQueue {
 public:
  RingQueue() = default;
  RingQueue(const RingQueue&) = delete;
  RingQueue& operator=(const RingQueue&) = delete;

  bool empty() const noexcept { return first_ == last_; }
  std::size_t count() const noexcept { return last_ - first_; }
  T& front() noexcept { return slots_[first_ & (room_ - 1)]; }
  const T& front() const noexcept { return slots_[first_ & (room_ - 1)]; }

  // Throws bad_alloc, leaving the queue as it was. After reserve_one() a push cannot throw.
  void reserve_one() {
    if (count() == room_) grow();
  }
  void push(T value) {
    reserve_one();
    push_reserved(std::move(value));
  }
  void push_reserved(T&& value) noexcept {
    slots_[last_++ & (room_ - 1)] = std::move(value);
  }
  T pop() noexcept { return std::move(slots_[first_++ & (room_ - 1)]); }

 private:
  [[gnu::noinline]] void grow() {
    std::vector<T> wider(room_ == 0 ? kFirstSlots : room_ * 2);
    const std::size_t held = count();
    for (std::size_t i = 0; i < held; ++i) wider[i] = pop();
    slots_ = std::move(wider);
    room_ = slots_.size();
    first_ = 0;
    last_ = held;
  }

  static constexpr std::size_t kFirstSlots = 16;  // a power of two, as all later ones
  std::vector<T> slots_;
  std::size_t room_ = 0;  // as many as there are, which takes a division to find out
  std::size_t first_ = 0;
  std::size_t last_ = 0;
};

}  // namespace catenary
