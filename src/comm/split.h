// Split and shrink: making a communicator of some ranks of another one.
//
// Split is collective over the parent: every rank calls, ranks of no color too. It waits for all of
// the parent's ranks and then for those of the same color. Shrink is called by the remaining ranks
// only, whose number and order each of them knows by itself; it needs nothing of the others, which
// may be dead. Failure: throws Error.
#pragma once

#include <memory>

#include "src/comm/communicator.h"

namespace catenary {

inline constexpr int kNoColor = -1;

// The new communicator, joined; null for kNoColor. Ranks are ordered by key, then by parent rank.
std::shared_ptr<Communicator> split(Communicator& parent, int color, int key,
                                    const CommunicatorOptions& options, const Config& config,
                                    const TransportFactory& transports);

// The new communicator of the ranks that `excluded` does not name, in their old order. They meet
// where the parent met, so the process that made the parent's unique id must be alive: kRemote if
// it is not.
std::shared_ptr<Communicator> shrink(Communicator& parent, std::span<const int> excluded,
                                     const CommunicatorOptions& options, const Config& config,
                                     const TransportFactory& transports);

}  // namespace catenary
