// Folders and files of a test, and waiting for what other processes do.
#pragma once

#include <chrono>
#include <string>

namespace collect::child {

using std::chrono::seconds;

// A fresh directory below `below`; empty: below the build tree, removed at the end unless the test
// failed.
class Scratch {
 public:
  explicit Scratch(const std::string& below = "");
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// One for all tests of this test program.
const Scratch& shared_scratch();

std::string read_text_file(const std::string& path);  // empty when it is not there
void write_text_file(const std::string& path, const std::string& content);

void pause_briefly();

// Calls `condition` every few milliseconds until it holds or the time is over.
template <class Condition>
bool eventually(seconds limit, Condition condition) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return condition();
    pause_briefly();
  }
  return true;
}

}  // namespace collect::child
