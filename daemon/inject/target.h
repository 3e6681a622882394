// A running process of this machine: what must be known to attach to it.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "formats/core/result.h"

namespace collect::inject {

// Code that is mapped from a file, or from none.
struct CodeRange {
  uint64_t begin = 0;
  uint64_t end = 0;
  std::string path;
};

struct Target {
  pid_t pid = 0;
  uid_t uid = 0;
  uint64_t started = 0;              // ticks since the system's start: with `pid` it is one process
  std::string name;                  // as the system lists it
  std::string program;               // path of its executable
  std::vector<std::string> modules;  // paths of files with code; the executable first
  std::vector<CodeRange> code;       // by ascending address
  uint64_t c_library = 0;  // where it is loaded; the file is the one that this process uses

  bool has(const std::string& module) const {
    return std::find(modules.begin(), modules.end(), module) != modules.end();
  }
};

// Why nothing can be loaded into the process, in words that say what to do: kNotFound (no such
// process), kPermission (another user's, or the system forbids it), kUnsupported (another
// architecture, statically linked, another C library, a container, a seccomp filter, raised
// privileges), kUnavailable (stopped, or traced by a debugger).
Result<Target> look_at_target(pid_t pid);

// kNotFound: the process has ended since it was looked at, and its number may be another's; it has
// become another program.
Status check_same(const Target& target);

// What a refusal of ptrace(2) means here: Yama's rule, or rights that are missing.
Error explain_refusal(pid_t pid, const Error& refusal);

}  // namespace collect::inject
