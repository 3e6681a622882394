// Confines itself as collect-symbolizer does, and then obeys commands on standard input: what
// a child that a poisonous file took over might try.
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

#include "daemon/symbolize/exit_codes.h"
#include "daemon/symbolize/lookup/confine.h"

namespace {

void say(const std::string& text) {
  if (::write(STDOUT_FILENO, text.data(), text.size()) < 0) ::_exit(9);
}

std::string capabilities() {
  std::string text;
  if (std::FILE* file = std::fopen("/proc/self/status", "re")) {
    char line[256];
    while (std::fgets(line, sizeof line, file) != nullptr) {
      const std::string_view view(line);
      if (view.starts_with("Cap") || view.starts_with("NoNewPrivs")) {
        text += view;
      }
    }
    std::fclose(file);
  }
  return text;
}

// What it was started with.
std::string surroundings() {
  std::string text = environ == nullptr || environ[0] == nullptr ? "" : "an environment, ";
  text += ::getpgrp() == ::getpid() ? "" : "another's process group, ";
  sigset_t blocked;
  ::sigprocmask(SIG_BLOCK, nullptr, &blocked);
  for (int number = 1; number < NSIG; ++number) {
    struct sigaction action{};
    const bool is_ignored =
        ::sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
    if (is_ignored) text += "signal " + std::to_string(number) + " ignored, ";
    if (::sigismember(&blocked, number) == 1) {
      text += "signal " + std::to_string(number) + " blocked, ";
    }
  }
  for (int fd = 0; fd < 100; ++fd) {
    if (::fcntl(fd, F_GETFD) >= 0) text += std::to_string(fd) + " ";
  }
  char errors[256];
  const ssize_t bytes = ::readlink("/proc/self/fd/2", errors, sizeof errors);
  text += std::string(errors, bytes > 0 ? static_cast<size_t>(bytes) : 0) + " ";
  char directory[256];
  return text + (::getcwd(directory, sizeof directory) != nullptr ? directory : "nowhere");
}

// What it has taken from itself, before it reads a file.
std::string limits() {
  std::string text;
  for (const auto resource :
       {RLIMIT_AS, RLIMIT_CPU, RLIMIT_FSIZE, RLIMIT_CORE, RLIMIT_NPROC, RLIMIT_NOFILE}) {
    rlimit now{};
    ::getrlimit(resource, &now);
    text += std::to_string(now.rlim_cur) +
            (now.rlim_max == now.rlim_cur ? " " : " of " + std::to_string(now.rlim_max) + " ");
  }
  int at_end = 0;
  ::prctl(PR_GET_PDEATHSIG, &at_end);
  return text + "dumpable " + std::to_string(::prctl(PR_GET_DUMPABLE)) + " at its parent's end " +
         std::to_string(at_end);
}

void flood() {
  const std::string block(1u << 20, 'x');
  while (true) say(block);
}

void spin() {
  volatile unsigned count = 0;
  while (true) count = count + 1;
}

void allocate() {
  std::vector<std::string> kept;
  while (true) kept.emplace_back(std::string(16u << 20, 'x'));
}

int act(const std::string& what) {
  if (what == "answer") say("done");
  if (what == "spin") spin();
  if (what == "flood") flood();
  if (what == "allocate") allocate();
  if (what == "crash") std::abort();
  if (what == "socket") return ::socket(AF_INET, SOCK_STREAM, 0) >= 0 ? 20 : 21;
  if (what == "open") return ::open("/etc/hostname", O_RDONLY) >= 0 ? 20 : 21;
  if (what == "create")
    return ::open("/tmp/confined_probe", O_WRONLY | O_CREAT, 0600) >= 0 ? 20 : 21;
  if (what == "fork") return ::fork() >= 0 ? 20 : 21;
  if (what == "ptrace") return ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) == 0 ? 20 : 21;
  if (what == "protect") {
    void* const page =
        ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return ::mprotect(page, 4096, PROT_READ | PROT_EXEC) == 0 ? 20 : 21;
  }
#if defined(__x86_64__)
  if (what == "x32") return ::syscall(0x4000'0000 | __NR_open, "/etc/hostname", 0) >= 0 ? 20 : 21;
  if (what == "i386") {
    // open() there has the number that fstat() has here.
    long answer = __NR_fstat;
    __asm__ volatile("int $0x80" : "+a"(answer) : "b"(0L), "c"(0L), "d"(0L) : "memory");
    return answer >= 0 ? 20 : 21;
  }
#endif
  if (what == "code") {
    void* const page = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return page != MAP_FAILED ? 20 : 21;
  }
  if (what == "exec") {
    char program[] = "/bin/true";
    char* arguments[] = {program, nullptr};
    char* environment[] = {nullptr};
    ::execve(program, arguments, environment);
    return 21;
  }
  return 0;
}

}  // namespace

int main() {
  if (!collect::symbolize::limit_process().ok()) return 10;
  char what[64];
  const ssize_t bytes = ::read(STDIN_FILENO, what, sizeof what);
  const std::string word(what, bytes > 0 ? static_cast<size_t>(bytes) : 0);
  if (word == "capabilities") say(capabilities());
  if (word == "surroundings") say(surroundings());
  if (word == "limits") say(limits());
  if (word == "segment") {
    ::signal(SIGSEGV, SIG_DFL);  // a sanitizer takes it otherwise
    ::raise(SIGSEGV);
  }
  if (word.starts_with("exit")) ::_exit(std::stoi(word.substr(4)));
  if (word == "sleep") ::pause();
  if (word == "mute") {
    ::close(STDOUT_FILENO);
    ::pause();
  }
  if (word == "killed") ::raise(SIGKILL);
  const std::string missing = collect::symbolize::limit_system_calls();
  if (word == "missing") say(missing);
  try {
    return act(word);
  } catch (const std::bad_alloc&) {
    return collect::symbolize::kExitNoMemory;
  }
}
