// A server in Python as a child of the test: it says one line when it is there, and ends with its
// standard input, so with this object or with the test.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace collect::upload::test {

class ServerProgram {
 public:
  // Waits for the line.
  explicit ServerProgram(std::vector<std::string> arguments);
  ~ServerProgram();
  ServerProgram(const ServerProgram&) = delete;
  ServerProgram& operator=(const ServerProgram&) = delete;

  const std::string& line() const { return line_; }

 private:
  pid_t pid_ = -1;
  int socket_ = -1;
  std::string line_;
};

}  // namespace collect::upload::test
