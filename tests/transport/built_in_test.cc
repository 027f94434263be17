#include "transports/built_in.h"

#include <gtest/gtest.h>

#include <string>

#include "src/base/error.h"

namespace catenary {
namespace {

std::string names_with(const Config& config) {
  TransportContext context;
  context.config = &config;
  std::string names;
  for (const auto& transport : built_in_transports(context)) {
    names += std::string(transport->name()) + " ";
  }
  return names;
}

TEST(BuiltIn, all_are_listed_best_first) {
  EXPECT_EQ(names_with(Config()), "loopback shm ofi tcp ");
}

TEST(BuiltIn, the_configuration_chooses_and_our_order_stays) {
  Config config;
  config.transports = "shm,loopback";
  EXPECT_EQ(names_with(config), "loopback shm ");
  config.transports = "shm";
  EXPECT_EQ(names_with(config), "shm ");
}

TEST(BuiltIn, shared_memory_can_be_disabled) {
  Config config;
  config.shm_disable = 1;
  EXPECT_EQ(names_with(config), "loopback ofi tcp ");
}

TEST(BuiltIn, an_unknown_name_is_an_error_that_names_the_known_ones) {
  Config config;
  config.transports = "loopback,carrier_pigeon";
  try {
    names_with(config);
    ADD_FAILURE() << "accepted a transport that does not exist";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidUsage);
    EXPECT_NE(std::string(error.what()).find("carrier_pigeon"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("loopback, shm, ofi, tcp"), std::string::npos);
  }
}

}  // namespace
}  // namespace catenary
