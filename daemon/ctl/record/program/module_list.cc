#include "daemon/ctl/record/program/module_list.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <sstream>

#include "daemon/ctl/record/program/elf_interpreter.h"
#include "daemon/ctl/record/program/program_paths.h"
#include "storage/fs/rooted_directory.h"

namespace collect::ctl {
namespace {

constexpr int kMaxInterpreters = 4;  // as the kernel follows them
constexpr size_t kMaxFirstLine = 256;
constexpr size_t kMaxListBytes = 1u << 20;

// Empty: it is no script.
std::string first_line(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::array<char, kMaxFirstLine> block{};
  file.read(block.data(), block.size());
  std::string text(block.data(), static_cast<size_t>(file.gcount()));
  if (!text.starts_with("#!")) return {};
  return text.substr(2, text.find('\n') == std::string::npos ? text.npos : text.find('\n') - 2);
}

// Empty: none.
std::string dynamic_linker(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  return file.get() < 0 ? std::string() : elf_interpreter(file.get()).value_or("");
}

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

Result<std::string> output_of(std::vector<std::string> command,
                              std::vector<std::string> environment) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return errno_error(errno, "pipe");
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t pid = 0;
  const int error = ::posix_spawn(&pid, command.front().c_str(), &actions, nullptr,
                                  pointers_to(command).data(), pointers_to(environment).data());
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  std::string text;
  std::array<char, 4096> block;
  while (error == 0 && text.size() < kMaxListBytes) {
    const ssize_t got = ::read(ends[0], block.data(), block.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    text.append(block.data(), static_cast<size_t>(got));
  }
  ::close(ends[0]);
  if (error != 0) return errno_error(error, command.front());
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return text;
  return Error{Code::kUnsupported, command.front() + " cannot list its libraries"};
}

}  // namespace

std::string started_program(const std::string& program) {
  std::string path = program;
  for (int i = 0; i < kMaxInterpreters; ++i) {
    std::istringstream words(first_line(path));
    std::string interpreter;
    if (!(words >> interpreter)) break;
    if (interpreter.ends_with("/env")) {
      std::string name;
      while (words >> name && (name.starts_with("-") || name.find('=') != std::string::npos)) {
      }
      const auto found = find_program(name);
      if (!found.ok()) return interpreter;
      interpreter = *found;
    }
    path = interpreter;
  }
  return path;
}

std::vector<std::string> modules_in_list(const std::string& text) {
  std::vector<std::string> paths;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    // "\tlibm.so.6 => /lib/x86_64-linux-gnu/libm.so.6 (0x…)"; of what has no "=>" nothing is
    // traced.
    const size_t arrow = line.find("=> /");
    const size_t end = line.rfind(" (0x");
    if (arrow == line.npos || end == line.npos || end < arrow + 3) continue;
    paths.push_back(line.substr(arrow + 3, end - arrow - 3));
  }
  return paths;
}

Result<std::vector<std::string>> list_modules(const std::string& program,
                                              const std::vector<std::string>& environment) {
  const std::string linker = dynamic_linker(program);
  if (linker.empty()) {
    return Error{Code::kUnsupported, program + " has no dynamic linker: it is linked statically"};
  }
  const auto text = output_of({linker, "--list", program}, environment);
  if (!text.ok()) return text.error();
  std::vector<std::string> paths = {program};
  for (std::string& path : modules_in_list(*text)) paths.push_back(std::move(path));
  return paths;
}

}  // namespace collect::ctl
