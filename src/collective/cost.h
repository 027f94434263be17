// Cost: the model of time. What a machine is like is a handful of parameters; what a schedule does
// is a Shape; how long it takes with so many bytes follows from the two. The same formula chooses
// an algorithm, answers ncclGroupSimulateEnd, and is fitted to measurements by `catenary tune`.
//
// An operation takes the longest of
//   * its longest path: hops, messages and the bytes of one slice along it, and then the remaining
//     slices, which follow each other through the busiest rank, but for the first one of each pass,
//     which goes all the way again as far as ranks wait for it before they begin a pass;
//   * if ranks share cores: the work of the busiest of them and of those that share its core, a
//     switch for each time that a rank has to let others run, and for each hop of the longest path
//     the time until a rank has its turn; a byte of a message costs such a core less, since many a
//     message is for a rank of its own, which has the lines at hand;
// and, where the bytes that are touched exceed the caches, the time to move those through main
// memory, which all ranks of a machine share.
//
// Plain arithmetic without library functions, so that all ranks come to the same numbers. Pure; any
// thread; nothing waits or fails.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "src/base/size_literals.h"
#include "src/collective/operation.h"
#include "src/collective/shape.h"

namespace catenary {

// What leads from rank to rank.
enum class Wire : std::uint8_t { kThreads, kProcesses, kNetwork };
inline constexpr int kWireCount = 3;
constexpr std::string_view name_of(Wire wire) {
  constexpr std::string_view kNames[] = {"threads", "processes", "network"};
  return kNames[static_cast<int>(wire)];
}

struct WireCost {
  double hop_ns;      // from a message's commit until a rank that waits for it goes on
  double message_ns;  // to write or to take one, whatever its length
  double byte_ns;     // to write or to take a byte of one
};

// What is measured on a machine. All ranks of a communicator use those of rank 0.
struct CostParameters {
  double operation_ns;        // to submit and finish an operation
  double step_ns;             // to come to a step
  double switch_ns;           // to give a core to another rank
  double turn_ns;             // until a rank that shares its core sees a message
  double crowded_byte_ns;     // the same as WireCost::byte_ns, of a core that ranks share
  double local_byte_ns;       // to read or write a byte of one's own, in cache
  double reduced_byte_ns;     // to combine a byte with another
  double memory_byte_ns;      // to read or write a byte beyond the caches, for the whole machine
  double shared_cache_bytes;  // of the machine
  std::array<WireCost, kWireCount> wires;
};
CostParameters default_parameters();

// Where a communicator runs.
struct MachineFacts {
  int local_ranks = 1;           // ranks of the communicator on its most crowded machine
  int cores = 1;                 // that those ranks may use together
  int box = 1;                   // so many consecutive ranks share a machine, everywhere
  Wire near = Wire::kProcesses;  // between ranks of a box
  Wire far = Wire::kProcesses;   // between others
  // What chunks that do not fit into a slot are better cut into, where some links go over sockets.
  std::size_t packet_bytes = SIZE_MAX;
};

// How messages are cut.
struct Cut {
  std::size_t slice_bytes = 64_KB;
  std::uint32_t slots = 16;
  // The most slices of a chunk that move in a pass. At least twice as many fit into a link, so that
  // a rank that passes chunks on round a ring need not wait for its neighbour with every slice. 0:
  // half of the slots.
  std::uint32_t pass_slices = 0;
  constexpr std::uint32_t slices_per_pass() const {
    return pass_slices > 0 ? pass_slices : std::max(slots / 2, 1U);
  }
  bool operator==(const Cut&) const = default;
};

// Where an operation runs, and how its messages are cut.
struct Setting {
  int nranks = 1;
  MachineFacts machine = {};
  CostParameters parameters;
  Cut cut = {};
};

// Bytes of the longest chunk.
std::size_t chunk_bytes(const Algorithm& algorithm, std::size_t bytes, const Place& at);

// Nanoseconds of one operation. `bytes` are those of the longer buffer.
double time_ns(const Algorithm& algorithm, std::size_t bytes, const Setting& setting);
// The same of an algorithm whose shape there is known: that of place_of().
double time_ns(const Shape& shape, const Algorithm& algorithm, std::size_t bytes,
               const Setting& setting);
Place place_of(const Algorithm& algorithm, std::size_t bytes, const Setting& setting);

}  // namespace catenary
