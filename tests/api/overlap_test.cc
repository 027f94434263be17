// Buffers of one operation that overlap in another way than NCCL documents for working in place.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "catenary/collectives.h"
#include "tests/support/crew.h"
#include "tests/support/rank_group.h"

namespace catenary::testing {
namespace {

constexpr std::size_t kCounts[] = {1, 1000, 30000, 100000};

int value_of(int rank, int part, std::size_t i) {
  return rank * 1000003 + part * 10007 + static_cast<int>(i * 31);
}

// A block that a rank works in. Input and output begin where a test wants them.
struct Overlapping {
  std::vector<int> memory;
  int* input;
  int* output;

  // `shift`: from the beginning of the output to that of the input, in elements.
  Overlapping(std::size_t elements, std::ptrdiff_t shift)
      : memory(elements + static_cast<std::size_t>(shift < 0 ? -shift : shift)),
        input(memory.data() + (shift > 0 ? shift : 0)),
        output(memory.data() + (shift < 0 ? -shift : 0)) {}
};

std::string label(const char* function, const Seat& seat, std::size_t count, std::ptrdiff_t shift) {
  return std::string(function) + " of " + std::to_string(count) + " elements at rank " +
         std::to_string(seat.rank) + " of " + std::to_string(seat.nranks) + ", shifted by " +
         std::to_string(shift);
}

// For every count and some places of the input: where output begins, just beside where NCCL has it
// in place, and in the middle of things.
void for_all_shifts(const Seat& seat,
                    const std::function<void(std::size_t count, std::ptrdiff_t shift)>& test) {
  for (const std::size_t count : kCounts) {
    const auto own = static_cast<std::ptrdiff_t>(count) * seat.rank;
    const auto half = static_cast<std::ptrdiff_t>(count / 2);
    for (const std::ptrdiff_t shift : {std::ptrdiff_t{0}, own + 1, -own - 1, half, -half}) {
      test(count, shift);
    }
  }
}

// Throws Failure at the first element that is not expected(i).
template <typename Expected>
void check(const int* found, std::size_t count, Expected&& expected, const std::string& what) {
  for (std::size_t i = 0; i < count; ++i) {
    require(found[i] == expected(i), [&] { return what + ": element " + std::to_string(i); });
  }
}

void fill_parts(int* input, std::size_t count, const Seat& seat) {
  for (int part = 0; part < seat.nranks; ++part) {
    for (std::size_t i = 0; i < count; ++i) *input++ = value_of(seat.rank, part, i);
  }
}

// What all ranks gave for this one.
int sum_for(const Seat& seat, std::size_t i) {
  int all = 0;
  for (int rank = 0; rank < seat.nranks; ++rank) all += value_of(rank, seat.rank, i);
  return all;
}

class Overlap : public ::testing::TestWithParam<int> {};

TEST_P(Overlap, all_gather_reads_its_input_before_it_is_written_over) {
  run_crew(GetParam(), [](Seat& seat) {
    for_all_shifts(seat, [&](std::size_t count, std::ptrdiff_t shift) {
      const std::string what = label("AllGather", seat, count, shift);
      Overlapping at(count * static_cast<std::size_t>(seat.nranks), shift);
      for (std::size_t i = 0; i < count; ++i) at.input[i] = value_of(seat.rank, 0, i);
      require_success(
          ncclAllGather(at.input, at.output, count, ncclInt32, seat.comm, seat.stream), what);
      seat.finish();
      for (int rank = 0; rank < seat.nranks; ++rank) {
        check(at.output + static_cast<std::size_t>(rank) * count, count,
              [&](std::size_t i) { return value_of(rank, 0, i); }, what);
      }
    });
  });
}

TEST_P(Overlap, reduce_scatter_reads_its_input_before_it_is_written_over) {
  run_crew(GetParam(), [](Seat& seat) {
    for_all_shifts(seat, [&](std::size_t count, std::ptrdiff_t shift) {
      const std::string what = label("ReduceScatter", seat, count, shift);
      Overlapping at(count * static_cast<std::size_t>(seat.nranks), shift);
      fill_parts(at.input, count, seat);
      require_success(ncclReduceScatter(at.input, at.output, count, ncclInt32, ncclSum, seat.comm,
                                        seat.stream),
                      what);
      seat.finish();
      check(at.output, count, [&](std::size_t i) { return sum_for(seat, i); }, what);
    });
  });
}

TEST_P(Overlap, all_to_all_reads_its_input_before_it_is_written_over) {
  run_crew(GetParam(), [](Seat& seat) {
    for_all_shifts(seat, [&](std::size_t count, std::ptrdiff_t shift) {
      const std::string what = label("AlltoAll", seat, count, shift);
      Overlapping at(count * static_cast<std::size_t>(seat.nranks), shift);
      fill_parts(at.input, count, seat);
      require_success(ncclAlltoAll(at.input, at.output, count, ncclInt32, seat.comm, seat.stream),
                      what);
      seat.finish();
      for (int rank = 0; rank < seat.nranks; ++rank) {
        check(at.output + static_cast<std::size_t>(rank) * count, count,
              [&](std::size_t i) { return value_of(rank, seat.rank, i); }, what);
      }
    });
  });
}

// At the root, which looks at both buffers; the others name one that they do not have.
TEST_P(Overlap, a_root_reads_its_input_before_it_is_written_over) {
  run_crew(GetParam(), [](Seat& seat) {
    const int root = seat.nranks - 1;
    const auto parts = static_cast<std::size_t>(seat.nranks);
    int* const nowhere = reinterpret_cast<int*>(64);
    for_all_shifts(seat, [&](std::size_t count, std::ptrdiff_t shift) {
      const std::string gather = label("Gather", seat, count, shift);
      Overlapping at(count * parts, shift);
      for (std::size_t i = 0; i < count; ++i) at.input[i] = value_of(seat.rank, 1, i);
      require_success(ncclGather(at.input, seat.rank == root ? at.output : nowhere, count,
                                 ncclInt32, root, seat.comm, seat.stream),
                      gather);
      seat.finish();
      for (int rank = 0; seat.rank == root && rank < seat.nranks; ++rank) {
        check(at.output + static_cast<std::size_t>(rank) * count, count,
              [&](std::size_t i) { return value_of(rank, 1, i); }, gather);
      }
      const std::string scatter = label("Scatter", seat, count, shift);
      for (std::size_t i = 0; i < count * parts; ++i) at.input[i] = value_of(root, 2, i);
      require_success(ncclScatter(seat.rank == root ? at.input : nowhere, at.output, count,
                                  ncclInt32, root, seat.comm, seat.stream),
                      scatter);
      seat.finish();
      const std::size_t before = static_cast<std::size_t>(seat.rank) * count;
      const auto given = [&](std::size_t i) { return value_of(root, 2, before + i); };
      check(at.output, count, given, scatter);
    });
  });
}

TEST_P(Overlap, uneven_parts_are_read_before_they_are_written_over) {
  run_crew(GetParam(), [](Seat& seat) {
    std::vector<std::size_t> counts;
    std::vector<std::size_t> displs;
    std::size_t total = 0;
    for (int rank = 0; rank < seat.nranks; ++rank) {
      counts.push_back(20000 + 5000 * static_cast<std::size_t>(rank));
      displs.push_back(total);
      total += counts.back();
    }
    const std::size_t own = counts[static_cast<std::size_t>(seat.rank)];
    std::vector<int> memory(total);
    for (std::size_t i = 0; i < own; ++i) memory[i] = value_of(seat.rank, 0, i);
    require_success(catAllGatherv(memory.data(), own, memory.data(), counts.data(), displs.data(),
                                  ncclInt32, seat.comm, seat.stream),
                    "AllGatherv");
    seat.finish();
    for (int rank = 0; rank < seat.nranks; ++rank) {
      const auto of = static_cast<std::size_t>(rank);
      check(memory.data() + displs[of], counts[of],
            [&](std::size_t i) { return value_of(rank, 0, i); }, "AllGatherv");
    }
  });
}

TEST_P(Overlap, uneven_parts_may_come_from_where_they_go) {
  run_crew(GetParam(), [](Seat& seat) {
    std::vector<std::size_t> counts;
    std::vector<std::size_t> displs;
    std::size_t total = 0;
    for (int rank = 0; rank < seat.nranks; ++rank) {  // the first of them has none
      counts.push_back(7000 * static_cast<std::size_t>(rank));
      displs.push_back(total);
      total += counts.back();
    }
    const std::size_t own = counts[static_cast<std::size_t>(seat.rank)];
    std::vector<int> memory(total + 1);
    for (int part = 0; part < seat.nranks; ++part) {
      const auto of = static_cast<std::size_t>(part);
      for (std::size_t i = 0; i < counts[of]; ++i)
        memory[displs[of] + i] = value_of(seat.rank, part, i);
    }
    require_success(catReduceScatterv(memory.data(), counts.data(), displs.data(), memory.data(),
                                      own, ncclInt32, ncclSum, seat.comm, seat.stream),
                    "ReduceScatterv");
    seat.finish();
    check(memory.data(), own, [&](std::size_t i) { return sum_for(seat, i); }, "ReduceScatterv");
  });
}

// The same operation with buffers that overlap and that do not, in turns.
TEST_P(Overlap, buffers_may_lie_otherwise_each_time) {
  run_crew(GetParam(), [](Seat& seat) {
    constexpr std::size_t kCount = 3000;
    std::vector<int> gathered(kCount * static_cast<std::size_t>(seat.nranks));
    std::vector<int> apart(kCount);
    for (int turn = 0; turn < 6; ++turn) {
      int* const input = turn % 3 == 0   ? apart.data()
                         : turn % 3 == 1 ? gathered.data()
                                         : gathered.data() + kCount * std::size_t(seat.rank);
      for (std::size_t i = 0; i < kCount; ++i) input[i] = value_of(seat.rank, turn, i);
      require_success(
          ncclAllGather(input, gathered.data(), kCount, ncclInt32, seat.comm, seat.stream),
          "AllGather");
      seat.finish();
      for (int rank = 0; rank < seat.nranks; ++rank) {
        check(gathered.data() + static_cast<std::size_t>(rank) * kCount, kCount,
              [&](std::size_t i) { return value_of(rank, turn, i); },
              "turn " + std::to_string(turn));
      }
    }
  });
}

TEST_P(Overlap, whole_buffers_are_refused_unless_they_are_the_same) {
  run_crew(GetParam(), [](Seat& seat) {
    std::vector<int> memory(20, 1);
    const auto refused = [&](ncclResult_t result, const char* function) {
      require_result(result, ncclInvalidArgument, function);
      require(contains(last_error(), "overlap"), last_error());
    };
    int* const input = memory.data();
    int* const output = memory.data() + 4;
    refused(ncclAllReduce(input, output, 10, ncclInt32, ncclSum, seat.comm, seat.stream),
            "AllReduce");
    refused(ncclAllReduce(output, input, 5, ncclInt32, ncclSum, seat.comm, seat.stream),
            "AllReduce");
    if (seat.rank == 0) {
      refused(ncclBroadcast(input, output, 10, ncclInt32, 0, seat.comm, seat.stream), "Broadcast");
      refused(ncclReduce(input, output, 10, ncclInt32, ncclSum, 0, seat.comm, seat.stream),
              "Reduce");
    }
    // Side by side is not over each other, and who looks at one buffer only may name any other.
    require_success(ncclAllReduce(input, output, 4, ncclInt32, ncclSum, seat.comm, seat.stream),
                    "AllReduce");
    int* const sent = seat.rank == 0 ? output : input + 1;
    require_success(ncclBroadcast(sent, output, 10, ncclInt32, 0, seat.comm, seat.stream),
                    "Broadcast");
    seat.finish();
    require(output[0] == seat.nranks, "the operations after those that were refused");
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, Overlap, ::testing::Values(1, 2, 3, 4, 8),
                         [](const auto& param) { return std::to_string(param.param); });

}  // namespace
}  // namespace catenary::testing
