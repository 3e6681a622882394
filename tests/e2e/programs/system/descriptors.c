/* Programs that take hold of descriptors. `descriptors MODE DIRECTORY`:
 *   close_range  closes 3 and up with one system call, then opens its own files
 *   close_loop   the same with close() one by one, as old daemons do
 *   dup_over     puts its own files onto every descriptor number from 3 to 1023
 *   few          a limit of 20 descriptors: the program can open as many as without the agent
 *   lowest       the lowest free descriptor is what POSIX says it is
 * Traced calls go on before, between and after, and its files must hold what it wrote, and only
 * that.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FILES 64

static uint32_t step(uint32_t value) {
  return value * 22695477u + 1u;
}

static uint32_t work(uint32_t rounds) {
  uint32_t value = 1;
  for (uint32_t i = 0; i < rounds; ++i) value = step(value);
  return value;
}

/* Long enough that the agent's own thread meets what was done to its descriptors. */
static void work_a_while(void) {
  for (int i = 0; i < 40; ++i) {
    (void)work(2000);
    usleep(5000);
  }
}

static int check_file(const char* path, int number) {
  char content[4096];
  char expected[64];
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 1;
  ssize_t length = read(fd, content, sizeof content);
  close(fd);
  int wanted = snprintf(expected, sizeof expected, "file %d, and nothing else\n", number);
  if (length != wanted || memcmp(content, expected, (size_t)wanted) != 0) {
    printf("file %d holds %zd bytes that are not its own\n", number, length);
    return 1;
  }
  return 0;
}

static int open_own_files(const char* directory) {
  int fds[FILES];
  char path[4096];
  int wrong = 0;
  for (int i = 0; i < FILES; ++i) {
    snprintf(path, sizeof path, "%s/own_%d", directory, i);
    fds[i] = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (fds[i] < 0) return 1;
    if (i == 0) printf("first own descriptor %d\n", fds[i]);
  }
  work_a_while();
  for (int i = 0; i < FILES; ++i) {
    if (dprintf(fds[i], "file %d, and nothing else\n", i) < 0) ++wrong;
  }
  work_a_while();
  for (int i = 0; i < FILES; ++i) wrong += close(fds[i]) != 0;
  for (int i = 0; i < FILES; ++i) {
    snprintf(path, sizeof path, "%s/own_%d", directory, i);
    wrong += check_file(path, i);
    unlink(path);
  }
  printf("own files untouched: %s\n", wrong == 0 ? "yes" : "no");
  return wrong;
}

static void close_everything(int one_by_one) {
  if (!one_by_one) {
    syscall(SYS_close_range, 3u, ~0u, 0u);
    return;
  }
  for (int fd = 3; fd < (int)sysconf(_SC_OPEN_MAX) && fd < 1 << 20; ++fd) close(fd);
}

static int dup_over(const char* directory) {
  char path[4096];
  snprintf(path, sizeof path, "%s/over", directory);
  int file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_APPEND, 0600);
  if (file < 0) return 1;
  for (int fd = 3; fd < 1024; ++fd) {
    if (fd != file && dup2(file, fd) != fd) return 1;
  }
  work_a_while();
  if (dprintf(1023, "one line\n") < 0) return 1;
  work_a_while();
  struct stat status;
  if (fstat(file, &status) != 0) return 1;
  printf("one file on every descriptor holds %lld bytes\n", (long long)status.st_size);
  unlink(path);
  return status.st_size == 9 ? 0 : 1;
}

static int few(void) {
  struct rlimit limit;
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = 20;
  setrlimit(RLIMIT_NOFILE, &limit);
  work_a_while();
  int fds[64];
  int opened = 0;
  while (opened < 64 && (fds[opened] = open("/dev/null", O_RDONLY)) >= 0) ++opened;
  printf("opened %d, then: %s\n", opened,
         errno == EMFILE ? "no more descriptors" : "another error");
  work_a_while();
  while (opened > 0) close(fds[--opened]);
  return 0;
}

static int lowest(void) {
  work_a_while();
  int first = open("/dev/null", O_RDONLY);
  int second = open("/dev/null", O_RDONLY);
  close(first);
  int again = open("/dev/null", O_RDONLY);
  printf("descriptors %d %d %d\n", first, second, again);
  return 0;
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const char* mode = argv[1];
  work_a_while();
  if (strcmp(mode, "few") == 0) return few();
  if (strcmp(mode, "lowest") == 0) return lowest();
  if (strcmp(mode, "dup_over") == 0) return dup_over(argv[2]);
  close_everything(strcmp(mode, "close_loop") == 0);
  work_a_while();
  return open_own_files(argv[2]);
}
