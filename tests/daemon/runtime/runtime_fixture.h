// A runtime directory that no other test has.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace collect::runtime {

class RuntimeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::path(::testing::TempDir()) / "runtime_XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    above_ = name;
    ::setenv("XDG_RUNTIME_DIR", above_.c_str(), 1);
  }
  void TearDown() override {
    std::error_code ignored;
    std::filesystem::remove_all(above_, ignored);
  }
  void put(const std::string& name, const std::string& text) const {
    std::filesystem::create_directory(own());
    std::filesystem::permissions(own(), std::filesystem::perms::owner_all);
    std::ofstream(own() / name) << text;
  }
  std::filesystem::path own() const { return above_ / "collectord"; }

  std::filesystem::path above_;
};

}  // namespace collect::runtime
