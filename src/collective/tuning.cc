#include "src/collective/tuning.h"

#include <charconv>
#include <cmath>
#include <set>
#include <vector>

#include "src/base/error.h"
#include "src/base/size_literals.h"
#include "src/base/text.h"

namespace catenary {
namespace {

constexpr std::string_view kVersion = "3";
constexpr std::size_t kMostTextBytes = 64_KB;

template <int kWire>
std::vector<Parameter> wire_rows(const std::string& between) {
  const std::string name(name_of(static_cast<Wire>(kWire)));
  return {
      {name + "_hop_ns", "from sending a message until a waiting rank goes on, between " + between,
       0, 1e9, [](CostParameters& p) -> double& { return p.wires[kWire].hop_ns; }},
      {name + "_message_ns", "to write or take a message, between " + between, 0, 1e9,
       [](CostParameters& p) -> double& { return p.wires[kWire].message_ns; }},
      {name + "_byte_ns", "to write or take a byte of a message, between " + between, 0, 1e6,
       [](CostParameters& p) -> double& { return p.wires[kWire].byte_ns; }},
  };
}

std::vector<Parameter> make_table() {
  std::vector<Parameter> table = {
      {"operation_ns", "to submit and finish an operation", 0, 1e9,
       [](CostParameters& p) -> double& { return p.operation_ns; }},
      {"step_ns", "to come to a step of a schedule", 0, 1e9,
       [](CostParameters& p) -> double& { return p.step_ns; }},
      {"switch_ns", "to give a core to another rank", 0, 1e9,
       [](CostParameters& p) -> double& { return p.switch_ns; }},
      {"turn_ns", "from sending a message until a rank that shares its core has its turn", 0, 1e9,
       [](CostParameters& p) -> double& { return p.turn_ns; }},
      {"crowded_byte_ns", "to write or take a byte of a message where ranks share cores", 0, 1e6,
       [](CostParameters& p) -> double& { return p.crowded_byte_ns; }},
      {"local_byte_ns", "to read or write a byte of a rank's own, in cache", 0, 1e6,
       [](CostParameters& p) -> double& { return p.local_byte_ns; }},
      {"reduced_byte_ns", "to combine a byte with another", 0, 1e6,
       [](CostParameters& p) -> double& { return p.reduced_byte_ns; }},
      {"memory_byte_ns", "more for a byte beyond the caches, all ranks of the machine together", 0,
       1e6, [](CostParameters& p) -> double& { return p.memory_byte_ns; }},
      {"shared_cache_bytes", "bytes of the caches that all ranks share, as far as they serve us",
       1024, 1e12, [](CostParameters& p) -> double& { return p.shared_cache_bytes; }},
  };
  for (const auto& rows : {wire_rows<0>("threads of a process"),
                           wire_rows<1>("processes of a machine"), wire_rows<2>("machines")}) {
    table.insert(table.end(), rows.begin(), rows.end());
  }
  return table;
}

std::string_view take_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

[[noreturn]] void refuse(const std::string& why) {
  throw_error(ErrorCode::kInvalidArgument, "%s", why.c_str());
}

// What a stranger wrote may hold anything: only so much of it gets into a message.
std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char letter : text.substr(0, 60)) {
    result += letter >= ' ' && letter <= '~' ? letter : '?';
  }
  return result + "\"";
}

void set_parameter(std::string_view name, std::string_view text, CostParameters& parameters) {
  for (const Parameter& parameter : cost_parameter_table()) {
    if (parameter.name != name) continue;
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value) ||
        value < parameter.least || value > parameter.most) {
      refuse(std::string(name) + " cannot be " + quoted(text));
    }
    parameter.of(parameters) = value;
    return;
  }
  refuse("there is no parameter " + quoted(name));
}

}  // namespace

std::span<const Parameter> cost_parameter_table() {
  static const std::vector<Parameter> table = make_table();
  return table;
}

std::string write_tuning(const CostParameters& parameters, std::string_view machine,
                         std::string_view remark) {
  CostParameters copy = parameters;
  std::string text = "# What `catenary tune` measured; delete it to go back to the defaults.\n";
  if (!remark.empty()) text += "# " + std::string(remark) + "\n";
  text += "version " + std::string(kVersion) + "\nmachine " + std::string(machine) + "\n";
  for (const Parameter& parameter : cost_parameter_table()) {
    text += format("%s %.9g  # %s\n", parameter.name.c_str(), parameter.of(copy),
                   parameter.meaning.c_str());
  }
  return text;
}

CostParameters read_tuning(std::string_view text, std::string_view machine) {
  if (text.size() > kMostTextBytes) refuse("it is too long");
  const bool is_cut_off = !text.empty() && text.back() != '\n';
  CostParameters parameters = default_parameters();
  std::set<std::string_view> seen;
  while (!text.empty()) {
    const std::string_view whole = take_line(text);
    const std::string_view line = trimmed(whole.substr(0, whole.find('#')));
    if (line.empty()) continue;
    const std::size_t blank = std::min(line.find(' '), line.size());
    const std::string_view name = line.substr(0, blank);
    const std::string_view value = trimmed(line.substr(blank));
    if (!seen.insert(name).second) refuse(quoted(name) + " is there twice");
    if (name == "version") {
      if (value != kVersion)
        refuse("it is of version " + quoted(value) + ", not " + std::string(kVersion));
    } else if (!seen.contains("version")) {
      refuse("it does not begin with a version, but with " + quoted(name));
    } else if (name == "machine") {
      if (value != machine) {
        refuse("it is about another machine, " + quoted(value) + ", and this is " +
               quoted(machine));
      }
    } else {
      set_parameter(name, value, parameters);
    }
  }
  if (is_cut_off) refuse("its last line is cut off");
  if (!seen.contains("machine")) refuse("it names no machine");
  if (seen.size() != cost_parameter_table().size() + 2) refuse("parameters are missing");
  return parameters;
}

}  // namespace catenary
