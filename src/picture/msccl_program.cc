#include "src/picture/msccl_program.h"

#include <algorithm>

namespace catenary::picture {
namespace {

bool reads_src(std::string_view type) {
  return type == "s" || type == "rrs" || type == "rrc" || type == "rrcs" || type == "cpy" ||
         type == "re";
}

bool writes_dst(std::string_view type) { return type != "s" && type != "rrs" && type != "nop"; }

}  // namespace

std::size_t MscclProgram::block(int channel, int send, int recv) {
  const auto found = std::ranges::find_if(blocks_, [&](const MscclBlock& block) {
    return block.channel == channel && block.send == send && block.recv == recv;
  });
  if (found != blocks_.end()) return static_cast<std::size_t>(found - blocks_.begin());
  blocks_.push_back({.send = send, .recv = recv, .channel = channel, .operations = {}, .done = {}});
  done_at_.emplace_back();
  return blocks_.size() - 1;
}

// The later of two marks often implies the other: take the latest first, and what it does not tell.
std::vector<MscclProgram::Mark> MscclProgram::needed_by(std::size_t block,
                                                        const std::vector<MscclPlace>& reads,
                                                        const std::vector<MscclPlace>& writes) {
  std::vector<Mark> wanted;
  for (const MscclPlace& place : reads) {
    const History& history = memory_[place];
    wanted.insert(wanted.end(), history.writer.begin(), history.writer.end());
  }
  for (const MscclPlace& place : writes) {
    const History& history = memory_[place];
    wanted.insert(wanted.end(), history.writer.begin(), history.writer.end());
    wanted.insert(wanted.end(), history.readers.begin(), history.readers.end());
  }
  std::vector<Mark> needed;
  for (auto mark = wanted.rbegin(); mark != wanted.rend(); ++mark) {
    std::vector<std::size_t>& done = blocks_[block].done;
    done.resize(blocks_.size());
    if (mark->block == block || done[mark->block] > mark->step) continue;
    needed.push_back(*mark);
    learn(block, *mark);
  }
  return needed;
}

void MscclProgram::learn(std::size_t block, const Mark& mark) {
  std::vector<std::size_t>& done = blocks_[block].done;
  const std::vector<std::size_t>& known = done_at_[mark.block][mark.step];
  for (std::size_t i = 0; i < known.size(); ++i) done[i] = std::max(done[i], known[i]);
}

void MscclProgram::add(std::size_t block, std::string_view type, MscclPlace src, MscclPlace dst) {
  std::vector<MscclPlace> reads;
  std::vector<MscclPlace> writes;
  if (reads_src(type)) reads.push_back(src);
  if (type == "re") reads.push_back(dst);
  if (writes_dst(type)) writes.push_back(dst);
  const std::vector<Mark> needed = needed_by(block, reads, writes);
  MscclBlock& own = blocks_[block];
  own.done.resize(blocks_.size());
  // An operation can wait for one other only: all but the last go to operations that do nothing.
  for (std::size_t i = 0; i < std::max<std::size_t>(needed.size(), 1); ++i) {
    MscclOperation operation{.type = "nop", .src = {}, .dst = {'o', -1}};
    if (i < needed.size()) {
      operation.block = static_cast<int>(needed[i].block);
      operation.step = static_cast<int>(needed[i].step);
      blocks_[needed[i].block].operations[needed[i].step].is_awaited = true;
    }
    if (i + 1 >= needed.size()) {
      operation.type = type;
      operation.src = src;
      operation.dst = dst;
    }
    own.operations.push_back(operation);
    own.done[block] = own.operations.size();
    done_at_[block].push_back(own.done);
  }
  const Mark mark{block, own.operations.size() - 1};
  for (const MscclPlace& place : reads) memory_[place].readers.push_back(mark);
  for (const MscclPlace& place : writes) memory_[place] = {.writer = {mark}, .readers = {}};
}

}  // namespace catenary::picture
