// A folder of a test's own, gone with what is in it when the test is over.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <string>

namespace catenary::testing {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = "/tmp/catenary_test.XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) ADD_FAILURE() << "no folder like " << name;
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;  // what is left is nobody's business any more
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace catenary::testing
