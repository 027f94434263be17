#include "bench/peers/limit_programs.h"

#include <algorithm>

namespace limits {
namespace {

constexpr std::size_t kLine = 16;         // floats
constexpr std::size_t kSmall = 16 << 10;  // bytes that every rank may fold for itself
constexpr std::size_t kLargestChunk = std::size_t{512} << 10 >> 2;

// A fold, and the rank that would do it.
struct Job {
  int rank = 0;
  Fold fold;
};

struct Geometry {
  Operation operation;
  int ranks;
  std::size_t count;  // the argument of the call
  const Memory& memory;
};

std::vector<const float*> inputs(const Geometry& at, std::size_t offset) {
  std::vector<const float*> all;
  for (const float* send : at.memory.send) all.push_back(send + offset);
  return all;
}

// Types of 16 bits move as many bytes as floats do; that they fold as fast is part of the limit.
Geometry geometry(const Point& point, int ranks, const Memory& memory) {
  const std::size_t bytes = count_of(&point, ranks) * type_bytes(point.type);
  return {point.operation, ranks, std::max<std::size_t>(1, bytes / sizeof(float)), memory};
}

// What each rank would do to fill its own receive buffer, reading all others' send buffers.
std::vector<Job> own_jobs(const Geometry& at) {
  std::vector<Job> jobs;
  const auto count = at.count;
  for (int rank = 0; rank < at.ranks; ++rank) {
    const auto self = static_cast<std::size_t>(rank);
    float* const recv = at.memory.recv[self];
    switch (at.operation) {
      case kAllReduce: jobs.push_back({rank, {{recv}, inputs(at, 0), count}}); break;
      case kReduce:
        if (rank == 0) jobs.push_back({rank, {{recv}, inputs(at, 0), count}});
        break;
      case kReduceScatter: jobs.push_back({rank, {{recv}, inputs(at, self * count), count}}); break;
      case kBroadcast:
        if (rank != 0) jobs.push_back({rank, {{recv}, {at.memory.send[0]}, count}});
        break;
      case kSendRecv: {
        const auto from = static_cast<std::size_t>((rank + at.ranks - 1) % at.ranks);
        jobs.push_back({rank, {{recv}, {at.memory.send[from]}, count}});
        break;
      }
      default:
        for (std::size_t from = 0; from < at.memory.send.size(); ++from) {
          const std::size_t offset = at.operation == kAlltoall ? self * count : 0;
          jobs.push_back({rank, {{recv + from * count}, {at.memory.send[from] + offset}, count}});
        }
    }
  }
  return jobs;
}

Fold slice(const Fold& fold, std::size_t begin, std::size_t end) {
  Fold part{fold.to, fold.from, end - begin};
  for (float*& to : part.to) to += begin;
  for (const float*& from : part.from) from += begin;
  return part;
}

// Each job to the thread of its rank.
Steps by_rank(const std::vector<Job>& jobs, int threads) {
  Steps steps(static_cast<std::size_t>(threads), {{}});
  for (const Job& job : jobs) {
    steps[static_cast<std::size_t>(job.rank % threads)][0].push_back(job.fold);
  }
  return steps;
}

// Each job in equal parts to all threads.
Steps cut(const std::vector<Job>& jobs, int threads) {
  Steps steps(static_cast<std::size_t>(threads), {{}});
  const auto parts = static_cast<std::size_t>(threads);
  for (const Job& job : jobs) {
    const std::size_t lines = job.fold.count / kLine;
    for (std::size_t t = 0; t < parts; ++t) {
      const std::size_t begin = lines * t / parts * kLine;
      const std::size_t end = t + 1 == parts ? job.fold.count : lines * (t + 1) / parts * kLine;
      if (end > begin) steps[t][0].push_back(slice(job.fold, begin, end));
    }
  }
  return steps;
}

// One rank's result is all ranks': folded once, written everywhere.
std::vector<Job> shared_jobs(const Geometry& at) {
  return {{0, {at.memory.recv, inputs(at, 0), at.count}}};
}

void add_both_stores(std::vector<Program>& programs, Program program) {
  programs.push_back(program);
  program.streaming = true;
  programs.push_back(std::move(program));
}

// Staging memory: [copies in or results][of two chunks][rank][kLargestChunk].
float* stage(const Geometry& at, int kind, std::size_t chunk, int rank) {
  const auto ranks = static_cast<std::size_t>(at.ranks);
  const std::size_t block = (static_cast<std::size_t>(kind) * 2 + chunk % 2) * ranks;
  return at.memory.staging + (block + static_cast<std::size_t>(rank)) * kLargestChunk;
}

// Part `part` of `count` elements in as many parts as there are ranks.
std::size_t edge(std::size_t count, int part, int ranks) {
  const std::size_t lines = (count + kLine - 1) / kLine;
  const auto at = static_cast<std::size_t>(part);
  return std::min(count, lines * at / static_cast<std::size_t>(ranks) * kLine);
}

// The three stages of a chunk of all-reduce: what others fold goes in, each rank folds its part,
// the parts go out.
void all_reduce_stages(const Geometry& at, std::size_t begin, std::size_t count, std::size_t chunk,
                       std::vector<Job> (&stages)[3]) {
  for (int rank = 0; rank < at.ranks; ++rank) {
    const auto self = static_cast<std::size_t>(rank);
    const float* const send = at.memory.send[self] + begin;
    float* const recv = at.memory.recv[self] + begin;
    for (int part = 0; part < at.ranks; ++part) {
      const std::size_t first = edge(count, part, at.ranks);
      const std::size_t size = edge(count, part + 1, at.ranks) - first;
      if (size == 0) continue;
      if (part != rank) {
        stages[0].push_back({rank, {{stage(at, 0, chunk, rank) + first}, {send + first}, size}});
        stages[2].push_back({rank, {{recv + first}, {stage(at, 1, chunk, part) + first}, size}});
        continue;
      }
      Fold fold{{recv + first, stage(at, 1, chunk, rank) + first}, {send + first}, size};
      for (int from = 0; from < at.ranks; ++from) {
        if (from != rank) fold.from.push_back(stage(at, 0, chunk, from) + first);
      }
      stages[1].push_back({rank, fold});
    }
  }
}

// All other operations: what somebody else needs goes in, and out again or into a fold.
void other_stages(const Geometry& at, std::size_t begin, std::size_t count, std::size_t chunk,
                  std::vector<Job> (&stages)[3]) {
  const std::size_t width = kLargestChunk / static_cast<std::size_t>(at.ranks);
  std::vector<const float*> copied;  // of these inputs there is a copy already
  for (const Job& job : own_jobs(at)) {
    Fold fold = slice(job.fold, begin, begin + count);
    for (const float*& from : fold.from) {
      int owner = 0;
      std::size_t block = 0;
      for (int rank = 0; rank < at.ranks; ++rank) {
        const float* const send = at.memory.send[static_cast<std::size_t>(rank)];
        const std::size_t all = at.operation == kReduceScatter || at.operation == kAlltoall
                                    ? at.count * static_cast<std::size_t>(at.ranks)
                                    : at.count;
        if (from >= send && from < send + all) {
          owner = rank;
          block = static_cast<std::size_t>(from - send) / at.count;
        }
      }
      if (owner == job.rank) continue;
      float* const staged = stage(at, 0, chunk, owner) + block * width;
      if (std::find(copied.begin(), copied.end(), from) == copied.end()) {
        copied.push_back(from);
        stages[0].push_back({owner, {{staged}, {from}, count}});
      }
      from = staged;
    }
    stages[1].push_back({job.rank, fold});
  }
}

// parts: of all-reduce, each rank folds a part; else it folds all for itself.
Steps staged_steps(const Geometry& at, int threads, std::size_t chunk_count, bool parts, bool odd) {
  const std::size_t chunks = (at.count + chunk_count - 1) / chunk_count;
  const std::size_t depth = parts ? 3 : 2;
  Steps steps(static_cast<std::size_t>(threads));
  for (auto& mine : steps) mine.resize(chunks + depth - 1);
  for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
    const std::size_t begin = chunk * chunk_count;
    const std::size_t count = std::min(chunk_count, at.count - begin);
    const std::size_t place = chunk + (odd ? chunks : 0);
    std::vector<Job> stages[3];
    if (parts) {
      all_reduce_stages(at, begin, count, place, stages);
    } else {
      other_stages(at, begin, count, place, stages);
    }
    for (std::size_t i = 0; i < depth; ++i) {
      for (const Job& job : stages[i]) {
        steps[static_cast<std::size_t>(job.rank % threads)][chunk + i].push_back(job.fold);
      }
    }
  }
  return steps;
}

}  // namespace

std::size_t staging_count(int ranks) { return 4 * static_cast<std::size_t>(ranks) * kLargestChunk; }

std::vector<Program> mapped_programs(const Point& point, int ranks, int threads,
                                     const Memory& memory) {
  const Geometry at = geometry(point, ranks, memory);
  std::vector<Program> programs;
  const auto add = [&](const Steps& steps) {
    add_both_stores(programs, {true, true, false, steps, steps});
  };
  add(by_rank(own_jobs(at), threads));
  add(cut(own_jobs(at), threads));
  if (point.operation == kAllReduce) add(cut(shared_jobs(at), threads));
  return programs;
}

std::vector<Program> private_programs(const Point& point, int ranks, int threads,
                                      const Memory& memory) {
  const Geometry at = geometry(point, ranks, memory);
  std::vector<Program> programs;
  const auto add = [&](std::size_t chunk, bool parts) {
    add_both_stores(programs, {false, false, false, staged_steps(at, threads, chunk, parts, false),
                               staged_steps(at, threads, chunk, parts, true)});
  };
  const auto blocks = static_cast<std::size_t>(ranks);
  if (point.bytes <= kSmall) add(at.count, false);
  std::size_t before = 0;
  for (const std::size_t bytes : {32u << 10, 128u << 10, 512u << 10}) {
    const bool parts = point.operation == kAllReduce;
    const std::size_t chunk = std::min(parts ? bytes / 4 : bytes / 4 / blocks, at.count);
    if (chunk == before) continue;
    before = chunk;
    add(chunk, parts);
  }
  return programs;
}

}  // namespace limits
