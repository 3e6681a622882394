#include "daemon/ctl/session_files.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <system_error>
#include <tuple>
#include <utility>

#include "daemon/ctl/gzip_file.h"

namespace collect::ctl {
namespace {

namespace fs = std::filesystem;

// "thread_12" -> 12.
std::optional<uint32_t> number_after(const std::string& name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return std::nullopt;
  uint32_t number = 0;
  const char* end = name.data() + name.size();
  const auto parsed = std::from_chars(name.data() + prefix.size(), end, number);
  if (parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  return number;
}

std::optional<uint32_t> thread_number(const fs::path& directory) {
  return number_after(directory.filename().string(), "thread_");
}

struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

TraceThread open_thread(uint32_t n, const fs::path& index, const fs::path& detail) {
  TraceThread thread;
  thread.n = n;
  thread.index_path = index.string();
  thread.detail_path = detail.string();
  auto index_bytes = FileBytes::open(thread.index_path);
  if (index_bytes) {
    thread.index = std::move(index_bytes).value();
  } else {
    thread.error = index_bytes.error();
  }
  auto detail_bytes = FileBytes::open(thread.detail_path);
  if (detail_bytes) {
    thread.detail = std::move(detail_bytes).value();
  } else if (detail_bytes.code() != Code::kNotFound && !thread.error) {
    thread.error = detail_bytes.error();
  }
  return thread;
}

void read_manifest(Trace& trace, const fs::path& directory) {
  trace.manifest_path = (directory / "manifest.json").string();
  auto file = FileBytes::open(trace.manifest_path);
  if (!file) {
    trace.manifest_error = file.error();
  } else if (file->bytes().size() > kMaxManifestBytes) {
    trace.manifest_error = Error{Code::kLimit, trace.manifest_path + ": larger than " +
                                                   std::to_string(kMaxManifestBytes) + " bytes"};
  } else {
    const Bytes bytes = file->bytes();
    trace.manifest.emplace(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
}

bool is_thread_directory(const fs::path& directory) {
  std::error_code ignored;
  return fs::exists(directory / "index.atf", ignored) ||
         fs::exists(directory / "detail.atf", ignored);
}

bool is_session_directory(const fs::path& directory) {
  std::error_code error;
  // A bundle's manifest stands above its sessions; a session's own lists threads or lies beside
  // them.
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    if (thread_number(it->path()) && it->is_directory(error)) return true;
  }
  return number_after(directory.filename().string(), "pid_") &&
         fs::exists(directory / "manifest.json", error);
}

Result<Trace> open_session(const fs::path& directory, std::string choice) {
  Trace trace;
  trace.kind = TraceKind::kSession;
  trace.path = directory.string();
  trace.choice = std::move(choice);
  std::vector<std::pair<uint32_t, fs::path>> found;
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    if (const auto n = thread_number(it->path())) found.emplace_back(*n, it->path());
  }
  if (error) return errno_error(error.value(), trace.path);
  std::sort(found.begin(), found.end());
  for (const auto& [n, path] : found) {
    trace.threads.push_back(open_thread(n, path / "index.atf", path / "detail.atf"));
  }
  read_manifest(trace, directory);
  return trace;
}

struct FoundSession {
  std::string stamp;     // "YYYYMMDD_HHMMSS" of the nearest session_… above, or empty
  uint32_t attempt = 0;  // N of session_…_N
  fs::file_time_type written;
  fs::path path;
  auto key() const { return std::tie(stamp, attempt, written, path); }
};

FoundSession describe(const fs::path& directory) {
  FoundSession session;
  session.path = directory;
  std::error_code ignored;
  session.written = fs::last_write_time(directory, ignored);
  constexpr size_t kStampLength = 15;
  for (const fs::path& part : directory) {
    const std::string name = part.string();
    if (!name.starts_with("session_") || name.size() < 8 + kStampLength) continue;
    session.stamp = name.substr(8, kStampLength);
    session.attempt = number_after(name.substr(8 + kStampLength), "_").value_or(1);
  }
  return session;
}

Result<Trace> open_newest_below(const fs::path& directory) {
  std::vector<FoundSession> found;
  std::error_code error;
  size_t visited = 0;
  fs::recursive_directory_iterator it(directory, fs::directory_options::skip_permission_denied,
                                      error);
  for (const fs::recursive_directory_iterator end; !error && it != end; it.increment(error)) {
    if (it->is_symlink() || !it->is_directory()) continue;
    if (++visited > kMaxSearchedDirectories) break;
    if (is_session_directory(it->path())) {
      found.push_back(describe(it->path()));
      it.disable_recursion_pending();
    } else if (it.depth() >= kMaxSearchDepth) {
      it.disable_recursion_pending();
    }
  }
  if (found.empty()) {
    return Error{Code::kNotFound, directory.string() + ": no session in it"};
  }
  const auto newest = std::max_element(
      found.begin(), found.end(),
      [](const FoundSession& a, const FoundSession& b) { return a.key() < b.key(); });
  const std::string which = found.size() == 1
                                ? "the only session"
                                : "the newest of " + std::to_string(found.size()) + " sessions";
  return open_session(newest->path,
                      newest->path.string() + " is " + which + " in " + directory.string());
}

bool begins_with(Bytes content, const uint8_t (&magic)[4]) {
  return content.size() >= 4 && std::equal(std::begin(magic), std::end(magic), content.begin());
}

Result<Trace> open_file(const fs::path& file) {
  Trace trace;
  trace.path = file.string();
  auto bytes = FileBytes::open(trace.path);
  if (!bytes) return bytes.error();
  const Bytes content = bytes->bytes();
  const fs::path directory = file.parent_path();
  TraceThread thread;
  thread.n = thread_number(fs::absolute(file).parent_path()).value_or(0);
  if (begins_with(content, atf::kDetailMagic)) {
    trace.kind = TraceKind::kDetailFile;
    thread.detail_path = trace.path;
    thread.detail = std::move(bytes).value();
    thread.index_path = (directory / "index.atf").string();
  } else {
    trace.kind =
        begins_with(content, atf::kIndexMagic) ? TraceKind::kIndexFile : TraceKind::kUnknownFile;
    thread.index_path = trace.path;
    thread.index = std::move(bytes).value();
    thread.detail_path = (directory / "detail.atf").string();
    if (auto beside = FileBytes::open(thread.detail_path)) {
      thread.detail = std::move(beside).value();
    }
  }
  trace.threads.push_back(std::move(thread));
  read_manifest(trace, fs::absolute(file).parent_path().parent_path());
  return trace;
}

}  // namespace

FileBytes::~FileBytes() {
  if (mapping_ != nullptr) ::munmap(const_cast<uint8_t*>(mapping_), size_);
}

void FileBytes::swap(FileBytes& other) noexcept {
  std::swap(mapping_, other.mapping_);
  std::swap(size_, other.size_);
  copy_.swap(other.copy_);
}

Result<FileBytes> FileBytes::open(const std::string& path) {
  // Not blocking: a named pipe in the place of a file is refused below, not waited for.
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.fd < 0) return errno_error(errno, path);
  auto own = take(file.fd, path);
  if (!own.ok() || !looks_like_gzip(own->bytes())) return own;
  const auto inflated = inflate_gzip(file.fd, path);
  if (!inflated.ok()) return inflated.error();
  const Descriptor unnamed{*inflated};
  return take(unnamed.fd, path);
}

// The file's bytes as they are; they do not need the descriptor any more.
Result<FileBytes> FileBytes::take(int fd, const std::string& path) {
  struct stat status{};
  if (::fstat(fd, &status) != 0) return errno_error(errno, path);
  if (!S_ISREG(status.st_mode)) return Error{Code::kInvalidArgument, path + ": not a file"};
  FileBytes result;
  const auto size = static_cast<uint64_t>(status.st_size);
  if (size > kMaxCopiedBytes) {
    void* at = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (at == MAP_FAILED) return errno_error(errno, path);
    // Everything here reads front to back; a larger read-ahead is a hint that may fail.
    (void)::madvise(at, size, MADV_SEQUENTIAL);
    result.mapping_ = static_cast<const uint8_t*>(at);
    result.size_ = size;
    return result;
  }
  result.copy_.resize(size);
  size_t done = 0;
  while (done < size) {
    const ssize_t got =
        ::pread(fd, result.copy_.data() + done, size - done, static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_error(errno, path);
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  result.copy_.resize(done);
  return result;
}

std::vector<atf::ThreadFiles> Trace::files(const std::vector<uint32_t>& only) const {
  std::vector<atf::ThreadFiles> files;
  for (const TraceThread& thread : threads) {
    if (!only.empty() && std::find(only.begin(), only.end(), thread.n) == only.end()) continue;
    atf::ThreadFiles file{thread.n, thread.index.bytes(), {}};
    if (thread.detail) file.detail = thread.detail->bytes();
    files.push_back(file);
  }
  return files;
}

Result<Trace> open_trace(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) return errno_error(errno, path);
  // Without a trailing slash, so that filename() is the directory's own name.
  fs::path place = fs::path(path).lexically_normal();
  if (!place.has_filename()) place = place.parent_path();
  if (!S_ISDIR(status.st_mode)) return open_file(place);
  if (::access(path.c_str(), R_OK | X_OK) != 0) return errno_error(errno, path);
  if (place == ".") place = fs::current_path();
  if (is_thread_directory(place)) {
    Trace trace;
    trace.kind = TraceKind::kThread;
    trace.path = place.string();
    trace.threads.push_back(
        open_thread(thread_number(place).value_or(0), place / "index.atf", place / "detail.atf"));
    read_manifest(trace, fs::absolute(place).parent_path());
    return trace;
  }
  if (is_session_directory(place)) return open_session(place, "");
  return open_newest_below(place);
}

}  // namespace collect::ctl
