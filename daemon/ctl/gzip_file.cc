#include "daemon/ctl/gzip_file.h"

#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

namespace collect::ctl {
namespace {

constexpr uint8_t kMagic[2] = {0x1F, 0x8B};
constexpr size_t kInputBytes = 64 << 10;
constexpr size_t kOutputBytes = 256 << 10;
// zlib: the largest window, and a gzip head and tail around it.
constexpr int kGzipWindowBits = 15 + 16;

Result<int> unnamed_file() {
  std::error_code ignored;
  std::string directory = std::filesystem::temp_directory_path(ignored).string();
  if (directory.empty()) directory = "/tmp";
  int fd = ::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (fd >= 0) return fd;
  // Not every file system has O_TMPFILE.
  std::string path = directory + "/collectctl-XXXXXX";
  fd = ::mkostemp(path.data(), O_CLOEXEC);
  if (fd < 0) return errno_error(errno, path);
  (void)::unlink(path.c_str());
  return fd;
}

// One gzip file on its way into another file. Reads are bounded by two buffers, writes by the
// limit.
class Inflater {
 public:
  Inflater(int in, const std::string& path, uint64_t max_bytes)
      : in_(in), path_(path), max_bytes_(max_bytes), input_(kInputBytes), output_(kOutputBytes) {}
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater() {
    if (open_) (void)::inflateEnd(&zlib_);
  }

  Status run(int out) {
    if (::inflateInit2(&zlib_, kGzipWindowBits) != Z_OK) {
      return Error{Code::kLimit, path_ + ": no memory to unpack it"};
    }
    open_ = true;
    for (;;) {
      COLLECT_TRY(member(out));
      const Result<bool> more = another_member();
      if (!more.ok()) return more.error();
      if (!*more) return {};
      (void)::inflateReset(&zlib_);
    }
  }

 private:
  // Makes sure that there is input, unless the file has ended.
  Status refill() {
    while (zlib_.avail_in == 0 && !ended_) {
      const ssize_t got = ::pread(in_, input_.data(), input_.size(), static_cast<off_t>(read_));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return errno_error(errno, path_);
      ended_ = got == 0;
      read_ += static_cast<uint64_t>(got);
      zlib_.next_in = input_.data();
      zlib_.avail_in = static_cast<uInt>(got);
    }
    return {};
  }

  uint64_t position() const { return read_ - zlib_.avail_in; }  // in the gzip file

  Status member(int out) {
    for (;;) {
      COLLECT_TRY(refill());
      if (zlib_.avail_in == 0) {
        return Error{Code::kTruncated, path_ + ": the gzip data end early, at offset " +
                                           std::to_string(position()) + ", behind " +
                                           std::to_string(written_) +
                                           " bytes unpacked; gzip -dc saves these"};
      }
      zlib_.next_out = output_.data();
      zlib_.avail_out = static_cast<uInt>(output_.size());
      const int result = ::inflate(&zlib_, Z_NO_FLUSH);
      if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR) {
        return Error{result == Z_MEM_ERROR ? Code::kLimit : Code::kDamaged,
                     path_ + ": the gzip data do not hold at offset " + std::to_string(position()) +
                         (zlib_.msg != nullptr ? std::string(": ") + zlib_.msg : "")};
      }
      COLLECT_TRY(write(out, {output_.data(), output_.size() - zlib_.avail_out}));
      if (result == Z_STREAM_END) return {};
    }
  }

  // Whether the file goes on with one. Zeros at the end are what tapes and block copies add.
  Result<bool> another_member() {
    COLLECT_TRY(refill());
    if (zlib_.avail_in == 0) return false;
    if (*zlib_.next_in == kMagic[0]) return true;
    const uint64_t from = position();
    while (zlib_.avail_in != 0) {
      const Bytes rest(zlib_.next_in, zlib_.avail_in);
      if (std::any_of(rest.begin(), rest.end(), [](uint8_t byte) { return byte != 0; })) {
        return Error{Code::kDamaged, path_ + ": what follows the gzip data at offset " +
                                         std::to_string(from) + " is no gzip"};
      }
      zlib_.avail_in = 0;
      COLLECT_TRY(refill());
    }
    return false;
  }

  Status write(int out, Bytes bytes) {
    if (bytes.size() > max_bytes_ - written_) {
      return Error{Code::kLimit, path_ + ": more than " + std::to_string(max_bytes_) +
                                     " bytes when unpacked; unpack it with gzip -dc where there "
                                     "is room for it"};
    }
    while (!bytes.empty()) {
      const ssize_t put = ::write(out, bytes.data(), bytes.size());
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) return errno_error(errno, path_ + ": unpacking into the temporary directory");
      written_ += static_cast<uint64_t>(put);
      bytes = bytes.subspan(static_cast<size_t>(put));
    }
    return {};
  }

  const int in_;
  const std::string& path_;
  const uint64_t max_bytes_;
  std::vector<uint8_t> input_;
  std::vector<uint8_t> output_;
  z_stream zlib_{};
  bool open_ = false;
  bool ended_ = false;
  uint64_t read_ = 0;
  uint64_t written_ = 0;
};

}  // namespace

bool looks_like_gzip(Bytes head) {
  return head.size() >= sizeof kMagic &&
         std::equal(std::begin(kMagic), std::end(kMagic), head.begin());
}

Result<int> inflate_gzip(int fd, const std::string& path, uint64_t max_bytes) {
  auto file = unnamed_file();
  if (!file.ok()) return file;
  const Status inflated = Inflater(fd, path, max_bytes).run(*file);
  if (inflated.ok()) return file;
  (void)::close(*file);
  return inflated.error();
}

}  // namespace collect::ctl
