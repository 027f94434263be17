#include "src/api/comm_options.h"

#include <algorithm>
#include <cstring>

#include "src/base/error.h"
#include "src/base/log.h"

namespace catenary {
namespace {

constexpr unsigned kMagic = 0xcafebeef;

// The fields that the caller's header knew; the rest undefined. A struct may end anywhere after its
// three leading fields, as older headers' do, or go on beyond ours, as newer headers' do.
ncclConfig_t copy_known(const ncclConfig_t& given) {
  ncclConfig_t known = NCCL_CONFIG_INITIALIZER;
  constexpr std::size_t kHead = offsetof(ncclConfig_t, blocking);
  if (given.magic != kMagic) {
    throw_error(ErrorCode::kInvalidArgument,
                "ncclConfig_t argument not initialized via NCCL_CONFIG_INITIALIZER");
  }
  if (given.size < kHead) {
    throw_error(ErrorCode::kInvalidArgument,
                "ncclConfig_t says that it has %zu bytes, less than its head", given.size);
  }
  std::memcpy(&known, &given, std::min(given.size, sizeof known));
  return known;
}

void check_range(const char* name, int value, int least, int most) {
  if (value == NCCL_CONFIG_UNDEF_INT || (value >= least && value <= most)) return;
  throw_error(ErrorCode::kInvalidArgument, "Invalid config %s attribute value %d", name, value);
}

}  // namespace

CommunicatorOptions parse_options(const ncclConfig_t* given, const Config& config,
                                  const CommunicatorOptions& inherited) {
  CommunicatorOptions options = inherited;
  if (given != nullptr) {
    const ncclConfig_t known = copy_known(*given);
    check_range("blocking", known.blocking, 0, 1);
    check_range("cgaClusterSize", known.cgaClusterSize, 0, 8);
    check_range("minCTAs", known.minCTAs, 1, INT_MAX);
    check_range("maxCTAs", known.maxCTAs, 1, INT_MAX);
    check_range("splitShare", known.splitShare, 0, 1);
    check_range("collnetEnable", known.collnetEnable, 0, 1);
    check_range("CTAPolicy", known.CTAPolicy, 0, 2);
    check_range("shrinkShare", known.shrinkShare, 0, 1);
    check_range("nvlsCTAs", known.nvlsCTAs, 1, INT_MAX);
    if (known.minCTAs != NCCL_CONFIG_UNDEF_INT && known.maxCTAs != NCCL_CONFIG_UNDEF_INT &&
        known.minCTAs > known.maxCTAs) {
      throw_error(ErrorCode::kInvalidArgument,
                  "Invalid config min/max channels attribute value %d/%d", known.minCTAs,
                  known.maxCTAs);
    }
    if (known.blocking != NCCL_CONFIG_UNDEF_INT) options.blocking = known.blocking != 0;
    if (known.commName != nullptr) options.name = known.commName;
    if (known.netName != nullptr) {
      log_info(Subsystem::kInit, -1,
               format("the option netName, %s, means nothing here: CATENARY_TRANSPORTS says which "
                      "transports may be used",
                      known.netName));
    }
  }
  if (config.comm_blocking >= 0) options.blocking = config.comm_blocking != 0;
  return options;
}

}  // namespace catenary
