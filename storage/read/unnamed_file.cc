#include "storage/read/unnamed_file.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

namespace collect::read {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 20;

}  // namespace

std::string temporary_directory() {
  std::error_code ignored;
  const std::string directory = std::filesystem::temp_directory_path(ignored).string();
  return directory.empty() ? "/tmp" : directory;
}

Result<Descriptor> open_unnamed(const std::string& directory) {
#ifdef O_TMPFILE
  Descriptor fd(::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (fd.get() >= 0) return fd;
#endif
  // Not every file system has O_TMPFILE.
  std::string path = directory + "/collectctl-XXXXXX";
  Descriptor named(::mkostemp(path.data(), O_CLOEXEC));
  if (named.get() < 0) return errno_error(errno, directory + ": a temporary file");
  if (::unlink(path.c_str()) != 0) return errno_error(errno, path + ": remove");
  return named;
}

Result<UnnamedFile> UnnamedFile::create(const std::string& directory) {
  auto file = open_unnamed(directory);
  if (!file.ok()) return file.error();
  return UnnamedFile(std::move(*file), directory);
}

UnnamedFile::UnnamedFile(UnnamedFile&& other) noexcept
    : fd_(std::move(other.fd_)),
      directory_(std::move(other.directory_)),
      buffer_(std::move(other.buffer_)) {}

Status UnnamedFile::write(Bytes bytes) {
  if (buffer_.size() + bytes.size() > kBufferBytes) COLLECT_TRY(drain());
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  return buffer_.size() >= kBufferBytes ? drain() : Status();
}

Status UnnamedFile::drain() {
  size_t done = 0;
  while (done < buffer_.size()) {
    const ssize_t wrote = ::write(fd_.get(), buffer_.data() + done, buffer_.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return errno_error(errno, directory_ + ": a temporary file");
    done += static_cast<size_t>(wrote);
  }
  buffer_.clear();
  return {};
}

Result<FileBytes> UnnamedFile::bytes() {
  COLLECT_TRY(drain());
  return FileBytes::of(fd_.get(), directory_ + ": a temporary file");
}

Status UnnamedFile::sync() {
  COLLECT_TRY(drain());
  if (::fdatasync(fd_.get()) == 0) return {};
  return errno_error(errno, directory_ + ": a temporary file");
}

Result<uint64_t> UnnamedFile::free_bytes() const {
  struct statvfs info{};
  if (::fstatvfs(fd_.get(), &info) != 0) return errno_error(errno, directory_ + ": free space");
  return static_cast<uint64_t>(info.f_bavail) * info.f_frsize;
}

}  // namespace collect::read
