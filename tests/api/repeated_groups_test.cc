// Groups of messages that are like the one before, or nearly: what is kept of that one must change
// nothing.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "tests/support/crew.h"
#include "tests/support/rank_group.h"

namespace catenary::testing {
namespace {

constexpr std::size_t kPlaces = 40;  // more groups than links have slots
constexpr std::size_t kMost = 64;    // elements of a message

// What a rank gives to all, and what it has got: a part of each peer in each place.
struct Buffers {
  explicit Buffers(const Seat& seat)
      : given(kPlaces * kMost), taken(kPlaces * static_cast<std::size_t>(seat.nranks) * kMost, -1) {
    for (std::size_t i = 0; i < given.size(); ++i) given[i] = value_of(seat.rank, i);
  }
  static std::int64_t value_of(int rank, std::size_t i) {
    return 1000 * rank + static_cast<std::int64_t>(i);
  }
  std::vector<std::int64_t> given;
  std::vector<std::int64_t> taken;
};

// To all and from all, beginning with rank `first`; or a rank with itself only.
struct Exchange {
  std::size_t count;
  ncclDataType_t type;
  int first;
  bool sends_first = false;
  bool alone = false;
  // What of it becomes whole elements of the buffers.
  std::size_t elements() const { return type == ncclInt8 ? count / sizeof(std::int64_t) : count; }
};

void post(Seat& seat, Buffers& buffers, std::size_t place, const Exchange& exchange) {
  const auto n = static_cast<std::size_t>(seat.nranks);
  require_success(ncclGroupStart(), "start");
  for (int i = 0; i < (exchange.alone ? 1 : seat.nranks); ++i) {
    const int peer = exchange.alone ? seat.rank : (exchange.first + i) % seat.nranks;
    std::int64_t* const in = &buffers.taken[(place * n + static_cast<std::size_t>(peer)) * kMost];
    const auto receive = [&] {
      require_success(ncclRecv(in, exchange.count, exchange.type, peer, seat.comm, seat.stream),
                      "recv");
    };
    if (!exchange.sends_first) receive();
    require_success(ncclSend(&buffers.given[place * kMost], exchange.count, exchange.type, peer,
                             seat.comm, seat.stream),
                    "send");
    if (exchange.sends_first) receive();
  }
  require_success(ncclGroupEnd(), "end");
}

void expect_got(const Seat& seat, const Buffers& buffers, std::size_t place,
                const Exchange& exchange) {
  const auto n = static_cast<std::size_t>(seat.nranks);
  for (int i = 0; i < seat.nranks * static_cast<int>(kMost); ++i) {
    const int peer = i / static_cast<int>(kMost);
    const auto element = static_cast<std::size_t>(i) % kMost;
    const bool came = element < exchange.elements() && (!exchange.alone || peer == seat.rank);
    const std::int64_t want = came ? Buffers::value_of(peer, place * kMost + element) : -1;
    require(buffers.taken[(place * n + static_cast<std::size_t>(peer)) * kMost + element] == want,
            [&] {
              return "element " + std::to_string(element) + " of rank " + std::to_string(peer) +
                     " in place " + std::to_string(place);
            });
  }
}

// Runs are made anew while all that there are is under way, so what repeats comes in the second
// round.
TEST(RepeatedGroups, have_buffers_of_their_own_each_while_many_are_under_way) {
  run_crew(3, [](Seat& seat) {
    const Exchange all{kMost, ncclInt64, 0};
    for (int round = 0; round < 3; ++round) {
      Buffers buffers(seat);
      for (std::size_t place = 0; place < kPlaces; ++place) post(seat, buffers, place, all);
      seat.finish();
      for (std::size_t place = 0; place < kPlaces; ++place) expect_got(seat, buffers, place, all);
    }
  });
}

// Other counts, types, orders and numbers of messages, and the first kind again; a collective
// and a lone message between them.
TEST(RepeatedGroups, that_change_are_as_they_say) {
  run_crew(3, [](Seat& seat) {
    const std::vector<Exchange> kinds = {{kMost, ncclInt64, 0},
                                         {16, ncclInt64, 0},
                                         {16, ncclInt64, 0},
                                         {16, ncclInt8, 0},
                                         {16, ncclInt8, 1},
                                         {16, ncclInt8, 1, true},
                                         {kMost, ncclInt64, 0},
                                         {kMost, ncclInt64, 0, false, true},
                                         {kMost, ncclInt64, 0, false, true},
                                         {0, ncclInt64, 0}};
    Buffers buffers(seat);
    std::int64_t sum = 1;
    std::int64_t lone = -1;
    for (std::size_t place = 0; place < kPlaces; ++place) {
      post(seat, buffers, place, kinds[place % kinds.size()]);
      if (place % 5 == 3) {
        require_success(ncclAllReduce(&sum, &sum, 1, ncclInt64, ncclMax, seat.comm, seat.stream),
                        "collective");
      }
      if (place % 9 == 4 && seat.rank == 0) {
        require_success(ncclSend(&sum, 1, ncclInt64, 1, seat.comm, seat.stream), "lone send");
      }
      if (place % 9 == 4 && seat.rank == 1) {
        require_success(ncclRecv(&lone, 1, ncclInt64, 0, seat.comm, seat.stream), "lone recv");
      }
      // Sooner or later the same run is used for all, or there are several.
      if (place < kPlaces / 2 || place % 4 == 0) seat.finish();
    }
    seat.finish();
    for (std::size_t place = 0; place < kPlaces; ++place) {
      expect_got(seat, buffers, place, kinds[place % kinds.size()]);
    }
    require(lone == (seat.rank == 1 ? 1 : -1), "what came alone");
  });
}

}  // namespace
}  // namespace catenary::testing
