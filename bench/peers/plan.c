#define _GNU_SOURCE
#include "bench/peers/plan.h"

#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/peers/meet.h"

static const char* const kOperationNames[kOperations] = {
    "all_reduce", "reduce_scatter", "all_gather", "alltoall", "broadcast", "reduce", "sendrecv"};
static const char* const kTypeNames[kTypes] = {"float", "half", "bfloat16"};

const char* operation_name(Operation operation) { return kOperationNames[operation]; }
const char* type_name(Type type) { return kTypeNames[type]; }
size_t type_bytes(Type type) { return type == kFloat ? 4 : 2; }

static int split_among_ranks(Operation operation) {
  return operation == kReduceScatter || operation == kAllGather || operation == kAlltoall;
}

size_t count_of(const Point* point, int ranks) {
  const size_t elements = point->bytes / type_bytes(point->type);
  return split_among_ranks(point->operation) ? elements / (size_t)ranks : elements;
}

static long number(const char* text, const char* what) {
  char* end;
  errno = 0;
  const long value = strtol(text, &end, 10);
  if (errno != 0 || end == text || *end != '\0' || value < 0) fail("%s: no %s", text, what);
  return value;
}

static int index_in(const char* const* names, int count, const char* name, const char* what) {
  for (int i = 0; i < count; ++i) {
    if (strcmp(names[i], name) == 0) return i;
  }
  fail("%s: no %s", name, what);
}

static Point read_point(const char* text, int ranks) {
  char* copy = strdup(text);
  char* rest = NULL;
  const char* operation = strtok_r(copy, "/", &rest);
  const char* type = strtok_r(NULL, "/", &rest);
  const char* bytes = strtok_r(NULL, "/", &rest);
  if (bytes == NULL) fail("%s: expected operation/type/bytes", text);
  Point point;
  point.operation = (Operation)index_in(kOperationNames, kOperations, operation, "operation");
  point.type = (Type)index_in(kTypeNames, kTypes, type, "data type");
  point.bytes = (size_t)number(bytes, "size");
  free(copy);
  const size_t parts = split_among_ranks(point.operation) ? (size_t)ranks : 1;
  if (point.bytes == 0 || point.bytes % (type_bytes(point.type) * parts) != 0) {
    fail("%s: the size is no multiple of %zu elements", text, parts);
  }
  return point;
}

// Where the launcher says who we are before MPI_Init would: Open MPI, then MPICH and Intel MPI.
static int rank_of_launcher(void) {
  static const char* const kNames[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK"};
  for (int i = 0; i < 2; ++i) {
    const char* text = getenv(kNames[i]);
    if (text != NULL) return (int)number(text, "rank");
  }
  fail("no --rank, and no launcher that tells");
}

static void read_cpus(Plan* plan, char* text) {
  char* rest = NULL;
  for (char* cpu = strtok_r(text, ",", &rest); cpu != NULL; cpu = strtok_r(NULL, ",", &rest)) {
    if (plan->cpu_count == 64) fail("more than 64 cores");
    plan->cpus[plan->cpu_count++] = (int)number(cpu, "core");
  }
}

static int memory_is_private(const char* text) {
  static const char* const kKinds[] = {"mapped", "private"};
  return index_in(kKinds, 2, text, "kind of memory");
}

static const char kHelp[] =
    "A rank of what ./dev compare measures, which starts it by itself (see ./dev compare --help).\n"
    "By hand, once for each rank:\n\n"
    "  %s --meet FILE --ranks N [--rank R] [--cpus 0,1] [--memory mapped|private]\n"
    "      [--scratch FOLDER] [--variant NAME] [--sample-us 4000] [--samples 3]\n"
    "      all_reduce/float/1024 [operation/type/bytes ...]\n\n"
    "FILE: 64 KB of zeros (truncate -s 64K FILE), for one run. Without --rank, mpirun says it.\n";

Plan read_plan(int argc, char** argv) {
  static const struct option kFlags[] = {{"meet", required_argument, NULL, 'm'},
                                         {"ranks", required_argument, NULL, 'n'},
                                         {"rank", required_argument, NULL, 'r'},
                                         {"cpus", required_argument, NULL, 'c'},
                                         {"memory", required_argument, NULL, 'k'},
                                         {"scratch", required_argument, NULL, 'd'},
                                         {"samples", required_argument, NULL, 's'},
                                         {"sample-us", required_argument, NULL, 'u'},
                                         {"variant", required_argument, NULL, 'v'},
                                         {"help", no_argument, NULL, 'h'},
                                         {NULL, 0, NULL, 0}};
  Plan plan = {.rank = -1, .sample_us = 4000, .samples = 3};
  for (int flag; (flag = getopt_long(argc, argv, "", kFlags, NULL)) != -1;) {
    switch (flag) {
      case 'm': plan.meet = optarg; break;
      case 'n': plan.ranks = (int)number(optarg, "number of ranks"); break;
      case 'r': plan.rank = (int)number(optarg, "rank"); break;
      case 'c': read_cpus(&plan, optarg); break;
      case 'k': plan.private_memory = memory_is_private(optarg); break;
      case 'd': plan.scratch = optarg; break;
      case 'v': plan.variant = optarg; break;
      case 's': plan.samples = (int)number(optarg, "number of samples"); break;
      case 'u': plan.sample_us = (double)number(optarg, "time"); break;
      case 'h': printf(kHelp, argv[0]); exit(EXIT_SUCCESS);
      default: fprintf(stderr, "See %s --help.\n", argv[0]); exit(EXIT_FAILURE);
    }
  }
  if (plan.meet == NULL || plan.ranks == 0 || plan.samples == 0) {
    fail("--meet, --ranks and at least one sample are needed: see %s --help", argv[0]);
  }
  if (plan.rank < 0) plan.rank = rank_of_launcher();
  plan.point_count = argc - optind;
  plan.points = calloc((size_t)plan.point_count + 1, sizeof(Point));
  for (int i = 0; i < plan.point_count; ++i) {
    plan.points[i] = read_point(argv[optind + i], plan.ranks);
  }
  return plan;
}

void pin(const Plan* plan, int rank) {
  if (plan->cpu_count == 0) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET((size_t)plan->cpus[rank % plan->cpu_count], &set);
  if (sched_setaffinity(0, sizeof(set), &set) != 0) {
    fail("cannot stay on core %d: %m", plan->cpus[rank % plan->cpu_count]);
  }
}
