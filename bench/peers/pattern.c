#include "bench/peers/pattern.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "bench/peers/meet.h"

enum { kPeriod = 4099, kValues = 5 };

static size_t element;
// For each rank kPeriod elements of its input, and behind the last rank those of the sum.
static unsigned char* tiles;

static unsigned value_of(int rank, int index) {
  uint32_t mixed = (uint32_t)index * 2654435761u + (uint32_t)rank * 40503u;
  mixed ^= mixed >> 15;
  mixed *= 2246822519u;
  return (mixed >> 13) % kValues;
}

static void encode(Type type, unsigned value, unsigned char* to) {
  const float number = (float)value;
  uint32_t bits;
  memcpy(&bits, &number, sizeof(bits));
  if (type == kFloat) {
    memcpy(to, &bits, 4);
    return;
  }
  // Whole numbers up to 256 fit both formats exactly.
  uint16_t half = (uint16_t)(bits >> 16);
  if (type == kHalf) {
    half = value == 0 ? 0 : (uint16_t)(((bits >> 23) - 127 + 15) << 10 | (bits >> 13 & 0x3ff));
  }
  memcpy(to, &half, 2);
}

void pattern_open(Type type, int ranks) {
  if (type != kFloat && ranks > 64) fail("sums of %d ranks are not exact in this type", ranks);
  element = type_bytes(type);
  free(tiles);
  tiles = malloc((size_t)(ranks + 1) * kPeriod * element);
  if (tiles == NULL) fail("no memory for the pattern");
  for (int i = 0; i < kPeriod; ++i) {
    unsigned sum = 0;
    for (int rank = 0; rank <= ranks; ++rank) {
      const unsigned value = rank < ranks ? value_of(rank, i) : sum;
      sum += value;
      encode(type, value, tiles + ((size_t)rank * kPeriod + (size_t)i) * element);
    }
  }
}

// Calls memcpy or memcmp on piece after piece of the pattern that begins at element `first`.
static int walk(unsigned char* at, size_t bytes, int rank, size_t first, int compare) {
  const unsigned char* tile = tiles + (size_t)rank * kPeriod * element;
  size_t phase = first % kPeriod * element;
  while (bytes > 0) {
    size_t piece = kPeriod * element - phase;
    if (piece > bytes) piece = bytes;
    if (!compare) {
      memcpy(at, tile + phase, piece);
    } else if (memcmp(at, tile + phase, piece) != 0) {
      return 0;
    }
    at += piece;
    bytes -= piece;
    phase = 0;
  }
  return 1;
}

void pattern_fill(void* send, size_t bytes, int rank) { walk(send, bytes, rank, 0, 0); }

size_t pattern_received(const Point* point, int rank, int ranks) {
  switch (point->operation) {
    case kReduceScatter: return point->bytes / (size_t)ranks;
    case kBroadcast:  // the root has what it sends
      return rank == 0 ? 0 : point->bytes;
    case kReduce: return rank == 0 ? point->bytes : 0;
    default: return point->bytes;
  }
}

int pattern_right(const Point* point, const void* recv, int rank, int ranks) {
  unsigned char* const got = (unsigned char*)recv;  // walk() only compares
  const size_t bytes = pattern_received(point, rank, ranks);
  const size_t count = count_of(point, ranks);
  const size_t block = count * element;
  switch (point->operation) {
    case kAllReduce:
    case kReduce: return walk(got, bytes, ranks, 0, 1);
    case kReduceScatter: return walk(got, bytes, ranks, (size_t)rank * count, 1);
    case kBroadcast: return walk(got, bytes, 0, 0, 1);
    case kSendRecv: return walk(got, bytes, (rank + ranks - 1) % ranks, 0, 1);
    default: break;
  }
  for (int from = 0; from < ranks; ++from) {
    const size_t first = point->operation == kAlltoall ? (size_t)rank * count : 0;
    if (!walk(got + (size_t)from * block, block, from, first, 1)) return 0;
  }
  return 1;
}
