// Other programs that tests of formats run: independent readers, most of them in Python.
#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <deque>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/child/child_process.h"

namespace collect::reference {

struct Ran {
  int status = -1;  // exit code; -1: it could not be started, or was killed
  std::string out;  // standard output
};

// A command of the shell.
inline Ran run(const std::string& command) {
  const child::Ending ending = child::run_shell(command);
  return {ending.exit_code, ending.output};
}

inline bool has_python() {
  return run("python3 --version").status == 0;
}

// A Python program that is run often, in one interpreter: starting one for each run takes longer
// than most runs. Not for more than one thread.
class PythonTool {
 public:
  explicit PythonTool(const std::filesystem::path& program)
      : process_({"python3", "-c", kInterpreter, program.string()}),
        replies_(fdopen(dup(process_.socket()), "r")) {}
  PythonTool(const PythonTool&) = delete;
  PythonTool& operator=(const PythonTool&) = delete;
  ~PythonTool() {
    if (replies_ != nullptr) fclose(replies_);
  }

  // As its program would end with these arguments. Where it throws, the traceback is on standard
  // error, and this run and all after it have the status -1.
  Ran run(const std::vector<std::string>& arguments) {
    Ran ran;
    if (replies_ == nullptr) return ran;
    const std::string line = nlohmann::json(arguments).dump() + "\n";
    const ssize_t sent = send(process_.socket(), line.data(), line.size(), MSG_NOSIGNAL);
    int status = -1;
    size_t size = 0;
    if (sent != static_cast<ssize_t>(line.size()) ||
        fscanf(replies_, "%d %zu", &status, &size) != 2 || fgetc(replies_) != '\n') {
      return ran;
    }
    ran.out.resize(size);
    if (fread(ran.out.data(), 1, size, replies_) == size) ran.status = status;
    return ran;
  }

 private:
  static constexpr const char* kInterpreter = R"(
import contextlib, io, json, os, sys
sys.dont_write_bytecode = True
replies = sys.stdout.buffer
program = sys.argv[1]
sys.path.insert(0, os.path.dirname(program))
with open(program, encoding="utf-8") as source:
    code = compile(source.read(), program, "exec")
for line in sys.stdin:
    sys.argv = [program] + json.loads(line)
    status = 0
    written = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    with contextlib.redirect_stdout(written):
        try:
            exec(code, {"__name__": "__main__", "__file__": program})
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    written.flush()
    said = written.buffer.getvalue()
    replies.write(b"%d %d\n" % (status, len(said)) + said)
    replies.flush()
)";

  child::SocketProgram process_;
  FILE* const replies_;
};

using PythonTools = std::deque<PythonTool>;

inline PythonTools python_tools(const std::vector<std::filesystem::path>& programs) {
  PythonTools tools;
  for (const auto& program : programs) tools.emplace_back(program);
  return tools;
}

}  // namespace collect::reference
