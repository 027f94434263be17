// Where there can be no hosts these tests end with a status of their own, which ctest shows as
// skipped, and say why; unless CATENARY_TEST_HOSTS=1 insists on them.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/support/hosts.h"

int main(int count, char** arguments) {
  constexpr int kSkipped = 77;  // as CMakeLists.txt says
  const std::string why = catenary::testing::why_no_hosts();
  if (!why.empty()) {
    std::printf("no hosts: %s\n", why.c_str());
    const char* const insists = std::getenv("CATENARY_TEST_HOSTS");
    return insists != nullptr && std::strcmp(insists, "1") == 0 ? 1 : kSkipped;
  }
  ::testing::InitGoogleTest(&count, arguments);
  return RUN_ALL_TESTS();
}
