// The data that workers send, and whether what they got is right. Elements are small whole numbers,
// so that sums of up to 64 ranks are exact in every type and order; their pattern repeats after a
// prime number of elements, so that no block looks like its neighbour.
//
// Threads: pattern_open() is called once, before the others, which only read.
#pragma once

#include "bench/peers/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

void pattern_open(Type type, int ranks);
// Rank `rank`'s input of `bytes`.
void pattern_fill(void* send, size_t bytes, int rank);
// How many bytes `rank` receives of the point; 0 where it is not the root.
size_t pattern_received(const Point* point, int rank, int ranks);
// 1 if that is what must be there, else 0.
int pattern_right(const Point* point, const void* recv, int rank, int ranks);

#ifdef __cplusplus
}
#endif
