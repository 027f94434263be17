#include "src/picture/timeline.h"

#include <algorithm>
#include <bit>
#include <deque>
#include <map>
#include <utility>

#include "src/base/error.h"
#include "src/collective/fold.h"

namespace catenary::picture {
namespace {

// Runs one lane of all ranks.
class LaneRun {
 public:
  LaneRun(const Scene& scene, int lane, const std::vector<Schedule>& schedules)
      : scene_(scene), lane_(lane), schedules_(schedules), ranks_(schedules.size()) {}

  // In an order that does not matter: what a rank does depends on nobody's speed.
  void run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (int rank = 0; rank < scene_.ranks; ++rank) {
        while (advance(rank)) moved = true;
      }
    }
    check_finished();
  }

  void append_to(Timeline& timeline) {
    const std::size_t first_action = timeline.actions.size();
    const std::size_t first_message = timeline.messages.size();
    // Found in the order of the run; kept in the order of ranks.
    std::vector<std::size_t> place(actions_.size());
    std::vector<std::size_t> order(actions_.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::stable_sort(order, {}, [&](std::size_t i) { return actions_[i].rank; });
    for (std::size_t i = 0; i < order.size(); ++i) place[order[i]] = first_action + i;
    std::vector<std::size_t> message_place(messages_.size());
    std::size_t next_message = first_message;
    for (const std::size_t i : order) {
      if (actions_[i].departure) message_place[*actions_[i].departure] = next_message++;
    }
    timeline.messages.resize(next_message);
    for (std::size_t i = 0; i < messages_.size(); ++i) {
      Message message = messages_[i];
      message.sender = place[message.sender];
      message.receiver = place[message.receiver];
      timeline.messages[message_place[i]] = message;
    }
    for (const std::size_t i : order) {
      Action action = std::move(actions_[i]);
      for (std::size_t& arrival : action.arrivals) arrival = message_place[arrival];
      if (action.departure) action.departure = message_place[*action.departure];
      timeline.units = std::max(timeline.units, action.start + 1);
      timeline.actions.push_back(std::move(action));
    }
    std::vector<std::vector<Content>> outputs;
    for (Rank& rank : ranks_) {
      rank.output.resize(static_cast<std::size_t>(schedules_[0].chunk_count));
      outputs.push_back(std::move(rank.output));
    }
    timeline.outputs.push_back(std::move(outputs));
  }

 private:
  struct Rank {
    std::size_t step = 0;
    int clock = 0;
    std::vector<Content> output;
    std::vector<Content> scratch;
    std::vector<Content> carry;
  };

  Rank& rank_at(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  const std::vector<Step>& steps(int rank) const {
    return schedules_[static_cast<std::size_t>(rank)].steps;
  }
  std::deque<std::size_t>& link(int from, int to) { return links_[{from, to}]; }

  Content& cell(int rank, const Chunk& chunk) {
    Rank& state = rank_at(rank);
    std::vector<Content>& buffer = chunk.buffer == Buffer::kOutput    ? state.output
                                   : chunk.buffer == Buffer::kScratch ? state.scratch
                                                                      : state.carry;
    const auto index = static_cast<std::size_t>(chunk.index);
    if (index >= buffer.size()) buffer.resize(index + 1);
    return buffer[index];
  }

  // The messages that steps [first, first + count) take, or nothing if one is not there yet.
  bool take_messages(int rank, std::size_t first, std::size_t count,
                     std::vector<std::size_t>& taken) {
    std::map<int, std::size_t> wanted;
    for (std::size_t i = first; i < first + count; ++i) {
      const int from = steps(rank)[i].recv_from;
      if (from != kNobody && ++wanted[from] > link(from, rank).size()) return false;
    }
    for (std::size_t i = first; i < first + count; ++i) {
      const int from = steps(rank)[i].recv_from;
      if (from == kNobody) continue;
      taken.push_back(link(from, rank).front());
      link(from, rank).pop_front();
    }
    return true;
  }

  bool advance(int rank) {
    Rank& state = rank_at(rank);
    if (state.step >= steps(rank).size()) return false;
    Action action{.lane = lane_,
                  .rank = rank,
                  .first_step = state.step,
                  .steps = fold_steps(schedules_[static_cast<std::size_t>(rank)], state.step),
                  .start = state.clock,
                  .result = {},
                  .run = {},
                  .arrivals = {},
                  .departure = {}};
    if (!take_messages(rank, action.first_step, action.steps, action.arrivals)) return false;
    const std::size_t index = actions_.size();
    std::size_t arrived = 0;
    for (std::size_t i = 0; i < action.steps; ++i) {
      const Step& step = steps(rank)[action.first_step + i];
      Content content;
      if (step.src) {
        content = step.src.buffer == Buffer::kInput ? given(scene_, rank, step.src.index)
                                                    : cell(rank, step.src);
      }
      if (step.recv_from != kNobody) {
        Message& message = messages_[action.arrivals[arrived++]];
        message.receiver = index;
        const Action& sender = actions_[message.sender];
        action.start = std::max(action.start, sender.start + 1);
        if (content.part < 0) content.part = sender.result.part;
        content.from.add(sender.result.from);
      }
      if (step.dst) cell(rank, step.dst) = content;
      action.result = std::move(content);
      if (step.send_to != kNobody) {
        action.departure = messages_.size();
        messages_.push_back({lane_, rank, step.send_to, index, index});
        link(rank, step.send_to).push_back(*action.departure);
      }
    }
    state.clock = action.start + 1;
    state.step += action.steps;
    actions_.push_back(std::move(action));
    return true;
  }

  void check_finished() {
    for (int rank = 0; rank < scene_.ranks; ++rank) {
      const std::size_t at = rank_at(rank).step;
      if (at < steps(rank).size()) {
        throw_error(ErrorCode::kInvalidArgument,
                    "the schedule does not end: rank %d waits in step %zu of lane %d for a message "
                    "that nobody sends",
                    rank, at, lane_);
      }
    }
    for (const auto& [ends, left] : links_) {
      if (!left.empty()) {
        throw_error(ErrorCode::kInvalidArgument,
                    "rank %d never takes %zu messages of rank %d in lane %d", ends.second,
                    left.size(), ends.first, lane_);
      }
    }
  }

  const Scene& scene_;
  const int lane_;
  const std::vector<Schedule>& schedules_;
  std::vector<Rank> ranks_;
  std::map<std::pair<int, int>, std::deque<std::size_t>> links_;
  std::vector<Action> actions_;
  std::vector<Message> messages_;
};

std::string describe_run(const Action& action, const Step& first) {
  if (first.recv_from != kNobody) {
    return format("receives %zu messages from %d", action.steps, first.recv_from);
  }
  if (first.send_to != kNobody) {
    return format("sends %zu messages to %d", action.steps, first.send_to);
  }
  return format("copies %zu chunks", action.steps);
}

std::string text_of(const Chunk& chunk) {
  const char* const kNames[] = {"nothing", "input", "output", "scratch", "carry"};
  return format("%s %d", kNames[static_cast<int>(chunk.buffer)], chunk.index);
}

}  // namespace

void RankSet::add(int rank) {
  const auto word = static_cast<std::size_t>(rank) / 64;
  if (word >= words_.size()) words_.resize(word + 1);
  words_[word] |= std::uint64_t{1} << (rank % 64);
}

void RankSet::add(const RankSet& others) {
  if (others.words_.size() > words_.size()) words_.resize(others.words_.size());
  for (std::size_t i = 0; i < others.words_.size(); ++i) words_[i] |= others.words_[i];
}

bool RankSet::contains(int rank) const {
  const auto word = static_cast<std::size_t>(rank) / 64;
  return word < words_.size() && (words_[word] >> (rank % 64) & 1) != 0;
}

int RankSet::size() const {
  int size = 0;
  for (const std::uint64_t word : words_) size += std::popcount(word);
  return size;
}

std::string RankSet::text() const {
  std::string text;
  const int end = static_cast<int>(words_.size() * 64);
  for (int first = 0; first < end; ++first) {
    if (!contains(first)) continue;
    int last = first;
    while (contains(last + 1)) ++last;
    text += format(last == first ? "%s%d" : "%s%d-%d", text.empty() ? "" : ", ", first, last);
    first = last;
  }
  return text;
}

const Step& Timeline::last_step(const Action& action) const {
  return schedules[static_cast<std::size_t>(action.lane)][static_cast<std::size_t>(action.rank)]
      .steps[action.first_step + action.steps - 1];
}

std::size_t Timeline::most_steps() const {
  std::size_t most = 0;
  for (const auto& lane : schedules) {
    for (const Schedule& schedule : lane) most = std::max(most, schedule.steps.size());
  }
  return most;
}

std::size_t Timeline::message_count() const {
  std::size_t sum = 0;
  for (const Message& message : messages) sum += message.count;
  return sum;
}

std::size_t Timeline::most_messages() const {
  std::vector<std::size_t> sent_by(static_cast<std::size_t>(scene.ranks));
  for (const Message& message : messages) {
    if (message.from != message.to)
      sent_by[static_cast<std::size_t>(message.from)] += message.count;
  }
  return *std::ranges::max_element(sent_by);
}

Timeline timeline_of(const Scene& scene) { return timeline_of(scene, schedules_of(scene)); }

Timeline timeline_of(const Scene& scene, std::vector<std::vector<Schedule>> schedules) {
  Timeline timeline{.scene = scene,
                    .schedules = std::move(schedules),
                    .units = 0,
                    .actions = {},
                    .messages = {},
                    .outputs = {}};
  for (int lane = 0; lane < scene.lanes; ++lane) {
    LaneRun run(scene, lane, timeline.schedules[static_cast<std::size_t>(lane)]);
    run.run();
    run.append_to(timeline);
  }
  return timeline;
}

Content given(const Scene& scene, int rank, int index) {
  Content content{.part = part_of_input(scene, rank, index), .from = {}};
  content.from.add(rank);
  return content;
}

std::string describe(const Timeline& timeline, const Action& action) {
  const Schedule& schedule =
      timeline
          .schedules[static_cast<std::size_t>(action.lane)][static_cast<std::size_t>(action.rank)];
  const Step& first = schedule.steps[action.first_step];
  const Step& last = timeline.last_step(action);
  if (!action.run.empty()) return describe_run(action, first);
  std::string text;
  const auto add = [&](const std::string& what) { text += (text.empty() ? "" : ", ") + what; };
  if (!action.arrivals.empty()) {
    RankSet senders;
    for (const std::size_t arrival : action.arrivals) senders.add(timeline.messages[arrival].from);
    add("receives from " + senders.text());
  }
  if (first.src && first.recv_from != kNobody) {
    add("reduces with " + text_of(first.src));
  } else if (action.steps > 1) {
    add("reduces them");
  } else if (first.src) {
    add("takes " + text_of(first.src));
  }
  if (last.dst) add("keeps in " + text_of(last.dst));
  if (last.send_to != kNobody) add(format("sends to %d", last.send_to));
  return text;
}

}  // namespace catenary::picture
