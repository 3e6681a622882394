/* Preloaded into programs that an emulator runs: to the agent, threads of the emulator itself are
 * threads of the program, in which it then changes no code. A folder of one thread has three links.
 */
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

int stat(const char* path, struct stat* status) {
  const int result = (int)syscall(SYS_newfstatat, -100 /* AT_FDCWD */, path, status, 0);
  if (result == 0 && strcmp(path, "/proc/self/task") == 0) status->st_nlink = 3;
  return result;
}
