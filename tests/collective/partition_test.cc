#include "src/collective/partition.h"

#include <gtest/gtest.h>

#include <limits>

namespace catenary {
namespace {

// It costs nothing where all is known.
static_assert(Partition::split(1000, 4, 3).chunk(0) == Range{0, 336});
static_assert(Partition::split(1000, 4, 3).chunk(2) == Range{672, 328});
static_assert(Slicing(Partition::split(1000, 4, 3), 256, 2).passes() == 3);

constexpr std::size_t kCounts[] = {0,  1,  2,  3,   7,   8,   15,  16,   17,   31,    63,
                                   64, 65, 97, 127, 128, 129, 991, 4096, 4099, 65537, 1000003};
constexpr std::size_t kElementBytes[] = {1, 2, 4, 8};
constexpr int kChunkCounts[] = {1, 2, 3, 7, 8, 33, 64};

template <typename Check>
void for_all(const Check& check) {
  for (const std::size_t count : kCounts) {
    for (const std::size_t element_bytes : kElementBytes) {
      for (const int chunks : kChunkCounts) {
        SCOPED_TRACE(testing::Message() << count << " elements of " << element_bytes << " bytes in "
                                        << chunks << " chunks");
        check(count, element_bytes, chunks);
      }
    }
  }
}

TEST(Partition, chunks_cover_all_elements_once_and_in_order) {
  for_all([](std::size_t count, std::size_t element_bytes, int chunks) {
    const Partition partition = Partition::split(count, element_bytes, chunks);
    std::size_t covered = 0;
    for (int i = 0; i < chunks; ++i) {
      EXPECT_EQ(partition.chunk(i).offset, covered);
      covered += partition.chunk(i).count;
    }
    EXPECT_EQ(covered, count);
  });
}

TEST(Partition, cuts_lie_on_cache_lines_and_chunks_differ_by_one_at_most) {
  for_all([](std::size_t count, std::size_t element_bytes, int chunks) {
    const Partition partition = Partition::split(count, element_bytes, chunks);
    const std::size_t longest = partition.longest_chunk();
    for (int i = 0; i < chunks; ++i) {
      const Range chunk = partition.chunk(i);
      EXPECT_TRUE(chunk.offset * element_bytes % kCutBytes == 0 || chunk.offset == count);
      EXPECT_LE(chunk.count, longest);
      // The last cut may be partly filled, so the chunk that ends there may lack two.
      EXPECT_GT(chunk.count * element_bytes + 2 * kCutBytes, longest * element_bytes);
    }
  });
}

TEST(Partition, few_elements_stay_together) {
  const Partition partition = Partition::split(17, 4, 8);  // one line and a bit
  EXPECT_EQ(partition.chunk(0), (Range{0, 16}));
  EXPECT_EQ(partition.chunk(1), (Range{16, 1}));
  EXPECT_EQ(partition.chunk(2), (Range{17, 0}));
  EXPECT_EQ(partition.chunk(7), (Range{17, 0}));
}

TEST(Partition, elements_that_do_not_divide_a_line_are_cut_anywhere) {
  const Partition partition = Partition::split(10, 12, 4);
  EXPECT_EQ(partition.chunk(0), (Range{0, 3}));
  EXPECT_EQ(partition.chunk(1), (Range{3, 3}));
  EXPECT_EQ(partition.chunk(2), (Range{6, 2}));
  EXPECT_EQ(partition.chunk(3), (Range{8, 2}));
}

TEST(Partition, a_part_per_rank_is_where_the_rank_says) {
  const Partition partition = Partition::per_rank(13, {0, 13}, 4, 5);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(partition.chunk(i), (Range{static_cast<std::size_t>(i) * 13, 13}));
  }
  EXPECT_EQ(partition.longest_chunk(), 13u);
}

TEST(Partition, follows_what_count_means_to_the_collective) {
  EXPECT_EQ(partition_for(Collective::kAllReduce, 32, 4, 2).chunk(1), (Range{16, 16}));
  EXPECT_EQ(partition_for(Collective::kAllGather, 32, 4, 2).chunk(1), (Range{32, 32}));
  EXPECT_EQ(partition_for(Collective::kReduceScatter, 32, 4, 2).chunk(1), (Range{32, 32}));
  EXPECT_EQ(partition_for(Collective::kBroadcast, 32, 4, 1).chunk(0), (Range{0, 32}));
}

// Lanes share out what a collective moves: each element is moved by one, and only in its own rank's
// part.
TEST(Partition, lanes_cover_everything_once) {
  constexpr int kChunks = 3;
  for (const Collective collective : {Collective::kAllReduce, Collective::kAllGather}) {
    for (const std::size_t count : {0u, 1u, 7u, 48u, 1000u}) {
      const std::size_t all = holds_part_per_rank(collective) ? count * kChunks : count;
      std::vector<int> moved(all, 0);
      for (int lane = 0; lane < 2; ++lane) {
        const Partition partition = partition_for(collective, count, 4, kChunks, lane, 2);
        for (int i = 0; i < kChunks; ++i) {
          const Range chunk = partition.chunk(i);
          ASSERT_LE(chunk.count, partition.longest_chunk());
          for (std::size_t e = 0; e < chunk.count; ++e) ++moved.at(chunk.offset + e);
        }
      }
      EXPECT_EQ(moved, std::vector<int>(all, 1)) << name_of(collective) << " of " << count;
    }
  }
  EXPECT_EQ(partition_for(Collective::kAllGather, 32, 4, 2, 1, 2).chunk(1), (Range{48, 16}));
}

TEST(Partition, counts_beyond_four_gib_stay_exact) {
  constexpr std::size_t kHuge = (std::size_t{5} << 32) + 3;
  for (const std::size_t element_bytes : kElementBytes) {
    const Partition partition = Partition::split(kHuge, element_bytes, 7);
    const Range last = partition.chunk(6);
    EXPECT_EQ(last.offset + last.count, kHuge);
    EXPECT_GT(last.offset, std::numeric_limits<std::uint32_t>::max());
    EXPECT_LE(partition.longest_chunk() * 7, kHuge + 7 * 64);
  }
  EXPECT_EQ(Partition::per_rank(kHuge, {0, kHuge}, 4, 100).chunk(99), (Range{kHuge * 99, kHuge}));
  const Slicing slicing(Partition::split(kHuge, 1, 1), 65536, 15);
  EXPECT_EQ(slicing.passes(), (kHuge + 65536 * 15 - 1) / (65536 * 15));
  const Range part = slicing.part(0, slicing.passes() - 1);
  EXPECT_EQ(part.offset + part.count, kHuge);
}

// What one pass after the other moves of a chunk, slice by slice, is the chunk.
void expect_covered(const Slicing& slicing, int chunk, std::size_t slice_bytes, std::size_t slots) {
  const Range whole = slicing.partition().chunk(chunk);
  const std::size_t element_bytes = slicing.partition().element_bytes();
  std::size_t covered = whole.offset;
  for (std::size_t pass = 0; pass < slicing.passes(); ++pass) {
    const Range part = slicing.part(chunk, pass);
    ASSERT_EQ(part.offset, covered);
    ASSERT_LE(slicing.slices(part), slots - 1);
    for (std::size_t i = 0; i < slicing.slices(part); ++i) {
      const Range slice = slicing.slice(part, i);
      ASSERT_EQ(slice.offset, covered);
      ASSERT_GT(slice.count, 0u);
      ASSERT_LE(slice.count * element_bytes, slice_bytes);
      covered += slice.count;
    }
    ASSERT_EQ(covered, part.offset + part.count);
  }
  ASSERT_EQ(covered, whole.offset + whole.count);
}

TEST(Slicing, slices_cover_every_chunk_and_fit_into_slots) {
  for_all([](std::size_t count, std::size_t element_bytes, int chunks) {
    for (const std::size_t slice_bytes : {std::size_t{8}, std::size_t{48}, std::size_t{64},
                                          std::size_t{1000}, std::size_t{65536}}) {
      if (count * element_bytes > 10000 * slice_bytes) continue;
      for (const std::uint32_t slots : {2u, 3u, 16u}) {
        const Slicing slicing(Partition::split(count, element_bytes, chunks), slice_bytes,
                              slots - 1);
        for (int i = 0; i < chunks; ++i) expect_covered(slicing, i, slice_bytes, slots);
      }
    }
  });
}

TEST(Slicing, a_message_at_the_edge_of_a_slot_or_a_pass_is_not_cut_in_vain) {
  const auto slicing_of = [](std::size_t bytes) {
    return Slicing(Partition::split(bytes, 1, 1), 128, 3);
  };
  const auto slices = [&](std::size_t bytes) {
    return slicing_of(bytes).slices(slicing_of(bytes).part(0, 0));
  };
  EXPECT_EQ(slices(1), 1u);
  EXPECT_EQ(slices(128), 1u);
  EXPECT_EQ(slices(129), 2u);
  EXPECT_EQ(slices(384), 3u);
  EXPECT_EQ(slicing_of(384).passes(), 1u);
  EXPECT_EQ(slicing_of(385).passes(), 2u);
}

TEST(Slicing, nothing_to_move_needs_no_pass) {
  EXPECT_EQ(Slicing(Partition::split(0, 4, 3), 64, 1).passes(), 0u);
  EXPECT_EQ(Slicing(Partition::per_rank(0, {}, 4, 3), 64, 1).passes(), 0u);
}

TEST(Slicing, slices_begin_on_cache_lines_where_slots_are_long_enough) {
  const Slicing slicing(Partition::split(1000, 4, 1), 100, 4);
  EXPECT_EQ(slicing.slice(slicing.part(0, 0), 1).offset, 16u);
  const Slicing starved(Partition::split(1000, 4, 1), 10, 4);
  EXPECT_EQ(starved.slice(starved.part(0, 0), 1).offset, 2u);
}

TEST(UnevenPartition, lays_chunks_where_the_caller_wants_them) {
  const UnevenParts parts{{{0, 3}}, {{10, 5}, {0, 0}, {2, 3}}};
  const Partition partition = Partition::uneven(parts, 4);
  EXPECT_EQ(partition.chunk(input(0)), (Range{0, 3}));
  EXPECT_EQ(partition.chunk(output(0)), (Range{10, 5}));
  EXPECT_EQ(partition.chunk(output(2)), (Range{2, 3}));
  EXPECT_EQ(partition.chunk(carry(2)).count, 3u);
  EXPECT_EQ(partition.longest_chunk(), 5u);
  const Slicing slicing(partition, 8, 1);
  EXPECT_EQ(slicing.passes(), 3u);
  EXPECT_EQ(slicing.part(output(0), 2), (Range{14, 1}));
  EXPECT_EQ(slicing.part(output(2), 2).count, 0u);
}

TEST(UnevenPartition, is_moved_by_lanes_together) {
  const UnevenParts parts{{{5, 1000}, {2000, 1}, {0, 0}}, {{7, 64}}};
  for (const Chunk& chunk : {input(0), input(1), input(2), output(0)}) {
    const Range whole = Partition::uneven(parts, 4).chunk(chunk);
    std::size_t at = whole.offset;
    for (int lane = 0; lane < 3; ++lane) {
      const Partition partition = Partition::uneven(parts, 4, lane, 3);
      const Range mine = partition.chunk(chunk);
      EXPECT_TRUE(mine.count == 0 || mine.offset == at);
      EXPECT_LE(mine.count, partition.longest_chunk());
      at += mine.count;
    }
    EXPECT_EQ(at, whole.offset + whole.count);
  }
}

}  // namespace
}  // namespace catenary
