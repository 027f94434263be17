// Where the ranks of one job meet, whatever they are ranks of: a page that the driver shares with
// all of them. It gives every implementation the same barrier and the same way to find the slowest
// rank.
//
// One thread of each process uses it. All functions but meet_open() wait for every rank: they spin,
// then yield; where ranks outnumber cores meet_barrier() yields at once. Failing system calls end
// the process with a message; a rank that fails so ends the others. One that dies otherwise is the
// driver's to notice.
#pragma once

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { kMeetBytes = 1 << 16, kMostRanks = 512, kShareBytes = 4096 };

// `path` is a file of kMeetBytes zeros. `cores`: what the ranks share; 0: those of the machine.
void meet_open(const char* path, int rank, int ranks, int cores);
void meet_barrier(void);
// The largest that any rank gave.
double meet_max(double mine);
// Nanoseconds that a cache line takes now from rank 0's core to rank 1's, of two ranks or more that
// have a core each.
double meet_line_ns(void);
// Rank 0's bytes, for all; at most kShareBytes.
void meet_share(void* bytes, size_t size);

double now_us(void);
// Ends the process, with the text on standard error.
void fail(const char* format, ...) __attribute__((noreturn, format(printf, 1, 2)));

#ifdef __cplusplus
}
#endif
