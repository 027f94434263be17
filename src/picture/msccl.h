// A schedule as an algorithm file of MSCCL: for each rank thread blocks, each with at most one peer
// to send to and one to receive from, which run side by side; what has an order besides is tied by
// dependences. A lane is a channel. A file is for calls in place or for calls out of place.
//
// What MSCCL cannot say is done in its words: a fold is a chain of reductions through scratch, a
// message to oneself a copy, a step that receives and sends to peers that other steps pair
// otherwise is taken apart. That a reduction takes the received side first (Step.received_first)
// has no words there, and a comment in the file says so; so it does where the runtime's limits are
// exceeded. docs/pictures/README.md tells more.
//
// Pure; any thread. Throws Error(kInvalidArgument) for collectives that MSCCL does not know, and
// for AlltoAll in place, which schedules are not made for.
#pragma once

#include <string>
#include <vector>

#include "src/picture/scene.h"

namespace catenary::picture {

enum class MscclCalls { kOutOfPlace, kInPlace };

std::string msccl_xml(const Scene& scene, MscclCalls calls);
std::string msccl_xml(const Scene& scene, MscclCalls calls,
                      const std::vector<std::vector<Schedule>>& schedules);

}  // namespace catenary::picture
