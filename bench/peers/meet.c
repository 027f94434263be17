#define _GNU_SOURCE
#include "bench/peers/meet.h"

#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

// Who waits and has a core to itself looks this often before it lets others have it.
enum { kLooks = 200 };
enum { kBounces = 200 };

typedef struct Page {
  atomic_int failed;  // a rank has: there is nobody to wait for
  _Alignas(64) atomic_uint arrived;
  _Alignas(64) atomic_uint generation;
  _Alignas(64) atomic_uint ball;
  _Alignas(64) unsigned char shared[kShareBytes];
  struct {
    _Alignas(64) double value;
  } slots[kMostRanks];
} Page;
_Static_assert(sizeof(Page) <= kMeetBytes, "the page of the meeting is too small");

static Page* page;
static int my_rank;
static int rank_count;
static int looks_before_yields;

void fail(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fprintf(stderr, "rank %d: ", my_rank);
  vfprintf(stderr, format, arguments);
  fputc('\n', stderr);
  va_end(arguments);
  if (page != NULL) atomic_store(&page->failed, 1);
  exit(EXIT_FAILURE);
}

double now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

void meet_open(const char* path, int rank, int ranks, int cores) {
  if (ranks < 1 || ranks > kMostRanks || rank < 0 || rank >= ranks) {
    fail("%d is no rank of %d; there are at most %d", rank, ranks, (int)kMostRanks);
  }
  const int fd = open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) fail("cannot open the meeting place %s: %m", path);
  void* mapped = mmap(NULL, kMeetBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (mapped == MAP_FAILED) fail("cannot map the meeting place %s: %m", path);
  close(fd);
  page = mapped;
  my_rank = rank;
  rank_count = ranks;
  // A rank that is done and only looks would keep its core from one that is still measured.
  if (cores == 0) cores = (int)sysconf(_SC_NPROCESSORS_ONLN);
  looks_before_yields = ranks > cores ? 0 : kLooks;
}

static void look_again(int looks) {
  if (looks < looks_before_yields) return __builtin_ia32_pause();
  if (atomic_load(&page->failed)) exit(EXIT_FAILURE);
  sched_yield();
}

void meet_barrier(void) {
  const unsigned generation = atomic_load_explicit(&page->generation, memory_order_relaxed);
  if (atomic_fetch_add(&page->arrived, 1) + 1 == (unsigned)rank_count) {
    atomic_store_explicit(&page->arrived, 0, memory_order_relaxed);
    atomic_store_explicit(&page->generation, generation + 1, memory_order_release);
    return;
  }
  for (int looks = 0; atomic_load_explicit(&page->generation, memory_order_acquire) == generation;
       ++looks) {
    look_again(looks);
  }
}

// It is rank 0's turn at an even number of the ball, rank 1's at an odd one.
double meet_line_ns(void) {
  meet_barrier();
  const double begin = now_us();
  unsigned turn = atomic_load(&page->ball) / 2 * 2 + (unsigned)my_rank;
  for (int i = 0; i < kBounces && my_rank < 2; ++i, turn += 2) {
    for (int looks = 0; atomic_load_explicit(&page->ball, memory_order_acquire) != turn; ++looks) {
      if (looks > kLooks) look_again(looks);
    }
    atomic_store_explicit(&page->ball, turn + 1, memory_order_release);
  }
  return meet_max(my_rank == 0 ? (now_us() - begin) * 1e3 / (2 * kBounces) : 0);
}

double meet_max(double mine) {
  page->slots[my_rank].value = mine;
  meet_barrier();
  double most = page->slots[0].value;
  for (int rank = 1; rank < rank_count; ++rank) {
    if (page->slots[rank].value > most) most = page->slots[rank].value;
  }
  meet_barrier();  // nobody overwrites what another still reads
  return most;
}

void meet_share(void* bytes, size_t size) {
  if (size > kShareBytes) fail("%zu bytes are too many to share", size);
  if (my_rank == 0) memcpy(page->shared, bytes, size);
  meet_barrier();
  memcpy(bytes, page->shared, size);
  meet_barrier();
}
