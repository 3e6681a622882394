#include "storage/fs/rooted_directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#if defined(__linux__) && __has_include(<linux/openat2.h>)
#include <linux/openat2.h>
#include <sys/syscall.h>
#endif

namespace collect::storage {
namespace {

// A directory that is only walked through needs no right to read it, where the system knows that.
#ifdef O_PATH
constexpr int kWalk = O_PATH | O_DIRECTORY | O_CLOEXEC;
#else
constexpr int kWalk = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
#endif
constexpr int kReadDirectory = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
// What we make is for its owner; the group may read where the root says so, others never.
constexpr mode_t kOwnerFile = 0600;
constexpr mode_t kGroupFile = 0640;

int openat_retrying(int directory, const char* name, int flags, mode_t mode = 0) {
  int fd = -1;
  do {
    fd = ::openat(directory, name, flags, mode);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

#if defined(SYS_openat2) && defined(RESOLVE_BENEATH)
// openat2 gives up (EAGAIN) where names change under it; a walk by components does not.
constexpr int kKernelTries = 16;

int openat2_once(int directory, const char* path, int flags) {
  open_how how{};
  how.flags = static_cast<uint64_t>(flags);
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  return static_cast<int>(::syscall(SYS_openat2, directory, path, &how, sizeof how));
}

// Kernels before 5.6 have no openat2, and filters of system calls may forbid it.
bool kernel_has_openat2() {
  static const bool has = [] {
    const Descriptor fd(openat2_once(AT_FDCWD, ".", kWalk));
    return fd.get() >= 0 || (errno != ENOSYS && errno != EPERM);
  }();
  return has;
}

// Absent where the walk by components has to answer.
std::optional<int> open_below(int directory, const std::string& path, int flags) {
  if (!kernel_has_openat2()) return std::nullopt;
  for (int i = 0; i < kKernelTries; ++i) {
    const int fd = openat2_once(directory, path.c_str(), flags);
    if (fd >= 0 || (errno != EINTR && errno != EAGAIN)) return fd;
  }
  return std::nullopt;
}
#else
std::optional<int> open_below(int, const std::string&, int) {
  return std::nullopt;
}
#endif

int walk_below(int directory, const std::string& path, int flags) {
  Descriptor here;
  for (size_t from = 0;;) {
    const size_t slash = path.find('/', from);
    const bool is_last = slash == std::string::npos;
    const std::string name = path.substr(from, is_last ? slash : slash - from);
    const int at = here.get() >= 0 ? here.get() : directory;
    Descriptor next(openat_retrying(at, name.c_str(), (is_last ? flags : kWalk) | O_NOFOLLOW));
    if (next.get() < 0) {
      // O_DIRECTORY hides on some systems that it is a link.
      const int error = errno;
      struct stat st{};
      const bool is_link = error == ENOTDIR &&
                           ::fstatat(at, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0 &&
                           S_ISLNK(st.st_mode);
      errno = is_link ? ELOOP : error;
      return -1;
    }
    if (is_last) return next.release();
    here = std::move(next);
    from = slash + 1;
  }
}

const char* kind_of(mode_t mode) {
  if (S_ISLNK(mode)) return "a link";
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISFIFO(mode)) return "a named pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

Status check_names(std::string_view below, const std::string& shown) {
  for (size_t from = 0; from <= below.size();) {
    const size_t slash = std::min(below.find('/', from), below.size());
    const std::string_view name = below.substr(from, slash - from);
    if (name.empty() || name == "." || name == ".." || name.find('\0') != name.npos) {
      return Error{Code::kInvalidArgument, shown + ": not a path below a directory"};
    }
    from = slash + 1;
  }
  return {};
}

Error walk_error(int error_number, const std::string& shown, const std::string& root) {
  if (error_number == ELOOP || error_number == EXDEV) {
    return {Code::kPermission,
            fmt::format("{}: is behind a link; no link below {} is followed", shown, root)};
  }
  return errno_error(error_number, shown);
}

}  // namespace

struct RootedDirectory::Entry {
  Descriptor opened;  // unless the directory is the root itself
  int directory = -1;
  std::string name;
  std::string shown;

  Status status(int result, const char* what) const {
    if (result == 0) return {};
    return errno_error(errno, fmt::format("{}: {}", shown, what));
  }
  // Checked first, because opening a device already does things; what is put in its place in
  // between is found by the check of what was opened.
  Status check_regular(const struct stat& st, bool for_writing) const {
    if (!S_ISREG(st.st_mode)) {
      return Error{Code::kPermission, fmt::format("{}: is {}, not a regular file; left alone",
                                                  shown, kind_of(st.st_mode))};
    }
    if (for_writing && st.st_nlink > 1) {
      return Error{Code::kPermission, fmt::format("{}: has {} names (hard links) and would change "
                                                  "under all of them; a copy can be written to",
                                                  shown, st.st_nlink)};
    }
    return {};
  }
};

Result<RootedDirectory> RootedDirectory::open(const std::string& path, Lookup lookup) {
  Descriptor fd(openat_retrying(AT_FDCWD, path.c_str(), kWalk));
  if (fd.get() < 0) return errno_error(errno, path + ": open directory");
  return RootedDirectory(path, std::move(fd), lookup);
}

std::string RootedDirectory::path_of(std::string_view below) const {
  std::string path = path_;
  if (below.empty()) return path;
  if (!path.ends_with('/')) path += '/';
  return path.append(below);
}

// `below` has one component at least, and no ".."; `shown` is what the message names.
Result<Descriptor> RootedDirectory::descend(std::string_view below, int flags,
                                            const std::string& shown) const {
  const std::string path(below);
  std::optional<int> fd;
  if (lookup_ == Lookup::kKernel) fd = open_below(fd_.get(), path, flags);
  if (!fd) fd = walk_below(fd_.get(), path, flags);
  if (*fd < 0) return walk_error(errno, shown, path_);
  return Descriptor(*fd);
}

Result<RootedDirectory::Entry> RootedDirectory::entry(std::string_view below) const {
  Entry entry;
  entry.shown = path_of(below);
  COLLECT_TRY(check_names(below, entry.shown));
  const size_t slash = below.rfind('/');
  entry.name = below.substr(slash == below.npos ? 0 : slash + 1);
  entry.directory = fd_.get();
  if (slash == below.npos) return entry;
  auto parent = descend(below.substr(0, slash), kWalk, entry.shown);
  if (!parent.ok()) return parent.error();
  entry.opened = std::move(*parent);
  entry.directory = entry.opened.get();
  return entry;
}

mode_t RootedDirectory::file_mode() const {
  struct stat root{};
  if (::fstat(fd_.get(), &root) != 0) return kOwnerFile;
  const bool for_group = (root.st_mode & S_IRGRP) != 0 && (root.st_mode & S_IRWXO) == 0;
  return for_group ? kGroupFile : kOwnerFile;
}

Result<Descriptor> RootedDirectory::open_file(std::string_view below, FileUse use) const {
  const auto found = entry(below);
  if (!found.ok()) return found.error();
  const Entry& file = *found;
  const bool for_writing = use == FileUse::kWrite || use == FileUse::kAppend;
  const bool is_private = use == FileUse::kCreatePrivate;
  const bool is_new = use == FileUse::kCreate || is_private;
  struct stat st{};
  if (!is_new) {
    if (::fstatat(file.directory, file.name.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0) {
      COLLECT_TRY(file.check_regular(st, for_writing));
    } else if (errno != ENOENT || use == FileUse::kRead || use == FileUse::kWrite) {
      return errno_error(errno, file.shown + ": open");
    }
  }
  int flags = O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  flags |= use == FileUse::kRead ? O_RDONLY : O_RDWR;
  if (is_new) flags |= O_CREAT | O_EXCL;
  if (use == FileUse::kAppend) flags |= O_CREAT | O_APPEND;
  if (use == FileUse::kLock) flags |= O_CREAT;
  const mode_t mode = is_private ? S_IRUSR | S_IWUSR : file_mode();
  Descriptor fd(openat_retrying(file.directory, file.name.c_str(), flags, mode));
  if (fd.get() < 0) {
    if (errno == ELOOP) return walk_error(errno, file.shown, path_);
    return errno_error(errno, file.shown + ": open");
  }
  if (::fstat(fd.get(), &st) != 0) return errno_error(errno, file.shown + ": open");
  COLLECT_TRY(file.check_regular(st, for_writing));
  // Only the opening must not wait.
  const int kept = use == FileUse::kAppend ? O_APPEND : 0;
  if (::fcntl(fd.get(), F_SETFL, kept) != 0) return errno_error(errno, file.shown + ": open");
  return fd;
}

Result<Descriptor> RootedDirectory::open_directory(std::string_view below, int flags) const {
  const std::string shown = path_of(below);
  if (!below.empty()) {
    COLLECT_TRY(check_names(below, shown));
    return descend(below, flags, shown);
  }
  Descriptor fd(openat_retrying(fd_.get(), ".", flags));
  if (fd.get() < 0) return errno_error(errno, shown + ": open directory");
  return fd;
}

Result<std::vector<std::string>> RootedDirectory::list(std::string_view below) const {
  auto fd = open_directory(below, kReadDirectory);
  if (!fd.ok()) return fd.error();
  DIR* const directory = ::fdopendir(fd->get());
  if (directory == nullptr) return errno_error(errno, path_of(below) + ": list");
  (void)fd->release();  // closedir() closes it
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* entry = ::readdir(directory)) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
    errno = 0;
  }
  const int error_number = errno;
  ::closedir(directory);
  if (error_number != 0) return errno_error(error_number, path_of(below) + ": list");
  std::sort(names.begin(), names.end());
  return names;
}

Result<struct stat> RootedDirectory::look_at(std::string_view below) const {
  struct stat st{};
  if (below.empty()) {
    if (::fstat(fd_.get(), &st) != 0) return errno_error(errno, path_);
    return st;
  }
  const auto found = entry(below);
  if (!found.ok()) return found.error();
  COLLECT_TRY(found->status(
      ::fstatat(found->directory, found->name.c_str(), &st, AT_SYMLINK_NOFOLLOW), "look at"));
  return st;
}

Status RootedDirectory::make_directory(std::string_view below) const {
  const auto made = entry(below);
  if (!made.ok()) return made.error();
  const mode_t readable = file_mode();
  const mode_t searchable = readable | ((readable & 0444) >> 2);  // x where there is r
  return made->status(::mkdirat(made->directory, made->name.c_str(), searchable), "make directory");
}

Status RootedDirectory::rename(std::string_view from, std::string_view to) const {
  const auto old_entry = entry(from);
  if (!old_entry.ok()) return old_entry.error();
  const auto new_entry = entry(to);
  if (!new_entry.ok()) return new_entry.error();
  const int result = ::renameat(old_entry->directory, old_entry->name.c_str(), new_entry->directory,
                                new_entry->name.c_str());
  if (result == 0) return {};
  return errno_error(errno, fmt::format("{}: rename to {}", old_entry->shown, new_entry->shown));
}

Status RootedDirectory::remove_file(std::string_view below) const {
  const auto gone = entry(below);
  if (!gone.ok()) return gone.error();
  return gone->status(::unlinkat(gone->directory, gone->name.c_str(), 0), "remove");
}

Status RootedDirectory::remove_directory(std::string_view below) const {
  const auto gone = entry(below);
  if (!gone.ok()) return gone.error();
  return gone->status(::unlinkat(gone->directory, gone->name.c_str(), AT_REMOVEDIR),
                      "remove directory");
}

Status RootedDirectory::sync(std::string_view below) const {
  const auto fd = open_directory(below, kReadDirectory);
  if (!fd.ok()) return fd.error();
  int rc = 0;
  do {
    rc = ::fsync(fd->get());
  } while (rc != 0 && errno == EINTR);
  // Some file systems have nothing to sync in a directory and say so by EINVAL.
  if (rc != 0 && errno != EINVAL) return errno_error(errno, path_of(below) + ": sync directory");
  return {};
}

Result<struct statvfs> RootedDirectory::file_system(std::string_view below) const {
  const auto fd = open_directory(below, kWalk);
  if (!fd.ok()) return fd.error();
  struct statvfs info{};
  if (::fstatvfs(fd->get(), &info) != 0) return errno_error(errno, path_of(below) + ": free space");
  return info;
}

Result<Descriptor> open_named_file(const std::string& path) {
  // Looked at before it is opened, and afterwards: see Entry::check_regular.
  struct stat st{};
  if (::stat(path.c_str(), &st) != 0) return errno_error(errno, path);
  if (!S_ISREG(st.st_mode)) return Error{Code::kInvalidArgument, path + ": not a file"};
  Descriptor fd(
      openat_retrying(AT_FDCWD, path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (fd.get() < 0) return errno_error(errno, path);
  if (::fstat(fd.get(), &st) != 0) return errno_error(errno, path);
  if (!S_ISREG(st.st_mode)) return Error{Code::kInvalidArgument, path + ": not a file"};
  return fd;
}

}  // namespace collect::storage
