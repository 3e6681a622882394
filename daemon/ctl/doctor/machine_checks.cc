#include <fmt/core.h>
#include <linux/perf_event.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <charconv>
#include <fstream>
#include <optional>
#include <sstream>

#include "daemon/ctl/doctor/checks.h"
#include "formats/core/text/figures.h"
#include "formats/core/text/printable.h"

namespace collect::ctl {
namespace {

using Verdict = Check::Verdict;

// A collector keeps 1,024 of them for itself, and takes two and two for each thread of an agent.
constexpr uint64_t kLeastOpenFiles = 2'048;
constexpr uint64_t kScarceOpenFiles = 16'384;
// What an agent takes by default is 64 MiB, and the collector's cache of pages wants some, too.
constexpr uint64_t kScarceMemoryBytes = uint64_t{512} << 20;

struct Version {
  unsigned major = 0, minor = 0;
};

std::optional<Version> version_of(std::string_view release) {
  Version version;
  const char* const end = release.data() + release.size();
  const auto [dot, fault] = std::from_chars(release.data(), end, version.major);
  if (fault != std::errc() || dot == end || *dot != '.') return std::nullopt;
  if (std::from_chars(dot + 1, end, version.minor).ec != std::errc()) return std::nullopt;
  return version;
}

bool is_before(const Version& version, unsigned major, unsigned minor) {
  return version.major != major ? version.major < major : version.minor < minor;
}

bool has_word(std::string_view text, std::string_view word) {
  for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const bool begins = at == 0 || text[at - 1] == ' ';
    const size_t end = at + word.size();
    if (begins && (end == text.size() || text[end] == ' ' || text[end] == '\n')) return true;
  }
  return false;
}

std::string trimmed(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  return std::string(text);
}

std::string text_of(const char* path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::optional<uint64_t> kilobytes_of(std::string_view meminfo, std::string_view key) {
  const size_t at = meminfo.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  std::string_view rest = meminfo.substr(at + key.size());
  while (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
  uint64_t value = 0;
  if (std::from_chars(rest.data(), rest.data() + rest.size(), value).ec != std::errc()) {
    return std::nullopt;
  }
  return value;
}

// As agents ask for them. In a child: a filter of system calls may end who asks.
bool are_switches_reported() {
  const pid_t child = ::fork();
  if (child == 0) {
    perf_event_attr wanted{};
    wanted.type = PERF_TYPE_SOFTWARE;
    wanted.size = sizeof wanted;
    wanted.config = PERF_COUNT_SW_DUMMY;
    wanted.exclude_kernel = wanted.context_switch = 1;
    ::_exit(::syscall(SYS_perf_event_open, &wanted, 0, -1, -1, PERF_FLAG_FD_CLOEXEC) >= 0 ? 0 : 1);
  }
  int status = 0;
  return child > 0 && ::waitpid(child, &status, 0) == child && WIFEXITED(status) &&
         WEXITSTATUS(status) == 0;
}

}  // namespace

Check check_open_files() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) {
    return {"open files", Verdict::kWarning, "the system does not say how many", ""};
  }
  if (limit.rlim_max == RLIM_INFINITY || limit.rlim_max >= kScarceOpenFiles) {
    const std::string most =
        limit.rlim_max == RLIM_INFINITY ? "any number" : std::to_string(limit.rlim_max);
    return {"open files", Verdict::kOk, most + " at most, which the collector takes", ""};
  }
  return {"open files", limit.rlim_max < kLeastOpenFiles ? Verdict::kProblem : Verdict::kWarning,
          fmt::format("{} at most; each thread that is recorded needs two", limit.rlim_max),
          "raise the hard limit: `ulimit -Hn`, or LimitNOFILE of the service"};
}

Check check_kernel(std::string_view release) {
  const std::string found = "Linux " + printable(trimmed(release));
  const std::optional<Version> version = version_of(release);
  if (!version) return {"kernel", Verdict::kWarning, found + ", of no version that is known", ""};
  if (is_before(*version, 5, 3)) {
    return {"kernel", Verdict::kWarning,
            found + ": agents can't ship from a process of their own, and a crash may lose 20 ms",
            "use Linux 5.3 or later"};
  }
  if (is_before(*version, 5, 14)) {
    return {"kernel", Verdict::kWarning,
            found + ": where memory runs out, agents find out page by page",
            "use Linux 5.14 or later"};
  }
  return {"kernel", Verdict::kOk, found, ""};
}

Check check_clock(std::string_view cpuinfo, std::string_view clocksource) {
  const std::string source = trimmed(clocksource);
  const size_t flags = cpuinfo.find("flags");
  if (flags == std::string_view::npos) {
    return {"clock", Verdict::kOk, source.empty() ? "the processor's counter" : printable(source),
            ""};
  }
  const std::string_view line = cpuinfo.substr(flags, cpuinfo.find('\n', flags) - flags);
  if (has_word(line, "constant_tsc") && has_word(line, "nonstop_tsc")) {
    return {"clock", Verdict::kOk,
            "the processor's counter is even, clocksource " + printable(source), ""};
  }
  return {"clock", Verdict::kWarning,
          fmt::format("the processor's counter is not even (clocksource {}): each event asks the "
                      "system's clock, which takes longer",
                      printable(source)),
          "in a virtual machine, pass the host's processor through"};
}

Check check_memory(std::string_view meminfo, std::string_view overcommit) {
  const std::optional<uint64_t> available = kilobytes_of(meminfo, "MemAvailable:");
  if (!available) return {"memory", Verdict::kWarning, "the system does not say how much", ""};
  const uint64_t bytes = *available * 1024;
  const std::string found = short_bytes(bytes) + " available; an agent takes 64 MiB";
  if (bytes < kScarceMemoryBytes) {
    return {"memory", Verdict::kWarning, found, "end something, or use --buffer"};
  }
  if (trimmed(overcommit) == "2") {
    return {"memory", Verdict::kWarning,
            found + "; vm.overcommit_memory is 2, so it counts at once",
            "where a program can't be started, use --buffer"};
  }
  return {"memory", Verdict::kOk, found, ""};
}

Check check_attach(std::string_view ptrace_scope, bool is_root) {
  const std::string scope = trimmed(ptrace_scope);
  const std::string rule = fmt::format(" (kernel.yama.ptrace_scope is {})", printable(scope));
  if (scope.empty() || scope == "0") {
    return {"attach PID", Verdict::kOk, is_root ? "any process" : "your own processes", ""};
  }
  if (scope == "3") {
    return {"attach PID", Verdict::kWarning, "no process, until the system is started again" + rule,
            "collectctl run --dynamic records a program from its start"};
  }
  if (is_root) return {"attach PID", Verdict::kOk, "any process" + rule, ""};
  return {"attach PID", Verdict::kWarning, "root alone may" + rule,
          "run collectctl attach as root, or sysctl -w kernel.yama.ptrace_scope=0"};
}

Check check_switches(bool are_reported, std::string_view paranoid) {
  const std::string level = trimmed(paranoid);
  if (are_reported) return {"switches", Verdict::kOk, "each time off the processor is known", ""};
  const bool is_forbidden = level.size() == 1 && level[0] > '2';
  return {"switches", Verdict::kWarning,
          "times off the processor are estimated: " +
              (is_forbidden ? fmt::format("kernel.perf_event_paranoid is {}", level)
                            : std::string("perf_event_open is refused, as in most containers")),
          is_forbidden ? "as root, sysctl -w kernel.perf_event_paranoid=2"
                       : "let the container's filter of system calls (seccomp) pass it"};
}

std::vector<Check> check_machine() {
  utsname name{};
  ::uname(&name);
  return {check_open_files(),
          check_kernel(name.release),
          check_clock(text_of("/proc/cpuinfo"),
                      text_of("/sys/devices/system/clocksource/clocksource0/current_clocksource")),
          check_memory(text_of("/proc/meminfo"), text_of("/proc/sys/vm/overcommit_memory")),
          check_attach(text_of("/proc/sys/kernel/yama/ptrace_scope"), ::geteuid() == 0),
          check_switches(are_switches_reported(), text_of("/proc/sys/kernel/perf_event_paranoid"))};
}

}  // namespace collect::ctl
