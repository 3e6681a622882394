#include "daemon/ctl/record/summary/run_processes.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "daemon/ctl/record/program/job.h"
#include "daemon/machine/process_stat.h"
#include "daemon/principal/secret.h"

namespace collect::ctl {
namespace {

using run_file::Record;

constexpr char kMemoryFolder[] = "/dev/shm";
constexpr char kPrefix[] = "collect-run-";

uint64_t monotonic_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000 + static_cast<uint64_t>(now.tv_nsec) / 1'000'000;
}

// A process that has ended and waits for its parent runs no more.
bool is_running(uint32_t pid) {
  if (!is_alive(static_cast<pid_t>(pid))) return false;
  const auto stat = read_process_stat(pid);
  return !stat || !stat->has_ended();
}

bool has(const Record& record, uint32_t flag) {
  return (record.flags & flag) != 0;
}

// What a run that was killed has left: its key's file is not locked.
void remove_stale(const std::string& base) {
  std::error_code error;
  std::filesystem::directory_iterator entry(base, error);
  const std::filesystem::directory_iterator end;
  for (; !error && entry != end; entry.increment(error)) {
    if (!entry->path().filename().string().starts_with(kPrefix)) continue;
    struct stat found{};
    const std::string folder = entry->path().string();
    if (::lstat(folder.c_str(), &found) != 0 || !S_ISDIR(found.st_mode)) continue;
    if (found.st_uid != ::geteuid()) continue;
    const int key = ::open((folder + "/key").c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (key < 0) continue;
    std::error_code ignored;
    if (::flock(key, LOCK_EX | LOCK_NB) == 0) std::filesystem::remove_all(folder, ignored);
    ::close(key);
  }
}

// Under another name until it is locked, or another run would take it for stale.
Result<int> make_key_file(const std::string& path, const std::string& key) {
  const std::string unlocked = path + ".new";
  const int file = ::open(unlocked.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) return errno_error(errno, unlocked);
  const bool written = ::write(file, key.data(), key.size()) == static_cast<ssize_t>(key.size());
  if (written && ::flock(file, LOCK_EX | LOCK_NB) == 0 &&
      ::rename(unlocked.c_str(), path.c_str()) == 0) {
    return file;
  }
  const Error error = errno_error(errno, unlocked);
  ::close(file);
  return error;
}

}  // namespace

Result<std::unique_ptr<RunProcesses>> RunProcesses::make() {
  const Result<std::string> key = principal::make_secret();
  const Result<std::string> name = principal::make_secret();
  if (!key.ok()) return key.error();
  if (!name.ok()) return name.error();
  std::error_code error;
  std::string base = kMemoryFolder;
  if (::access(base.c_str(), W_OK | X_OK) != 0) {
    base = std::filesystem::temp_directory_path(error).string();
  }
  if (error) return errno_error(error.value(), "the folder for temporary files");
  remove_stale(base);
  std::string folder = fmt::format("{}/{}XXXXXX", base, kPrefix);
  if (::mkdtemp(folder.data()) == nullptr) return errno_error(errno, folder);
  std::unique_ptr<RunProcesses> made(new RunProcesses);
  made->folder_ = folder;
  made->records_ = fmt::format("{}/{}", folder, name->substr(0, 32));
  made->key_ = *key;
  struct stat found{};
  if (::stat("/proc/self/ns/pid", &found) == 0) made->pid_namespace_ = found.st_ino;
  const Result<int> lock = make_key_file(made->key_file(), *key);
  if (!lock.ok()) return lock.error();
  made->lock_ = *lock;
  // Others may pass through; they may make files in the inner one, and list neither.
  constexpr mode_t kPassThrough = S_IRWXU | S_IXGRP | S_IXOTH;
  constexpr mode_t kDropIn = S_ISVTX | S_IRWXU | S_IWGRP | S_IXGRP | S_IWOTH | S_IXOTH;
  if (::chmod(folder.c_str(), kPassThrough) != 0 || ::mkdir(made->records_.c_str(), S_IRWXU) != 0 ||
      ::chmod(made->records_.c_str(), kDropIn) != 0) {
    return errno_error(errno, made->records_);
  }
  return made;
}

RunProcesses::~RunProcesses() {
  std::error_code ignored;
  if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
  if (lock_ >= 0) ::close(lock_);
}

RunProcesses::Process RunProcesses::judge(const Record& record, uint64_t now_ms) const {
  Process process;
  process.record = record;
  process.record.program[sizeof record.program - 1] = '\0';
  process.record.reason[sizeof record.reason - 1] = '\0';
  const auto younger = [now_ms](uint64_t since_ms, std::chrono::milliseconds age) {
    return now_ms < since_ms + static_cast<uint64_t>(age.count());
  };
  const bool is_ours = pid_namespace_ != 0 && record.pid_namespace == pid_namespace_;
  const bool is_unknown = record.pid_namespace == 0;
  const bool is_fresh = younger(record.begin_ms, kFreshProcess);
  const bool beats = record.beat_ms != 0 && younger(record.beat_ms, kSilentDrain);
  // In another namespace the number says nothing here: what it does must do.
  process.runs = is_ours      ? is_running(record.pid)
                 : is_unknown ? is_fresh || is_running(record.pid)
                              : is_fresh || beats;
  if (has(record, run_file::kEnded)) return process;
  process.drains = (process.runs || has(record, run_file::kOutlives)) && (beats || is_fresh);
  // With a link, the collector shows it.
  if (has(record, run_file::kLinked)) return process;
  process.ships = has(record, run_file::kRecorded)
                      ? process.drains
                      : process.runs && is_fresh && !has(record, run_file::kConnected);
  return process;
}

void RunProcesses::keep(const Process& process) {
  if (!has(process.record, run_file::kRecorded | run_file::kFailed)) {
    if (process.record.state != run_file::kLoaded) return;
    const auto known = ended_quiet_.find(process.record.program);
    if (known != ended_quiet_.end()) {
      ++known->second;
    } else if (ended_quiet_.size() < kMaxQuietPrograms) {
      ended_quiet_[process.record.program] = 1;
    }
    if (process.record.pid != static_cast<uint32_t>(program_)) return;
  }
  if (ended_.size() < kMaxKeptProcesses) {
    ended_.push_back(process);
  } else if (has(process.record, run_file::kRecorded | run_file::kFailed)) {
    ++ended_left_out_;
  }
}

// False: no process writes to it any more.
bool RunProcesses::look_at(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  Descriptor read_only;
  int fd = file.get();
  if (fd < 0) {
    read_only = Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    fd = read_only.get();
  }
  struct stat found{};
  if (fd < 0 || ::fstat(fd, &found) != 0 || !S_ISREG(found.st_mode) ||
      found.st_size != static_cast<off_t>(run_file::kFileBytes)) {
    return true;
  }
  // What was never written stays a hole.
  const off_t hole = ::lseek(fd, 0, SEEK_HOLE);
  const size_t bytes = hole > 0 ? static_cast<size_t>(hole) : run_file::kFileBytes;
  auto content = std::make_unique<run_file::File>();
  const ssize_t got = ::pread(fd, content.get(), std::min(bytes, run_file::kFileBytes), 0);
  if (got < static_cast<ssize_t>(sizeof content->header) ||
      content->header.magic != run_file::kMagic) {
    return true;
  }
  seen_.left_out += content->header.left_out;
  const uint64_t now_ms = monotonic_ms();
  bool any = false;
  bool was_used = false;  // else it has just been made
  for (size_t i = 0; i < run_file::kRecords; ++i) {
    const Record& record = content->records[i];
    was_used = was_used || record.pid != 0;
    any = any || record.state == run_file::kTaken;
    if (record.state != run_file::kForked && record.state != run_file::kLoaded) continue;
    const Process process = judge(record, now_ms);
    // In another namespace, one that has recorded nothing may be asleep.
    const bool may_return = record.pid_namespace != pid_namespace_ && record.pid_namespace != 0 &&
                            !has(record, run_file::kEnded);
    if (process.runs || process.drains || may_return || file.get() < 0) {
      any = true;
      seen_.processes.push_back(process);
      continue;
    }
    const uint32_t free = run_file::kFree;
    const auto offset = static_cast<off_t>(offsetof(run_file::File, records) + i * sizeof(Record) +
                                           offsetof(Record, state));
    if (::pwrite(file.get(), &free, sizeof free, offset) != sizeof free) continue;
    keep(process);
  }
  if (any || !was_used) return true;
  // A process that still has it mapped takes another one.
  const uint32_t is_closed = 1;
  if (::pwrite(file.get(), &is_closed, sizeof is_closed, offsetof(run_file::Header, is_closed)) !=
      sizeof is_closed) {
    return true;
  }
  seen_.left_out -= content->header.left_out;
  ended_left_out_ += content->header.left_out;
  return false;
}

void RunProcesses::look() {
  seen_ = Seen();
  DIR* const directory = ::opendir(records_.c_str());
  if (directory == nullptr) return;
  size_t files = 0;
  while (const dirent* entry = ::readdir(directory)) {
    if (entry->d_name[0] == '.' || ++files > kMaxRunFiles) continue;
    const std::string path = fmt::format("{}/{}", records_, entry->d_name);
    if (!look_at(path)) ::unlink(path.c_str());
  }
  ::closedir(directory);
  if (files > kMaxRunFiles) seen_.left_out += files - kMaxRunFiles;
}

template <class Visit>
void RunProcesses::for_each(Visit visit) const {
  for (const Process& process : ended_) visit(process);
  for (const Process& process : seen_.processes) visit(process);
}

bool RunProcesses::any_ships(bool while_alive) const {
  return std::any_of(seen_.processes.begin(), seen_.processes.end(),
                     [while_alive](const Process& process) {
                       return process.ships && (while_alive || !process.runs);
                     });
}

bool RunProcesses::lives(pid_t pid) const {
  bool is_known = false;
  bool runs = false;
  for_each([&](const Process& process) {
    if (process.record.pid != static_cast<uint32_t>(pid)) return;
    is_known = true;
    runs = runs || process.runs;
  });
  return is_known ? runs : is_alive(pid);
}

void RunProcesses::end_run() const {
  std::error_code error;
  std::filesystem::directory_iterator entry(records_, error);
  const std::filesystem::directory_iterator end;
  for (; !error && entry != end; entry.increment(error)) {
    const Descriptor file(
        ::open(entry->path().c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    const uint32_t is_over = 1;
    if (file.get() < 0) continue;
    (void)!::pwrite(file.get(), &is_over, sizeof is_over, offsetof(run_file::Header, is_over));
  }
}

std::vector<MissingProcess> RunProcesses::missing(
    const std::vector<control::v1::Session>& sessions) const {
  std::map<uint32_t, uint32_t> stored;  // sessions by process number
  for (const control::v1::Session& session : sessions) ++stored[session.pid()];
  std::vector<const Process*> owing;
  // Those that were connected have the sessions; and one that ended in order had nothing to send.
  for_each([&](const Process& process) {
    const Record& record = process.record;
    if (has(record, run_file::kRecorded) && has(record, run_file::kConnected)) {
      uint32_t& left = stored[record.pid];
      if (left != 0) {
        --left;
      } else if (!has(record, run_file::kEnded)) {
        owing.push_back(&process);
      }
    } else if (has(record, run_file::kRecorded | run_file::kFailed)) {
      owing.push_back(&process);
    }
  });
  std::stable_sort(owing.begin(), owing.end(), [](const Process* a, const Process* b) {
    return a->record.begin_ms < b->record.begin_ms;
  });
  std::vector<MissingProcess> missing;
  for (const Process* process : owing) {
    const Record& record = process->record;
    std::string reason = record.reason;
    if (has(record, run_file::kConnected)) {
      reason = fmt::format("the collector has no session of it ({})", reason);
    } else if (!has(record, run_file::kFailed) && (reason.empty() || reason == "starting")) {
      reason = "it ended before its agent reached the collector";
    }
    missing.push_back({record.pid, record.uid, record.program, std::move(reason)});
  }
  return missing;
}

std::vector<QuietProgram> RunProcesses::quiet() const {
  std::map<std::string, uint64_t> counts = ended_quiet_;
  for (const Process& process : seen_.processes) {
    if (process.record.state != run_file::kLoaded) continue;
    if (has(process.record, run_file::kRecorded | run_file::kFailed)) continue;
    ++counts[process.record.program];
  }
  std::vector<QuietProgram> programs;
  for (const auto& [program, processes] : counts) programs.push_back({program, processes});
  std::stable_sort(
      programs.begin(), programs.end(),
      [](const QuietProgram& a, const QuietProgram& b) { return a.processes > b.processes; });
  return programs;
}

std::string RunProcesses::last_program(bool& recorded) const {
  std::string program;
  uint64_t newest_ms = 0;
  for_each([&](const Process& process) {
    const Record& record = process.record;
    if (record.pid != static_cast<uint32_t>(program_) || record.begin_ms < newest_ms) return;
    if (record.pid_namespace != pid_namespace_ || record.state != run_file::kLoaded) return;
    newest_ms = record.begin_ms;
    program = record.program;
    recorded = has(record, run_file::kRecorded);
  });
  return program;
}

uint64_t RunProcesses::left_out() const {
  return seen_.left_out + ended_left_out_;
}

}  // namespace collect::ctl
