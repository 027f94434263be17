#include "src/collective/select.h"

#include <algorithm>

#include "src/base/error.h"
#include "src/base/size_literals.h"
#include "src/collective/partition.h"

namespace catenary {
namespace {

// A link to every peer costs memory for its slots. Above this, only what cannot do without has one.
constexpr int kMostDirectRanks = 64;
// Times that differ by less are alike, for messages above so many bytes. Where ranks share cores,
// mapped buffers gain most by messages that are lent, and private ones lose little by it.
constexpr double kTie = 1.05;
constexpr double kCrowdedTie = 1.4;
constexpr std::size_t kLeastTie = 128_KB;
// Times that differ by less are the same, to the model.
constexpr double kDraw = 1.01;
// Two ranks on a ring put sums straight into each other's mapped buffers: messages of so many bytes
// and more go that way where another one is faster by less.
constexpr double kPairTie = 1.1;
constexpr std::size_t kLeastPairRing = 64_KB;
// Slices shorter than this are not worth their messages on any machine we know: an eighth of a slot
// as it is by default, or of a packet.
constexpr std::size_t kLeastSliceBytes = 7_KB;
// Two ranks that exchange have no pipeline to fill, and what they lend goes in messages of all of a
// pass's slices: those are not made shorter for less gain than that.
constexpr double kCutGain = 0.9;
// Two machines have each other's sums after one exchange. A ring sends as much in twice as many
// steps, and by the time a rank comes to a part again it is in no cache any more, which the model
// does not know: it has to be faster by more than that, for messages of so many bytes and more.
constexpr double kTwoHostsTie = 1.1;
constexpr std::size_t kLeastTwoHosts = 512_KB;
// What goes inside of machines and then across them goes in about so many passes at least, as far
// as it has slices for them, and so many fit into a link: while the network has one, the next is
// made ready, and what was made is still in the caches.
constexpr std::size_t kPassesAcross = 4;
// Longer messages are cut like these.
constexpr std::size_t kLongestPriced = 1_TB;

// The representative of a class is its power of two.
constexpr std::size_t bytes_of_class(std::size_t size_class) {
  return size_class == 0 ? 0 : std::size_t{1} << std::min<std::size_t>(size_class - 1, 62);
}

}  // namespace

Selector::Selector(const Setting& setting, AlgorithmRules rules)
    : setting_(setting), rules_(std::move(rules)) {}

const Selection& Selector::decide(Collective collective, std::size_t size_class) {
  const std::size_t bytes = bytes_of_class(size_class);
  const std::vector<Selection> all = candidates(collective, bytes);
  if (all.empty()) refuse(collective);
  Selection& known = known_[index_of(collective)][size_class];
  known = all.front();
  return known;
}

void Selector::refuse(Collective collective) const {
  std::string names;
  bool runs_more = false;
  for (const Algorithm& algorithm : algorithms()) {
    if (!performs(algorithm, collective)) continue;
    if (!algorithm.runs_on(place())) continue;
    runs_more = runs_more || !algorithm.chosen_by_cost;
    if (!algorithm.chosen_by_cost) continue;
    names.append(names.empty() ? "" : ", ").append(algorithm.name);
  }
  if (runs_more) names += ", and other pairs hier_<inside>_<across>";
  throw_error(ErrorCode::kInvalidUsage,
              "no algorithm available for function %s of %d ranks in boxes of %d.%s Those that run "
              "here are %s.",
              std::string(name_of(collective)).c_str(), setting_.nranks, setting_.machine.box,
              rules_.explanation().c_str(), names.c_str());
}

Cut Selector::decide_message_cut(std::size_t size_class) const {
  const Algorithm* all_to_all = find_algorithm(Collective::kAllToAll, "direct");
  CATENARY_ASSERT(all_to_all != nullptr);
  const std::size_t bytes = std::min(bytes_of_class(size_class), kLongestPriced);
  return priced(*all_to_all, Lengths::kAlike, bytes * static_cast<std::size_t>(setting_.nranks))
      .cut;
}

// A chunk that fits into a slot goes whole. How long uneven ones are is not known.
Cut Selector::longest_cut(const Algorithm& algorithm, Lengths lengths, std::size_t bytes) const {
  Cut cut = setting_.cut;
  if (lengths == Lengths::kUneven || chunk_bytes(algorithm, bytes, place()) > cut.slice_bytes) {
    cut.slice_bytes = std::min(cut.slice_bytes, setting_.machine.packet_bytes);
  }
  return cut;
}

// Of a cut that has its slices.
void Selector::cut_passes(const Algorithm& algorithm, std::size_t bytes, Cut& cut) const {
  if (algorithm.across.empty() || setting_.machine.far != Wire::kNetwork) return;
  const std::size_t slices = chunk_bytes(algorithm, bytes, place()) / cut.slice_bytes;
  const std::size_t most = std::min<std::size_t>(slices, cut.slots);
  cut.pass_slices = static_cast<std::uint32_t>(std::max<std::size_t>(most / kPassesAcross, 1));
}

bool Selector::has_room(const Algorithm& algorithm, std::size_t bytes) const {
  const Place at = place_of(algorithm, bytes, setting_);
  return shape_of(algorithm, at).peers <= kMostDirectRanks;
}

// Shorter slices fill a pipeline sooner and keep its slots in the caches, but are more messages.
Selection Selector::priced(const Algorithm& algorithm, Lengths lengths, std::size_t bytes) const {
  Setting setting = setting_;
  Cut& cut = setting.cut;
  cut = longest_cut(algorithm, lengths, bytes);
  Selection best{&algorithm, algorithm.lanes, cut, -1};
  const bool exchanges = is_pair() && !has_root(algorithm.collective);
  const double gain = exchanges ? kCutGain : 1;
  do {
    cut_passes(algorithm, bytes, cut);
    const double ns = time_ns(algorithm, bytes, setting);
    if (best.time_ns < 0 || ns < gain * best.time_ns) best = {&algorithm, algorithm.lanes, cut, ns};
    cut.slice_bytes /= 2;
  } while (cut.slice_bytes >= kLeastSliceBytes && cut.slice_bytes % kCutBytes == 0);
  return best;
}

std::vector<Selection> Selector::candidates(Collective collective, std::size_t bytes) const {
  std::vector<Selection> found;
  std::vector<Selection> last_resort;
  const Lengths lengths = is_uneven(collective) ? Lengths::kUneven : Lengths::kAlike;
  for (const Algorithm& algorithm : algorithms()) {
    if (!performs(algorithm, collective)) continue;
    // One rank only copies, whatever it does it with.
    const bool is_allowed = setting_.nranks == 1 || rules_.allows(collective, algorithm, place());
    if (!algorithm.runs_on(place()) || !is_allowed) continue;
    std::vector<Selection>& list = has_room(algorithm, bytes) ? found : last_resort;
    list.push_back(priced(algorithm, lengths, bytes));
  }
  if (found.empty()) found = std::move(last_resort);
  if (found.empty()) return found;
  std::stable_sort(found.begin(), found.end(),
                   [](const Selection& a, const Selection& b) { return a.time_ns < b.time_ns; });
  const bool crowded = setting_.machine.local_ranks > setting_.machine.cores;
  const bool share_memory = setting_.machine.box == setting_.nranks;
  // Of two ranks all that `ring` sends can be lent as well.
  const bool may_tie = bytes > kLeastTie && setting_.nranks > 2 && share_memory;
  if (may_tie) prefer(found, "direct", crowded ? kCrowdedTie : kTie);
  const bool is_on_two_hosts = setting_.nranks == 2 * setting_.machine.box && !is_pair();
  if (is_on_two_hosts && collective == Collective::kAllReduce && bytes >= kLeastTwoHosts) {
    prefer(found, "hier_direct_recursive_doubling", kTwoHostsTie);
  }
  if (!is_pair()) return found;
  // Two ranks' trees are all the same, but for the lanes and chunks of some.
  prefer(found, "chain", kDraw);
  if (collective == Collective::kAllReduce && bytes >= kLeastPairRing)
    prefer(found, "ring", kPairTie);
  return found;
}

// Puts one first if the model hardly tells it from the fastest. It does not know of messages that
// are lent where buffers are mapped, as all of `direct` can be, in place, too, if they are long;
// nor of results that whoever makes them puts where they are wanted.
void Selector::prefer(std::vector<Selection>& sorted, std::string_view name, double tie) {
  const double longest = tie * std::ranges::min_element(sorted, {}, &Selection::time_ns)->time_ns;
  const auto preferred = std::ranges::find_if(sorted, [&](const Selection& selection) {
    return selection.algorithm->name == name && selection.time_ns <= longest;
  });
  if (preferred != sorted.end()) std::rotate(sorted.begin(), preferred, preferred + 1);
}

double Selector::estimate_ns(Collective collective, std::size_t bytes) {
  const Selection& chosen = select(collective, bytes);
  Setting setting = setting_;
  setting.cut = chosen.cut;
  return time_ns(*chosen.algorithm, bytes, setting);
}

}  // namespace catenary
