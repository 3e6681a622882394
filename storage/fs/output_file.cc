#include "storage/fs/output_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <random>
#include <utility>

namespace collect::storage {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 20;
constexpr mode_t kMode = 0666;  // less the umask, like every new file
constexpr int kNameTries = 16;
// To write into a directory takes no right to read it, where the system knows that.
#ifdef O_PATH
constexpr int kDirectory = O_PATH | O_DIRECTORY | O_CLOEXEC;
#else
constexpr int kDirectory = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
#endif

std::string temporary_name(const std::string& name) {
  std::random_device random;
  return fmt::format("{}.{}", name, random());
}

}  // namespace

Result<OutputFile> OutputFile::create(const std::string& path, bool replace) {
  OutputFile file(path, replace);
  COLLECT_TRY(file.open());
  return file;
}

Status OutputFile::open() {
  const std::filesystem::path whole(path_);
  name_ = whole.filename().string();
  if (name_.empty() || name_ == "." || name_ == "..") {
    return Error{Code::kInvalidArgument, path_ + ": is no name for a file"};
  }
  const std::string parent = whole.parent_path().string();
  directory_ = Descriptor(::open(parent.empty() ? "." : parent.c_str(), kDirectory));
  if (directory_.get() < 0) return errno_error(errno, path_);
  struct stat there{};
  if (::fstatat(directory_.get(), name_.c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0) {
    if (!replace_) {
      return Error{Code::kAlreadyExists, path_ + ": is there already; --force replaces it"};
    }
    if (!S_ISREG(there.st_mode) && !S_ISLNK(there.st_mode)) {
      return Error{Code::kAlreadyExists, path_ + ": is there already, and is no file to replace"};
    }
  }
#ifdef O_TMPFILE
  // The name is given through /proc.
  if (::access("/proc/self/fd", X_OK) == 0) {
    fd_ = Descriptor(::openat(directory_.get(), ".", O_TMPFILE | O_RDWR | O_CLOEXEC, kMode));
    if (fd_.get() >= 0) return {};
  }
#endif
  for (int i = 1;; ++i) {
    const Status made = make_temporary([&](const std::string& name) {
      fd_ = Descriptor(::openat(directory_.get(), name.c_str(),
                                O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kMode));
      return fd_.get() >= 0;
    });
    if (made.ok() || made.code() != Code::kAlreadyExists || i == kNameTries) return made;
  }
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : path_(std::move(other.path_)),
      replace_(other.replace_),
      directory_(std::move(other.directory_)),
      name_(std::move(other.name_)),
      temporary_(std::exchange(other.temporary_, {})),
      leftover_(std::move(other.leftover_)),
      fd_(std::move(other.fd_)),
      size_(other.size_),
      buffer_(std::move(other.buffer_)) {}

OutputFile::~OutputFile() {
  if (!temporary_.empty()) (void)::unlinkat(directory_.get(), temporary_.c_str(), 0);
}

// Calls `make` with a new name; when that succeeds, the file has it until forget_temporary().
Status OutputFile::make_temporary(const std::function<bool(const std::string&)>& make) {
  const std::string name = temporary_name(name_);
  auto made = Leftover::made_by([&]() -> Result<std::string> {
    if (!make(name)) return errno_error(errno, path_);
    return (std::filesystem::path(path_).parent_path() / name).string();
  });
  if (!made.ok()) return made.error();
  leftover_ = std::move(*made);
  temporary_ = name;
  return {};
}

void OutputFile::forget_temporary() {
  temporary_.clear();
  leftover_.keep();
}

Status OutputFile::write(Bytes bytes) {
  if (buffer_.size() + bytes.size() > kBufferBytes) COLLECT_TRY(drain());
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  return buffer_.size() >= kBufferBytes ? drain() : Status();
}

Status OutputFile::drain() {
  size_t done = 0;
  while (done < buffer_.size()) {
    const ssize_t wrote = ::write(fd_.get(), buffer_.data() + done, buffer_.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return errno_error(errno, path_);
    done += static_cast<size_t>(wrote);
  }
  size_ += buffer_.size();
  buffer_.clear();
  return {};
}

// Gives the file one more name; never in place of another file.
int OutputFile::link_to(const std::string& name) const {
  if (!temporary_.empty()) {
    return ::linkat(directory_.get(), temporary_.c_str(), directory_.get(), name.c_str(), 0);
  }
  const std::string open_file = fmt::format("/proc/self/fd/{}", fd_.get());
  return ::linkat(AT_FDCWD, open_file.c_str(), directory_.get(), name.c_str(), AT_SYMLINK_FOLLOW);
}

Status OutputFile::give_name() {
  if (link_to(name_) == 0) return {};
  const bool is_there = errno == EEXIST;
  if (is_there && !replace_) return errno_error(EEXIST, path_);
  // It replaces what is there, or the file system has no hard links.
  for (int i = 1; temporary_.empty(); ++i) {
    const Status made = make_temporary([&](const std::string& name) { return link_to(name) == 0; });
    if (!made.ok() && (made.code() != Code::kAlreadyExists || i == kNameTries)) return made;
  }
  const int renamed =
      ::renameat(directory_.get(), temporary_.c_str(), directory_.get(), name_.c_str());
  return renamed == 0 ? Status() : Status(errno_error(errno, path_));
}

Status OutputFile::commit() {
  COLLECT_TRY(drain());
  if (::fsync(fd_.get()) != 0) return errno_error(errno, path_);
  COLLECT_TRY(give_name());
  if (!temporary_.empty()) (void)::unlinkat(directory_.get(), temporary_.c_str(), 0);
  forget_temporary();
  fd_ = Descriptor();
  return {};
}

}  // namespace collect::storage
