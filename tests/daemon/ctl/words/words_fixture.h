// Runs commands as one types them and keeps what they print, word for word. Paths of the test's
// folder are shown as DIR.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/daemon/ctl/words/golden_text.h"
#include "tests/daemon/ctl/words/inputs.h"

namespace collect::ctl::testing {

class WordsTest : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override { std::filesystem::remove_all(root_); }

  std::string at(const std::string& name) const { return (root_ / name).string(); }
  void put(const std::string& name, const Octets& bytes);
  Octets octets(const std::string& name) const;
  void link(const std::string& name, const std::filesystem::path& session);

  // "verify --json x.rtc": names of files are those below the folder. Adds to the text the line,
  // standard output, standard error ("! …") and the exit code, which it gives back.
  int run(const std::string& line);
  // Standard output of the last run.
  const std::string& said() const { return said_; }
  // The whole text against expected/NAME.txt; with COLLECT_WRITE_WORDS=1 it is written there.
  void expect_words(const std::string& name);

  std::filesystem::path root_;

 private:
  int run_command(const std::vector<std::string>& words, std::ostream& out, std::ostream& err);
  void check_written(const std::string& report);

  std::string said_;
  GoldenText text_;
};

}  // namespace collect::ctl::testing
