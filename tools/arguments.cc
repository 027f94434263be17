#include "tools/arguments.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "src/base/error.h"

namespace catenary {
namespace {

constexpr int kMostBits = 50;  // of a size

std::size_t size_of(const char* option, std::string_view text) {
  constexpr std::string_view kUnits = "KMG";
  std::size_t size = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, size);
  const std::string_view unit(stop, static_cast<std::size_t>(end - stop));
  const std::size_t power = unit.empty() ? 0 : kUnits.find(unit) + 1;
  const bool is_unit = unit.empty() || (unit.size() == 1 && power > 0);
  if (error != std::errc() || size == 0 || !is_unit || size >> (kMostBits - 10 * power) != 0) {
    throw_error(ErrorCode::kInvalidUsage, "--%s: \"%s\" is no size, such as 8, 64K or 1M", option,
                std::string(text).c_str());
  }
  return size << 10 * power;
}

// What getopt_long has just stumbled over: `word` is the last one that it was done with.
std::string complaint(std::string_view word, const option* known) {
  const bool is_long = word.starts_with("--");
  const std::string_view name = is_long ? word.substr(2, word.find('=') - 2) : std::string_view();
  int similar = 0;
  for (const option* one = known; one->name != nullptr; ++one) {
    const bool is_similar = is_long && std::string_view(one->name).starts_with(name);
    similar += is_similar ? 1 : 0;
    if (is_similar && one->val == ::optopt && one->has_arg == no_argument) {
      return std::string(word) + ": this option takes no value";
    }
  }
  if (::optopt != 0) return format("there is no option -%c", ::optopt);
  if (similar > 1) return std::string(word) + " is short for several options";
  return "there is no option " + std::string(word);
}

}  // namespace

std::string plain(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (c != '_' && c != '-') out += static_cast<char>(std::tolower(c));
  }
  return out;
}

Collective collective_of(std::string_view name) {
  if (plain(name) == "bcast") return Collective::kBroadcast;  // its other name in NCCL
  for (int i = 0; i < kCollectiveCount; ++i) {
    const auto collective = static_cast<Collective>(i);
    if (plain(name_of(collective)) == plain(name)) return collective;
  }
  std::string known;
  for (int i = 0; i < kCollectiveCount; ++i) {
    known += (i == 0 ? "" : ", ") + std::string(name_of(static_cast<Collective>(i)));
  }
  throw_error(ErrorCode::kInvalidUsage, "there is no collective \"%s\"; there are %s",
              std::string(name).c_str(), known.c_str());
}

int next_option(int argc, char** argv, const char* letters, const option* known) {
  ::opterr = 0;  // we say it ourselves
  const std::string told_apart = std::string(":") + letters;
  const int found = ::getopt_long(argc, argv, told_apart.c_str(), known, nullptr);
  if (found != '?' && found != ':') return found;
  const std::string word = argv[::optind - 1];
  throw_error(ErrorCode::kInvalidUsage, "%s",
              found == ':' ? (word + " wants a value").c_str() : complaint(word, known).c_str());
}

void refuse_more(int argc, char** argv, int first) {
  if (first >= argc) return;
  throw_error(ErrorCode::kInvalidUsage, "there is nothing to do with \"%s\"", argv[first]);
}

bool asks_for_help(int argc, char** argv, int words) {
  constexpr option kHelpOnly[] = {{"help", no_argument, nullptr, 'h'}, {}};
  if (next_option(argc, argv, "h", kHelpOnly) == 'h') return true;
  refuse_more(argc, argv, ::optind + words);
  return false;
}

std::int64_t whole_number_of(const char* option, std::string_view text, std::int64_t least,
                             std::int64_t most) {
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || value < least || value > most) {
    throw_error(ErrorCode::kInvalidUsage, "--%s wants a whole number from %lld to %lld, not \"%s\"",
                option, static_cast<long long>(least), static_cast<long long>(most),
                std::string(text).c_str());
  }
  return value;
}

NumberRange range_of(const char* option, const std::string& text, int least, int most) {
  const std::size_t dash = text.find('-');
  const bool has_both = dash != std::string::npos && dash > 0 && dash + 1 < text.size();
  // As one word where it is none of both, so that it is told whole.
  const int first = number_of(option, has_both ? text.substr(0, dash) : text, least, most);
  const int last = has_both ? number_of(option, text.substr(dash + 1), least, most) : first;
  if (last < first) {
    throw_error(ErrorCode::kInvalidUsage, "--%s: %d to %d are none", option, first, last);
  }
  return {first, last};
}

std::vector<std::string> words_of(std::string_view list) {
  std::vector<std::string> words;
  for (std::size_t at = 0; at <= list.size();) {
    const std::size_t comma = std::min(list.find(',', at), list.size());
    words.emplace_back(list.substr(at, comma - at));
    at = comma + 1;
  }
  return words;
}

std::vector<std::size_t> sizes_of(const char* option, std::string_view text) {
  std::vector<std::size_t> sizes;
  for (const std::string& word : words_of(text)) sizes.push_back(size_of(option, word));
  return sizes;
}

}  // namespace catenary
