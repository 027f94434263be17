// Plan: a schedule compiled for one rank against its links, ready to run any number of times.
//
// Compiling resolves each step's links, marks the first message on every link (it opens with the
// operation's descriptor), joins the steps of a fold into one, and drops messages of a rank to
// itself where the input can be read in place. A value that points to links; it knows no buffers
// and no counts. Threads: made under the communicator's issue lock, read-only afterwards. Nothing
// waits.
#pragma once

#include <vector>

#include "src/collective/fan_out.h"
#include "src/collective/lending.h"
#include "src/collective/schedule.h"
#include "src/transport/link_table.h"

namespace catenary {

struct PlannedStep {
  RecvLink* recv = nullptr;  // null in a fold: its sources say where from
  SendLink* send = nullptr;
  Chunk src = {};
  Chunk dst = {};
  Chunk extent = {};     // a chunk as long as all of the step
  Lending lending = {};  // what may be lent to whom it is sent
  FanOut fan_out = FanOut::kNone;
  int recv_from = kNobody;
  int send_to = kNobody;
  bool received_first = false;
  const RecvLink* exchanges_on = nullptr;  // what comes from whom it is exchanged with
  bool is_returned = false;                // whoever sends it was asked to put it where it is kept
  bool for_good = false;    // it writes output that no step reads or sends afterwards
  bool opens_recv = false;  // the first message of the operation on that link
  bool opens_send = false;
  int fold_first = 0;  // a fold of `fold_count` sources, the first at this index; 0: not a fold
  int fold_count = 0;
};

// One operand of a fold: a peer's message, or the rank's own input in place.
struct FoldSource {
  RecvLink* recv = nullptr;  // null: `own`
  Chunk own = {};
  int recv_from = kNobody;
  bool opens_recv = false;
};

// A link that steps send on.
struct SendTo {
  SendLink* link = nullptr;
  int peer = kNobody;
};

struct Plan {
  int chunk_count = 1;
  int scratch_count = 0;
  bool is_open_to_writers = false;  // asks peers to put things where they are kept
  // Whatever it lends in place comes back like that: it writes over nothing that peers have read.
  bool takes_nothing_back = false;
  Chunk sent_first = {};  // of input, by a step that only sends; none if there is none
  std::vector<PlannedStep> steps;
  std::vector<SendTo> sends;  // each link once
  std::vector<FoldSource> fold_sources;
};

// What the steps of `schedule` may lend: one entry a step. `scaled`: inputs are multiplied on the
// way in, so they cannot be read in place.
Plan compile(const Schedule& schedule, const std::vector<Lending>& lendings, int rank,
             Channel channel, bool scaled, LinkTable& links);

}  // namespace catenary
