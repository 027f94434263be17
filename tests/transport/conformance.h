// The conformance suite: what every transport must do, written once.
//
// A transport joins with a file like loopback_test.cc, compiled together with conformance.cc.
#pragma once

#include <gtest/gtest.h>

#include "tests/transport/attached_ranks.h"

namespace catenary::test {

class Conformance : public testing::TestWithParam<Variant> {};

// A transport as it is, starved (two slots of 64 bytes), and both behind random delays.
std::vector<Variant> standard_variants(RunAs run_as,
                                       std::unique_ptr<Transport> (*make)(const TransportContext&));

inline std::string variant_name(const testing::TestParamInfo<Variant>& info) {
  return info.param.name;
}

}  // namespace catenary::test
