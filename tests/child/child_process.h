// Processes that a test starts: each is waited for with a bound and never outlives its object. A
// test that fails prints the command, folder, ending and output of each of its processes.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/child/scratch.h"

namespace collect::child {

using Arguments = std::vector<std::string>;
using Environment = std::map<std::string, std::string>;  // added to the test's own; "" removes

struct Ending {
  bool timed_out = false;  // it was killed by the test
  int exit_code = -1;
  int signal = 0;
  std::string output;  // standard output
  std::string errors;  // standard error

  bool exited_with(int code) const { return !timed_out && signal == 0 && exit_code == code; }
  std::string describe() const;  // "exit 3", "signal 11", "killed by the test after its time"
};

// What ChildProcess and ForkedChild have in common.
class Child {
 public:
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const { return pid_; }
  bool running();
  void send_signal(int number) const;
  // Waits; when the time is over kills it. A second call gives the same answer.
  const Ending& wait(seconds limit = seconds(60));
  uint64_t resident_bytes() const;  // 0 when it has ended
  std::string output() const;       // so far
  std::string errors() const;

 protected:
  Child() = default;
  ~Child();
  void set_started(pid_t pid, const std::string& command, const std::string& folder);
  void set_not_started(const std::string& problem);

  std::string output_path_;  // empty: its output is in no file
  std::string errors_path_;

 private:
  bool collect_status(int options);

  pid_t pid_ = -1;
  size_t number_ = 0;
  std::optional<int> status_;
  Ending ending_;
};

// How a program is started where it differs from what most tests want.
struct Setting {
  std::string folder = {};  // its working directory; empty: that of the test
  // Descriptors of the test that become its standard streams. -1: it reads /dev/null, and writes to
  // files that output() and errors() read.
  int input = -1;
  int output = -1;
  int errors = -1;
  bool inherits_environment = true;  // false: the given variables are all that it has
  bool leads_group = false;          // of processes
};

// A program.
class ChildProcess : public Child {
 public:
  // Output goes to files in `scratch`. The test fails when the program can't be started.
  ChildProcess(const std::string& scratch, const Arguments& command, const Environment& more = {},
               const Setting& setting = {});
};

Ending run(const std::string& scratch, const Arguments& command, const Environment& more = {},
           seconds limit = seconds(60));

// A line of the shell.
Ending run_shell(const std::string& command);

// A program whose standard input and output are a socket of the test. It ends with its input.
class SocketProgram {
 public:
  explicit SocketProgram(const Arguments& command);
  ~SocketProgram();
  SocketProgram(const SocketProgram&) = delete;
  SocketProgram& operator=(const SocketProgram&) = delete;

  int socket() const { return ends_.own; }

 private:
  struct Ends {
    Ends();
    int own = -1;
    int program = -1;
  };

  Ends ends_;
  ChildProcess process_;
};

}  // namespace collect::child
