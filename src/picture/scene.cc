#include "src/picture/scene.h"

#include "src/base/error.h"
#include "src/collective/operation.h"

namespace catenary::picture {
namespace {

// Who has a buffer, and whether it holds all of the data or the rank's own part only.
enum class Share { kNone, kOwn, kAll };
struct Shares {
  Share input;
  Share output;
};

Shares shares_of(const Scene& scene, int rank) {
  const Share all_if_root = rank == scene.root ? Share::kAll : Share::kNone;
  switch (scene.algorithm->collective) {
    case Collective::kAllReduce:
    case Collective::kAllToAll: return {Share::kAll, Share::kAll};
    case Collective::kBroadcast: return {all_if_root, Share::kAll};
    case Collective::kReduce: return {Share::kAll, all_if_root};
    case Collective::kAllGather: return {Share::kOwn, Share::kAll};
    case Collective::kGather: return {Share::kOwn, all_if_root};
    case Collective::kReduceScatter: return {Share::kAll, Share::kOwn};
    case Collective::kScatter: return {all_if_root, Share::kOwn};
    case Collective::kSend:
    case Collective::kRecv: return {rank == 0 ? Share::kAll : Share::kNone, all_if_root};
    default: break;
  }
  throw_error(ErrorCode::kInternal, "what %s means is not known to pictures",
              name_of(scene).c_str());
}

std::vector<Schedule> schedules_of_pair(const Scene& scene) {
  std::vector<Schedule> schedules(static_cast<std::size_t>(scene.ranks));
  const auto add = [&](Collective half, int rank, int peer) {
    const Algorithm* algorithm = find_algorithm(half, scene.algorithm->name);
    if (algorithm == nullptr) {
      throw_error(ErrorCode::kInvalidArgument, "%s has no other half", name_of(scene).c_str());
    }
    const Place at{.rank = rank, .ranks = scene.ranks, .root = peer};
    for (const Step& step : steps_of(*algorithm, at)) {
      schedules[static_cast<std::size_t>(rank)].add(step);
    }
  };
  add(Collective::kSend, 0, scene.root);
  add(Collective::kRecv, scene.root, 0);
  return schedules;
}

int chunks_in(Share share, int chunk_count) {
  switch (share) {
    case Share::kNone: return 0;
    case Share::kOwn: return 1;
    case Share::kAll: return chunk_count;
  }
  return 0;
}

}  // namespace

std::vector<std::vector<Schedule>> schedules_of(const Scene& scene) {
  if (scene.ranks < 1 || scene.lanes < 1) {
    throw_error(ErrorCode::kInvalidArgument, "there must be a rank and a lane at least");
  }
  if (scene.root < 0 || scene.root >= scene.ranks) {
    throw_error(ErrorCode::kInvalidArgument, "rank %d is none of %d ranks", scene.root,
                scene.ranks);
  }
  if (scene.box < 1 || scene.ranks % scene.box != 0) {
    throw_error(ErrorCode::kInvalidArgument, "boxes of %d ranks do not divide %d ranks", scene.box,
                scene.ranks);
  }
  if (!scene.algorithm->runs_on({.ranks = scene.ranks, .root = scene.root, .box = scene.box})) {
    throw_error(ErrorCode::kInvalidArgument, "%s does not run on %d rank%s in boxes of %d%s",
                name_of(scene).c_str(), scene.ranks, scene.ranks == 1 ? "" : "s", scene.box,
                scene.algorithm->inside.empty()
                    ? ""
                    : ": it runs on several boxes of several ranks each (--box)");
  }
  std::vector<std::vector<Schedule>> schedules(static_cast<std::size_t>(scene.lanes));
  for (int lane = 0; lane < scene.lanes; ++lane) {
    std::vector<Schedule>& ranks = schedules[static_cast<std::size_t>(lane)];
    if (is_point_to_point(scene)) {
      ranks = schedules_of_pair(scene);
      continue;
    }
    for (int rank = 0; rank < scene.ranks; ++rank) {
      ranks.push_back(schedule_of(*scene.algorithm, {.rank = rank,
                                                     .ranks = scene.ranks,
                                                     .root = scene.root,
                                                     .box = scene.box,
                                                     .lane = lane,
                                                     .window = scene.window}));
    }
  }
  return schedules;
}

std::string name_of(const Scene& scene) {
  return std::string(scene.algorithm->name) + " " +
         std::string(name_of(scene.form.value_or(scene.algorithm->collective)));
}

int part_of_input(const Scene& scene, int rank, int index) {
  return shares_of(scene, rank).input == Share::kOwn ? rank : index;
}

int part_of_output(const Scene& scene, int rank, int index) {
  return shares_of(scene, rank).output == Share::kOwn ? rank : index;
}

int input_chunks(const Scene& scene, int rank, int chunk_count) {
  return chunks_in(shares_of(scene, rank).input, chunk_count);
}

int output_chunks(const Scene& scene, int rank, int chunk_count) {
  return chunks_in(shares_of(scene, rank).output, chunk_count);
}

bool is_point_to_point(const Scene& scene) {
  const Collective collective = scene.algorithm->collective;
  return collective == Collective::kSend || collective == Collective::kRecv;
}

bool is_exchange(const Scene& scene) {
  return scene.algorithm->collective == Collective::kAllToAll;
}

bool combines(const Scene& scene) { return reduces(scene.algorithm->collective); }

}  // namespace catenary::picture
