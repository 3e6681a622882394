#include "storage/read/gzip_file.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

namespace collect::read {
namespace {

constexpr uint8_t kMagic[2] = {0x1F, 0x8B};
constexpr size_t kInputBytes = 64 << 10;
constexpr size_t kOutputBytes = 256 << 10;
// zlib: the largest window, and a gzip head and tail around it.
constexpr int kGzipWindowBits = 15 + 16;

// One gzip file on its way into another file. Reads are bounded by two buffers, writes by the
// limit.
class Inflater {
 public:
  Inflater(int in, const std::string& path, InflateLimit limit)
      : in_(in),
        path_(path),
        limit_(std::move(limit)),
        input_(kInputBytes),
        output_(kOutputBytes) {}
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater() {
    if (open_) (void)::inflateEnd(&zlib_);
  }

  // kTruncated, kDamaged: `written()` bytes hold all the same.
  Status run(UnnamedFile& out) {
    if (::inflateInit2(&zlib_, kGzipWindowBits) != Z_OK) {
      return Error{Code::kExhausted, path_ + ": no memory to unpack it"};
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
  uint64_t written() const { return written_; }

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

  std::string behind_unpacked() const {
    return fmt::format(", behind {} bytes unpacked", written_);
  }

  Status member(UnnamedFile& out) {
    for (;;) {
      COLLECT_TRY(refill());
      const bool at_end = zlib_.avail_in == 0;
      zlib_.next_out = output_.data();
      zlib_.avail_out = static_cast<uInt>(output_.size());
      const int result = ::inflate(&zlib_, Z_NO_FLUSH);
      const Bytes unpacked(output_.data(), output_.size() - zlib_.avail_out);
      COLLECT_TRY(write(out, unpacked));
      if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR) {
        return Error{result == Z_MEM_ERROR ? Code::kExhausted : Code::kDamaged,
                     fmt::format("{}: the gzip data is damaged at offset {}{}{}", path_, position(),
                                 zlib_.msg != nullptr ? fmt::format(" ({})", zlib_.msg) : "",
                                 behind_unpacked())};
      }
      if (result == Z_STREAM_END) return {};
      if (at_end && unpacked.empty()) {
        return Error{Code::kTruncated, fmt::format("{}: the gzip data ends early, at offset {}{}",
                                                   path_, position(), behind_unpacked())};
      }
    }
  }

  // Whether the file continues with one. Zeros at the end are what tapes and block copies add.
  Result<bool> another_member() {
    COLLECT_TRY(refill());
    if (zlib_.avail_in == 0) return false;
    if (*zlib_.next_in == kMagic[0]) return true;
    const uint64_t from = position();
    while (zlib_.avail_in != 0) {
      const Bytes rest(zlib_.next_in, zlib_.avail_in);
      if (std::any_of(rest.begin(), rest.end(), [](uint8_t byte) { return byte != 0; })) {
        return Error{
            Code::kDamaged,
            fmt::format("{}: what follows the gzip data at offset {} is no gzip", path_, from)};
      }
      zlib_.avail_in = 0;
      COLLECT_TRY(refill());
    }
    return false;
  }

  Status write(UnnamedFile& out, Bytes bytes) {
    if (bytes.size() > limit_.bytes - written_) {
      return Error{Code::kLimit,
                   fmt::format("{}: more than {} bytes when unpacked ({}); unpack it with gzip -dc "
                               "where there is room for it, and name what comes out",
                               path_, limit_.bytes, limit_.why)};
    }
    written_ += bytes.size();
    return out.write(bytes);
  }

  const int in_;
  const std::string& path_;
  const InflateLimit limit_;
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

InflateLimit inflate_limit(uint64_t packed_bytes, uint64_t free_bytes,
                           const std::string& directory) {
  InflateLimit limit{kMaxInflatedBytes, "the most that is unpacked on the way"};
  if (packed_bytes <= kMaxInflatedBytes / kMaxInflateRatio) {
    const uint64_t by_ratio = std::max(kAlwaysInflatedBytes, packed_bytes * kMaxInflateRatio);
    limit = {by_ratio, by_ratio == kAlwaysInflatedBytes
                           ? "much for so small a file"
                           : fmt::format("{} times its size", kMaxInflateRatio)};
  }
  const uint64_t by_space = free_bytes / kInflateFreeShare;
  if (by_space < limit.bytes) limit = {by_space, "half of what is free in " + directory};
  return limit;
}

Result<Inflated> inflate_gzip(int fd, const std::string& path, uint64_t max_bytes) {
  struct stat packed{};
  if (::fstat(fd, &packed) != 0) return errno_error(errno, path);
  const std::string directory = temporary_directory();
  auto file = UnnamedFile::create(directory);
  if (!file.ok()) return file.error();
  const auto free_bytes = file->free_bytes();
  if (!free_bytes.ok()) return free_bytes.error();
  InflateLimit limit = inflate_limit(static_cast<uint64_t>(packed.st_size), *free_bytes, directory);
  if (max_bytes < limit.bytes) limit = {max_bytes, "the most that is unpacked on the way"};
  Inflater inflater(fd, path, std::move(limit));
  const Status whole = inflater.run(*file);
  if (whole.ok()) return Inflated{std::move(*file), ""};
  const bool is_cut = whole.code() == Code::kTruncated || whole.code() == Code::kDamaged;
  if (!is_cut || inflater.written() == 0) return whole.error();
  return Inflated{std::move(*file), whole.error().message};
}

}  // namespace collect::read
