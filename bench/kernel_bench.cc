// Every row of the kernel table at four working sets: first-level, second-level and last-level
// cache, and memory. A line is kernel/type/operation/isa/where and gives
//   bytes_per_second   all operands read and written, counted once each
//   of_limit           how near the kernel is to the limit: the time to copy one operand with
//   memcpy
//                      and to read the others, at the same working set, over the kernel's time
//
//   kernel_bench --benchmark_filter='reduce/(float|half)/sum'
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "src/base/copy.h"
#include "src/kernels/reduce.h"

namespace {

using catenary::DataType;
using catenary::ReduceOp;
using catenary::Scalar;
using namespace catenary::kernels;

constexpr int kFoldSources = 4;
constexpr int kMaxOperands = kFoldSources + 1;

struct Place {
  const char* name;
  std::size_t working_set_bytes;
};

std::vector<Place> places() {
  const auto cache_bytes = [](int which, long fallback) {
    const long bytes = sysconf(which);
    return static_cast<std::size_t>(bytes > 0 ? bytes : fallback);
  };
  const std::size_t last = cache_bytes(_SC_LEVEL3_CACHE_SIZE, 32 << 20);
  return {{"L1", cache_bytes(_SC_LEVEL1_DCACHE_SIZE, 32 << 10) / 2},
          {"L2", cache_bytes(_SC_LEVEL2_CACHE_SIZE, 1 << 20) / 2},
          {"L3", last / 8},  // which is shared with other cores
          {"memory", std::max<std::size_t>(4 * last, 256u << 20)}};
}

// Page-aligned memory for the operands, one set for all benchmarks, so that none pays for first
// touches. Filled so that no arithmetic meets a denormal.
class Operands {
 public:
  explicit Operands(std::size_t operand_bytes) {
    for (auto& operand : memory_) {
      operand.reset(static_cast<std::byte*>(std::aligned_alloc(kHugePageBytes, operand_bytes)));
      std::memset(operand.get(), 0x3c, operand_bytes);
    }
  }
  std::byte* operator[](int i) { return memory_[i].get(); }

  static constexpr std::size_t kHugePageBytes = 2u << 20;

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  std::unique_ptr<std::byte, Free> memory_[kMaxOperands];
};

Operands& operands() {
  static Operands all(places().back().working_set_bytes / 2);
  return all;
}

using Wide [[gnu::vector_size(64)]] = std::uint64_t;

// Reads all, with loads as wide as the processor has.
#ifdef __x86_64__
[[gnu::target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")]]
#endif
std::uint64_t
read_all(const std::byte* from, std::size_t bytes) {
  Wide sums[4] = {};
  for (std::size_t offset = 0; offset + sizeof(sums) <= bytes; offset += sizeof(sums)) {
    for (std::size_t i = 0; i < 4; ++i) {
      sums[i] ^= *reinterpret_cast<const Wide*>(from + offset + i * sizeof(Wide));
    }
  }
  std::uint64_t result = 0;
  for (const Wide& sum : sums) {
    for (int i = 0; i < 8; ++i) result ^= sum[i];
  }
  return result;
}

double cpu_seconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// The shortest of several runs of about 5 ms, in seconds a call.
template <class Work>
double best_seconds(std::size_t bytes, Work work) {
  const int calls = static_cast<int>(std::max<std::size_t>(1, (64u << 20) / bytes));
  double best = 1e9;
  for (int run = 0; run < 9; ++run) {
    const double start = cpu_seconds();
    for (int i = 0; i < calls; ++i) work();
    best = std::min(best, (cpu_seconds() - start) / calls);
  }
  return best;
}

// Seconds a byte.
struct Limit {
  double copy, read;
  double seconds(int operand_count, std::size_t operand_bytes) const {
    return (copy + (operand_count - 2) * read) * static_cast<double>(operand_bytes);
  }
};

// With this working set; measured at first use.
Limit limit_at(std::size_t working_set_bytes) {
  static std::map<std::size_t, Limit> known;
  if (const auto found = known.find(working_set_bytes); found != known.end()) return found->second;
  const std::size_t half = working_set_bytes / 2;
  const double copy_seconds = best_seconds(half, [&] {
    std::memcpy(operands()[0], operands()[1], half);
    benchmark::ClobberMemory();
  });
  const double read_seconds = best_seconds(working_set_bytes, [&] {
    benchmark::DoNotOptimize(read_all(operands()[0], half));
    benchmark::DoNotOptimize(read_all(operands()[1], half));
  });
  return known[working_set_bytes] = {copy_seconds / static_cast<double>(half),
                                     read_seconds / static_cast<double>(working_set_bytes)};
}

using Work = void (*)(const ReduceKernels&, Operands&, std::size_t count);

void run(benchmark::State& state, const ReduceKernels& kernels, Work work, int operand_count,
         std::size_t element_bytes, std::size_t working_set_bytes) {
  const Limit limit = limit_at(working_set_bytes);
  const std::size_t operand_bytes =
      working_set_bytes / static_cast<std::size_t>(operand_count) / 64 * 64;
  work(kernels, operands(), operand_bytes / element_bytes);
  for (auto _ : state) {
    work(kernels, operands(), operand_bytes / element_bytes);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * operand_count *
                          static_cast<std::int64_t>(operand_bytes));
  state.counters["of_limit"] = benchmark::Counter(limit.seconds(operand_count, operand_bytes),
                                                  benchmark::Counter::kIsIterationInvariantRate);
}

struct Form {
  const char* name;
  int operands;
  bool once_a_type;  // the operation makes no difference
  Work work;
};

// Zero bits are a harmless scale for every type.
const Form kForms[] = {
    {"reduce", 3, false,
     [](const ReduceKernels& k, Operands& o, std::size_t count) {
       k.reduce(o[0], o[1], o[2], count);
     }},
    {"reduce_in_place", 2, false,
     [](const ReduceKernels& k, Operands& o, std::size_t count) {
       k.reduce(o[0], o[0], o[1], count);
     }},
    {"reduce_scaled", 3, false,
     [](const ReduceKernels& k, Operands& o, std::size_t count) {
       k.reduce_scaled(o[0], o[1], o[2], Scalar{}, count);
     }},
    {"fold4", kFoldSources + 1, false,
     [](const ReduceKernels& k, Operands& o, std::size_t count) {
       const void* sources[kFoldSources] = {o[1], o[2], o[3], o[4]};
       k.fold(o[0], sources, kFoldSources, count);
     }},
    {"fold2_streaming", 3, false,
     [](const ReduceKernels& k, Operands& o, std::size_t count) {
       const void* sources[2] = {o[1], o[2]};
       k.fold_streaming(o[0], sources, 2, count);
     }},
    {"fold4_streaming", kFoldSources + 1, false,
     [](const ReduceKernels& k, Operands& o, std::size_t count) {
       const void* sources[kFoldSources] = {o[1], o[2], o[3], o[4]};
       k.fold_streaming(o[0], sources, kFoldSources, count);
     }},
    {"scale", 2, true,
     [](const ReduceKernels& k, Operands& o, std::size_t count) {
       k.scale(o[0], o[1], Scalar{}, count);
     }},
    {"divide", 2, true,
     [](const ReduceKernels& k, Operands& o, std::size_t count) {
       k.divide(o[0], o[1], 3, count);
     }},
};

void register_form(const Form& form, DataType type, ReduceOp op, Isa isa) {
  if (form.once_a_type && op != ReduceOp::kSum) return;
  if (form.name == std::string_view("divide") && !catenary::is_integer(type)) return;
  for (const Place& place : places()) {
    const std::string name = std::string(form.name) + "/" + std::string(catenary::name_of(type)) +
                             "/" + std::string(catenary::name_of(op)) + "/" +
                             std::string(name_of(isa)) + "/" + place.name;
    benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) {
      run(state, reduce_kernels(type, op, isa), form.work, form.operands, element_bytes(type),
          place.working_set_bytes);
    })->MinTime(0.02);
  }
}

void register_copies() {
  const std::pair<const char*, Work> copies[] = {
      {"copy", [](const ReduceKernels&, Operands& o,
                  std::size_t bytes) { catenary::copy(o[0], o[1], bytes); }},
      {"copy_streaming", [](const ReduceKernels&, Operands& o, std::size_t bytes) {
         catenary::copy_streaming(o[0], o[1], bytes);
       }}};
  for (const auto& [name, work] : copies) {
    for (const Place& place : places()) {
      const std::string full_name = std::string(name) + "/" + place.name;
      benchmark::RegisterBenchmark(full_name.c_str(), [=, work = work](benchmark::State& state) {
        run(state, {}, work, 2, 1, place.working_set_bytes);
      })->MinTime(0.02);
    }
  }
}

void register_all() {
  register_copies();
  for (const Form& form : kForms) {
    for (int type = 0; type < catenary::kDataTypeCount; ++type) {
      for (int op = 0; op < catenary::kReduceOpCount; ++op) {
        for (int isa = 0; isa < kIsaCount; ++isa) {
          if (!is_usable(static_cast<Isa>(isa))) continue;
          register_form(form, static_cast<DataType>(type), static_cast<ReduceOp>(op),
                        static_cast<Isa>(isa));
        }
      }
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  register_all();
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
