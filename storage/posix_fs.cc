#include "storage/posix_fs.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace collect::storage {
namespace {

// How many parts go into one pwritev; Linux allows 1024, other systems no fewer.
constexpr size_t kPartsPerWrite = 1024;
#ifdef IOV_MAX
static_assert(kPartsPerWrite <= IOV_MAX);
#endif

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  int release() {
    const int fd = fd_;
    fd_ = -1;
    return fd;
  }

 private:
  int fd_;
};

int open_retrying(const std::string& path, int flags, mode_t mode = 0) {
  int fd = -1;
  do {
    fd = ::open(path.c_str(), flags | O_CLOEXEC, mode);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

int sync_retrying(int fd) {
  int rc = 0;
  do {
#ifdef __APPLE__
    rc = ::fcntl(fd, F_FULLFSYNC);  // fsync there leaves the data in the drive's cache
#else
    rc = ::fdatasync(fd);
#endif
  } while (rc != 0 && errno == EINTR);
  return rc;
}

class PosixFile final : public File {
 public:
  PosixFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}

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
        return errno_error(errno, path_ + ": write at " + std::to_string(offset));
      }
      if (wrote == 0) {
        return Error{Code::kIo, path_ + ": write at " + std::to_string(offset) + " took no bytes"};
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
        return errno_error(errno, path_ + ": read at " + std::to_string(offset + got));
      }
      if (n == 0) break;
      got += static_cast<size_t>(n);
    }
    return got;
  }

  Status truncate(uint64_t bytes) override {
    int rc = 0;
    do {
      rc = ::ftruncate(fd_.get(), static_cast<off_t>(bytes));
    } while (rc != 0 && errno == EINTR);
    if (rc != 0) return errno_error(errno, path_ + ": cut to " + std::to_string(bytes));
    return {};
  }

  Status sync() override {
    if (sync_retrying(fd_.get()) != 0) return errno_error(errno, path_ + ": sync");
    return {};
  }

 private:
  std::string path_;
  Descriptor fd_;
};

class PosixLock final : public FileLock {
 public:
  explicit PosixLock(int fd) : fd_(fd) {}

  bool holds(const std::string& path) const override {
    struct stat ours{};
    struct stat named{};
    return ::fstat(fd_.get(), &ours) == 0 && ::stat(path.c_str(), &named) == 0 &&
           ours.st_dev == named.st_dev && ours.st_ino == named.st_ino;
  }

 private:
  Descriptor fd_;
};

}  // namespace

Result<std::unique_ptr<File>> PosixFs::open(const std::string& path, OpenMode mode) {
  int flags = O_RDONLY;
  if (mode == OpenMode::kCreate) flags = O_RDWR | O_CREAT | O_EXCL;
  if (mode == OpenMode::kReadWrite) flags = O_RDWR;
  const int fd = open_retrying(path, flags, 0644);
  if (fd < 0) return errno_error(errno, path + ": open");
  return std::unique_ptr<File>(std::make_unique<PosixFile>(path, fd));
}

Status PosixFs::make_directory(const std::string& path) {
  if (::mkdir(path.c_str(), 0755) != 0) return errno_error(errno, path + ": make directory");
  return {};
}

Status PosixFs::rename(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) {
    return errno_error(errno, from + ": rename to " + to);
  }
  return {};
}

Status PosixFs::remove_file(const std::string& path) {
  if (::unlink(path.c_str()) != 0) return errno_error(errno, path + ": remove");
  return {};
}

Status PosixFs::remove_directory(const std::string& path) {
  if (::rmdir(path.c_str()) != 0) return errno_error(errno, path + ": remove directory");
  return {};
}

Status PosixFs::sync_directory(const std::string& path) {
  const Descriptor fd(open_retrying(path, O_RDONLY | O_DIRECTORY));
  if (fd.get() < 0) return errno_error(errno, path + ": open directory");
  int rc = 0;
  do {
    rc = ::fsync(fd.get());
  } while (rc != 0 && errno == EINTR);
  // Some file systems have nothing to sync in a directory and say so by EINVAL.
  if (rc != 0 && errno != EINVAL) return errno_error(errno, path + ": sync directory");
  return {};
}

Result<std::vector<std::string>> PosixFs::list_directory(const std::string& path) {
  DIR* directory = ::opendir(path.c_str());
  if (directory == nullptr) return errno_error(errno, path + ": list");
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* entry = ::readdir(directory)) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
    errno = 0;
  }
  const int error_number = errno;
  ::closedir(directory);
  if (error_number != 0) return errno_error(error_number, path + ": list");
  std::sort(names.begin(), names.end());
  return names;
}

bool PosixFs::exists(const std::string& path) {
  struct stat st{};
  return ::lstat(path.c_str(), &st) == 0;
}

Result<SpaceInfo> PosixFs::space(const std::string& path) {
  struct statvfs info{};
  if (::statvfs(path.c_str(), &info) != 0) return errno_error(errno, path + ": free space");
  SpaceInfo space;
  space.free_bytes = static_cast<uint64_t>(info.f_bavail) * info.f_frsize;
  space.total_bytes = static_cast<uint64_t>(info.f_blocks) * info.f_frsize;
  return space;
}

Result<std::unique_ptr<FileLock>> PosixFs::lock(const std::string& path) {
  Descriptor fd(open_retrying(path, O_RDWR | O_CREAT, 0644));
  if (fd.get() < 0) return errno_error(errno, path + ": open");
  int rc = 0;
  do {
    rc = ::flock(fd.get(), LOCK_EX | LOCK_NB);
  } while (rc != 0 && errno == EINTR);
  if (rc != 0) {
    if (errno == EWOULDBLOCK) return Error{Code::kUnavailable, path + ": held by another process"};
    return errno_error(errno, path + ": lock");
  }
  return std::unique_ptr<FileLock>(std::make_unique<PosixLock>(fd.release()));
}

}  // namespace collect::storage
