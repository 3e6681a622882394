#include "daemon/ctl/record/processes/local_process.h"

#include <fmt/core.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace collect::ctl {

LocalProcess::LocalProcess(pid_t pid)
    : name_(fmt::format("process {}", pid)),
      handle_(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))),
      ended_(handle_ < 0) {}

LocalProcess::~LocalProcess() {
  if (handle_ >= 0) ::close(handle_);
}

void LocalProcess::work_for(std::chrono::milliseconds time) {
  pollfd descriptor{handle_, POLLIN, 0};
  // Readable once it has ended, a zombie included.
  if (!ended_ && ::poll(&descriptor, 1, static_cast<int>(time.count())) > 0) ended_ = true;
}

}  // namespace collect::ctl
