// Proves that the schedules of all ranks together do what their collective means: runs them on
// symbols instead of bytes, over links of a given number of slots.
//
// A symbol is what a rank gave at one place of its input, or the reduction of two symbols, as an
// ordered tree; so equal symbols mean equal bits. Found out are: wrong, missing, doubled or
// unfinished results; sends and receives that do not pair up in chunk, length, pass and slice;
// messages left over; deadlock; input read after it was overwritten in place; output written twice
// or read too soon; one pass touching what belongs to another; and whatever breaks a rule of
// schedule.h.
//
// A rank waits in one place at a time, for its next messages and slot, and nothing it does depends
// on who is faster. So all orders of execution end alike, and the checker runs only one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "src/collective/algorithms.h"
#include "src/collective/operation.h"
#include "src/collective/schedule.h"

namespace catenary {

struct ScheduleCase {
  Collective collective = Collective::kAllReduce;
  int nranks = 1;
  int root = 0;                  // who sends, for Send and Recv
  int receiver = 0;              // for Send and Recv only
  std::size_t count = 1;         // as the collective means it; an element fills a slot
  bool in_place = false;         // in the layout that NCCL documents, where there is one
  std::uint32_t slots = 2;       // of a link, as chunks are cut for
  std::uint32_t link_slots = 0;  // of a link really; 0: as many
  int box = 1;                   // so many consecutive ranks share a machine
  int lane = 0;                  // each is a schedule of its own
};

bool has_in_place_layout(Collective collective);

// Where a rank stands, with the window that links of so many slots allow.
Place place_of(const Algorithm& algorithm, const ScheduleCase& which, int rank);

// All ranks' schedules, for that count and those slots. Of Send and Recv either makes the pair.
std::vector<Schedule> schedules_of(const Algorithm& algorithm, const ScheduleCase& which);

// The first thing found wrong, or nothing.
std::string check_schedules(const ScheduleCase& which, const std::vector<Schedule>& schedules);

}  // namespace catenary
