#include "src/base/config.h"

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <map>
#include <variant>

#include "src/base/error.h"
#include "src/base/size_literals.h"

namespace catenary {
namespace {

using TextField = std::string Config::*;
using NumberField = std::int64_t Config::*;

struct Variable {
  const char* name;
  std::variant<TextField, NumberField> field;
  std::int64_t least;  // the bounds of a number; unused for text
  std::int64_t most;
  const char* sentence;
};

Variable text(const char* name, TextField field, const char* sentence) {
  return {name, field, 0, 0, sentence};
}

Variable number(const char* name, NumberField field, std::int64_t least, std::int64_t most,
                const char* sentence) {
  return {name, field, least, most, sentence};
}

std::vector<Variable> variables_of_communicators() {
  return {
      text("NCCL_DEBUG", &Config::debug,
           "What to log: NONE, VERSION, WARN, INFO, ABORT or TRACE. Empty: nothing but what "
           "ncclGetLastError keeps."),
      text("NCCL_DEBUG_SUBSYS", &Config::debug_subsystems,
           "Which subsystems INFO and TRACE lines may come from, separated by commas; a leading ^ "
           "excludes the ones listed. What all ranks choose alike (TUNING) is told by rank 0, and "
           "with TRACE by all."),
      text("NCCL_DEBUG_FILE", &Config::debug_file,
           "Where the log goes; %h is the host, %p the process. Empty: standard output."),
      text("NCCL_COMM_ID", &Config::comm_id,
           "host:port at which rank 0 listens, so that ranks need not pass a unique id around."),
      text("NCCL_SOCKET_IFNAME", &Config::socket_ifname,
           "Network interfaces to use, as a list of name prefixes; a leading = wants exact names, "
           "a leading ^ excludes."),
      text("NCCL_SOCKET_FAMILY", &Config::socket_family, "AF_INET or AF_INET6. Empty: either."),
      text("CATENARY_SECRET_FILE", &Config::secret_file,
           "A file whose content is the shared secret of a job that uses NCCL_COMM_ID."),
      number("CATENARY_INIT_TIMEOUT", &Config::init_timeout_s, 1, 86400,
             "Seconds that a communicator waits for its ranks before it names the missing ones."),
      number("CATENARY_PEER_TIMEOUT", &Config::peer_timeout_s, 1, 3600,
             "Seconds, and one more, after which a machine that says nothing at all any more "
             "(power, cable) counts as gone, and a TCP connection between two as lost, with "
             "libfabric two seconds later. Who is back a second before that was never gone (of "
             "more than 100 seconds, a hundredth). The death of a process is noticed at once. A "
             "connection that nobody answers is given up after ten times as long, or sooner if the "
             "system does (net.ipv4.tcp_syn_retries)."),
      number("NCCL_COMM_BLOCKING", &Config::comm_blocking, 0, 1,
             "1: communicators block, 0: they do not, whatever ncclConfig_t says."),
      number(
          "CATENARY_STALL_TIMEOUT", &Config::stall_report_s, 0, 86400,
          "Seconds without progress after which a message that this rank has not asked for, from "
          "the rank that it waits for, counts as disagreement, an error on all ranks; a peer that "
          "is late is logged. 0: never. What can be proved is told at once."),
      number("NCCL_LOCAL_REGISTER", &Config::local_register, 0, 1,
             "0: ncclCommRegister registers nothing, and gives NULL for a handle."),
      number("NCCL_WIN_ENABLE", &Config::windows, 0, 1,
             "0: ncclCommWindowRegister registers nothing, and gives NULL for a window."),
      text("CATENARY_ALGO", &Config::algorithm,
           "Forces one algorithm by its name, as `catenary list` prints them, where a collective "
           "has it (the log's subsystem TUNING tells if not) and it runs on these ranks and "
           "machines (NCCL_DEBUG=WARN tells if not); "
           "`hier_<inside>_<across>` is one inside of machines and another across them. "
           "Empty: the one that is expected to be the fastest."),
      number(
          "CATENARY_BOX", &Config::box, 0, 1 << 20,
          "Algorithms of two levels take so many consecutive ranks for one machine, if all ranks "
          "say the same and they divide the ranks. 0: those that share memory."),
      text("NCCL_ALGO", &Config::nccl_algo,
           "The algorithms that may be used, in NCCL's syntax: \"ring,tree\", \"^ring\", "
           "\"ring;allreduce:tree\". Ring means ring and chain, Tree our trees, PAT pat; our own "
           "names of what allreduce, allgather, reducescatter, broadcast and reduce have work, too "
           "(CATENARY_ALGO for other collectives). Pairs (`hier_<inside>_<across>`) that are not "
           "among the few that cost chooses from have to be named. CollnetDirect, CollnetChain, "
           "NVLS and NVLSTree mean "
           "nothing that we have. A collective that is left without any fails, as with NCCL."),
      text("NCCL_PROTO", &Config::nccl_proto,
           "Checked, but without effect: LL, LL128 and Simple are ways of GPUs to write memory."),
      text("CATENARY_TUNING_FILE", &Config::tuning_file,
           "What `catenary tune` measured here, and where it writes it. Empty: a file of this "
           "machine's in the user's cache folder."),
      text("XDG_CACHE_HOME", &Config::cache_folder,
           "The user's cache folder. Empty: .cache in the home folder."),
  };
}

std::vector<Variable> variables_below() {
  return {
      text("CATENARY_TRANSPORTS", &Config::transports,
           "The transports that may be used, separated by commas; ofi without tcp asks for "
           "libfabric, as NCCL_NET=OFI does. Empty: all that work here."),
      text(
          "NCCL_NET", &Config::net,
          "Between machines, this network and no other: OFI (libfabric; also \"AWS Libfabric\") or "
          "Socket (plain TCP). It is an error if it cannot be had. Empty: Socket, or OFI if "
          "FI_PROVIDER names a provider; docs/efa.md says why."),
      text(
          "FI_PROVIDER", &Config::fi_provider,
          "libfabric's provider, by its name, or several, separated by commas, of which the first "
          "that is there is taken; an error if none is there and ranks need a network. With "
          "NCCL_NET=OFI, which it stands for where NCCL_NET is empty, CATENARY_TRANSPORTS does not "
          "rule ofi out, and libfabric is installed. A leading ^ excludes the ones listed "
          "(libfabric reads this, too). Empty: efa, verbs;ofi_rxm, tcp, net or tcp;ofi_rxm, the "
          "first that works."),
      number(
          "CATENARY_RAILS", &Config::rails, 0, 4,
          "With libfabric, over how many endpoints a rank stripes its long messages: over its "
          "nearest cards in turn, or over the interfaces that fit NCCL_SOCKET_IFNAME equally "
          "well; several may use one. 0: this rank's share of the machine's cards, over IP one."),
      number("NCCL_SHM_DISABLE", &Config::shm_disable, 0, 1,
             "1: no shared memory between processes."),
      number(
          "CATENARY_SLOT_BYTES", &Config::slot_bytes, 64, 64_MB,
          "Bytes of one slot of a link; rounded up to a multiple of 64. What is longer goes over "
          "sockets in pieces of some 61 KB."),
      number("CATENARY_SLOTS", &Config::slots, 2, 1024, "Slots of a link."),
      number(
          "CATENARY_BELT_BYTES", &Config::belt_bytes, -1, 4_MB,
          "Bytes of shared memory that a rank's messages to others of its machine go round, where "
          "each rank has a core; each other one has its share, none below 256 KB. 0: those of "
          "slots only. -1: nearly twice the second-level cache, half of one of 2 MB and more."),
      number("CATENARY_LEND_BYTES", &Config::least_loan, 0, std::int64_t{1} << 40,
             "Messages of so many bytes and more are read where they lie instead of being copied, "
             "where the buffer comes from ncclMemAlloc or the like and the peer can map it; 1024 "
             "at the least. 0: none, and no memory is mapped or fetched."),
      number("CATENARY_FETCH_BYTES", &Config::least_fetched, -1, std::int64_t{1} << 40,
             "Messages of so many bytes and more (and of no fewer than CATENARY_LEND_BYTES) from "
             "other memory are copied once, by the kernel (process_vm_readv, process_vm_writev), "
             "where it lets ranks do so. 0: never. -1: 32768, if such copies are quick on this "
             "machine; of what goes one way between two ranks with a core each, of which both copy "
             "a part, 1048576, if they are quick enough for that."),
      number(
          "CATENARY_LEND_IN_PLACE_BYTES", &Config::least_lent_in_place, 0, std::int64_t{1} << 40,
          "Reductions and exchanges in place lend nothing if they have fewer bytes, unless whoever "
          "reads them puts the result there: their owner takes back every cache line that was "
          "read, to write it."),
      number("CATENARY_STAGE_BYTES", &Config::least_staged, -1, std::int64_t{1} << 40,
             "What goes to several ranks of a machine is copied once, to where all of them read "
             "it, if so many bytes and more of it move at a time; 1024 at the least. 0: never, and "
             "each gets a copy. -1, by which algorithms are chosen, too: 8192, and 32768 where "
             "these ranks send something back."),
      text("NCCL_HOSTID", &Config::host_id,
           "Ranks with different values never share memory, as if on different hosts."),
      number("CATENARY_DEVICES", &Config::devices, 0, 4096,
             "Simulated devices of a process. 0: one per usable core, and more when asked for."),
      number("CATENARY_CORE_SPREAD", &Config::core_spread, 0, 1,
             "1: a thread that waits and shares its core with whom it waits for moves to another "
             "one that it may use; 0: it stays where the system puts it."),
      text("CATENARY_ISA", &Config::isa,
           "The instruction set of the reductions: scalar, avx2, avx512 or avx512fp16. Empty: the "
           "best here."),
  };
}

const std::vector<Variable>& variables() {
  static const std::vector<Variable> table = [] {
    std::vector<Variable> all = variables_of_communicators();
    const std::vector<Variable> more = variables_below();
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }();
  return table;
}

std::string trim(const std::string& line) {
  const auto first = line.find_first_not_of(" \t\r");
  if (first == std::string::npos) return "";
  return line.substr(first, line.find_last_not_of(" \t\r") - first + 1);
}

// False if it cannot be read, which is no error where nobody named it.
bool read_file(const std::string& path, std::map<std::string, std::string>& values) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    line = trim(line.substr(0, line.find('#')));
    const auto equals = line.find('=');
    if (equals == std::string::npos) continue;
    values.emplace(trim(line.substr(0, equals)), trim(line.substr(equals + 1)));
  }
  return file.eof();
}

std::optional<std::string> environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  if (value == nullptr) return std::nullopt;
  return value;
}

void set_number(Config& config, const Variable& variable, NumberField field,
                const std::string& value) {
  char* end = nullptr;
  errno = 0;
  const long long parsed = std::strtoll(value.c_str(), &end, 10);
  if (value.empty() || *end != '\0' || errno != 0 || parsed < variable.least ||
      parsed > variable.most) {
    config.problems.push_back(
        format("%s=%s is not a number from %lld to %lld; using %lld", variable.name, value.c_str(),
               static_cast<long long>(variable.least), static_cast<long long>(variable.most),
               static_cast<long long>(config.*field)));
    return;
  }
  config.*field = parsed;
}

}  // namespace

Config Config::from(const Lookup& lookup) {
  Config config;
  for (const Variable& variable : variables()) {
    const std::optional<std::string> value = lookup(variable.name);
    if (!value) continue;
    config.settings.push_back(
        format("%s set by environment to %s.", variable.name, value->c_str()));
    if (const auto* field = std::get_if<TextField>(&variable.field)) {
      config.*(*field) = *value;
    } else {
      set_number(config, variable, std::get<NumberField>(variable.field), *value);
    }
  }
  if (config.cache_folder.empty()) {
    if (const auto home = lookup("HOME")) config.cache_folder = *home + "/.cache";
  }
  return config;
}

const Config& Config::process() {
  static const Config config = [] {
    std::map<std::string, std::string> files;
    const std::string named = environment("NCCL_CONF_FILE").value_or("");
    bool is_read = true;
    if (!named.empty()) {
      is_read = read_file(named, files);
    } else if (const auto home = environment("HOME")) {
      read_file(*home + "/.nccl.conf", files);
    }
    read_file("/etc/nccl.conf", files);
    Config found = from([&](const std::string& name) -> std::optional<std::string> {
      if (auto value = environment(name)) return value;
      const auto entry = files.find(name);
      if (entry == files.end()) return std::nullopt;
      return entry->second;
    });
    if (!is_read) {
      found.problems.push_back(format("NCCL_CONF_FILE=%s cannot be read", named.c_str()));
    }
    return found;
  }();
  return config;
}

std::string Config::describe() {
  const Config defaults;
  std::string result;
  for (const Variable& variable : variables()) {
    const auto* field = std::get_if<TextField>(&variable.field);
    const std::string value = field != nullptr
                                  ? "\"" + defaults.*(*field) + "\""
                                  : std::to_string(defaults.*std::get<NumberField>(variable.field));
    const std::string type =
        field != nullptr ? "text"
                         : format("%lld to %lld", static_cast<long long>(variable.least),
                                  static_cast<long long>(variable.most));
    result += format("%s (%s, default %s)\n    %s\n", variable.name, type.c_str(), value.c_str(),
                     variable.sentence);
  }
  return result;
}

}  // namespace catenary
