// Ranks as places on a circle. Pure.
#pragma once

namespace catenary {

// The rank `distance` places after (or, if negative, before) another one; |distance| <= nranks.
constexpr int rank_after(int rank, int distance, int nranks) {
  return (rank + distance + nranks) % nranks;
}

}  // namespace catenary
