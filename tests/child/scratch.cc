#include "tests/child/scratch.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

namespace collect::child {

Scratch::Scratch(const std::string& below)
    : path_((below.empty() ? TEST_SCRATCH : below) + "/run_XXXXXX") {
  (void)testing::UnitTest::GetInstance();  // begins before a static one does, and so ends after it
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(path_).parent_path(), ignored);
  if (mkdtemp(path_.data()) == nullptr) ADD_FAILURE() << "no directory " << path_;
}

Scratch::~Scratch() {
  const testing::UnitTest& tests = *testing::UnitTest::GetInstance();
  const bool is_in_a_test = tests.current_test_info() != nullptr;
  if (is_in_a_test ? testing::Test::HasFailure() : tests.Failed()) return;
  std::error_code ignored;  // what is left over is below the build tree
  std::filesystem::remove_all(path_, ignored);
}

const Scratch& shared_scratch() {
  static const Scratch directory;
  return directory;
}

std::string read_text_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void write_text_file(const std::string& path, const std::string& content) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << content;
  ASSERT_TRUE(file.flush().good()) << path;
}

void pause_briefly() {
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

}  // namespace collect::child
