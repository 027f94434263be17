#include "tests/transport/conformance.h"
#include "transports/shm/transport.h"

namespace catenary::test {

INSTANTIATE_TEST_SUITE_P(Threads, Conformance,
                         testing::ValuesIn(standard_variants(RunAs::kThreads, shm::make_transport)),
                         variant_name);
INSTANTIATE_TEST_SUITE_P(Processes, Conformance,
                         testing::ValuesIn(standard_variants(RunAs::kProcesses,
                                                             shm::make_transport)),
                         variant_name);

}  // namespace catenary::test
