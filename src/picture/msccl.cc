#include "src/picture/msccl.h"

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <tuple>

#include "src/base/error.h"
#include "src/collective/operation.h"
#include "src/picture/msccl_program.h"
#include "src/picture/svg.h"

namespace catenary::picture {
namespace {

// What MSCCL's runtime has room for.
constexpr std::size_t kMostSteps = 256;        // in a thread block
constexpr std::size_t kMostBlocks = 216;       // of a rank
constexpr std::size_t kMostChannelPeers = 32;  // either way

std::string_view msccl_name(const Scene& scene) {
  // Not even of the same steps, where its parts may differ in length.
  const Collective asked = scene.form.value_or(scene.algorithm->collective);
  switch (asked) {
    case Collective::kAllReduce: return "allreduce";
    case Collective::kBroadcast: return "broadcast";
    case Collective::kReduce: return "reduce";
    case Collective::kAllGather: return "allgather";
    case Collective::kReduceScatter: return "reduce_scatter";
    case Collective::kAllToAll: return "alltoall";
    default:
      throw_error(ErrorCode::kInvalidArgument, "MSCCL does not know the collective %s",
                  std::string(name_of(asked)).c_str());
  }
}

// Turns the schedule of one rank into thread blocks.
class Lowering {
 public:
  Lowering(const Scene& scene, MscclCalls calls, int rank)
      : scene_(scene), in_place_(calls == MscclCalls::kInPlace), rank_(rank) {}

  void add_lane(int lane, const Schedule& schedule) {
    lane_ = lane;
    chunk_count_ = schedule.chunk_count;
    find_pairs(schedule);
    for (const Step& step : schedule.steps) add(step);
  }

  const MscclProgram& program() const { return program_; }
  int chunks_in(char buffer) const {
    if (in_place_) return buffer == common_buffer() ? chunk_count_ * scene_.lanes : 0;
    return scene_.lanes * (buffer == 'i' ? input_chunks(scene_, rank_, chunk_count_)
                                         : output_chunks(scene_, rank_, chunk_count_));
  }
  int scratch_chunks() const { return scratch_chunks_; }
  bool lost_an_order() const { return lost_an_order_; }

 private:
  bool is_other(int peer) const { return peer != kNobody && peer != rank_; }

  // A peer to receive from and one to send to share a block if no step pairs either with another.
  void find_pairs(const Schedule& schedule) {
    std::map<int, std::set<int>> sends_after;
    std::map<int, std::set<int>> receives_before;
    for (const Step& step : schedule.steps) {
      if (!is_other(step.recv_from) || !is_other(step.send_to)) continue;
      sends_after[step.recv_from].insert(step.send_to);
      receives_before[step.send_to].insert(step.recv_from);
    }
    send_with_.clear();
    recv_with_.clear();
    for (const auto& [from, to] : sends_after) {
      if (to.size() != 1 || receives_before[*to.begin()].size() != 1) continue;
      send_with_[from] = *to.begin();
      recv_with_[*to.begin()] = from;
    }
  }

  std::size_t local_block() { return program_.block(lane_, kNobody, kNobody); }
  std::size_t send_block(int to) {
    const auto pair = recv_with_.find(to);
    return program_.block(lane_, to, pair == recv_with_.end() ? kNobody : pair->second);
  }
  std::size_t recv_block(int from) {
    const auto pair = send_with_.find(from);
    return program_.block(lane_, pair == send_with_.end() ? kNobody : pair->second, from);
  }

  MscclPlace new_scratch() { return {'s', scratch_chunks_++}; }

  // In place, both buffers are one: the longer one.
  char common_buffer() const {
    return scene_.algorithm->collective == Collective::kAllGather ? 'o' : 'i';
  }

  MscclPlace place_in(char buffer, int index) const {
    const Collective collective = scene_.algorithm->collective;
    if (in_place_) buffer = common_buffer();
    return {buffer, holds_part_per_rank(collective) ? index * scene_.lanes + lane_
                                                    : lane_ * chunk_count_ + index};
  }

  MscclPlace place_of(const Chunk& chunk) {
    if (chunk.buffer == Buffer::kInput) {
      return place_in('i', in_place_ ? part_of_input(scene_, rank_, chunk.index) : chunk.index);
    }
    if (chunk.buffer == Buffer::kOutput) {
      return place_in('o', in_place_ ? part_of_output(scene_, rank_, chunk.index) : chunk.index);
    }
    const auto [found, is_new] =
        scratch_.try_emplace({lane_, chunk.buffer, chunk.index}, MscclPlace{});
    if (is_new) found->second = new_scratch();
    return found->second;
  }

  void add(const Step& step) {
    if (step.received_first && step.src && step.recv_from != kNobody) lost_an_order_ = true;
    if (is_other(step.recv_from)) {
      add_receive(step);
    } else if (step.recv_from == rank_) {
      add_receive_from_self(step);
    } else {
      const MscclPlace src = place_of(step.src);
      if (step.dst) copy(src, place_of(step.dst));
      add_send(step, src);
    }
  }

  void add_receive(const Step& step) {
    const std::size_t block = recv_block(step.recv_from);
    const auto pair = send_with_.find(step.recv_from);
    const bool sends_too = pair != send_with_.end() && pair->second == step.send_to;
    const MscclPlace src = step.src ? place_of(step.src) : MscclPlace{};
    if (sends_too && !step.dst && step.src) {
      program_.add(block, "rrs", src, src);
      return;
    }
    const MscclPlace dst = step.dst ? place_of(step.dst) : new_scratch();
    if (sends_too) {
      program_.add(block, step.src ? "rrcs" : "rcs", step.src ? src : dst, dst);
      return;
    }
    program_.add(block, step.src ? "rrc" : "r", step.src ? src : dst, dst);
    add_send(step, dst);
  }

  void add_receive_from_self(const Step& step) {
    const MscclPlace message = to_self_.front();
    to_self_.pop_front();
    MscclPlace result = message;
    if (step.src || step.dst) {
      result = step.dst ? place_of(step.dst) : new_scratch();
      const MscclPlace first = step.src ? place_of(step.src) : message;
      copy(first, result);
      if (step.src) program_.add(local_block(), "re", message, result);
    }
    add_send(step, result);
  }

  void copy(MscclPlace from, MscclPlace to) {
    if (from != to) program_.add(local_block(), "cpy", from, to);
  }

  // Out of place, input stays as it is: a message of input to oneself need not be kept apart.
  void add_send(const Step& step, MscclPlace from) {
    if (step.send_to == kNobody) return;
    if (step.send_to != rank_) {
      program_.add(send_block(step.send_to), "s", from, from);
      return;
    }
    if (from.buffer != 'i' || in_place_) {
      const MscclPlace kept = new_scratch();
      copy(from, kept);
      from = kept;
    }
    to_self_.push_back(from);
  }

  const Scene& scene_;
  const bool in_place_;
  const int rank_;
  int lane_ = 0;
  int chunk_count_ = 1;
  int scratch_chunks_ = 0;
  bool lost_an_order_ = false;
  MscclProgram program_;
  std::map<std::tuple<int, Buffer, int>, MscclPlace> scratch_;
  std::deque<MscclPlace> to_self_;
  std::map<int, int> send_with_;  // peer to receive from: peer to send to
  std::map<int, int> recv_with_;  // the other way round
};

void append(std::string& xml, const MscclProgram& program) {
  int id = 0;
  for (const MscclBlock& block : program.blocks()) {
    xml += format("    <tb id=\"%d\" send=\"%d\" recv=\"%d\" chan=\"%d\">\n", id++, block.send,
                  block.recv, block.channel);
    int step = 0;
    for (const MscclOperation& operation : block.operations) {
      xml += format(
          "      <step s=\"%d\" type=\"%s\" srcbuf=\"%c\" srcoff=\"%d\" dstbuf=\"%c\" "
          "dstoff=\"%d\" cnt=\"%d\" depid=\"%d\" deps=\"%d\" hasdep=\"%d\"/>\n",
          step++, std::string(operation.type).c_str(), operation.src.buffer, operation.src.offset,
          operation.dst.buffer, operation.dst.offset, operation.type == "nop" ? 0 : 1,
          operation.block, operation.step, operation.is_awaited ? 1 : 0);
    }
    xml += "    </tb>\n";
  }
}

// What a reader of the file should know and the file cannot say otherwise.
std::string notes(const Scene& scene, const std::vector<Lowering>& ranks) {
  std::size_t blocks = 0;
  std::size_t steps = 0;
  std::size_t peers = 0;
  bool lost_an_order = false;
  for (const Lowering& rank : ranks) {
    blocks = std::max(blocks, rank.program().blocks().size());
    lost_an_order = lost_an_order || rank.lost_an_order();
    std::map<int, std::pair<std::size_t, std::size_t>> per_channel;
    for (const MscclBlock& block : rank.program().blocks()) {
      steps = std::max(steps, block.operations.size());
      auto& [sends, receives] = per_channel[block.channel];
      sends += block.send != kNobody;
      receives += block.recv != kNobody;
      peers = std::max({peers, sends, receives});
    }
  }
  std::string text = "<!-- " + escaped(name_of(scene)) + ", exported by catenary. -->\n";
  if (has_root(scene.algorithm->collective)) {
    text += format("<!-- For root %d only: MSCCL has no word for the root. -->\n", scene.root);
  }
  if (lost_an_order) {
    text +=
        "<!-- Some reductions take the received side first, which MSCCL cannot say: ranks may "
        "differ in bits where the reduction depends on the order of its two sides. -->\n";
  }
  if (blocks > kMostBlocks || steps > kMostSteps || peers > kMostChannelPeers) {
    text += format(
        "<!-- Too large for MSCCL's runtime as it is: %zu thread blocks (of %zu), %zu steps in one "
        "(of %zu), %zu peers in a channel (of %zu). -->\n",
        blocks, kMostBlocks, steps, kMostSteps, peers, kMostChannelPeers);
  }
  return text;
}

// What its reader takes: of a longer name it would overwrite what lies behind. The collective
// stands beside it anyway.
std::string algorithm_name(const Scene& scene, const std::string& collective) {
  constexpr std::size_t kMostCharacters = 63;
  const std::string name(scene.algorithm->name);
  const std::string full =
      format("catenary_%s_%s_%d", name.c_str(), collective.c_str(), scene.ranks);
  if (full.size() <= kMostCharacters) return full;
  return format("catenary_%s_%d", name.c_str(), scene.ranks);
}

}  // namespace

std::string msccl_xml(const Scene& scene, MscclCalls calls) {
  return msccl_xml(scene, calls, schedules_of(scene));
}

std::string msccl_xml(const Scene& scene, MscclCalls calls,
                      const std::vector<std::vector<Schedule>>& schedules) {
  const std::string collective(msccl_name(scene));
  const bool in_place = calls == MscclCalls::kInPlace;
  if (in_place && is_exchange(scene)) {
    throw_error(ErrorCode::kInvalidArgument, "there is no AlltoAll in place");
  }
  std::vector<Lowering> ranks;
  for (int rank = 0; rank < scene.ranks; ++rank) {
    ranks.emplace_back(scene, calls, rank);
    for (int lane = 0; lane < scene.lanes; ++lane) {
      ranks.back().add_lane(
          lane, schedules[static_cast<std::size_t>(lane)][static_cast<std::size_t>(rank)]);
    }
  }
  const int chunks = schedules[0][0].chunk_count;
  std::string xml = notes(scene, ranks);
  xml += format(
      "<algo name=\"%s\" proto=\"Simple\" nchannels=\"%d\" nchunksperloop=\"%d\" "
      "ngpus=\"%d\" coll=\"%s\" inplace=\"%d\" outofplace=\"%d\" minBytes=\"0\" "
      "maxBytes=\"1099511627776\">\n",
      algorithm_name(scene, collective).c_str(), scene.lanes, chunks * scene.lanes, scene.ranks,
      collective.c_str(), in_place ? 1 : 0, in_place ? 0 : 1);
  for (int rank = 0; rank < scene.ranks; ++rank) {
    const Lowering& lowered = ranks[static_cast<std::size_t>(rank)];
    xml += format("  <gpu id=\"%d\" i_chunks=\"%d\" o_chunks=\"%d\" s_chunks=\"%d\">\n", rank,
                  lowered.chunks_in('i'), lowered.chunks_in('o'), lowered.scratch_chunks());
    append(xml, lowered.program());
    xml += "  </gpu>\n";
  }
  return xml + "</algo>\n";
}

}  // namespace catenary::picture
