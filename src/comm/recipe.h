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
#include "src/engine/short_steps.h"
#include "src/transport/transport.h"

namespace catenary {

struct Recipe {
  // Whether the runs of `request` would differ from these in buffers and sequence only.
  bool fits(const OperationRequest& request) const {
    return repeatable && request.count == count && request.type == type && request.root == root &&
           request.reduction.name == reduction && request.mark == mark;
  }

  // Operations that look alike may not have in common the lengths of parts, and the user's factor.
  static bool is_repeatable(const OperationRequest& request) {
    return request.parts == nullptr && request.reduction.name != Reduction::kPreMulSum;
  }

  // It begins now.
  void prepare() const {
    if (opens_on != nullptr) opens_on->prepare(opened_bytes(first_bytes));
  }

  bool repeatable = false;  // false, too, before it is written
  DataType type = DataType::kInt8;
  Reduction reduction = Reduction::kNone;
  int root = 0;
  std::uint32_t mark = 0;
  std::size_t count = 0;
  int lanes = 0;
  bool may_lend = false;
  Overlap overlap = Overlap::kNone;
  // Where output is stored is asked each time, of what is long enough.
  bool asks_for_stores = false;
  bool remembers_output = false;       // whether the caches still hold its place counts, too
  bool copies_exceed_caches = false;   // if it goes through slots, which take a part of them
  std::size_t touched_bytes = 0;       // of the buffers of all ranks
  std::size_t written_bytes = 0;       // of our output
  const SendLink* opens_on = nullptr;  // what a short message is sent on first of all
  std::size_t first_bytes = 0;         // of that message, without its opening
  std::array<RunSpec, kMostLanes> specs;
  ShortSteps short_steps;  // if they are, or would be if nothing was lent
};

class RecipeBook {
 public:
  // The one that was opened last, if it fits, or null.
  Recipe* last(const OperationRequest& request) const {
    return last_ != nullptr && last_->fits(request) ? last_ : nullptr;
  }
  // Null: there is none that fits.
  Recipe* find(const OperationRequest& request) {
    const auto fits = [&](const Page& page) { return page.recipe.fits(request); };
    const auto found = std::ranges::find_if(pages_, fits);
    return found == pages_.end() ? nullptr : &open(found);
  }
  // One to be written: that is of no use any more, or new, or else the one that was not asked for
  // the longest.
  Recipe& next() {
    const auto is_useless = [](const Page& page) { return !page.recipe.repeatable; };
    const auto useless = std::ranges::find_if(pages_, is_useless);
    if (useless != pages_.end()) return open(useless);
    if (pages_.size() < kKept) {
      pages_.reserve(kKept);  // they stay where they are
      return open(pages_.emplace(pages_.end()));
    }
    return open(std::ranges::min_element(pages_, {}, &Page::opened));
  }

 private:
  struct Page {
    Recipe recipe;
    std::uint64_t opened = 0;
  };
  Recipe& open(std::vector<Page>::iterator page) {
    page->opened = ++openings_;
    last_ = &page->recipe;
    return page->recipe;
  }

  static constexpr std::size_t kKept = 8;
  std::vector<Page> pages_;
  Recipe* last_ = nullptr;  // that was opened
  std::uint64_t openings_ = 0;
};

}  // namespace catenary
