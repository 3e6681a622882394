// Runs collectctl as a user does: own process, own environment, streams in files.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace collect::ctl {

struct Ran {
  int exit_code = -1;  // 128 + signal, as a shell says
  std::string out;
  std::string err;
};

class ProgramRunner {
 public:
  ProgramRunner();
  ~ProgramRunner();

  // Variables for the next programs; an empty value unsets.
  std::map<std::string, std::string> environment;
  std::string input;
  // Standard output of the next programs, instead of the file that out_so_far() reads; -1: the
  // file.
  int output = -1;
  int errors = -1;  // of standard error the same

  Ran run(const std::vector<std::string>& arguments);
  // In two steps, for tests that do something meanwhile.
  pid_t start(const std::vector<std::string>& arguments);
  Ran finish(pid_t pid);
  std::string out_so_far() const;

  const std::filesystem::path& directory() const { return directory_; }

 private:
  std::filesystem::path directory_;  // the programs' working directory
  std::filesystem::path runtime_;    // where they find each other, and no one else's
};

std::string contents(const std::filesystem::path& path);

// Looks every few milliseconds until `condition` holds; false after a time that is only a bound.
bool eventually(const std::function<bool()>& condition);

}  // namespace collect::ctl
