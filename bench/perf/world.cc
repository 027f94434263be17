#include "bench/perf/world.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include "bench/perf/failure.h"

namespace catenary::perf {
namespace {

// Decimal, 0x hexadecimal or 0b binary.
int parse_split_value(const std::string& whole, const std::string& text) {
  const bool binary = text.starts_with("0b") || text.starts_with("0B");
  const std::string digits = binary ? text.substr(2) : text;
  char* end = nullptr;
  const long value = std::strtol(digits.c_str(), &end, binary ? 2 : 0);
  if (digits.empty() || *end != '\0' || value < 0 || value > 1 << 30) {
    throw UsageError("NCCL_TESTS_SPLIT=" + whole + ": expected AND, OR, MOD or DIV and a number");
  }
  return static_cast<int>(value);
}

std::string without_spaces(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (std::isspace(static_cast<unsigned char>(c)) == 0) {
      result += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    }
  }
  return result;
}

int first_device(const Place& place, int local_ranks) {
  const char* text = std::getenv("NCCL_TESTS_DEVICE");
  if (text == nullptr) return place.local_process * local_ranks;
  char* end = nullptr;
  const long device = std::strtol(text, &end, 10);
  if (*text == '\0' || *end != '\0' || device < 0 || device > 1 << 20) {
    throw UsageError(std::string("NCCL_TESTS_DEVICE=") + text +
                     ": expected the number of a device");
  }
  return static_cast<int>(device);
}

}  // namespace

Split Split::from_environment() {
  if (const char* text = std::getenv("NCCL_TESTS_SPLIT")) return parse(text);
  if (const char* mask = std::getenv("NCCL_TESTS_SPLIT_MASK")) {
    return parse(std::string("&") + mask);
  }
  return {};
}

Split Split::parse(const std::string& text) {
  const std::string packed = without_spaces(text);
  Split split;
  for (const auto& [name, operation] :
       {std::pair{"AND", '&'}, std::pair{"&", '&'}, std::pair{"OR", '|'}, std::pair{"|", '|'},
        std::pair{"MOD", '%'}, std::pair{"%", '%'}, std::pair{"DIV", '/'}, std::pair{"/", '/'}}) {
    if (!packed.starts_with(name)) continue;
    split.operation_ = operation;
    split.value_ = parse_split_value(text, packed.substr(std::string(name).size()));
    break;
  }
  const bool divides = split.operation_ == '%' || split.operation_ == '/';
  if (split.operation_ == '\0' || (divides && split.value_ == 0)) {
    throw UsageError("NCCL_TESTS_SPLIT=" + text + ": expected AND, OR, MOD or DIV and a number");
  }
  return split;
}

int Split::color(int process) const {
  switch (operation_) {
    case '&': return process & value_;
    case '|': return process | value_;
    case '%': return process % value_;
    case '/': return process / value_;
    default: return 0;
  }
}

World::World(Launcher& launcher, const Options& options)
    : launcher_(launcher), options_(options), place_(launcher.place()) {
  const Split split = Split::from_environment();
  for (int process = 0; process < place_.processes; ++process) {
    colors_.push_back(split.color(process));
  }
  group_ = colors_[static_cast<std::size_t>(place_.process)];
  const auto mine = colors_.begin() + place_.process;
  const auto processes = static_cast<int>(std::count(colors_.begin(), colors_.end(), group_));
  nranks_ = processes * options.local_ranks();
  first_rank_ = static_cast<int>(std::count(colors_.begin(), mine, group_)) * options.local_ranks();
  first_device_ = first_device(place_, options.local_ranks());
  if (options.root.value_or(0) >= nranks_) {
    throw UsageError("--root " + std::to_string(*options.root) + ": there are only " +
                     std::to_string(nranks_) + " ranks");
  }
}

RankPlace World::rank_place(int index) const {
  return {first_rank_ + index, nranks_, use_device(first_device_ + index)};
}

ncclUniqueId World::exchange_id() const {
  ncclUniqueId mine{};
  if (first_rank_ == 0) check_nccl(ncclGetUniqueId(&mine));
  const std::vector<ncclUniqueId> all = all_gather<ncclUniqueId>(launcher_, {&mine, 1});
  const auto leader = std::find(colors_.begin(), colors_.end(), group_);
  return all[static_cast<std::size_t>(leader - colors_.begin())];
}

std::vector<DeviceLine> World::device_lines() const {
  std::vector<DeviceLine> mine;
  for (int index = 0; index < options_.local_ranks(); ++index) {
    const RankPlace at = rank_place(index);
    catDeviceProperties properties{};
    check_device(catGetDeviceProperties(&properties, at.device));
    DeviceLine line{};
    line.rank = place_.process * options_.local_ranks() + index;
    line.group = group_;
    line.pid = getpid();
    line.device = at.device;
    std::snprintf(line.host, sizeof(line.host), "%s", host_name().c_str());
    std::snprintf(line.bus_id, sizeof(line.bus_id), "%04x:%02x:%02x", properties.pciDomainID,
                  properties.pciBusID, properties.pciDeviceID);
    std::snprintf(line.info, sizeof(line.info), "%.63s", properties.name);
    mine.push_back(line);
  }
  return all_gather<DeviceLine>(launcher_, mine);
}

}  // namespace catenary::perf
