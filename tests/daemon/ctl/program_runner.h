// Runs collectctl as a user does: own process, own environment, streams in files.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/child/child_process.h"

namespace collect::ctl {

struct Ran {
  int exit_code = -1;  // 128 + signal, as a shell says
  std::string out;
  std::string err;
};

class ProgramRunner {
 public:
  ProgramRunner();

  // Variables for the next programs; an empty value unsets.
  std::map<std::string, std::string> environment;
  std::string input;
  // Standard output of the next programs, instead of the file that out_so_far() reads; -1: the
  // file.
  int output = -1;
  int errors = -1;  // of standard error the same

  Ran run(const std::vector<std::string>& arguments);
  // In two steps, for tests that do something meanwhile: one program at a time.
  void start(const std::vector<std::string>& arguments);
  void send_signal(int number) const { program_->send_signal(number); }
  std::string out_so_far() const { return program_->output(); }
  Ran finish();

  // The programs' working directory.
  const std::filesystem::path& directory() const { return directory_; }

 private:
  child::Scratch scratch_;
  const std::filesystem::path directory_ = scratch_ / "work";
  const std::filesystem::path runtime_ = scratch_ / "runtime";  // where they find each other
  std::optional<child::ChildProcess> program_;
};

inline std::string contents(const std::filesystem::path& path) {
  return child::read_text_file(path);
}

// False after a time that is only a bound.
template <class Condition>
bool eventually(Condition condition) {
  return child::eventually(child::seconds(60), condition);
}

}  // namespace collect::ctl
