#include "tests/transport/conformance.h"
#include "transports/loopback/transport.h"

namespace catenary::test {

INSTANTIATE_TEST_SUITE_P(Loopback, Conformance,
                         testing::ValuesIn(standard_variants(RunAs::kThreads,
                                                             loopback::make_transport)),
                         variant_name);

}  // namespace catenary::test
