// The frame of the workers that `./dev compare` runs: for every implementation the same warm-up,
// the same two loops, the same barrier and the same check; what differs is in a table of functions.
//
// On standard output rank 0 says, one a line, times in microseconds of the slowest rank:
//   startup create|first TIME          the communicator; and that with the first all-reduce of 8
//   bytes point OPERATION TYPE BYTES loop|each TIME...   a median is the reader's to take unknown
//   OPERATION TYPE             the implementation has no such thing done
// loop: operations back to back, waited for after every 20 where calls do not wait by themselves.
// each: the ranks meet before each operation, untimed, and wait for it.
// A wrong result, or any failure, ends the process with a nonzero status and says so.
#pragma once

#include "bench/peers/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct Call {
  Operation operation;
  Type type;
  size_t count;
  const void* send;
  void* recv;
} Call;

// What an implementation does. Roots are rank 0; all functions end the process if they fail.
typedef struct Peer {
  void (*create)(const Plan* plan);  // is timed
  void (*destroy)(void);
  void* (*allocate)(size_t bytes);  // at a multiple of 64 bytes; never given back
  int (*knows)(Operation operation, Type type);
  void (*run)(const Call* call);
  void (*wait)(void);  // for all that was run; null where run() waits
} Peer;

int run_worker(int argc, char** argv, const Peer* peer);

// malloc's memory, at a page's beginning.
void* allocate_private(size_t bytes);

#ifdef __cplusplus
}
#endif
