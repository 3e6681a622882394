// A server in Python as a child of the test: it prints one line when it is there, and ends with its
// standard input, so with this object or with the test.
#pragma once

#include <unistd.h>

#include <string>
#include <vector>

#include "tests/child/child_process.h"

namespace collect::upload::test {

class ServerProgram {
 public:
  // Waits for the line.
  explicit ServerProgram(const std::vector<std::string>& arguments)
      : process_(with_python(arguments)) {
    for (char c; ::read(process_.socket(), &c, 1) == 1 && c != '\n';) line_ += c;
  }

  const std::string& line() const { return line_; }

 private:
  static std::vector<std::string> with_python(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"python3", "-B"});
    return arguments;
  }

  child::SocketProgram process_;
  std::string line_;
};

}  // namespace collect::upload::test
