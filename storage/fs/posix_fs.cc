#include "storage/fs/posix_fs.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <limits.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#ifdef __linux__
#include <linux/magic.h>
#include <sys/vfs.h>
#endif

#include <cerrno>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

namespace collect::storage {
namespace {

// How many parts go into one pwritev; Linux allows 1024, other systems no fewer.
constexpr size_t kPartsPerWrite = 1024;
#ifdef IOV_MAX
static_assert(kPartsPerWrite <= IOV_MAX);
#endif
// Nothing is set aside on a disk with less free than so many times that.
[[maybe_unused]] constexpr uint64_t kFreeOverAside = 64;
// A root that we make is its owner's alone; what leads to it is made like every directory.
constexpr mode_t kRootMode = 0700;
constexpr mode_t kParentMode = 0777;

// What a signal has interrupted is called again.
int retrying(const auto& call) {
  while (true) {
    const int rc = call();
    if (rc == 0 || errno != EINTR) return rc;
  }
}

int sync_retrying(int fd) {
#ifdef __APPLE__
  // fsync there leaves the data in the drive's cache.
  return retrying([fd] { return ::fcntl(fd, F_FULLFSYNC); });
#else
  return retrying([fd] { return ::fdatasync(fd); });
#endif
}

class PosixFile final : public File {
 public:
  PosixFile(std::string path, Descriptor fd) : path_(std::move(path)), fd_(std::move(fd)) {}

  const std::string& path() const override { return path_; }

  Result<uint64_t> size() override {
    struct stat st{};
    if (::fstat(fd_.get(), &st) != 0) return errno_error(errno, path_ + ": size");
    return static_cast<uint64_t>(st.st_size);
  }

  Status write_at(uint64_t offset, std::span<const Bytes> parts) override {
    iovec vectors[kPartsPerWrite];
    size_t next = 0;  // the first part that is not written whole
    size_t done = 0;  // bytes of it that are
    while (true) {
      size_t count = 0;
      for (size_t i = next; i < parts.size() && count < kPartsPerWrite; ++i) {
        const size_t skip = i == next ? done : 0;
        if (parts[i].size() == skip) continue;
        // pwritev takes its source without const but does not write to it.
        vectors[count].iov_base = const_cast<uint8_t*>(parts[i].data()) + skip;
        vectors[count].iov_len = parts[i].size() - skip;
        ++count;
      }
      if (count == 0) return {};
      const ssize_t wrote =
          ::pwritev(fd_.get(), vectors, static_cast<int>(count), static_cast<off_t>(offset));
      if (wrote < 0) {
        if (errno == EINTR) continue;
        return errno_error(errno, fmt::format("{}: write at {}", path_, offset));
      }
      if (wrote == 0) {
        return Error{Code::kIo, fmt::format("{}: write at {} took no bytes", path_, offset)};
      }
      offset += static_cast<uint64_t>(wrote);
      done += static_cast<size_t>(wrote);
      while (next < parts.size() && done >= parts[next].size()) done -= parts[next++].size();
    }
  }

  Result<size_t> read_at(uint64_t offset, MutableBytes out) override {
    size_t got = 0;
    while (got < out.size()) {
      const ssize_t n =
          ::pread(fd_.get(), out.data() + got, out.size() - got, static_cast<off_t>(offset + got));
      if (n < 0) {
        if (errno == EINTR) continue;
        return errno_error(errno, fmt::format("{}: read at {}", path_, offset + got));
      }
      if (n == 0) break;
      got += static_cast<size_t>(n);
    }
    return got;
  }

  Status truncate(uint64_t bytes) override {
    const auto length = static_cast<off_t>(bytes);
    if (retrying([&] { return ::ftruncate(fd_.get(), length); }) != 0) {
      return errno_error(errno, fmt::format("{}: cut to {}", path_, bytes));
    }
    return {};
  }

  void set_aside(uint64_t offset, uint64_t bytes) override {
#ifdef __linux__
    // Measured for ext4, which saves a quarter of the time of large writes so. tmpfs would take the
    // memory at once, and XFS sets blocks aside by itself.
    struct statfs status{};
    if (::fstatfs(fd_.get(), &status) != 0 || status.f_type != EXT4_SUPER_MAGIC) return;
    if (status.f_bavail * static_cast<uint64_t>(status.f_bsize) / kFreeOverAside < bytes) return;
    (void)::fallocate(fd_.get(), FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                      static_cast<off_t>(bytes));
#else
    (void)offset, (void)bytes;
#endif
  }

  Status sync() override {
    if (sync_retrying(fd_.get()) != 0) {
      Error error = errno_error(errno, path_ + ": sync");
      // Not retried after any error: the system has dropped the bytes.
      if (error.code == Code::kExhausted) error.code = Code::kIo;
      return error;
    }
    return {};
  }

 private:
  std::string path_;
  Descriptor fd_;
};

class PosixLock final : public FileLock {
 public:
  explicit PosixLock(Descriptor fd) : fd_(std::move(fd)) {}

  bool holds(const std::string& path) const override {
    struct stat ours{};
    struct stat named{};
    return ::fstat(fd_.get(), &ours) == 0 && ::lstat(path.c_str(), &named) == 0 &&
           ours.st_dev == named.st_dev && ours.st_ino == named.st_ino;
  }

 private:
  Descriptor fd_;
};

std::string without_slashes_at_end(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

// What of `path` is below `root`: empty for the root itself, absent for what is elsewhere.
std::optional<std::string_view> cut_prefix(std::string_view root, std::string_view path) {
  if (root.empty() || !path.starts_with(root)) return std::nullopt;
  path.remove_prefix(root.size());
  if (!path.empty() && root.back() != '/' && path.front() != '/') return std::nullopt;
  while (path.starts_with('/')) path.remove_prefix(1);
  return path;
}

}  // namespace

struct PosixFs::Entry {
  std::shared_ptr<const RootedDirectory> root;
  std::string below;
};

PosixFs::PosixFs(std::string root, Lookup lookup) : given_(std::move(root)), lookup_(lookup) {
  given_ = without_slashes_at_end(given_.empty() ? "." : std::move(given_));
  // Sessions are made and named below the absolute path.
  std::error_code error;
  root_ = without_slashes_at_end(std::filesystem::absolute(given_, error).lexically_normal());
  if (error) root_ = given_;
}

PosixFs::PosixFs(RootedDirectory root) : PosixFs(root.path()) {
  held_ = std::make_shared<const RootedDirectory>(std::move(root));
}

Result<PosixFs> PosixFs::hold(const std::string& root) {
  auto directory = RootedDirectory::open(PosixFs(root).root());
  if (!directory.ok()) return directory.error();
  return PosixFs(std::move(*directory));
}

std::optional<std::string_view> PosixFs::below_root(std::string_view path) const {
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  auto below = cut_prefix(root_, path);
  if (!below) below = cut_prefix(given_, path);
  if (!below && given_ == "." && !path.starts_with('/')) below = path;
  return below;
}

// Whether the path names the root or a directory that it is in: the user's own words.
bool PosixFs::is_way_to_root(std::string_view path) const {
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  if (path == "." && !given_.starts_with('/')) return true;
  return cut_prefix(path, root_).has_value() || cut_prefix(path, given_).has_value();
}

Result<PosixFs::Entry> PosixFs::entry_of(const std::string& path) const {
  const auto below = below_root(path);
  if (!below) {
    return Error{Code::kInvalidArgument, fmt::format("{}: is outside of {}", path, root_)};
  }
  if (held_ != nullptr) return Entry{held_, std::string(*below)};
  auto root = RootedDirectory::open(root_, lookup_);
  if (!root.ok()) return root.error();
  return Entry{std::make_shared<const RootedDirectory>(std::move(*root)), std::string(*below)};
}

Result<std::unique_ptr<File>> PosixFs::open(const std::string& path, OpenMode mode) {
  const auto entry = entry_of(path);
  if (!entry.ok()) return entry.error();
  FileUse use = FileUse::kRead;
  if (mode == OpenMode::kCreate) use = FileUse::kCreate;
  if (mode == OpenMode::kCreatePrivate) use = FileUse::kCreatePrivate;
  if (mode == OpenMode::kReadWrite) use = FileUse::kWrite;
  auto fd = entry->root->open_file(entry->below, use);
  if (!fd.ok()) return fd.error();
  return std::unique_ptr<File>(std::make_unique<PosixFile>(path, std::move(*fd)));
}

Status PosixFs::make_directory(const std::string& path) {
  if (!is_way_to_root(path)) {
    const auto entry = entry_of(path);
    return entry.ok() ? entry->root->make_directory(entry->below) : Status(entry.error());
  }
  if (held_ != nullptr) return Error{Code::kAlreadyExists, path + " is there already"};
  const mode_t mode = below_root(path) ? kRootMode : kParentMode;
  if (::mkdir(path.c_str(), mode) != 0) {
    return errno_error(errno, path + ": make directory");
  }
  return {};
}

Status PosixFs::rename(const std::string& from, const std::string& to) {
  const auto source = entry_of(from);
  if (!source.ok()) return source.error();
  const auto target = entry_of(to);
  if (!target.ok()) return target.error();
  return source->root->rename(source->below, target->below);
}

Status PosixFs::remove_file(const std::string& path) {
  const auto entry = entry_of(path);
  return entry.ok() ? entry->root->remove_file(entry->below) : Status(entry.error());
}

Status PosixFs::remove_directory(const std::string& path) {
  const auto entry = entry_of(path);
  return entry.ok() ? entry->root->remove_directory(entry->below) : Status(entry.error());
}

Status PosixFs::sync_directory(const std::string& path) {
  if (!below_root(path) && is_way_to_root(path)) {
    const auto parent = RootedDirectory::open(path, lookup_);
    return parent.ok() ? parent->sync("") : Status(parent.error());
  }
  const auto entry = entry_of(path);
  return entry.ok() ? entry->root->sync(entry->below) : Status(entry.error());
}

Result<std::vector<std::string>> PosixFs::list_directory(const std::string& path) {
  const auto entry = entry_of(path);
  if (!entry.ok()) return entry.error();
  return entry->root->list(entry->below);
}

bool PosixFs::exists(const std::string& path) {
  if (is_way_to_root(path)) {
    if (held_ != nullptr) return true;
    struct stat st{};
    return ::lstat(path.c_str(), &st) == 0;
  }
  const auto entry = entry_of(path);
  if (!entry.ok()) return false;
  const auto found = entry->root->look_at(entry->below);
  // What is behind a link is there; open() refuses it.
  return found.ok() || found.code() == Code::kPermission;
}

Result<SpaceInfo> PosixFs::space(const std::string& path) {
  const auto entry = entry_of(path);
  if (!entry.ok()) return entry.error();
  const auto info = entry->root->file_system(entry->below);
  if (!info.ok()) return info.error();
  SpaceInfo space;
  space.free_bytes = static_cast<uint64_t>(info->f_bavail) * info->f_frsize;
  space.total_bytes = static_cast<uint64_t>(info->f_blocks) * info->f_frsize;
  // Those that make inodes as they are needed (btrfs) say that they have none.
  if (info->f_files != 0) space.free_files = info->f_favail;
  return space;
}

Result<std::unique_ptr<FileLock>> PosixFs::lock(const std::string& path) {
  const auto entry = entry_of(path);
  if (!entry.ok()) return entry.error();
  auto fd = entry->root->open_file(entry->below, FileUse::kLock);
  if (!fd.ok()) return fd.error();
  if (retrying([&] { return ::flock(fd->get(), LOCK_EX | LOCK_NB); }) != 0) {
    if (errno == EWOULDBLOCK) return Error{Code::kUnavailable, path + ": held by another process"};
    return errno_error(errno, path + ": lock");
  }
  return std::unique_ptr<FileLock>(std::make_unique<PosixLock>(std::move(*fd)));
}

}  // namespace collect::storage
