// Runs collectctl as a user does and keeps every word.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/daemon/ctl/program_runner.h"
#include "tests/daemon/ctl/words/golden_text.h"

namespace collect::ctl {

using Arguments = std::vector<std::string>;

inline std::string joined(const Arguments& arguments) {
  std::string line;
  for (const std::string& argument : arguments) {
    const bool is_plain = !argument.empty() && argument.find_first_of(" \n") == std::string::npos;
    line += (line.empty() ? "" : " ") + (is_plain ? argument : "'" + argument + "'");
  }
  return line;
}

class CommandWords : public ::testing::Test {
 protected:
  Ran run(const Arguments& arguments) {
    const Ran ran = runner_.run(arguments);
    text_.add(joined(arguments), ran.out, ran.err, ran.exit_code);
    return ran;
  }

  ProgramRunner runner_;
  testing::GoldenText text_;
};

}  // namespace collect::ctl
