/* Does with an app's native library what Android's runtime does: loads it, calls JNI_OnLoad, and
 * then its code. `app_host LIBRARY FILE`: waits until the file exists before it ends. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void* find(void* library, const char* name) {
  void* found = dlsym(library, name);
  if (found == NULL) fprintf(stderr, "%s\n", dlerror());
  return found;
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  /* Deep: glibc, unlike Android's C library, has empty hooks of its own, which would come first. */
  void* library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
  if (library == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return 3;
  }
  int (*on_load)(void*, void*);
  unsigned (*work)(unsigned);
  void* found = find(library, "JNI_OnLoad");
  memcpy((void*)&on_load, &found, sizeof found);
  found = find(library, "example_work");
  memcpy((void*)&work, &found, sizeof found);
  if (on_load == NULL || work == NULL || on_load(NULL, NULL) != 0x00010006) return 4;
  printf("%u\n", work(10));
  fflush(stdout);
  const struct timespec pause = {0, 10000000};
  while (access(argv[2], F_OK) != 0) nanosleep(&pause, NULL);
  return 7;
}
