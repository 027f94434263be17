#include "tests/random/execute.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <deque>
#include <span>
#include <string>
#include <thread>

#include "catenary/collectives.h"
#include "catenary/device.h"
#include "tests/support/elements.h"
#include "tests/support/rank_group.h"

namespace catenary::testing {
namespace {

void require_device(catError_t result, const char* what) {
  require(result == catSuccess, std::string(what) + ": " + catGetLastErrorMessage());
}

// A call of a non-blocking communicator may go on in the background.
void require_begun(ncclResult_t result, const std::string& what) {
  if (result != ncclInProgress) require_success(result, what);
}

void wait_until_made(ncclComm_t comm) {
  for (;;) {
    ncclResult_t state = ncclSuccess;
    require_success(ncclCommGetAsyncError(comm, &state), "ncclCommGetAsyncError");
    if (state != ncclInProgress) return require_success(state, "making a communicator");
    std::this_thread::yield();
  }
}

std::uint64_t digest(const Register& bytes) {
  std::uint64_t value = 0xcbf29ce484222325u;
  for (const std::byte byte : bytes) {
    value = (value ^ static_cast<std::uint64_t>(byte)) * 0x100000001b3u;
  }
  return value;
}

// A rank's registers, every other one where peers may read it in place.
class OwnRegisters {
 public:
  OwnRegisters() = default;
  explicit OwnRegisters(Registers first) : plain_(std::move(first)), mapped_(plain_.all.size()) {
    for (std::size_t i = 0; i < mapped_.size(); i += 2) {
      require_success(ncclMemAlloc(&mapped_[i], plain_.all[i].size()), "ncclMemAlloc");
      std::memcpy(mapped_[i], plain_.all[i].data(), plain_.all[i].size());
    }
  }
  OwnRegisters(OwnRegisters&&) = default;
  OwnRegisters& operator=(OwnRegisters&&) = default;
  ~OwnRegisters() {
    for (void* each : mapped_) {
      if (each != nullptr) ncclMemFree(each);
    }
  }

  std::byte* at(int stream, int number) {
    return data(static_cast<std::size_t>(stream * plain_.of_each + number));
  }
  std::byte* data(std::size_t index) {
    if (mapped_[index] != nullptr) return static_cast<std::byte*>(mapped_[index]);
    return plain_.all[index].data();
  }

 private:
  Registers plain_;
  std::vector<void*> mapped_;
};

// What an operation that only has to be the same everywhere has left behind.
struct Wild {
  const Operation* operation;
  Register* results[2];
};

// One rank.
class Seat {
 public:
  Seat(const Program& program, int rank) : program_(program), rank_(rank) {
    comms_.resize(program.communicators.size());
  }

  void enter() const { require_device(catSetDevice(rank_), "catSetDevice"); }

  void begin_join(const ncclUniqueId& id) {
    enter();
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = program_.blocking ? 1 : 0;
    require_begun(ncclCommInitRankConfig(comms_.data(), program_.ranks, id, rank_, &config),
                  "ncclCommInitRankConfig");
  }

  void make_memory() {
    enter();
    wait_until_made(comms_[0]);
    registers_ = OwnRegisters(first_registers(program_, rank_));
    for (int i = 0; i < program_.streams; ++i) {
      catStream_t stream = nullptr;
      require_device(catStreamCreateWithFlags(&stream, catStreamNonBlocking), "catStreamCreate");
      streams_.push_back(stream);
    }
  }

  // One call of ncclCommSplit, for the communicators [first, last).
  void split(std::size_t first, std::size_t last) {
    const Communicator& one = program_.communicators[first];
    const auto parent = static_cast<std::size_t>(one.parent);
    if (comms_[parent] == nullptr) return;
    enter();
    int color = NCCL_SPLIT_NOCOLOR;
    std::size_t made = first;
    for (std::size_t i = first; i < last; ++i) {
      const Communicator& each = program_.communicators[i];
      if (std::ranges::count(each.members, rank_) == 0) continue;
      color = each.color;
      made = i;
    }
    const std::vector<int>& old = program_.communicators[parent].members;
    const auto place = static_cast<std::size_t>(std::ranges::find(old, rank_) - old.begin());
    require_begun(ncclCommSplit(comms_[parent], color, one.keys[place], &comms_[made], nullptr),
                  "ncclCommSplit");
  }

  void wait_for_splits() {
    for (ncclComm_t comm : comms_) {
      if (comm != nullptr) wait_until_made(comm);
    }
  }

  void act(const Action& action) {
    enter();
    const int pause = action.pauses[static_cast<std::size_t>(rank_)];
    if (pause > 0) std::this_thread::sleep_for(std::chrono::microseconds(pause));
    std::vector<const Operation*> mine;
    for (const Operation& operation : action.operations) {
      if (takes_part(operation)) mine.push_back(&operation);
    }
    if (action.shuffled[static_cast<std::size_t>(rank_)]) shuffle(mine);
    for (const Operation* operation : mine) prepare(*operation);
    std::vector<Reduction> reductions;
    for (const Operation* operation : mine) reductions.push_back(reduction_of(*operation));
    for (int i = 0; i < action.depth; ++i) require_success(ncclGroupStart(), "ncclGroupStart");
    for (std::size_t i = 0; i < mine.size(); ++i) call(*mine[i], reductions[i].value);
    for (int i = 0; i < action.depth; ++i) require_begun(ncclGroupEnd(), "ncclGroupEnd");
    for (const Reduction& each : reductions) {
      if (each.comm == nullptr) continue;
      require_success(ncclRedOpDestroy(each.value, each.comm), "ncclRedOpDestroy");
    }
  }

  void synchronize() const {
    for (const catStream_t stream : streams_) {
      const catError_t result = catStreamSynchronize(stream);
      for (ncclComm_t comm : comms_) {
        ncclResult_t state = ncclSuccess;
        if (comm != nullptr) ncclCommGetAsyncError(comm, &state);
        require_success(state, "an operation");
      }
      require_device(result, "catStreamSynchronize");
    }
  }

  void check_registers(const Registers& expected) {
    for (std::size_t i = 0; i < expected.all.size(); ++i) {
      const std::span mine(registers_.data(i), expected.all[i].size());
      if (mine.empty() || std::memcmp(mine.data(), expected.all[i].data(), mine.size()) == 0)
        continue;
      const auto [found, wanted] = std::ranges::mismatch(mine, expected.all[i]);
      throw Failure{"register " + std::to_string(i % static_cast<std::size_t>(expected.of_each)) +
                    " of stream " + std::to_string(i / static_cast<std::size_t>(expected.of_each)) +
                    ": byte " + std::to_string(found - mine.begin()) + " is " +
                    std::to_string(static_cast<int>(*found)) + ", not " +
                    std::to_string(static_cast<int>(*wanted))};
    }
  }

  // Tells the world what this rank got of operations on wild values.
  void begin_comparing() {
    enter();
    for (const Wild& wild : wilds_) {
      require(*wild.results[0] == *wild.results[1], [&] {
        return "the same inputs gave other bits: " + describe(program_, *wild.operation);
      });
      if (!wild.results[0]->empty()) mine_[index_of(*wild.operation)] = digest(*wild.results[0]);
    }
    all_.resize(mine_.size() * static_cast<std::size_t>(program_.ranks));
    require_success(
        ncclAllGather(mine_.data(), all_.data(), mine_.size(), ncclUint64, comms_[0], streams_[0]),
        "AllGather of digests");
  }

  void compare() {
    synchronize();
    for (const Wild& wild : wilds_) {
      for (const int peer : program_.members(*wild.operation)) {
        const std::size_t at = static_cast<std::size_t>(peer) * mine_.size();
        const std::size_t index = index_of(*wild.operation);
        require(all_[at + index] == mine_[index], [&] {
          return "rank " + std::to_string(peer) +
                 " has other bits: " + describe(program_, *wild.operation);
        });
      }
    }
  }

  void number_wilds() {
    for (const Action& action : program_.actions) {
      for (const Operation& operation : action.operations) {
        if (operation.wild) wild_operations_.push_back(&operation);
      }
    }
    mine_.assign(wild_operations_.size(), 0);
  }

  void leave() {
    enter();
    for (std::size_t i = comms_.size(); i-- > 0;) {
      if (comms_[i] != nullptr) require_success(ncclCommDestroy(comms_[i]), "ncclCommDestroy");
    }
    for (const catStream_t stream : streams_) {
      require_device(catStreamDestroy(stream), "catStreamDestroy");
    }
  }

 private:
  struct Reduction {
    ncclRedOp_t value = ncclSum;
    ncclComm_t comm = nullptr;  // of one that is to be destroyed
  };

  std::size_t index_of(const Operation& operation) const {
    return static_cast<std::size_t>(std::ranges::find(wild_operations_, &operation) -
                                    wild_operations_.begin());
  }

  int rank_in(const Operation& operation) const {
    const std::vector<int>& members = program_.members(operation);
    return static_cast<int>(std::ranges::find(members, rank_) - members.begin());
  }

  bool takes_part(const Operation& operation) const {
    const std::vector<int>& members = program_.members(operation);
    if (std::ranges::count(members, rank_) == 0) return false;
    const int rank = rank_in(operation);
    return operation.kind != Kind::kMessage || operation.root == rank || operation.receiver == rank;
  }

  // Messages between different pairs may be called in any order.
  void shuffle(std::vector<const Operation*>& mine) const {
    std::vector<const Operation*> messages;
    for (const Operation* each : mine) {
      if (each->kind == Kind::kMessage) messages.push_back(each);
    }
    const auto key = [this](const Operation* message) {
      return (message->root * 5 + message->receiver * 3 + rank_) % 7 * 100 + message->root * 10 +
             message->receiver;
    };
    std::ranges::stable_sort(messages, {}, key);
    std::size_t next = 0;
    for (const Operation*& each : mine) {
      if (each->kind == Kind::kMessage) each = messages[next++];
    }
  }

  // Buffers that must stay until all is done.
  Register& keep(Register bytes) { return kept_.emplace_back(std::move(bytes)); }

  void prepare(const Operation& operation) {
    const int rank = rank_in(operation);
    const auto size = static_cast<int>(operation.parts.size());
    const Part& part = operation.parts[static_cast<std::size_t>(rank)];
    if (operation.wild || operation.pattern == 0 || part.input < 0) return;
    const Register& fresh =
        keep(pattern_of(operation, size, rank, input_extent(operation, size, rank)));
    if (fresh.empty()) return;
    require_device(catMemcpyAsync(registers_.at(part.stream, part.input) + part.input_at,
                                  fresh.data(), fresh.size(), stream_of(part)),
                   "catMemcpyAsync");
  }

  catStream_t stream_of(const Part& part) const {
    return streams_[static_cast<std::size_t>(part.stream)];
  }

  Reduction reduction_of(const Operation& operation) {
    if (!is_reduction(operation.kind) || operation.reduction != kPreMulSum) {
      return {static_cast<ncclRedOp_t>(operation.reduction), nullptr};
    }
    Reduction made;
    made.comm = comms_[static_cast<std::size_t>(operation.comm)];
    Register& factor = keep(factor_of(operation, rank_in(operation)));
    require_success(
        ncclRedOpCreatePreMulSum(
            &made.value, factor.data(), operation.type,
            operation.factor_in_memory ? ncclScalarDevice : ncclScalarHostImmediate, made.comm),
        "ncclRedOpCreatePreMulSum");
    return made;
  }

  void call(const Operation& operation, ncclRedOp_t reduction) {
    if (operation.wild) return call_wild(operation, reduction);
    const Part& part = operation.parts[static_cast<std::size_t>(rank_in(operation))];
    const void* input = nullptr;
    void* output = nullptr;
    if (part.input >= 0) input = registers_.at(part.stream, part.input) + part.input_at;
    if (part.output >= 0) output = registers_.at(part.stream, part.output) + part.output_at;
    require_success(issue(operation, input, output, reduction), describe(program_, operation));
  }

  void call_wild(const Operation& operation, ncclRedOp_t reduction) {
    const auto size = static_cast<int>(operation.parts.size());
    const int rank = rank_in(operation);
    const Register& input = keep(pattern_of(operation, size, rank, operation.count));
    Wild wild{&operation, {&keep(Register(input.size())), &keep(Register(input.size()))}};
    for (Register* result : wild.results) {
      require_success(issue(operation, input.data(), result->data(), reduction),
                      describe(program_, operation));
    }
    wilds_.push_back(wild);
  }

  ncclResult_t issue(const Operation& operation, const void* input, void* output,
                     ncclRedOp_t reduction) {
    const int rank = rank_in(operation);
    const Part& part = operation.parts[static_cast<std::size_t>(rank)];
    const ncclComm_t comm = comms_[static_cast<std::size_t>(operation.comm)];
    const catStream_t stream = stream_of(part);
    const std::size_t count = operation.count;
    const ncclDataType_t type = operation.type;
    const int root = operation.root;
    switch (operation.kind) {
      case Kind::kAllReduce:
        return ncclAllReduce(input, output, count, type, reduction, comm, stream);
      case Kind::kBroadcast: return ncclBroadcast(input, output, count, type, root, comm, stream);
      case Kind::kReduce:
        return ncclReduce(input, output, count, type, reduction, root, comm, stream);
      case Kind::kAllGather: return ncclAllGather(input, output, count, type, comm, stream);
      case Kind::kReduceScatter:
        return ncclReduceScatter(input, output, count, type, reduction, comm, stream);
      case Kind::kAllToAll: return ncclAlltoAll(input, output, count, type, comm, stream);
      case Kind::kGather: return ncclGather(input, output, count, type, root, comm, stream);
      case Kind::kScatter: return ncclScatter(input, output, count, type, root, comm, stream);
      case Kind::kBarrier: return catBarrier(comm, stream);
      case Kind::kMessage: {
        if (rank == root) {
          const ncclResult_t sent = ncclSend(input, count, type, operation.receiver, comm, stream);
          if (sent != ncclSuccess || operation.receiver != root) return sent;
        }
        return ncclRecv(output, count, type, root, comm, stream);
      }
      default: return issue_uneven(operation, input, output, reduction);
    }
  }

  ncclResult_t issue_uneven(const Operation& operation, const void* input, void* output,
                            ncclRedOp_t reduction) {
    const int rank = rank_in(operation);
    const Part& part = operation.parts[static_cast<std::size_t>(rank)];
    const ncclComm_t comm = comms_[static_cast<std::size_t>(operation.comm)];
    const catStream_t stream = stream_of(part);
    // They are only needed during the call.
    const Counts sent = sent_counts(operation, rank);
    const Counts taken = taken_counts(operation, rank);
    const auto or_null = [](const Counts& displs) {
      return displs.empty() ? nullptr : displs.data();
    };
    const std::size_t own = taken[static_cast<std::size_t>(rank)];
    switch (operation.kind) {
      case Kind::kAllToAllV:
        return catAlltoAllv(input, sent.data(), or_null(part.input_displs), output, taken.data(),
                            or_null(part.output_displs), operation.type, comm, stream);
      case Kind::kAllGatherV:
        return catAllGatherv(input, own, output, taken.data(), or_null(part.output_displs),
                             operation.type, comm, stream);
      default:
        return catReduceScatterv(input, sent.data(), or_null(part.input_displs), output, own,
                                 operation.type, reduction, comm, stream);
    }
  }

  const Program& program_;
  const int rank_;
  std::vector<ncclComm_t> comms_;
  std::vector<catStream_t> streams_;
  OwnRegisters registers_;
  std::deque<Register> kept_;
  std::vector<const Operation*> wild_operations_;
  std::vector<Wild> wilds_;
  std::vector<std::uint64_t> mine_;
  std::vector<std::uint64_t> all_;
};

// What one call of ncclCommSplit makes: colors begin at 0 again.
std::size_t end_of_split(const Program& program, std::size_t first) {
  std::size_t last = first + 1;
  while (last < program.communicators.size() && program.communicators[last].color != 0) ++last;
  return last;
}

}  // namespace

void execute(const Program& program, int first, int seats, const ncclUniqueId& id,
             const std::vector<Registers>& expected) {
  std::deque<Seat> mine;
  for (int i = 0; i < seats; ++i) mine.emplace_back(program, first + i);
  const auto together = [&](const auto& each) {
    require_success(ncclGroupStart(), "ncclGroupStart");
    for (Seat& seat : mine) each(seat);
    require_begun(ncclGroupEnd(), "ncclGroupEnd");
  };
  together([&](Seat& seat) { seat.begin_join(id); });
  for (Seat& seat : mine) seat.make_memory();
  for (std::size_t at = 1; at < program.communicators.size(); at = end_of_split(program, at)) {
    together([&](Seat& seat) { seat.split(at, end_of_split(program, at)); });
    for (Seat& seat : mine) seat.wait_for_splits();
  }
  for (Seat& seat : mine) seat.number_wilds();
  for (const Action& action : program.actions) {
    for (Seat& seat : mine) seat.act(action);
    for (Seat& seat : mine) {
      if (action.synchronizes) seat.synchronize();
    }
  }
  for (Seat& seat : mine) seat.synchronize();
  for (int i = 0; i < seats; ++i) {
    mine[static_cast<std::size_t>(i)].check_registers(
        expected[static_cast<std::size_t>(first + i)]);
  }
  for (Seat& seat : mine) seat.begin_comparing();
  for (Seat& seat : mine) seat.compare();
  for (Seat& seat : mine) seat.leave();
}

}  // namespace catenary::testing
