#include "src/device/properties.h"

#include "src/topology/machine.h"

namespace catenary {

SharedResources shared_resources() {
  const MachineMemory memory = machine_memory();
  return {usable_cores(), memory.total_bytes, memory.available_bytes};
}

}  // namespace catenary
