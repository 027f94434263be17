#include "src/picture/condense.h"

#include <algorithm>
#include <map>
#include <utility>

#include "src/base/error.h"

namespace catenary::picture {
namespace {

constexpr int kLegibleUnits = 20;

class Condenser {
 public:
  explicit Condenser(const Timeline& timeline)
      : timeline_(timeline), group_of_(timeline.actions.size()) {}

  Timeline run() {
    group();
    std::vector<Message> messages = merged_messages();
    for (std::size_t i = 0; i < messages.size(); ++i) {
      actions_[messages[i].receiver].arrivals.push_back(i);
      actions_[messages[i].sender].departure = i;
    }
    const int units = set_clock(messages);
    return {.scene = timeline_.scene,
            .schedules = timeline_.schedules,
            .units = units,
            .actions = std::move(actions_),
            .messages = std::move(messages),
            .outputs = timeline_.outputs};
  }

 private:
  // What consecutive steps must have in common. Folds, and steps that receive and send, stay alone.
  struct Kind {
    int recv_from = kNobody;
    int send_to = kNobody;
    bool is_alone = false;
    bool operator==(const Kind&) const = default;
  };
  Kind kind_of(const Action& action) const {
    const Step& step = timeline_.last_step(action);
    return {step.recv_from, step.send_to,
            action.steps > 1 || (step.recv_from != kNobody && step.send_to != kNobody)};
  }

  void group() {
    for (std::size_t i = 0; i < timeline_.actions.size(); ++i) {
      const Action& action = timeline_.actions[i];
      const bool joins = i > 0 && timeline_.actions[i - 1].lane == action.lane &&
                         timeline_.actions[i - 1].rank == action.rank &&
                         !kind_of(action).is_alone &&
                         kind_of(action) == kind_of(timeline_.actions[i - 1]);
      if (!joins) {
        actions_.push_back(action);
        actions_.back().arrivals.clear();
        actions_.back().departure.reset();
      } else {
        Action& run = actions_.back();
        if (run.run.empty()) run.run.push_back(run.result);
        run.run.push_back(action.result);
        run.result.from.add(action.result.from);
        run.steps += action.steps;
      }
      group_of_[i] = actions_.size() - 1;
    }
  }

  std::vector<Message> merged_messages() const {
    std::map<std::pair<std::size_t, std::size_t>, std::size_t> known;
    std::vector<Message> merged;
    for (Message message : timeline_.messages) {
      message.sender = group_of_[message.sender];
      message.receiver = group_of_[message.receiver];
      const auto [place, is_new] =
          known.try_emplace({message.sender, message.receiver}, merged.size());
      if (is_new) {
        merged.push_back(message);
      } else {
        merged[place->second].count += message.count;
      }
    }
    return merged;
  }

  // An action ends a unit after it began, and begins when the one before it and all that it
  // receives from have ended. Nothing waits in a circle: what joins others waits for nobody between
  // them.
  int set_clock(const std::vector<Message>& messages) {
    for (Action& action : actions_) action.start = 0;
    int units = 0;
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t i = 0; i < actions_.size(); ++i) {
        Action& action = actions_[i];
        int start = 0;
        if (i > 0 && actions_[i - 1].lane == action.lane && actions_[i - 1].rank == action.rank) {
          start = actions_[i - 1].start + 1;
        }
        for (const std::size_t arrival : action.arrivals) {
          start = std::max(start, actions_[messages[arrival].sender].start + 1);
        }
        moved = moved || start != action.start;
        action.start = start;
        units = std::max(units, start + 1);
      }
      CATENARY_ASSERT(units <= static_cast<int>(actions_.size()));
    }
    return units;
  }

  const Timeline& timeline_;
  std::vector<std::size_t> group_of_;  // of each action
  std::vector<Action> actions_;
};

}  // namespace

Timeline condensed(const Timeline& timeline) { return Condenser(timeline).run(); }

Timeline legible_timeline(const Scene& scene) {
  Timeline whole = timeline_of(scene);
  if (whole.units <= kLegibleUnits) return whole;
  Scene ahead = scene;
  if (ahead.window == 1) ahead.window = std::max(scene.ranks, 1);
  Timeline shorter = condensed(timeline_of(ahead));
  const bool gains_much = 2 * shorter.units <= whole.units;
  // Then anything that is shorter is better.
  const bool is_too_long = whole.units > kLongestUnits && shorter.units < whole.units;
  return gains_much || is_too_long ? shorter : whole;
}

}  // namespace catenary::picture
