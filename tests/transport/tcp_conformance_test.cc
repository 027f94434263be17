#include "tests/transport/conformance.h"
#include "transports/tcp/transport.h"

namespace catenary::test {

INSTANTIATE_TEST_SUITE_P(Threads, Conformance,
                         testing::ValuesIn(standard_variants(RunAs::kThreads, tcp::make_transport)),
                         variant_name);
INSTANTIATE_TEST_SUITE_P(Processes, Conformance,
                         testing::ValuesIn(standard_variants(RunAs::kProcesses,
                                                             tcp::make_transport)),
                         variant_name);

}  // namespace catenary::test
