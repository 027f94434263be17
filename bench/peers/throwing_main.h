// main() of workers whose implementation throws: what it throws ends the process with its text.
#pragma once

#include <exception>

#include "bench/peers/frame.h"
#include "bench/peers/meet.h"

inline int run_throwing_worker(int argc, char** argv, const Peer& peer) {
  try {
    return run_worker(argc, argv, &peer);
  } catch (const std::exception& error) {
    fail("%s", error.what());
  }
}
