#include "bench/peers/limit_folds.h"

#include <immintrin.h>

#include <cstdint>
#include <cstring>

namespace limits {
namespace {

// The widest registers of the processor that this is compiled for, which is the one that runs it.
#if defined(__AVX512F__)
struct Wide {
  using Register = __m512;
  static Register load(const float* from) { return _mm512_loadu_ps(from); }
  static Register add(Register a, Register b) { return _mm512_add_ps(a, b); }
  static void store(float* to, Register value) { _mm512_storeu_ps(to, value); }
  static void stream(float* to, Register value) { _mm512_stream_ps(to, value); }
};
#elif defined(__AVX2__)
struct Wide {
  using Register = __m256;
  static Register load(const float* from) { return _mm256_loadu_ps(from); }
  static Register add(Register a, Register b) { return _mm256_add_ps(a, b); }
  static void store(float* to, Register value) { _mm256_storeu_ps(to, value); }
  static void stream(float* to, Register value) { _mm256_stream_ps(to, value); }
};
#else
struct Wide {
  using Register = __m128;
  static Register load(const float* from) { return _mm_loadu_ps(from); }
  static Register add(Register a, Register b) { return _mm_add_ps(a, b); }
  static void store(float* to, Register value) { _mm_storeu_ps(to, value); }
  static void stream(float* to, Register value) { _mm_stream_ps(to, value); }
};
#endif

constexpr std::size_t kLanes = sizeof(Wide::Register) / sizeof(float);

bool can_stream(const Fold& fold) {
  for (const float* to : fold.to) {
    if (reinterpret_cast<std::uintptr_t>(to) % sizeof(Wide::Register) != 0) return false;
  }
  return true;
}

// kFrom, kTo: how many there are, or 0 for any number of them.
template <std::size_t kFrom, std::size_t kTo, bool kStream>
void run_loop(const Fold& fold) {
  const std::size_t sources = kFrom != 0 ? kFrom : fold.from.size();
  const std::size_t targets = kTo != 0 ? kTo : fold.to.size();
  const float* const* const from = fold.from.data();
  float* const* const to = fold.to.data();
  std::size_t i = 0;
  for (; i + kLanes <= fold.count; i += kLanes) {
    Wide::Register sum = Wide::load(from[0] + i);
    for (std::size_t s = 1; s < sources; ++s) sum = Wide::add(sum, Wide::load(from[s] + i));
    for (std::size_t t = 0; t < targets; ++t) {
      if constexpr (kStream) {
        Wide::stream(to[t] + i, sum);
      } else {
        Wide::store(to[t] + i, sum);
      }
    }
  }
  for (; i < fold.count; ++i) {
    float sum = from[0][i];
    for (std::size_t s = 1; s < sources; ++s) sum += from[s][i];
    for (std::size_t t = 0; t < targets; ++t) to[t][i] = sum;
  }
}

template <bool kStream>
void run_shape(const Fold& fold) {
  const std::size_t sources = fold.from.size();
  const std::size_t targets = fold.to.size();
  if (sources == 1 && targets == 1) return run_loop<1, 1, kStream>(fold);
  if (sources == 2 && targets == 1) return run_loop<2, 1, kStream>(fold);
  if (sources == 2 && targets == 2) return run_loop<2, 2, kStream>(fold);
  if (sources == 4 && targets == 1) return run_loop<4, 1, kStream>(fold);
  if (sources == 4 && targets == 4) return run_loop<4, 4, kStream>(fold);
  if (sources == 8 && targets == 1) return run_loop<8, 1, kStream>(fold);
  if (sources == 8 && targets == 8) return run_loop<8, 8, kStream>(fold);
  run_loop<0, 0, kStream>(fold);
}

}  // namespace

void run(const Fold& fold, bool streaming) {
  if (streaming && can_stream(fold)) {
    run_shape<true>(fold);
    _mm_sfence();
  } else if (fold.from.size() == 1 && fold.to.size() == 1) {
    std::memcpy(fold.to[0], fold.from[0], fold.count * sizeof(float));
  } else {
    run_shape<false>(fold);
  }
}

}  // namespace limits
