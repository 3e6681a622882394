#include "daemon/runtime/runtime_directory.h"

#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <optional>
#include <string_view>

namespace collect::runtime {
namespace {

using storage::FileUse;

constexpr char kSharedDirectory[] = "/tmp";
constexpr char kHalfMade[] = ".new-";
constexpr int kPublishAttempts = 3;

// A directory of this user's that no one else writes to.
bool is_own(const std::string& path) {
  struct stat status{};
  return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
         status.st_uid == ::geteuid() && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

// Root's, and in it everybody removes and renames what is their own alone.
bool is_shared_safely(const char* path) {
  struct stat status{};
  return ::stat(path, &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == 0 &&
         (status.st_mode & S_ISVTX) != 0;
}

Result<std::string> chosen_path() {
  const std::string user = std::to_string(::geteuid());
  const char* const given = std::getenv("XDG_RUNTIME_DIR");
  for (const std::string& above :
       {std::string(given == nullptr ? "" : given), "/run/user/" + user}) {
    if (above.starts_with('/') && is_own(above)) return above + "/collectord";
  }
  if (is_shared_safely(kSharedDirectory)) {
    return fmt::format("{}/collectord-{}", kSharedDirectory, user);
  }
  return Error{Code::kNotFound,
               "there is no directory for this user's running programs: set "
               "XDG_RUNTIME_DIR"};
}

Status check_own(const std::string& path) {
  struct stat status{};
  if (::lstat(path.c_str(), &status) != 0) return errno_error(errno, path);
  if (S_ISDIR(status.st_mode) && status.st_uid == ::geteuid() && (status.st_mode & 077) == 0) {
    return {};
  }
  return Error{Code::kPermission, path +
                                      " is not a directory of this user's alone (mode 0700); "
                                      "remove it, or set XDG_RUNTIME_DIR"};
}

Status write_all(int fd, const std::string& text, const std::string& shown) {
  size_t written = 0;
  while (written < text.size()) {
    const ssize_t count = ::write(fd, text.data() + written, text.size() - written);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno_error(errno, shown);
    written += static_cast<size_t>(count);
  }
  return {};
}

}  // namespace

Result<RuntimeDirectory> RuntimeDirectory::open() {
  const Result<std::string> path = chosen_path();
  if (!path.ok()) return path.error();
  COLLECT_TRY(check_own(*path));
  auto directory = storage::RootedDirectory::open(*path);
  if (!directory.ok()) return directory.error();
  return RuntimeDirectory(std::move(*directory));
}

Result<RuntimeDirectory> RuntimeDirectory::make() {
  const Result<std::string> path = chosen_path();
  if (!path.ok()) return path.error();
  if (::mkdir(path->c_str(), S_IRWXU) != 0 && errno != EEXIST) return errno_error(errno, *path);
  return open();
}

Result<Descriptor> RuntimeDirectory::publish(const std::string& name,
                                             const std::string& text) const {
  Result<Descriptor> published = publish_once(name, text);
  // A reader that met the file before it was locked took it for one that was left behind.
  for (int i = 1; i < kPublishAttempts && !published.ok(); ++i) {
    if (published.code() != Code::kNotFound) break;
    published = publish_once(name, text);
  }
  return published;
}

Result<Descriptor> RuntimeDirectory::publish_once(const std::string& name,
                                                  const std::string& text) const {
  static std::atomic<uint32_t> number{0};
  const std::string temporary = fmt::format("{}{}-{}", kHalfMade, ::getpid(), number++);
  auto file = directory_.open_file(temporary, FileUse::kCreatePrivate);
  if (!file.ok() &&
      file.code() == Code::kAlreadyExists) {  // of a process that had this number before
    COLLECT_TRY(directory_.remove_file(temporary));
    file = directory_.open_file(temporary, FileUse::kCreatePrivate);
  }
  if (!file.ok()) return file.error();
  const std::string shown = directory_.path_of(temporary);
  Status made;
  if (::flock(file->get(), LOCK_EX | LOCK_NB) != 0) made = errno_error(errno, shown);
  if (made.ok()) made = write_all(file->get(), text, shown);
  if (made.ok()) made = directory_.rename(temporary, name);
  if (made.ok()) return std::move(*file);
  (void)directory_.remove_file(temporary);
  return made.error();
}

Result<std::string> RuntimeDirectory::read(const std::string& name) const {
  const auto file = directory_.open_file(name, FileUse::kRead);
  if (!file.ok()) return file.error();
  std::string text(kMaxEntryBytes + 1, '\0');
  size_t size = 0;
  while (size < text.size()) {
    const ssize_t count = ::read(file->get(), text.data() + size, text.size() - size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno_error(errno, directory_.path_of(name));
    if (count == 0) break;
    size += static_cast<size_t>(count);
  }
  if (size > kMaxEntryBytes) {
    return Error{Code::kLimit,
                 fmt::format("{}: more than {} bytes", directory_.path_of(name), kMaxEntryBytes)};
  }
  text.resize(size);
  return text;
}

std::vector<std::string> RuntimeDirectory::names(const std::string& prefix) const {
  std::vector<std::string> found;
  const auto listed = directory_.list("");
  if (!listed.ok()) return found;
  for (const std::string& name : *listed) {
    if (found.size() < kMaxEntries && name.starts_with(prefix)) found.push_back(name);
  }
  return found;
}

void RuntimeDirectory::remove_half_made() const {
  for (const std::string& name : names(kHalfMade)) {
    if (!is_locked(name)) (void)remove(name);
  }
}

bool RuntimeDirectory::is_locked(const std::string& name) const {
  const auto file = directory_.open_file(name, FileUse::kRead);
  return file.ok() && ::flock(file->get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

}  // namespace collect::runtime
