// collect-planner: reads a path from standard input, writes the patch plan of that file to standard
// output. Started by collectctl, of no use by hand.
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <new>

#include "daemon/patch/planner/planner.h"
#include "daemon/patch/planner_answer.h"
#include "daemon/symbolize/exit_codes.h"
#include "daemon/symbolize/lookup/confine.h"

namespace collect::patch {
namespace {

bool write_all(Bytes bytes) {
  while (!bytes.empty()) {
    const ssize_t wrote = ::write(STDOUT_FILENO, bytes.data(), bytes.size());
    if (wrote <= 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(wrote));
  }
  return true;
}

Result<std::string> read_path() {
  std::string path;
  std::array<char, 4096> block;
  while (true) {
    const ssize_t got = ::read(STDIN_FILENO, block.data(), block.size());
    if (got < 0) return errno_error(errno, "request");
    if (got == 0) return path;
    path.append(block.data(), static_cast<size_t>(got));
    if (path.size() >= PATH_MAX) return Error{Code::kLimit, "its path is too long"};
  }
}

// Mapped: one that is cut meanwhile ends this process and no other.
Result<Bytes> map_file(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return errno_error(errno, path);
  struct stat status{};
  if (::fstat(fd, &status) != 0) return errno_error(errno, path);
  if (!S_ISREG(status.st_mode)) return Error{Code::kUnsupported, "it is no file"};
  const auto bytes = static_cast<uint64_t>(status.st_size);
  if (bytes > kMaxPlannedFile) return Error{Code::kLimit, "it is too large"};
  if (bytes == 0) return Error{Code::kUnsupported, "it is empty"};
  void* const memory = ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, fd, 0);
  if (memory == MAP_FAILED) return errno_error(errno, path);
  return Bytes(static_cast<const uint8_t*>(memory), bytes);
}

int serve() {
  if (!symbolize::limit_process().ok()) return symbolize::kExitNotConfined;
  const Result<std::string> path = read_path();
  if (!path.ok()) return symbolize::kExitBadRequest;
  const Result<Bytes> file = map_file(*path);
  ::close(STDIN_FILENO);
  (void)symbolize::limit_system_calls();
  const Result<std::vector<uint8_t>> plan =
      file.ok() ? make_plan(*file) : Result<std::vector<uint8_t>>(file.error());
  const bool wrote = write_all(plan.ok() ? *plan : refusal_bytes(plan.error()));
  return wrote ? symbolize::kExitDone : symbolize::kExitNoReader;
}

}  // namespace
}  // namespace collect::patch

int main() {
  ::signal(SIGPIPE, SIG_IGN);
  try {
    return collect::patch::serve();
  } catch (const std::bad_alloc&) {
    return collect::symbolize::kExitNoMemory;
  }
}
