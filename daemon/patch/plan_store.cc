#include "daemon/patch/plan_store.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "daemon/patch/plan_maker.h"
#include "formats/core/text/hex.h"
#include "formats/patch/plan_view.h"

namespace collect::patch {
namespace {

namespace fs = std::filesystem;

constexpr char kEnding[] = ".plan";
// Version of the planner: what an older one kept is not used.
constexpr char kPlannerVersion[] = "3";

// Empty: not to be kept.
std::string kept_name(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) return {};
  std::string name;
  for (const uint64_t part :
       {static_cast<uint64_t>(status.st_dev), static_cast<uint64_t>(status.st_ino),
        static_cast<uint64_t>(status.st_size), static_cast<uint64_t>(status.st_mtim.tv_sec),
        static_cast<uint64_t>(status.st_mtim.tv_nsec), static_cast<uint64_t>(status.st_ctim.tv_sec),
        static_cast<uint64_t>(status.st_ctim.tv_nsec)}) {
    name += fmt::format("{}-", part);
  }
  return name + kPlannerVersion + kEnding;
}

bool read_file(const std::string& path, std::vector<uint8_t>& bytes) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return false;
  struct stat status{};
  bool is_read = ::fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
                 status.st_uid == ::geteuid() && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0 &&
                 status.st_size > 0 && static_cast<uint64_t>(status.st_size) <= kMaxPlanBytes;
  if (is_read) bytes.resize(static_cast<size_t>(status.st_size));
  for (size_t at = 0; is_read && at < bytes.size();) {
    const ssize_t got = ::read(fd, bytes.data() + at, bytes.size() - at);
    is_read = got > 0;
    if (is_read) at += static_cast<size_t>(got);
  }
  ::close(fd);
  return is_read;
}

// Whole or not at all.
Status write_file(const std::string& path, const std::vector<uint8_t>& bytes) {
  std::string temporary = path + ".XXXXXX";
  const int fd = ::mkostemp(temporary.data(), O_CLOEXEC);  // 0600
  if (fd < 0) return errno_error(errno, temporary);
  int error = 0;
  for (size_t at = 0; error == 0 && at < bytes.size();) {
    const ssize_t wrote = ::write(fd, bytes.data() + at, bytes.size() - at);
    if (wrote <= 0) {
      error = wrote == 0 ? EIO : errno;
    } else {
      at += static_cast<size_t>(wrote);
    }
  }
  if (::close(fd) != 0 && error == 0) error = errno;
  if (error == 0 && ::rename(temporary.c_str(), path.c_str()) != 0) error = errno;
  if (error == 0) return {};
  (void)::unlink(temporary.c_str());
  return errno_error(error, path);
}

// So that there is room for another.
void remove_old(const std::string& cache) {
  std::error_code error;
  std::vector<std::pair<fs::file_time_type, fs::path>> plans;
  for (fs::directory_iterator at(cache, error), end; !error && at != end; at.increment(error)) {
    if (at->path().extension() != kEnding) continue;
    plans.emplace_back(at->last_write_time(error), at->path());
  }
  std::sort(plans.rbegin(), plans.rend());
  for (size_t i = kKeptPlans - 1; i < plans.size(); ++i) fs::remove(plans[i].second, error);
}

constexpr std::string_view kFolderBegin = "collect-plans-";

// "collect-plans-PID-XXXXXX" of a process that is no more. What another user made is not ours to
// judge; what is young may be of a process that only its container sees.
bool is_lost(const fs::path& path) {
  const std::string name = path.filename().string();
  if (!name.starts_with(kFolderBegin)) return false;
  pid_t pid = 0;
  const char* const end = name.data() + name.size();
  const auto parsed = std::from_chars(name.data() + kFolderBegin.size(), end, pid);
  if (parsed.ec != std::errc() || parsed.ptr == end || *parsed.ptr != '-' || pid <= 0) return false;
  struct stat status{};
  if (::lstat(path.c_str(), &status) != 0 || !S_ISDIR(status.st_mode) ||
      status.st_uid != ::geteuid()) {
    return false;
  }
  const auto age = std::chrono::seconds(std::time(nullptr) - status.st_mtime);
  return age > kKeepLostFolders && ::kill(pid, 0) != 0 && errno == ESRCH;
}

void remove_lost_folders(const std::string& directory) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory, error)) {
    if (is_lost(entry.path())) fs::remove_all(entry.path(), error);
  }
}

}  // namespace

Result<std::vector<uint8_t>> plan_for(const std::string& path, const std::string& cache) {
  const std::string name = cache.empty() ? "" : kept_name(path);
  std::vector<uint8_t> kept;
  if (!name.empty() && read_file(fmt::format("{}/{}", cache, name), kept) &&
      check_plan(kept) == nullptr) {
    return kept;
  }
  auto plan = plan_of_file(path);
  if (!plan.ok() || name.empty()) return plan;
  std::error_code error;
  fs::create_directories(cache, error);
  remove_old(cache);
  // One that can't be kept is made again next time. One of a file that was replaced meanwhile has a
  // name that no one asks for.
  if (kept_name(path) == name) (void)write_file(fmt::format("{}/{}", cache, name), *plan);
  return plan;
}

Result<PlanFolder> PlanFolder::create() {
  const char* const variable = std::getenv("TMPDIR");
  std::string path = variable != nullptr && variable[0] == '/' ? variable : "/tmp";
  remove_lost_folders(path);
  path += fmt::format("/{}{}-XXXXXX", kFolderBegin, ::getpid());
  if (::mkdtemp(path.data()) == nullptr) return errno_error(errno, path);  // 0700
  return PlanFolder(std::move(path));
}

PlanFolder::~PlanFolder() {
  std::error_code error;
  if (!path_.empty()) fs::remove_all(path_, error);
}

Status PlanFolder::add(const std::vector<uint8_t>& plan, const std::string& module) const {
  PlanView view;
  if (const char* wrong = view.parse(plan)) return Error{Code::kDamaged, wrong};
  const PlanHeader& header = view.header();
  std::string name = hex_bytes(Bytes(header.build_id).first(header.build_id_bytes));
  if (header.build_id_bytes == 0) {
    struct stat status{};
    if (::stat(module.c_str(), &status) != 0) return errno_error(errno, module);
    name = fmt::format("{}{}-{}", kFileBegin, status.st_dev, status.st_ino);
  }
  return write_file(fmt::format("{}/{}{}", path_, name, kEnding), plan);
}

Status PlanFolder::share() const {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(path_, error)) {
    if (::chmod(entry.path().c_str(), 0444) != 0) return errno_error(errno, entry.path());
  }
  if (::chmod(path_.c_str(), 0711) != 0) return errno_error(errno, path_);
  return {};
}

}  // namespace collect::patch
