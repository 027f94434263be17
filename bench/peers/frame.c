#define _GNU_SOURCE
#include "bench/peers/frame.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "bench/peers/meet.h"
#include "bench/peers/pattern.h"

enum { kWindow = 20, kMostOperations = 100000 };
// Cores are as near to each other as ever if a line takes no longer than so many times the least.
static const double kNear = 2;
static const double kPatienceUs = 200e3;

static const Peer* peer;
static Plan plan;

void* allocate_private(size_t bytes) {
  void* memory = NULL;
  if (posix_memalign(&memory, 4096, bytes) != 0) fail("no memory for %zu bytes", bytes);
  return memory;
}

static void wait_for_all(void) {
  if (peer->wait != NULL) peer->wait();
}

// Microseconds for one of `operations`, of the slowest rank.
static double time_loop(const Call* call, int operations) {
  meet_barrier();
  const double begin = now_us();
  for (int i = 1; i <= operations; ++i) {
    peer->run(call);
    if (i % kWindow == 0) wait_for_all();
  }
  wait_for_all();
  return meet_max(now_us() - begin) / operations;
}

static double time_each(const Call* call, int operations) {
  double total = 0;
  for (int i = 0; i < operations; ++i) {
    meet_barrier();
    const double begin = now_us();
    peer->run(call);
    wait_for_all();
    total += now_us() - begin;
  }
  return meet_max(total) / operations;
}

// A virtual machine's cores may be threads of one core now, and far from each other soon. Waits a
// while for the ranks' cores to be as near as they have been; a sample says how near they were.
static double line_when_near(void) {
  static double nearest;
  if (plan.ranks < 2 || plan.cpu_count < plan.ranks) return 0;
  const double begin = now_us();
  for (;;) {
    const double line = meet_line_ns();
    if (nearest == 0 || line < nearest) nearest = line;
    if (line <= kNear * nearest || meet_max(now_us() - begin) > kPatienceUs) return line;
  }
}

static void take_sample(const Call* call, int operations, double (*time_of)(const Call*, int)) {
  const double before = line_when_near();
  const double sample = time_of(call, operations);
  const double after = before > 0 ? meet_line_ns() : 0;
  if (plan.rank != 0) return;
  printf(" %.4f", sample);
  if (before > 0) printf("@%.1f", before > after ? before : after);
}

// All ranks see the same times, so they agree on what to do next.
static void measure(const Call* call, const Point* point, const char* mode,
                    double (*time_of)(const Call*, int)) {
  int operations = 1;
  double each = time_of(call, operations);
  while (each * operations < plan.sample_us / 4 && operations < kMostOperations) {
    operations *= 4;
    each = time_of(call, operations);
  }
  // What takes longer than many samples is measured once or twice: the rounds repeat it anyway.
  int samples = plan.samples;
  if (each > 5 * plan.sample_us && samples > 2) samples = 2;
  if (plan.rank == 0) {
    printf("point %s %s %zu %s", operation_name(point->operation), type_name(point->type),
           point->bytes, mode);
  }
  if (each > 25 * plan.sample_us) {
    samples = 0;
    if (plan.rank == 0) printf(" %.4f", each);
  }
  operations = (int)(plan.sample_us / each) + 1;
  if (operations > kMostOperations) operations = kMostOperations;
  for (int i = 0; i < samples; ++i) take_sample(call, operations, time_of);
  if (plan.rank == 0) printf("\n");
}

static void run_point(const Point* point, const void* send, void* recv) {
  if (!peer->knows(point->operation, point->type)) {
    if (plan.rank == 0) {
      printf("unknown %s %s\n", operation_name(point->operation), type_name(point->type));
    }
    return;
  }
  const Call call = {point->operation, point->type, count_of(point, plan.ranks), send, recv};
  memset(recv, 0xff, point->bytes);
  meet_barrier();  // a peer may write into our memory by itself
  time_loop(&call, 1);
  measure(&call, point, "loop", time_loop);
  measure(&call, point, "each", time_each);
  if (!pattern_right(point, recv, plan.rank, plan.ranks)) {
    fail("wrong result of %s of %zu bytes of %s", operation_name(point->operation), point->bytes,
         type_name(point->type));
  }
  fflush(stdout);
}

static void start_up(void) {
  const float ones[2] = {1, 1};
  float sums[2] = {0, 0};
  meet_barrier();
  const double begin = now_us();
  peer->create(&plan);
  const double created = meet_max(now_us() - begin);
  const double again = now_us();
  const Call call = {kAllReduce, kFloat, 2, ones, sums};
  peer->run(&call);
  wait_for_all();
  const double used = meet_max(now_us() - again);
  if (sums[0] != (float)plan.ranks || sums[1] != sums[0]) fail("the first sum is wrong");
  if (plan.rank == 0) printf("startup create %.1f\nstartup first %.1f\n", created, created + used);
}

int run_worker(int argc, char** argv, const Peer* implementation) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // nobody measures when the one who asked is gone
  peer = implementation;
  plan = read_plan(argc, argv);
  pin(&plan, plan.rank);
  meet_open(plan.meet, plan.rank, plan.ranks, plan.cpu_count);
  start_up();
  size_t most = 64;
  for (int i = 0; i < plan.point_count; ++i) {
    if (plan.points[i].bytes > most) most = plan.points[i].bytes;
  }
  void* const send = peer->allocate(most);
  void* const recv = peer->allocate(most);
  int type = -1;
  for (int i = 0; i < plan.point_count; ++i) {
    const Point* point = &plan.points[i];
    if ((int)point->type != type) {
      type = (int)point->type;
      pattern_open(point->type, plan.ranks);
      pattern_fill(send, most, plan.rank);
    }
    run_point(point, send, recv);
  }
  meet_barrier();
  peer->destroy();
  if (plan.rank == 0) printf("done\n");
  return EXIT_SUCCESS;
}
