#include "src/comm/rank_facts.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "src/base/error.h"
#include "src/collective/box.h"
#include "src/comm/tuning_file.h"
#include "src/engine/descriptor.h"
#include "src/topology/machine.h"

namespace catenary {
namespace {

// As published; of fixed width, since ranks may be built apart.
struct RankFacts {
  std::int32_t ranks = 0;  // of its machine
  std::int32_t cores = 0;
  LocalRun run;
  Wire near = Wire::kThreads;
  Wire far = Wire::kThreads;
  std::uint64_t slice_bytes = 0;
  std::uint64_t slots = 0;
  std::uint64_t packet_bytes = 0;
  CostParameters parameters = {};
};

Wire wire_of(const Transport& transport) {
  if (!transport.shares_memory()) return Wire::kNetwork;
  return transport.name() == "loopback" ? Wire::kThreads : Wire::kProcesses;
}

template <class Facts>
Facts facts_from(const Bytes& published, std::size_t peer) {
  Facts facts;
  if (published.size() != sizeof facts)
    throw_error(ErrorCode::kRemote, "rank %zu published malformed facts about itself", peer);
  std::memcpy(&facts, published.data(), sizeof facts);
  return facts;
}

template <class Facts>
std::vector<Bytes> publish(Membership& membership, const Facts& facts, const Wait& wait) {
  const ByteView bytes = std::as_bytes(std::span(&facts, 1));
  return membership.all_gather(Bytes(bytes.begin(), bytes.end()), wait);
}

// What a rank may use of its machine, as published.
struct CoreFacts {
  CoreGrant grant;
  std::array<char, 40> kernel{};  // what this start of it is called; empty if it does not tell

  bool shares_kernel_with(const CoreFacts& other) const {
    return kernel.front() != '\0' && kernel == other.kernel;
  }
};

CoreFacts core_facts() {
  CoreFacts facts;
  facts.grant = core_grant();
  boot_id().copy(facts.kernel.data(), facts.kernel.size());
  return facts;
}

// Nothing but speed depends on what a kernel is called, so nobody has to prove it.
Crowd crowd_of_this_machine(Membership& membership, const LinkTable& table, const Wait& wait) {
  const CoreFacts mine = core_facts();
  const std::vector<Bytes> all = publish(membership, mine, wait);
  std::vector<CoreGrant> sharing;
  std::vector<CoreGrant> on_kernel;
  for (std::size_t peer = 0; peer < all.size(); ++peer) {
    const auto theirs = facts_from<CoreFacts>(all[peer], peer);
    if (table.transport_of(static_cast<int>(peer)).shares_memory()) sharing.push_back(theirs.grant);
    if (theirs.shares_kernel_with(mine)) on_kernel.push_back(theirs.grant);
  }
  return crowd_of(sharing, on_kernel);
}

// The ranks that share memory with this one, as proved by attaching; or as the user says, where
// that can be.
LocalRun local_run(const LinkTable& links, int rank, int nranks, const Config& config) {
  if (config.box > 0 && nranks % config.box == 0) {
    const int box = static_cast<int>(config.box);
    return {rank / box * box, box};
  }
  LocalRun run{rank, 0};
  int last = rank;
  for (int peer = 0; peer < nranks; ++peer) {
    if (!links.transport_of(peer).shares_memory()) continue;
    run.first = std::min(run.first, peer);
    last = std::max(last, peer);
  }
  const bool is_whole = last - run.first + 1 == links.local_ranks();
  run.count = is_whole ? links.local_ranks() : 0;
  return run;
}

// What every link carries well of an operation, beside its opening.
std::size_t packet_bytes(const LinkTable& table) {
  std::size_t longest = SIZE_MAX;
  for (const Transport* transport : table.in_use()) {
    longest = std::min(longest, transport->longest_message());
  }
  return longest - kPaddedDescriptorBytes;
}

RankFacts facts_of_this_rank(int rank, int nranks, const Crowd& crowd, const LinkTable& table,
                             const Cut& links, const Config& config) {
  RankFacts facts;
  facts.ranks = crowd.ranks;
  facts.cores = crowd.cores;
  facts.slice_bytes = links.slice_bytes;
  facts.slots = links.slots;
  facts.packet_bytes = packet_bytes(table);
  facts.parameters = rank == 0 ? load_tuning(config).parameters : default_parameters();
  facts.run = local_run(table, rank, nranks, config);
  for (int peer = 0; peer < nranks; ++peer) {
    if (peer == rank) continue;
    const Transport& transport = table.transport_of(peer);
    Wire& slowest = transport.shares_memory() ? facts.near : facts.far;
    slowest = std::max(slowest, wire_of(transport));
  }
  return facts;
}

// What would be divided by, or looked up with.
void check_sane(const RankFacts& theirs, int peer) {
  const bool is_sane = theirs.packet_bytes > 0 && theirs.near <= Wire::kNetwork &&
                       theirs.far <= Wire::kNetwork && theirs.ranks > 0 && theirs.cores > 0;
  if (is_sane) return;
  throw_error(ErrorCode::kRemote, "rank %d published senseless facts about itself", peer);
}

void check_alike(const RankFacts& mine, int rank, const RankFacts& theirs, int peer) {
  if (theirs.slots == mine.slots && theirs.slice_bytes == mine.slice_bytes) return;
  throw_error(ErrorCode::kInvalidUsage,
              "rank %d has %llu slots of %llu bytes, but rank %d has %llu of %llu; set "
              "CATENARY_SLOTS and CATENARY_SLOT_BYTES alike for all ranks",
              rank, static_cast<unsigned long long>(mine.slots),
              static_cast<unsigned long long>(mine.slice_bytes), peer,
              static_cast<unsigned long long>(theirs.slots),
              static_cast<unsigned long long>(theirs.slice_bytes));
}

}  // namespace

// The tightest machine counts, the slowest wires, and boxes only where all are alike.
AgreedFacts agree_on_facts(Membership& membership, const LinkTable& table, const Cut& links,
                           const Config& config, const Wait& wait) {
  const Crowd crowd = crowd_of_this_machine(membership, table, wait);
  const RankFacts mine =
      facts_of_this_rank(membership.rank(), membership.nranks(), crowd, table, links, config);
  const std::vector<Bytes> all = publish(membership, mine, wait);
  AgreedFacts agreed;
  agreed.crowd = crowd;
  MachineFacts& machine = agreed.machine;
  machine.near = mine.near;
  machine.far = mine.far;
  Crowd tightest = crowd;
  std::vector<LocalRun> runs;
  for (std::size_t peer = 0; peer < all.size(); ++peer) {
    const auto theirs = facts_from<RankFacts>(all[peer], peer);
    check_sane(theirs, static_cast<int>(peer));
    check_alike(mine, membership.rank(), theirs, static_cast<int>(peer));
    if (peer == 0) agreed.parameters = theirs.parameters;
    const Crowd there{theirs.ranks, theirs.cores};
    if (there.is_tighter_than(tightest)) tightest = there;
    machine.near = std::max(machine.near, theirs.near);
    machine.far = std::max(machine.far, theirs.far);
    machine.packet_bytes = std::min<std::size_t>(machine.packet_bytes, theirs.packet_bytes);
    runs.push_back(theirs.run);
  }
  machine.local_ranks = tightest.ranks;
  machine.cores = tightest.cores;
  machine.box = box_of(runs);
  machine.far = std::max(machine.far, machine.near);
  return agreed;
}

}  // namespace catenary
