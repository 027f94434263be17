// The nccl* functions that make, ask and end communicators.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <vector>

#include "catenary/collectives.h"
#include "src/api/arguments.h"
#include "src/api/comm_handle.h"
#include "src/api/comm_options.h"
#include "src/api/export.h"
#include "src/api/guard.h"
#include "src/base/scope_exit.h"
#include "src/base/thread_text.h"
#include "src/comm/split.h"
#include "src/device/device.h"
#include "src/device/process_life.h"
#include "transports/built_in.h"

namespace {

using namespace catenary;

UniqueId to_unique_id(const ncclUniqueId& id) {
  UniqueId unique_id;
  static_assert(sizeof unique_id.bytes == sizeof id.internal);
  std::memcpy(unique_id.bytes.data(), id.internal, sizeof id.internal);
  return unique_id;
}

// Makes the handle at once and lets `join` do the part that waits: now, at the end of the group, or
// in the background. A blocking call that fails leaves no communicator behind. A watchdog may see
// the handle in its place and abort it while we wait.
ncclResult_t begin(ncclComm_t* place, const std::shared_ptr<Communicator>& communicator,
                   std::function<void()> join) {
  ncclComm_t handle = make_handle(communicator);
  const std::atomic_ref shared_place(*place);
  shared_place.store(handle, std::memory_order_release);
  // Aborts first: what the job waits for may never come.
  const auto discard = [handle, shared_place, communicator] {
    communicator->abort();
    end_if_alive(*handle);
    shared_place.store(nullptr, std::memory_order_release);
  };
  Group::Job job;
  job.cancel = discard;
  job.background = !communicator->options().blocking;
  if (job.background) {
    job.run = [handle, join] { start_pending(*handle, join); };
  } else {
    job.run = [join, discard] {
      ScopeExit undo(discard);
      join();
      undo.release();
    };
  }
  Group& group = Group::of_this_thread();
  group.start();
  group.add_job(std::move(job));
  return group.end() == Group::Outcome::kDone ? ncclSuccess : ncclInProgress;
}

ncclResult_t init_rank(const char* function, ncclComm_t* comm, int nranks, const ncclUniqueId& id,
                       int rank, const ncclConfig_t* config, int device) {
  check_pointer(comm, function, "comm");
  if (nranks < 1 || nranks > Communicator::kMostRanks) {
    throw_error(ErrorCode::kInvalidArgument, "%s : invalid number of ranks %d (1 to %d)", function,
                nranks, Communicator::kMostRanks);
  }
  check_rank(rank, nranks, function, "rank");
  const Config& environment = Config::process();
  if (rank == 0) {
    log_version(format("NCCL version %d.%d.%d (Catenary)", NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH));
  }
  auto communicator = Communicator::make(rank, nranks, Device::get(device),
                                         parse_options(config, environment), environment);
  const UniqueId unique_id = to_unique_id(id);
  return begin(comm, communicator,
               [communicator, unique_id] { communicator->join(unique_id, built_in_transports); });
}

void check_excluded(std::vector<int> ranks, int nranks) {
  for (const int rank : ranks) check_rank(rank, nranks, "ncclCommShrink", "rank to exclude");
  std::ranges::sort(ranks);
  if (const auto same = std::ranges::adjacent_find(ranks); same != ranks.end()) {
    throw_error(ErrorCode::kInvalidArgument, "ncclCommShrink : rank %d is excluded twice", *same);
  }
}

// Makes a communicator out of another one, now or at the end of the group. `make` waits for other
// ranks; it may give none.
void make_child(const Communicator& parent, ncclComm_t* place,
                std::function<std::shared_ptr<Communicator>()> make) {
  *place = nullptr;
  Group::Job job;
  job.parent = &parent;
  job.run = [place, make = std::move(make)] {
    const std::shared_ptr<Communicator> child = make();
    if (child != nullptr) *place = make_handle(child);
  };
  job.cancel = [] {};
  Group& group = Group::of_this_thread();
  group.start();
  group.add_job(std::move(job));
  group.end();
}

ncclResult_t finalize(const char* function, ncclComm_t comm, std::int64_t patience_ms) {
  require_not_forked();
  const CommCall call(comm, function);
  std::atomic<bool>& finalized = call.handle().finalized;
  if (finalized.exchange(true, std::memory_order_acq_rel)) {
    throw_error(ErrorCode::kInvalidArgument, "%s : another thread finalizes the communicator",
                function);
  }
  if (call->options().blocking) {
    if (const auto disagreement = call->part(patience_ms)) throw Error(*disagreement);
    return ncclSuccess;
  }
  ScopeExit undo([&finalized] { finalized.store(false, std::memory_order_release); });
  start_pending(call.handle(),
                [communicator = call.shared(), patience_ms] { communicator->part(patience_ms); });
  undo.release();
  return ncclInProgress;
}

}  // namespace

CATENARY_NCCL(ncclResult_t, GetVersion, (int* version)) {
  return guarded([&] {
    check_pointer(version, "ncclGetVersion", "version");
    *version = NCCL_VERSION_CODE;
  });
}

CATENARY_NCCL(ncclResult_t, GetUniqueId, (ncclUniqueId * uniqueId)) {
  return guarded([&] {
    check_pointer(uniqueId, "ncclGetUniqueId", "uniqueId");
    const UniqueId id = create_unique_id(Config::process());
    std::memcpy(uniqueId->internal, id.bytes.data(), sizeof uniqueId->internal);
  });
}

CATENARY_NCCL(ncclResult_t, CommInitRank,
              (ncclComm_t * comm, int nranks, ncclUniqueId commId, int rank)) {
  return guarded_result([&] {
    return init_rank("ncclCommInitRank", comm, nranks, commId, rank, nullptr,
                     Device::current_ordinal());
  });
}

CATENARY_NCCL(ncclResult_t, CommInitRankConfig,
              (ncclComm_t * comm, int nranks, ncclUniqueId commId, int rank,
               ncclConfig_t* config)) {
  return guarded_result([&] {
    return init_rank("ncclCommInitRankConfig", comm, nranks, commId, rank, config,
                     Device::current_ordinal());
  });
}

CATENARY_NCCL(ncclResult_t, CommInitRankScalable,
              (ncclComm_t * newcomm, int nranks, int myrank, int nId, ncclUniqueId* commIds,
               ncclConfig_t* config)) {
  return guarded_result([&] {
    check_pointer(commIds, "ncclCommInitRankScalable", "commIds");
    if (nId < 1 || nId > nranks) {
      throw_error(ErrorCode::kInvalidArgument, "ncclCommInitRankScalable : %d ids for %d ranks",
                  nId, nranks);
    }
    return init_rank("ncclCommInitRankScalable", newcomm, nranks, commIds[0], myrank, config,
                     Device::current_ordinal());
  });
}

CATENARY_NCCL(ncclResult_t, CommInitAll, (ncclComm_t * comms, int ndev, const int* devlist)) {
  return guarded_result([&] {
    check_pointer(comms, "ncclCommInitAll", "comms");
    if (ndev < 1)
      throw_error(ErrorCode::kInvalidArgument, "ncclCommInitAll : invalid device count %d", ndev);
    ncclUniqueId id;
    const UniqueId made = create_unique_id(Config::process());
    std::memcpy(id.internal, made.bytes.data(), sizeof id.internal);
    Group& group = Group::of_this_thread();
    group.start();
    ScopeExit forget([&group] { group.drop(); });
    for (int rank = 0; rank < ndev; ++rank) {
      const int device = devlist != nullptr ? devlist[rank] : rank;
      init_rank("ncclCommInitAll", &comms[rank], ndev, id, rank, nullptr, device);
    }
    forget.release();
    return group.end() == Group::Outcome::kDone ? ncclSuccess : ncclInProgress;
  });
}

CATENARY_NCCL(ncclResult_t, CommSplit,
              (ncclComm_t comm, int color, int key, ncclComm_t* newcomm, ncclConfig_t* config)) {
  return guarded([&] {
    require_not_forked();
    const CommCall call(comm, "ncclCommSplit");
    check_pointer(newcomm, "ncclCommSplit", "newcomm");
    if (color < 0 && color != NCCL_SPLIT_NOCOLOR) {
      throw_error(ErrorCode::kInvalidArgument, "ncclCommSplit : invalid color %d", color);
    }
    const Config& environment = Config::process();
    const CommunicatorOptions options = parse_options(config, environment, call->options());
    make_child(*call.shared(), newcomm,
               [parent = call.shared(), color, key, options, &environment] {
                 return split(*parent, color, key, options, environment, built_in_transports);
               });
  });
}

CATENARY_NCCL(ncclResult_t, CommShrink,
              (ncclComm_t comm, int* excludeRanksList, int excludeRanksCount, ncclComm_t* newcomm,
               ncclConfig_t* config, int shrinkFlags)) {
  return guarded([&] {
    require_not_forked();
    const CommCall call(comm, "ncclCommShrink");
    check_pointer(newcomm, "ncclCommShrink", "newcomm");
    check_pointer(excludeRanksList, "ncclCommShrink", "excludeRanksList");
    if (excludeRanksCount < 1 || excludeRanksCount >= call->nranks()) {
      throw_error(ErrorCode::kInvalidArgument, "ncclCommShrink : %d ranks to exclude of %d",
                  excludeRanksCount, call->nranks());
    }
    if (shrinkFlags != NCCL_SHRINK_DEFAULT && shrinkFlags != NCCL_SHRINK_ABORT) {
      throw_error(ErrorCode::kInvalidArgument, "ncclCommShrink : invalid flags 0x%x", shrinkFlags);
    }
    const Config& environment = Config::process();
    const CommunicatorOptions options = parse_options(config, environment, call->options());
    const std::vector<int> excluded(excludeRanksList, excludeRanksList + excludeRanksCount);
    check_excluded(excluded, call->nranks());
    if (shrinkFlags == NCCL_SHRINK_ABORT) call->abort();
    make_child(*call.shared(), newcomm, [parent = call.shared(), excluded, options, &environment] {
      return shrink(*parent, excluded, options, environment, built_in_transports);
    });
  });
}

CATENARY_NCCL(ncclResult_t, CommFinalize, (ncclComm_t comm)) {
  return guarded_result([&]() -> ncclResult_t {
    if (comm == nullptr) return ncclSuccess;
    return finalize("ncclCommFinalize", comm, 0);
  });
}

CATENARY_EXPORT ncclResult_t catCommFinalize(ncclComm_t comm, int patienceMs) {
  return guarded_result([&]() -> ncclResult_t {
    if (comm == nullptr) return ncclSuccess;
    if (patienceMs < 0) {
      throw_error(ErrorCode::kInvalidArgument, "catCommFinalize : a patience of %d ms", patienceMs);
    }
    return finalize("catCommFinalize", comm, patienceMs);
  });
}

CATENARY_NCCL(ncclResult_t, CommDestroy, (ncclComm_t comm)) {
  return guarded([&] {
    if (comm == nullptr) return;
    require_not_forked();
    // Finished while the handle is still alive, so that another thread may abort what never ends.
    // What shows only now is in the log: the communicator goes all the same.
    CommCall(comm, "ncclCommDestroy", CommCall::Needs::kBegun)->part(0);
    const std::shared_ptr<Communicator> communicator = end_if_alive(*comm);
    if (communicator == nullptr) return;  // aborted meanwhile
    log_info(Subsystem::kInit, communicator->device().ordinal(),
             format("comm %p rank %d nranks %d cudaDev %d - Destroy COMPLETE",
                    static_cast<void*>(communicator.get()), communicator->rank(),
                    communicator->nranks(), communicator->device().ordinal()));
  });
}

CATENARY_NCCL(ncclResult_t, CommAbort, (ncclComm_t comm)) {
  return guarded([&] {
    if (comm == nullptr) return;
    require_not_forked();
    CommCall(comm, "ncclCommAbort", CommCall::Needs::kExists)->abandon();
    end_if_alive(*comm);  // who waited in ncclCommDestroy may have done so
  });
}

CATENARY_NCCL(ncclResult_t, CommGetAsyncError, (ncclComm_t comm, ncclResult_t* asyncError)) {
  return guarded([&] {
    const CommCall call(comm, "ncclCommGetAsyncError", CommCall::Needs::kExists);
    check_pointer(asyncError, "ncclCommGetAsyncError", "asyncError");
    const bool unfinished = in_progress(call.handle());
    const std::optional<Error> failure = call->failure();
    *asyncError = failure ? to_result(*failure) : unfinished ? ncclInProgress : ncclSuccess;
  });
}

// The communicator's own failure, if it has one: the newest warning may be of another one, and is
// written a moment after a failure can be seen.
CATENARY_NCCL(const char*, GetLastError, (ncclComm_t comm)) {
  static thread_local ThreadText<kErrorTextBytes> words;
  const std::optional<Error> failure = known_failure(comm);
  return failure ? words.keep(failure->what()) : last_error_text();
}

CATENARY_NCCL(ncclResult_t, CommCount, (const ncclComm_t comm, int* count)) {
  return guarded([&] {
    const CommCall call(comm, "ncclCommCount", CommCall::Needs::kMade);
    check_pointer(count, "ncclCommCount", "count");
    *count = call->nranks();
  });
}

CATENARY_NCCL(ncclResult_t, CommCuDevice, (const ncclComm_t comm, int* device)) {
  return guarded([&] {
    const CommCall call(comm, "ncclCommCuDevice", CommCall::Needs::kMade);
    check_pointer(device, "ncclCommCuDevice", "device");
    *device = call->device().ordinal();
  });
}

CATENARY_NCCL(ncclResult_t, CommUserRank, (const ncclComm_t comm, int* rank)) {
  return guarded([&] {
    const CommCall call(comm, "ncclCommUserRank", CommCall::Needs::kMade);
    check_pointer(rank, "ncclCommUserRank", "rank");
    *rank = call->rank();
  });
}
