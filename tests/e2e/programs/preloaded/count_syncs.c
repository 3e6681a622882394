// Preloaded into a program: a byte goes into the file that COUNT_SYNCS_FILE names for each sync of
// a file's data that it asks for. The syncs themselves are done.
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static void count(void) {
  const char* const path = getenv("COUNT_SYNCS_FILE");
  if (path == NULL) return;
  const int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (file < 0) return;
  const ssize_t written = write(file, "s", 1);
  (void)written;
  close(file);
}

int fsync(int fd) {
  count();
  return (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd) {
  count();
  return (int)syscall(SYS_fdatasync, fd);
}
