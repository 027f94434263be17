// What a worker is asked to do, from its command line (see its --help), and how much of which data
// that is. A size is that of the larger buffer of a rank: what all_gather, reduce_scatter and
// alltoall are given for all ranks together.
#pragma once

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum Operation {
  kAllReduce,
  kReduceScatter,
  kAllGather,
  kAlltoall,
  kBroadcast,
  kReduce,
  kSendRecv,  // each rank sends to the next one and receives from the one before
  kOperations
} Operation;

typedef enum Type { kFloat, kHalf, kBfloat16, kTypes } Type;

typedef struct Point {
  Operation operation;
  Type type;
  size_t bytes;
} Point;

typedef struct Plan {
  const char* meet;
  int ranks;
  int rank;
  int cpus[64];
  int cpu_count;  // 0: stay where the system puts us
  int private_memory;
  const char* scratch;  // an empty folder that all ranks see
  const char* variant;  // which of several ways, where an implementation has them; else null
  double sample_us;
  int samples;
  int point_count;
  Point* points;
} Plan;

// Ends the process with a message if there is something wrong with the arguments.
Plan read_plan(int argc, char** argv);
// Keeps the calling thread, and those that it starts, on one of the plan's cores, if it has any.
void pin(const Plan* plan, int rank);

const char* operation_name(Operation operation);
const char* type_name(Type type);
size_t type_bytes(Type type);
// The argument of a call: elements that a rank gives to, or gets from, one other.
size_t count_of(const Point* point, int ranks);

#ifdef __cplusplus
}
#endif
