// Config: every environment variable the library heeds, read once, in one table.
//
// The only place in the library that reads the environment. Precedence, highest first: the
// process environment, the file named by NCCL_CONF_FILE (or ~/.nccl.conf), /etc/nccl.conf, the
// default. Files hold KEY=VALUE lines and # comments. A bad value is kept out, the default stays,
// and `problems` says so for the log, as it does if the file that NCCL_CONF_FILE names cannot be
// read; the other files need not be there. Immutable after construction; any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "src/base/size_literals.h"

namespace catenary {

struct Config {
  // Logging.
  std::string debug = "";             // NCCL_DEBUG
  std::string debug_subsystems = "";  // NCCL_DEBUG_SUBSYS
  std::string debug_file = "";        // NCCL_DEBUG_FILE
  // Bootstrap.
  std::string comm_id = "";           // NCCL_COMM_ID
  std::string socket_ifname = "";     // NCCL_SOCKET_IFNAME
  std::string socket_family = "";     // NCCL_SOCKET_FAMILY
  std::string secret_file = "";       // CATENARY_SECRET_FILE
  std::int64_t init_timeout_s = 120;  // CATENARY_INIT_TIMEOUT
  std::int64_t peer_timeout_s = 3;    // CATENARY_PEER_TIMEOUT
  // Communicators.
  std::int64_t comm_blocking = -1;  // NCCL_COMM_BLOCKING
  std::int64_t local_register = 1;  // NCCL_LOCAL_REGISTER
  std::int64_t windows = 1;         // NCCL_WIN_ENABLE
  std::int64_t stall_report_s = 5;  // CATENARY_STALL_TIMEOUT
  std::string algorithm = "";       // CATENARY_ALGO
  std::int64_t box = 0;             // CATENARY_BOX
  std::string nccl_algo = "";       // NCCL_ALGO
  std::string nccl_proto = "";      // NCCL_PROTO
  std::string tuning_file = "";     // CATENARY_TUNING_FILE
  std::string cache_folder = "";    // XDG_CACHE_HOME, or .cache below HOME
  // Transports.
  std::string transports = "";                // CATENARY_TRANSPORTS
  std::string net = "";                       // NCCL_NET
  std::string fi_provider = "";               // FI_PROVIDER
  std::int64_t shm_disable = 0;               // NCCL_SHM_DISABLE
  std::int64_t slot_bytes = 64_KB;            // CATENARY_SLOT_BYTES
  std::int64_t slots = 16;                    // CATENARY_SLOTS
  std::int64_t belt_bytes = -1;               // CATENARY_BELT_BYTES
  std::int64_t rails = 0;                     // CATENARY_RAILS
  std::int64_t least_loan = 8_KB;             // CATENARY_LEND_BYTES
  std::int64_t least_fetched = -1;            // CATENARY_FETCH_BYTES
  std::int64_t least_lent_in_place = 512_KB;  // CATENARY_LEND_IN_PLACE_BYTES
  std::int64_t least_staged = -1;             // CATENARY_STAGE_BYTES
  std::string host_id = "";                   // NCCL_HOSTID
  // Devices.
  std::int64_t devices = 0;      // CATENARY_DEVICES
  std::int64_t core_spread = 1;  // CATENARY_CORE_SPREAD
  // Kernels.
  std::string isa = "";  // CATENARY_ISA

  // What was wrong with the values found, one sentence each; and what was set, for the log.
  std::vector<std::string> problems;
  std::vector<std::string> settings;

  // Looks a variable up; nullopt if it is not set.
  using Lookup = std::function<std::optional<std::string>(const std::string& name)>;
  static Config from(const Lookup& lookup);
  // The process's own, read at first use.
  static const Config& process();

  // The table as text, a variable a paragraph: name, type, default, sentence.
  static std::string describe();
};

}  // namespace catenary
