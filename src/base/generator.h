// Generator: a sequence that a coroutine yields one by one, for a range-based for. What it holds is
// one coroutine frame, however long the sequence.
//
// Move-only; one thread at a time; begin() once. The owner keeps what the coroutine's parameters
// point to alive, so such functions take values. What the coroutine throws leaves begin(), ++ or
// next().
#pragma once

#include <coroutine>
#include <exception>
#include <iterator>
#include <utility>

namespace catenary {

template <class T>
class Generator {
 public:
  struct promise_type {
    const T* current = nullptr;  // lives until the coroutine goes on
    std::exception_ptr thrown;

    Generator get_return_object() { return Generator(Handle::from_promise(*this)); }
    std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    std::suspend_always yield_value(const T& value) {
      current = &value;
      return {};
    }
    void return_void() {}
    void unhandled_exception() { thrown = std::current_exception(); }
  };

  Generator(Generator&& other) noexcept : handle_(std::exchange(other.handle_, {})) {}
  Generator& operator=(Generator&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Generator() {
    if (handle_) handle_.destroy();
  }

  class Iterator {
   public:
    const T& operator*() const { return *handle_.promise().current; }
    Iterator& operator++() {
      resume(handle_);
      return *this;
    }
    bool operator==(std::default_sentinel_t) const { return handle_.done(); }

   private:
    friend class Generator;
    explicit Iterator(std::coroutine_handle<promise_type> handle) : handle_(handle) {}
    std::coroutine_handle<promise_type> handle_;
  };

  Iterator begin() {
    resume(handle_);
    return Iterator(handle_);
  }
  std::default_sentinel_t end() const { return {}; }

  // The next value, or null after the last. Instead of begin(), for who takes them one at a time.
  const T* next() {
    resume(handle_);
    return handle_.done() ? nullptr : handle_.promise().current;
  }

 private:
  using Handle = std::coroutine_handle<promise_type>;

  explicit Generator(Handle handle) : handle_(handle) {}

  static void resume(Handle handle) {
    handle.resume();
    // What has thrown is done, too; to ask that first is cheaper, as next() asks it anyway.
    if (handle.done() && handle.promise().thrown) std::rethrow_exception(handle.promise().thrown);
  }

  Handle handle_;
};

}  // namespace catenary
