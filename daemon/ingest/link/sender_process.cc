#include "daemon/ingest/link/sender_process.h"

#include <sys/stat.h>

#include "daemon/machine/process_stat.h"

namespace collect::ingest {
namespace {

uint64_t own_pid_namespace() {
  struct stat found{};
  return ::stat("/proc/self/ns/pid", &found) == 0 ? found.st_ino : 0;
}

}  // namespace

void SenderProcess::note(const wire::Hello& hello, bool is_local) {
  pid_ = 0;
  const uint64_t ours = own_pid_namespace();
  if (!is_local || ours == 0 || hello.pid_namespace() != ours || hello.sender_pid() == 0) return;
  const auto stat = read_process_stat(hello.sender_pid());
  if (!stat || stat->has_ended()) return;
  pid_ = hello.sender_pid();
  begin_ticks_ = stat->begin_ticks;
}

bool SenderProcess::is_gone() const {
  if (pid_ == 0) return false;
  const auto stat = read_process_stat(pid_);
  return !stat || stat->has_ended() || stat->begin_ticks != begin_ticks_;
}

}  // namespace collect::ingest
