// ThreadText: a text that a thread keeps for its caller, such as that of its last error.
//
// It lies in the heap and not in thread-local memory: a library that a running program loads gets
// what is left of a reserve of some hundred bytes, and does not load at all if it needs more.
//
// Threads: declare it thread_local. Owner: the thread. Failure: none; without memory the text is
// empty.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <new>

namespace catenary {

template <std::size_t kBytes>
class ThreadText {
 public:
  // Keeps as much of `text` as there is room for.
  const char* keep(const char* text) noexcept {
    if (!text_) text_.reset(new (std::nothrow) char[kBytes]);
    if (!text_) return "";
    std::strncpy(text_.get(), text, kBytes - 1);
    text_[kBytes - 1] = '\0';
    return text_.get();
  }
  const char* get() const noexcept { return text_ ? text_.get() : ""; }

 private:
  std::unique_ptr<char[]> text_;
};

}  // namespace catenary
