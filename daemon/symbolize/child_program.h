// Runs one program with an input and takes its output, within bounds. The program gets no more of
// an environment than it is given, descriptors 0, 1 and 2, a process group of its own, and SIGKILL
// when it goes beyond.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "formats/core/bytes.h"
#include "formats/core/result.h"

namespace collect::symbolize {

struct ChildCommand {
  std::string program;  // its path
  std::vector<std::string> arguments{};
  std::vector<std::string> environment{};  // NAME=value
};

struct ChildBounds {
  std::chrono::milliseconds deadline{};
  uint64_t output_bytes = 0;
  const std::atomic<bool>* stop = nullptr;  // when set, the child is ended; may be null
  uint64_t file_bytes = 0;  // no file that it writes becomes larger; 0: as the system has it
};

struct ChildEnding {
  // A sentence when it was killed, crashed or gave up; empty after exit code 0.
  std::string fault;
  int exit_code = -1;  // -1 unless it ended by itself
};

// Blocks until the child is gone. `take` gets output as it comes; an error of it ends the child.
// kNotFound: there is no such program; kExhausted, kIo: it can't be started now; kCancelled: `stop`
// was set. Thread-safe.
Result<ChildEnding> run_child(const ChildCommand& command, Bytes input, const ChildBounds& bounds,
                              const std::function<Status(Bytes)>& take);

// The path of a program of ours that others start: beside the running one, as in a build tree, or
// in ../libexec/collectord, as in an installation. The first of these when it is in neither place.
std::string own_program(const std::string& name);

}  // namespace collect::symbolize
