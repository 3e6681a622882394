// Other programs that tests of formats run: independent readers, most of them in Python.
#pragma once

#include <fcntl.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace collect::reference {

struct Ran {
  int status = -1;  // exit code; -1: it could not be started, or was killed
  std::string out;  // standard output
};

// A command of the shell.
inline Ran run(const std::string& command) {
  Ran ran;
  FILE* const pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return ran;
  std::array<char, 65536> buffer;
  for (size_t got; (got = fread(buffer.data(), 1, buffer.size(), pipe)) != 0;) {
    ran.out.append(buffer.data(), got);
  }
  const int raw = pclose(pipe);
  ran.status = WIFEXITED(raw) ? WEXITSTATUS(raw) : -1;
  return ran;
}

inline bool has_python() {
  return run("python3 --version 2>/dev/null").status == 0;
}

// A Python program that is run often, in one interpreter: starting one for each run takes longer
// than most runs. Not for more than one thread.
class PythonTool {
 public:
  explicit PythonTool(const std::filesystem::path& program) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    std::vector<std::string> words = {"python3", "-c", kInterpreter, program.string()};
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    if (posix_spawnp(&pid_, "python3", &actions, nullptr, argv.data(), environ) != 0) pid_ = -1;
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    replies_ = fdopen(ends[0], "r");
    // No other program that is started holds it open: this one ends when its input does.
    requests_ = fdopen(fcntl(ends[0], F_DUPFD_CLOEXEC, 0), "w");
  }
  PythonTool(const PythonTool&) = delete;
  PythonTool& operator=(const PythonTool&) = delete;
  ~PythonTool() {
    // Its standard input ends, and so does it.
    if (requests_ != nullptr) fclose(requests_);
    if (replies_ != nullptr) fclose(replies_);
    if (pid_ > 0) waitpid(pid_, nullptr, 0);
  }

  // As its program would end with these arguments. Where it throws, the traceback is on standard
  // error, and this run and all after it have the status -1.
  Ran run(const std::vector<std::string>& arguments) {
    Ran ran;
    if (replies_ == nullptr || requests_ == nullptr || pid_ <= 0) return ran;
    const std::string line = nlohmann::json(arguments).dump() + "\n";
    int status = -1;
    size_t size = 0;
    if (fwrite(line.data(), 1, line.size(), requests_) != line.size() || fflush(requests_) != 0 ||
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

  pid_t pid_ = -1;
  FILE* replies_ = nullptr;
  FILE* requests_ = nullptr;
};

using PythonTools = std::deque<PythonTool>;

inline PythonTools python_tools(const std::vector<std::filesystem::path>& programs) {
  PythonTools tools;
  for (const auto& program : programs) tools.emplace_back(program);
  return tools;
}

}  // namespace collect::reference
