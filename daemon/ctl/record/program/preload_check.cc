#include "daemon/ctl/record/program/preload_check.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/ctl/record/program/elf_interpreter.h"

namespace collect::ctl {

std::string why_no_preload(const std::string& program) {
  const int file = ::open(program.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return {};
  struct stat status{};
  std::string why;
  if (::fstat(file, &status) == 0 && S_ISREG(status.st_mode)) {
    // A program of the caller's own gives no one other rights.
    if ((status.st_mode & S_ISUID) != 0 && status.st_uid != ::geteuid()) {
      why = "is set-user-id";
    } else if ((status.st_mode & S_ISGID) != 0 && status.st_gid != ::getegid()) {
      why = "is set-group-id";
    } else if (elf_interpreter(file) == "") {
      why = "is linked statically";
    }
  }
  ::close(file);
  return why;
}

}  // namespace collect::ctl
