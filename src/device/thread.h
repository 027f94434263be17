// Starts a thread of the library: detached, named, and deaf to signals, which are the program's.
#pragma once

#include <pthread.h>

#include <csignal>
#include <string>
#include <thread>

namespace catenary {

// Throws std::system_error if the system has no thread left. `name` has at most 15 characters.
template <typename Body>
void start_thread(const std::string& name, Body body) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  struct Masked {
    sigset_t* restore;
    ~Masked() { ::pthread_sigmask(SIG_SETMASK, restore, nullptr); }
  } masked{&before};
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread(std::move(body));
  ::pthread_setname_np(thread.native_handle(), name.c_str());
  thread.detach();
}

}  // namespace catenary
