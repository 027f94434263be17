// Where `catenary tune` keeps what it measured, and where communicators look for it: a file for
// each kind of machine, so that machines may share a home directory.
//
// Any thread. Nothing waits but for the disk. load_tuning() never fails and logs what it took: a
// file that is no good is told in a warning of the log, and the defaults serve. store_tuning()
// replaces the file at once, whatever others read meanwhile, or throws kSystem.
#pragma once

#include <string>

#include "src/base/config.h"
#include "src/collective/cost.h"

namespace catenary {

// What the parameters hold for: processor and cores.
std::string tuned_machine();
// CATENARY_TUNING_FILE, or the cache's file for this machine; empty if there is no home for it.
std::string tuning_path(const Config& config);

struct Tuning {
  CostParameters parameters;
  std::string origin;  // where they come from, in words
};
Tuning load_tuning(const Config& config);
void store_tuning(const CostParameters& parameters, const std::string& path,
                  const std::string& remark);

}  // namespace catenary
