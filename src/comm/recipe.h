// Recipe: how a collective was cut into runs, so that one like it need not be cut again. A value
// that points to what lives as long as its communicator; under the issue lock.
//
// RecipeBook: the last few of one kind, since programs have operations of a few sizes and roots in
// turn.
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "src/comm/operation_request.h"
#include "src/comm/overlap.h"
#include "src/engine/group_run.h"
#include "src/engine/short_step.h"
#include "src/transport/transport.h"

namespace catenary {

struct Recipe {
  // Whether the runs of `request` would differ from these in buffers and sequence only.
  bool fits(const OperationRequest& request) const {
    return repeatable && request.count == count && request.type == type && request.root == root &&
           request.reduction.name == reduction && request.mark == mark;
  }

  // False: nothing yet, or it has what operations that look alike may not have in common: the
  // lengths of parts, or the user's factor.
  bool repeatable = false;
  DataType type = DataType::kInt8;
  Reduction reduction = Reduction::kNone;
  int root = 0;
  std::uint32_t mark = 0;
  std::size_t count = 0;
  int lanes = 0;
  bool may_lend = false;
  Overlap overlap = Overlap::kNone;
  const SendLink* opens_on = nullptr;  // what a short one is sent on first of all
  std::array<RunSpec, kMostLanes> specs;
  ShortStep short_step;  // if that is all
};

class RecipeBook {
 public:
  // Null: there is none that fits.
  Recipe* find(const OperationRequest& request) {
    if (last_ < recipes_.size() && recipes_[last_].fits(request)) return &recipes_[last_];
    for (std::size_t i = 0; i < recipes_.size(); ++i) {
      if (recipes_[i].fits(request)) return &recipes_[last_ = i];
    }
    return nullptr;
  }
  // One to be written: that is of no use any more, or new, or else the oldest.
  Recipe& next() {
    const auto useless = std::ranges::find(recipes_, false, &Recipe::repeatable);
    if (useless != recipes_.end()) {
      last_ = static_cast<std::size_t>(useless - recipes_.begin());
    } else if (recipes_.size() < kKept) {
      recipes_.emplace_back();
      last_ = recipes_.size() - 1;
    } else {
      last_ = oldest_;
      oldest_ = (oldest_ + 1) % kKept;
    }
    return recipes_[last_];
  }

 private:
  static constexpr std::size_t kKept = 8;
  std::vector<Recipe> recipes_;
  std::size_t last_ = 0;  // that was asked for
  std::size_t oldest_ = 0;
};

}  // namespace catenary
