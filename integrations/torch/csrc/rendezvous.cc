#include "rendezvous.h"

#include <c10/util/Exception.h>

#include <cstring>
#include <string>
#include <vector>

#include "library.h"

namespace catenary_torch {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

ncclUniqueId new_id() {
  ncclUniqueId id;
  const ncclResult_t result = ncclGetUniqueId(&id);
  if (result != ncclSuccess) {
    throw_backend_error(
        c10::str("ncclGetUniqueId: ", ncclGetErrorString(result), ": ", ncclGetLastError(nullptr)));
  }
  return id;
}

std::string joined(const std::vector<int>& ranks) {
  std::string text;
  for (const int rank : ranks) text += (text.empty() ? "" : ", ") + std::to_string(rank);
  return text;
}

// Those of ranks 1 and up whose key is not there in time.
std::vector<int> missing(c10d::Store& store, int size, const std::function<std::string(int)>& key,
                         milliseconds timeout, bool all) {
  const auto deadline = steady_clock::now() + timeout;
  std::vector<int> late;
  for (int rank = 1; rank < size; ++rank) {
    const auto left = std::chrono::duration_cast<milliseconds>(deadline - steady_clock::now());
    try {
      // 0 means no limit to a Store.
      store.wait({key(rank)}, std::max(left, milliseconds(1)));
    } catch (const std::exception&) {
      late.push_back(rank);
      if (!all) break;
    }
  }
  return late;
}

// torch's own errors also have a stack to show, which is of no help to users.
std::string words_of(const std::exception& error) {
  const auto* of_torch = dynamic_cast<const c10::Error*>(&error);
  return of_torch != nullptr ? of_torch->what_without_backtrace() : error.what();
}

// To a rank that was let down.
std::string absent(c10d::Store& store, int size, const std::function<std::string(int)>& key) {
  std::vector<int> ranks;
  try {
    for (int rank = 0; rank < size; ++rank) {
      if (!store.check({key(rank)})) ranks.push_back(rank);
    }
  } catch (const std::exception&) {
    return "the Store, which has gone";
  }
  return ranks.empty() ? "an id from rank 0" : "rank " + joined(ranks);
}

}  // namespace

Ids meet(c10d::Store& store, int rank, int size, milliseconds timeout) {
  // A Store may be used for one group after another, so each meeting has keys of its own. Every
  // rank counts for itself, and so alike.
  const std::string own = "catenary/meetings/" + std::to_string(rank);
  const std::string prefix = "catenary/meeting/" + std::to_string(store.add(own, 1)) + "/";
  const std::string ids_key = prefix + "ids";
  const auto came_key = [&](int each) { return prefix + std::to_string(each); };
  Ids ids;
  store.set(came_key(rank), std::string("1"));
  if (rank == 0) {
    const std::vector<int> late = missing(store, size, came_key, timeout, true);
    if (!late.empty()) {
      throw_backend_error(c10::str("rank 0 waited ", timeout.count(),
                                   "ms for the process group to be made, but without rank ",
                                   joined(late)));
    }
    ids = {new_id(), new_id()};
    std::vector<std::uint8_t> bytes(sizeof ids);
    std::memcpy(bytes.data(), &ids, sizeof ids);
    store.set(ids_key, bytes);
    return ids;
  }
  try {
    // A little longer than rank 0, which knows who is missing.
    store.wait({ids_key}, timeout + milliseconds(100));
  } catch (const std::exception& error) {
    throw_backend_error(c10::str("rank ", rank, " waited ", timeout.count(),
                                 "ms for the process group to be made, but without ",
                                 absent(store, size, came_key), ": ", words_of(error)));
  }
  const std::vector<std::uint8_t> bytes = store.get(ids_key);
  TORCH_CHECK(bytes.size() == sizeof ids, "the Store has no ids under ", ids_key);
  std::memcpy(&ids, bytes.data(), sizeof ids);
  return ids;
}

void monitored_barrier(c10d::Store& store, int rank, int size, std::uint64_t n,
                       milliseconds timeout, bool wait_all_ranks) {
  const std::string prefix = "catenary/monitored/" + std::to_string(n) + "/";
  const std::string verdict_key = prefix + "verdict";
  const auto key = [&](int each) { return prefix + std::to_string(each); };
  if (rank != 0) {
    store.set(key(rank), std::string("1"));
    std::string verdict;
    try {
      // A little longer than rank 0, which says who is missing.
      store.wait({verdict_key}, std::max(timeout, milliseconds(1)) + milliseconds(100));
      verdict = store.get_to_str(verdict_key);
    } catch (const std::exception& error) {
      verdict = words_of(error);
    }
    if (verdict == "passed") return;
    throw_backend_error(c10::str("Rank ", rank,
                                 " successfully reached monitoredBarrier, but received "
                                 "errors while waiting for send/recv from rank 0. Please check "
                                 "rank 0 logs for faulty rank. ",
                                 verdict));
  }
  if (timeout.count() <= 0 && size > 1) {
    throw_backend_error("Rank 0 timed out in monitoredBarrier after 0 ms.");
  }
  const std::vector<int> late = missing(store, size, key, timeout, wait_all_ranks);
  if (late.empty()) {
    store.set(verdict_key, std::string("passed"));
    if (n == 0) return;
    // All are here, so all have read what was said in the barrier before.
    const std::string before = "catenary/monitored/" + std::to_string(n - 1) + "/";
    for (int each = 1; each < size; ++each) store.deleteKey(before + std::to_string(each));
    store.deleteKey(before + "verdict");
    return;
  }
  const std::string verdict =
      c10::str(late.size() == 1 ? "Rank " : "Ranks ", joined(late),
               " failed to pass monitoredBarrier in ", timeout.count(), " ms");
  store.set(verdict_key, verdict);
  throw_backend_error(verdict);
}

}  // namespace catenary_torch
