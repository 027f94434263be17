#include "src/collective/rules.h"

#include <algorithm>
#include <cctype>
#include <functional>
#include <optional>
#include <set>
#include <vector>

#include "src/base/error.h"
#include "src/base/text.h"

namespace catenary {
namespace {

// NCCL's algorithms, and which of ours are like them. What needs switches that add up has no like
// here.
struct Likeness {
  std::string_view nccl_name;
  std::vector<std::string_view> ours;
};
const std::vector<Likeness>& likenesses() {
  static const std::vector<Likeness> all = {
      {"tree", {"tree", "knomial4", "double_tree"}},
      {"ring", {"ring", "chain"}},
      {"collnetdirect", {}},
      {"collnetchain", {}},
      {"nvls", {}},
      {"nvlstree", {}},
      {"pat", {"pat"}},
  };
  return all;
}
constexpr std::string_view kProtocols[] = {"ll", "ll128", "simple"};
constexpr Collective kRuled[] = {Collective::kAllReduce, Collective::kAllGather,
                                 Collective::kReduceScatter, Collective::kBroadcast,
                                 Collective::kReduce};

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return result;
}

// NCCL writes NVLS_TREE in some places and NVLSTree in others.
std::string without_underscores(std::string text) {
  std::erase(text, '_');
  return text;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(separator, at), text.size());
    const std::string_view part = trimmed(text.substr(at, end - at));
    if (!part.empty()) parts.emplace_back(part);
    at = end + 1;
  }
  return parts;
}

NameSet bit_of(const Algorithm& algorithm) {
  return NameSet().set(static_cast<std::size_t>(&algorithm - algorithms().data()));
}

// Those that need not be named.
NameSet chosen_by_cost() {
  NameSet bits;
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.chosen_by_cost) bits |= bit_of(algorithm);
  }
  return bits;
}

bool is_ruled(const Algorithm& algorithm) {
  return std::ranges::find(kRuled, algorithm.collective) != std::end(kRuled);
}

// The algorithms that a name stands for; nothing for a name that nobody knows.
std::optional<NameSet> algorithms_named(const std::string& name) {
  std::optional<NameSet> found;
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.name == name && is_ruled(algorithm))
      found = found.value_or(NameSet()) | bit_of(algorithm);
  }
  for (const Likeness& likeness : likenesses()) {
    if (likeness.nccl_name != without_underscores(name)) continue;
    found = found.value_or(NameSet());
    for (const Algorithm& algorithm : algorithms()) {
      if (std::ranges::find(likeness.ours, algorithm.name) == likeness.ours.end()) continue;
      found = *found | bit_of(algorithm);
    }
  }
  return found;
}

std::optional<NameSet> protocol_named(const std::string& name) {
  const auto found = std::ranges::find(kProtocols, name);
  if (found == std::end(kProtocols)) return std::nullopt;
  return NameSet().set(static_cast<std::size_t>(found - std::begin(kProtocols)));
}

using Sets = std::array<NameSet, kCollectiveCount>;
using BitsOf = std::function<std::optional<NameSet>(const std::string&)>;

// What a variable may name: NCCL's names first.
struct Vocabulary {
  const char* variable;
  BitsOf bits_of;
  std::vector<std::string> names;
  NameSet unnamed;  // what may be used where nothing is named
};

std::string joined(const auto& words) {
  std::string text;
  for (const auto& word : words) text.append(text.empty() ? "" : ", ").append(word);
  return text;
}

// Pairs are too many to be told one by one.
std::vector<std::string> our_names(bool ruled_only) {
  std::set<std::string> known;
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.inside.empty() && (!ruled_only || is_ruled(algorithm)))
      known.emplace(algorithm.name);
  }
  std::vector<std::string> names(known.begin(), known.end());
  names.emplace_back("and the pairs hier_<inside>_<across> that `catenary list` prints");
  return names;
}

Vocabulary algorithm_words() {
  std::vector<std::string> names;
  for (const Likeness& likeness : likenesses()) names.emplace_back(likeness.nccl_name);
  for (const std::string& ours : our_names(true)) {
    if (std::ranges::find(names, ours) == names.end()) names.push_back(ours);
  }
  return {"NCCL_ALGO", algorithms_named, std::move(names), chosen_by_cost()};
}

Vocabulary protocol_words() {
  return {"NCCL_PROTO", protocol_named, {std::begin(kProtocols), std::end(kProtocols)}, ~NameSet()};
}

std::vector<Collective> collectives_named(const char* variable, const std::string& prefix) {
  for (const Collective collective : kRuled) {
    if (lower(name_of(collective)) == lower(prefix)) return {collective};
  }
  throw_error(ErrorCode::kInvalidUsage,
              "%s: \"%s\" is none of allreduce, allgather, reducescatter, broadcast, reduce",
              variable, prefix.c_str());
}

// One list: "ring,tree" or "^ring".
NameSet parse_names(const Vocabulary& words, std::string_view list) {
  const bool excludes = list.starts_with('^');
  if (excludes) list.remove_prefix(1);
  const std::vector<std::string> names = split(list, ',');
  if (names.empty()) throw_error(ErrorCode::kInvalidUsage, "%s: a list is empty", words.variable);
  NameSet bits;
  for (const std::string& name : names) {
    const std::optional<NameSet> known = words.bits_of(lower(name));
    const auto has_name = [&](const Algorithm& one) { return one.name == lower(name); };
    if (!known && std::ranges::any_of(algorithms(), has_name)) {
      throw_error(ErrorCode::kInvalidUsage,
                  "%s: \"%s\" is no algorithm of a collective that this rules (AllReduce, "
                  "AllGather, ReduceScatter, Broadcast, Reduce); CATENARY_ALGO=%s takes it where "
                  "there is one",
                  words.variable, name.c_str(), lower(name).c_str());
    }
    if (!known) {
      throw_error(ErrorCode::kInvalidUsage,
                  "%s: there is nothing called \"%s\"; the known names are %s", words.variable,
                  name.c_str(), joined(words.names).c_str());
    }
    bits |= *known;
  }
  return excludes ? words.unnamed & ~bits : bits;
}

Sets parse(const Vocabulary& words, std::string_view text) {
  Sets sets;
  sets.fill(words.unnamed);
  const std::vector<std::string> entries = split(text, ';');
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::vector<std::string> halves = split(entries[i], ':');
    const bool has_prefix = halves.size() == 2;
    if (!has_prefix && entries[i].find(':') != std::string::npos) {
      throw_error(ErrorCode::kInvalidUsage,
                  "%s: \"%s\" needs one colon, with a collective before it and a list behind it",
                  words.variable, entries[i].c_str());
    }
    if (halves.empty() || halves.size() > 2 || (!has_prefix && i > 0)) {
      throw_error(
          ErrorCode::kInvalidUsage,
          "%s: every list but the first needs a collective and a colon before it, and \"%s\" "
          "has not",
          words.variable, entries[i].c_str());
    }
    const NameSet bits = parse_names(words, halves.back());
    const std::vector<Collective> named =
        has_prefix ? collectives_named(words.variable, halves.front())
                   : std::vector<Collective>(std::begin(kRuled), std::end(kRuled));
    for (const Collective collective : named) sets[static_cast<std::size_t>(collective)] = bits;
  }
  return sets;
}

[[noreturn]] void refuse(std::string_view name) {
  throw_error(ErrorCode::kInvalidArgument,
              "CATENARY_ALGO: there is no algorithm \"%s\"; the known ones are %s",
              std::string(name).c_str(), joined(our_names(false)).c_str());
}

}  // namespace

AlgorithmRules::AlgorithmRules() { allowed_.fill(chosen_by_cost()); }

AlgorithmRules::AlgorithmRules(std::string_view forced, std::string_view nccl_algo,
                               std::string_view nccl_proto)
    : forced_(lower(forced)), allowed_(parse(algorithm_words(), nccl_algo)) {
  const auto has_name = [this](const Algorithm& algorithm) { return algorithm.name == forced_; };
  if (!forced.empty() && std::ranges::none_of(algorithms(), has_name)) refuse(forced);
  parse(protocol_words(), nccl_proto);
  if (!nccl_algo.empty()) explanation_ = " NCCL_ALGO was set to " + std::string(nccl_algo) + ".";
}

bool AlgorithmRules::allows(Collective collective, const Algorithm& algorithm,
                            const Place& at) const {
  if (!forced_.empty()) {
    const Algorithm* wish = find_algorithm(collective, forced_);
    if (wish != nullptr && wish->runs_on(at)) return wish == &algorithm;
  }
  return (allowed_[static_cast<std::size_t>(collective)] & bit_of(algorithm)).any();
}

std::string AlgorithmRules::not_ruled(Collective collective) const {
  if (forced_.empty() || find_algorithm(collective, forced_) != nullptr) return "";
  return format("CATENARY_ALGO=%s has no effect on %s, which has no such algorithm",
                forced_.c_str(), std::string(name_of(collective)).c_str());
}

std::string AlgorithmRules::passed_over(const Place& at) const {
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.name != forced_ || algorithm.runs_on(at)) continue;
    return format(
        "CATENARY_ALGO=%s has no effect: it is for several boxes of several ranks, and "
        "here are %d ranks in boxes of %d (CATENARY_BOX sets their size)",
        forced_.c_str(), at.ranks, at.box);
  }
  return "";
}

}  // namespace catenary
