// The thread blocks of one rank, as MSCCL runs them, and the dependences between them.
//
// An operation depends on the last one that wrote what it reads, and on all since then that touched
// what it writes, unless the order within its own block or other dependences imply that already.
//
// A value; one thread; nothing fails.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include "src/collective/schedule.h"

namespace catenary::picture {

// A chunk in MSCCL's words: buffer i, o or s.
struct MscclPlace {
  char buffer = 'i';
  int offset = -1;
  bool operator==(const MscclPlace&) const = default;
  auto operator<=>(const MscclPlace&) const = default;
};

struct MscclOperation {
  std::string_view type;  // s, r, rcs, rrs, rrc, rrcs, cpy, re or nop
  MscclPlace src;
  MscclPlace dst;
  int block = -1;  // that it depends on, and the step there
  int step = -1;
  bool is_awaited = false;  // another one depends on it
};

struct MscclBlock {
  int send = kNobody;
  int recv = kNobody;
  int channel = 0;
  std::vector<MscclOperation> operations;
  // Of each block, how many operations are done before this one's next.
  std::vector<std::size_t> done;
};

class MscclProgram {
 public:
  // The block of that channel and these peers, a new one if there is none.
  std::size_t block(int channel, int send, int recv);

  void add(std::size_t block, std::string_view type, MscclPlace src, MscclPlace dst);

  const std::vector<MscclBlock>& blocks() const { return blocks_; }

 private:
  struct Mark {
    std::size_t block;
    std::size_t step;
  };
  struct History {
    std::vector<Mark> writer;   // none or one
    std::vector<Mark> readers;  // since then
  };

  std::vector<Mark> needed_by(std::size_t block, const std::vector<MscclPlace>& reads,
                              const std::vector<MscclPlace>& writes);
  void learn(std::size_t block, const Mark& mark);

  std::vector<MscclBlock> blocks_;
  std::map<MscclPlace, History> memory_;
  // [block][step]: what was done before that one ended, itself included
  std::vector<std::vector<std::vector<std::size_t>>> done_at_;
};

}  // namespace catenary::picture
