// Runs one function as every rank of a communicator: as threads of this process, as processes, or
// as processes of several threads. A rank reports failures by throwing or by returning; processes
// hand theirs to the parent as text.
#pragma once

#include <functional>
#include <string>
#include <type_traits>
#include <vector>

#include "nccl.h"

namespace catenary::testing {

struct Shape {
  int processes = 1;
  int threads = 1;  // of each process
  int ranks() const { return processes * threads; }
};

// A failed expectation of a rank.
struct Failure {
  std::string what;
};
// Throws Failure unless `condition`. `what` is a text, or a function that makes one: where every
// element is looked at, making texts of what is right takes longer than all else.
template <class What>
void require(bool condition, const What& what) {
  if (condition) return;
  if constexpr (std::is_invocable_v<const What&>) {
    throw Failure{what()};
  } else {
    throw Failure{what};
  }
}
// Throws Failure unless `result` is ncclSuccess; says what the library said.
void require_success(ncclResult_t result, const std::string& what);

// Runs body(rank, nranks, id) on every rank and returns what failed, an entry per failure, empty if
// nothing did. Ends what does not end within `timeout_s` and says so.
std::vector<std::string> run_ranks(const Shape& shape,
                                   const std::function<void(int, int, const ncclUniqueId&)>& body,
                                   int timeout_s = 60);

}  // namespace catenary::testing
