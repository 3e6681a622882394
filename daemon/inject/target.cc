#include "daemon/inject/target.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <thread>

#include "daemon/machine/process_stat.h"

namespace collect::inject {
namespace {

constexpr char kCLibrary[] = "libc.so.6";
constexpr int kLooks = 20;
constexpr std::chrono::milliseconds kLookPause{10};

std::string proc(pid_t pid, const std::string& name) {
  return fmt::format("/proc/{}/{}", pid, name);
}

std::string named(pid_t pid) {
  return fmt::format("process {}", pid);
}

std::string link_of(const std::string& path) {
  std::array<char, PATH_MAX> text{};
  const ssize_t bytes = ::readlink(path.c_str(), text.data(), text.size());
  return bytes > 0 ? std::string(text.data(), static_cast<size_t>(bytes)) : std::string();
}

// "Name:\tvalue" lines.
std::map<std::string, std::string> status_of(pid_t pid) {
  std::map<std::string, std::string> fields;
  std::ifstream file(proc(pid, "status"));
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(':');
    const size_t value = line.find_first_not_of(" \t", colon == line.npos ? colon : colon + 1);
    if (value != line.npos) fields[line.substr(0, colon)] = line.substr(value);
  }
  return fields;
}

struct Mapping {
  uint64_t begin = 0;
  uint64_t end = 0;
  bool is_code = false;
  uint64_t offset = 0;
  std::string file;  // device and inode
  std::string path;
};

// "7f12-7f34 r-xp 00026000 fe:01 1234   /lib/x86_64-linux-gnu/libc.so.6"
std::vector<Mapping> mappings_of(const std::string& path) {
  std::vector<Mapping> mappings;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    Mapping one;
    char dash = 0;
    std::string rights, device, inode;
    words >> std::hex >> one.begin >> dash >> one.end >> rights >> one.offset >> device >> inode;
    if (!words || rights.size() < 4) continue;
    one.is_code = rights[2] == 'x';
    one.file = fmt::format("{} {}", device, inode);
    std::getline(words >> std::ws, one.path);
    mappings.push_back(std::move(one));
  }
  return mappings;
}

// 0: it has ended.
uint64_t start_of(pid_t pid) {
  const auto stat = read_process_stat(static_cast<uint32_t>(pid));
  return stat ? stat->begin_ticks : 0;
}

Status check_status(pid_t pid, std::map<std::string, std::string> fields) {
  if (fields.empty()) return Error{Code::kNotFound, fmt::format("no process {}", pid)};
  std::istringstream ids(fields["Uid"]);
  uint64_t real = 0, effective = 0, saved = 0;
  ids >> real >> effective >> saved;
  if (::geteuid() != 0 && effective != ::geteuid()) {
    return Error{Code::kPermission,
                 fmt::format("{} belongs to user {}: run collectctl as that user or as root",
                             named(pid), effective)};
  }
  if (real != effective || saved != effective) {
    return Error{Code::kUnsupported, named(pid) + " runs with raised privileges (set-uid)"};
  }
  const char state = fields["State"].empty() ? '?' : fields["State"][0];
  if (state == 'Z' || state == 'X') return Error{Code::kNotFound, named(pid) + " has ended"};
  if (fields["TracerPid"] != "0") {
    return Error{Code::kUnavailable,
                 fmt::format("{} is traced by process {}, a debugger perhaps: let that go first",
                             named(pid), fields["TracerPid"])};
  }
  if (state == 'T' || state == 't') {
    return Error{Code::kUnavailable,
                 fmt::format("{} is stopped: let it run first (kill -CONT {})", named(pid), pid)};
  }
  if (fields["Seccomp"] != "0" && !fields["Seccomp"].empty()) {
    return Error{Code::kUnsupported,
                 named(pid) +
                     " runs under a seccomp filter, which may end it for what attaching "
                     "does: start it with collectctl run"};
  }
  return {};
}

Status check_program(pid_t pid, const std::string& program) {
  if (program.empty()) {
    return Error{Code::kPermission, named(pid) +
                                        " has no program that may be looked at: a thread "
                                        "of the kernel, or another user's"};
  }
  if (program.ends_with(" (deleted)")) {
    return Error{Code::kUnsupported,
                 fmt::format("{} runs a file that was replaced meanwhile ({}): start it again",
                             named(pid), program)};
  }
  if (link_of(proc(pid, "ns/mnt")) != link_of("/proc/self/ns/mnt")) {
    return Error{Code::kUnsupported,
                 named(pid) +
                     " sees other files than collectctl does (a container): start "
                     "collectctl in there"};
  }
  Elf64_Ehdr header{};
  std::ifstream file(proc(pid, "exe"), std::ios::binary);
  file.read(reinterpret_cast<char*>(&header), sizeof header);
  if (!file || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != EM_X86_64) {
    return Error{Code::kUnsupported, program +
                                         " is not for x86-64, the only one that can be "
                                         "attached to"};
  }
  return {};
}

// Device and inode of the C library in which this process finds functions.
std::string own_c_library() {
  void* const library = ::dlopen(kCLibrary, RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return {};
  const auto address = reinterpret_cast<uint64_t>(::dlsym(library, "pthread_create"));
  ::dlclose(library);
  for (const Mapping& one : mappings_of("/proc/self/maps")) {
    if (address >= one.begin && address < one.end) return one.file;
  }
  return {};
}

Status find_c_library(Target& target, const std::vector<Mapping>& mappings) {
  const std::string own = own_c_library();
  bool has_linker = false;
  bool has_other = false;
  bool has_code = false;  // the dynamic linker maps the first bytes of a library before its code
  target.c_library = 0;
  for (const Mapping& one : mappings) {
    if (one.file == own && !own.empty()) {
      if (one.offset == 0 && target.c_library == 0) target.c_library = one.begin;
      has_code = has_code || one.is_code;
    }
    const std::string name = std::filesystem::path(one.path).filename().string();
    has_linker = has_linker || name.starts_with("ld-");
    has_other = has_other || name.starts_with("libc.") || name.starts_with("libc-");
  }
  if (target.c_library != 0 && has_code) return {};
  if (!has_linker && !has_other) {
    return Error{Code::kUnsupported, target.program +
                                         " is linked statically: nothing can be "
                                         "loaded into it"};
  }
  return Error{Code::kUnsupported, named(target.pid) +
                                       " uses another C library than collectctl "
                                       "(or one that was updated since): start it "
                                       "again"};
}

}  // namespace

Result<Target> look_at_target(pid_t pid) {
  std::map<std::string, std::string> status = status_of(pid);
  COLLECT_TRY(check_status(pid, status));
  Target target;
  target.pid = pid;
  target.started = start_of(pid);
  target.name = status["Name"];
  std::istringstream(status["Uid"]) >> target.uid;
  target.program = link_of(proc(pid, "exe"));
  COLLECT_TRY(check_program(pid, target.program));
  std::vector<Mapping> mappings = mappings_of(proc(pid, "maps"));
  Status found = find_c_library(target, mappings);
  // In a program that has just been started the dynamic linker may still be at work.
  for (int looks = 1; !found.ok() && looks < kLooks; ++looks) {
    std::this_thread::sleep_for(kLookPause);
    mappings = mappings_of(proc(pid, "maps"));
    found = find_c_library(target, mappings);
  }
  COLLECT_TRY(found);
  target.modules.push_back(target.program);
  for (const Mapping& one : mappings) {
    if (!one.is_code) continue;
    target.code.push_back({one.begin, one.end, one.path});
    if (one.path.starts_with('/') &&
        std::find(target.modules.begin(), target.modules.end(), one.path) == target.modules.end()) {
      target.modules.push_back(one.path);
    }
  }
  return target;
}

Status check_same(const Target& target) {
  if (start_of(target.pid) == target.started &&
      link_of(proc(target.pid, "exe")) == target.program) {
    return {};
  }
  return Error{Code::kNotFound,
               fmt::format("{} is not {} any more: it has ended, or runs another program",
                           named(target.pid), target.program)};
}

Error explain_refusal(pid_t pid, const Error& refusal) {
  if (refusal.code != Code::kPermission) return refusal;
  int scope = 0;
  std::ifstream("/proc/sys/kernel/yama/ptrace_scope") >> scope;
  const std::string begin = "the system does not let collectctl attach to " + named(pid);
  if (scope == 0) {
    return {Code::kPermission, begin +
                                   ": it has raised privileges, or protects itself (prctl "
                                   "PR_SET_DUMPABLE); run collectctl as root"};
  }
  const std::string rule = fmt::format(" (kernel.yama.ptrace_scope is {})", scope);
  if (scope == 3) {
    return {Code::kPermission,
            fmt::format("{}{}, until it is started again; start the program with collectctl run",
                        begin, rule)};
  }
  return {Code::kPermission, fmt::format("{}{}: run collectctl as root, set it to 0 with sysctl, "
                                         "or start the program with collectctl run",
                                         begin, rule)};
}

}  // namespace collect::inject
