// One program, started by a test: its output is kept in files, its end is waited for with a bound,
// and it never outlives the object.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace collect::e2e {

using Arguments = std::vector<std::string>;
using Environment = std::map<std::string, std::string>;  // added to the test's own; "" removes
using std::chrono::seconds;

struct Ending {
  bool timed_out = false;  // it was killed by the test
  int exit_code = -1;
  int signal = 0;
  std::string output;  // standard output
  std::string errors;  // standard error

  bool exited_with(int code) const { return !timed_out && signal == 0 && exit_code == code; }
  std::string describe() const;  // "exit 3", "signal 11", "killed by the test after its time"
};

class ChildProcess {
 public:
  // Output goes to files in `scratch`. Dies with a test failure when the program can't be started.
  ChildProcess(const std::string& scratch, const Arguments& command, const Environment& more = {});
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }
  bool running();
  void send_signal(int number) const;
  // Waits; when the time is over kills it. A second call gives the same answer.
  const Ending& wait(seconds limit);
  uint64_t resident_bytes() const;  // 0 when it has ended
  std::string output() const;       // so far
  std::string errors() const;

 private:
  bool collect_status(int options);

  pid_t pid_ = -1;
  std::string output_path_;
  std::string errors_path_;
  std::optional<int> status_;
  Ending ending_;
};

Ending run(const std::string& scratch, const Arguments& command, const Environment& more = {},
           seconds limit = seconds(60));

// Calls `condition` every few milliseconds until it holds or the time is over.
template <class Condition>
bool eventually(seconds limit, Condition condition);

void pause_briefly();

template <class Condition>
bool eventually(seconds limit, Condition condition) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return condition();
    pause_briefly();
  }
  return true;
}

std::string read_text_file(const std::string& path);  // empty when it is not there
void write_text_file(const std::string& path, const std::string& content);

// A fresh directory below the build tree, removed at the end unless the test failed.
class Scratch {
 public:
  Scratch();
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace collect::e2e
