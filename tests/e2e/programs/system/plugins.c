/* dlopen and dlclose of traced libraries, again and again. `plugins FIRST.so SECOND.so`. The two
 * may land at the same address in turn. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static int call(const char* path, const char* name, int rounds) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    printf("%s\n", dlerror());
    return -1;
  }
  void* symbol = dlsym(library, name);
  int (*work)(int) = NULL;
  memcpy((void*)&work, &symbol, sizeof symbol);
  int value = work(rounds);
  dlclose(library);
  return value;
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  int sum = 0;
  for (int i = 0; i < 20; ++i) {
    sum += call(argv[1], "first_work", 30 + i);
    sum += call(argv[2], "second_work", 50 + i);
  }
  printf("plugins worked: %d\n", sum);
  return 0;
}
