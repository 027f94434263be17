// Split: making a communicator of some ranks of another one.
//
// Collective over the parent: every rank calls, ranks of no color too. Waits for all of the
// parent's ranks and then for those of the same color. Failure: throws Error.
#pragma once

#include <memory>

#include "src/comm/communicator.h"

namespace catenary {

inline constexpr int kNoColor = -1;

// The new communicator, joined; null for kNoColor. Ranks are ordered by key, then by parent rank.
std::shared_ptr<Communicator> split(Communicator& parent, int color, int key,
                                    const CommunicatorOptions& options, const Config& config,
                                    const TransportFactory& transports);

}  // namespace catenary
