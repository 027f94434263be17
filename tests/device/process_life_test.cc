// What becomes of a process that forks or ends. The test program itself never uses the library, so
// that each case can do so in a child of its own.
#include "src/device/process_life.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "src/base/error.h"
#include "src/device/device.h"
#include "src/device/memory.h"
#include "tests/device/test_task.h"

namespace catenary {
namespace {

using testing::task_of;
using testing::task_until;

constexpr int kPatience_s = 20;

// The exit code of a child that runs body() and then returns from main; -1 if it was killed, as
// happens when it hangs.
template <typename Body>
int exit_code_of(Body body) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(kPatience_s);
    std::exit(body());
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

template <typename Body>
bool refused(Body body) {
  try {
    body();
  } catch (const Error& error) {
    return error.code() == ErrorCode::kInvalidUsage;
  }
  return false;
}

TEST(Fork, before_the_first_use_is_fine) {
  EXPECT_EQ(exit_code_of([] {
              int ran = 0;
              Device::get(0).default_stream().enqueue(task_of([&] { ran = 7; }));
              return ran;
            }),
            7);
}

TEST(Fork, after_use_gives_the_child_errors) {
  EXPECT_EQ(exit_code_of([] {
              Device& device = Device::get(0);
              Stream& stream = device.default_stream();
              static std::atomic<bool> open{false};
              static std::atomic<int> polls{0};
              stream.enqueue(task_until([] { return ++polls, open.load(); }));
              // The driver thread is under way, and not inside of malloc, whose locks
              // AddressSanitizer's children would inherit.
              while (polls < 20) std::this_thread::sleep_for(std::chrono::milliseconds(1));
              const int in_child = exit_code_of([&] {
                if (!refused([] { Device::current(); })) return 1;
                if (!refused([&] { stream.enqueue(task_of([] {})); })) return 2;
                if (!refused([&] { stream.synchronize(); })) return 3;
                if (!refused([&] { device.synchronize(); })) return 4;
                if (!refused([] { Memory::process().allocate(1, MemoryKind::kDevice, 0); }))
                  return 5;
                return 0;
              });
              open = true;
              stream.synchronize();
              return in_child;
            }),
            0);
}

TEST(Exit, does_not_wait_for_pending_work) {
  EXPECT_EQ(exit_code_of([] {
              Device& device = Device::get(0);
              device.create_stream(true)->enqueue(task_until([] { return false; }));
              device.create_stream(true)->enqueue_host_function([](void*) { ::sleep(60); },
                                                                nullptr);
              std::this_thread::sleep_for(std::chrono::milliseconds(5));
              return 0;
            }),
            0);
}

TEST(Exit, does_not_wait_for_a_thread_that_waits) {
  EXPECT_EQ(exit_code_of([] {
              static std::atomic<bool> waiting{false};
              std::thread([] {
                Stream& stream = *Device::get(0).create_stream(true);
                stream.enqueue(task_until([] { return waiting = true, false; }));
                stream.synchronize();
              }).detach();
              while (!waiting) std::this_thread::yield();
              return 0;
            }),
            0);
}

// Objects made before the first device are destroyed after the drivers have stopped.
TEST(Exit, lets_the_destructors_of_static_objects_wait_for_their_work) {
  EXPECT_EQ(exit_code_of([] {
              struct Late {
                Stream* stream = nullptr;
                std::atomic<int> polls{0};
                ~Late() {
                  stream->enqueue(task_until([this] { return ++polls > 100; }));
                  stream->synchronize();
                  if (polls > 100) ::_exit(9);
                }
              };
              static Late late;
              late.stream = Device::get(0).create_stream(true).get();
              return 0;
            }),
            9);
}

}  // namespace
}  // namespace catenary
