#include "daemon/ctl/convert/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace collect::ctl {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 20;
constexpr mode_t kMode = 0666;  // less the umask, like every new file

}  // namespace

Result<OutputFile> OutputFile::create(const std::string& path, bool replace) {
  struct stat status{};
  if (!replace && ::lstat(path.c_str(), &status) == 0) {
    return Error{Code::kAlreadyExists, path + ": is there already; --force replaces it"};
  }
  std::string temporary = path + ".XXXXXX";
  const int fd = ::mkostemp(temporary.data(), O_CLOEXEC);
  if (fd < 0) return errno_error(errno, path);
  const mode_t mask = ::umask(0);
  (void)::umask(mask);
  (void)::fchmod(fd, kMode & ~mask);  // as readable as other files; a failure leaves it private
  return OutputFile(path, std::move(temporary), fd);
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::move(other.temporary_)),
      fd_(std::exchange(other.fd_, -1)),
      size_(other.size_),
      buffer_(std::move(other.buffer_)) {}

OutputFile::~OutputFile() {
  if (fd_ < 0) return;
  (void)::close(fd_);
  (void)::unlink(temporary_.c_str());
}

Status OutputFile::write(Bytes bytes) {
  if (buffer_.size() + bytes.size() > kBufferBytes) COLLECT_TRY(drain());
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  return buffer_.size() >= kBufferBytes ? drain() : Status();
}

Status OutputFile::drain() {
  size_t done = 0;
  while (done < buffer_.size()) {
    const ssize_t wrote = ::write(fd_, buffer_.data() + done, buffer_.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return errno_error(errno, path_);
    done += static_cast<size_t>(wrote);
  }
  size_ += buffer_.size();
  buffer_.clear();
  return {};
}

Status OutputFile::commit() {
  COLLECT_TRY(drain());
  if (::fsync(fd_) != 0) return errno_error(errno, path_);
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) return errno_error(errno, path_);
  (void)::close(std::exchange(fd_, -1));
  return {};
}

}  // namespace collect::ctl
