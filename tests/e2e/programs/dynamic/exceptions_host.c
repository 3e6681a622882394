/* A program without a C++ library, which opens one that throws and catches, three times:
 * `exceptions_host LIBRARY`. Nothing of C++ is in the global scope. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char** argv) {
  for (int i = 0; i < 3; ++i) {
    void* library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    if (library == NULL) return 1;
    void* found = dlsym(library, "f_guest");
    void (*guest)(int);
    memcpy((void*)&guest, &found, sizeof found);
    guest(2);
    dlclose(library);
  }
  puts("done");
  return 0;
}
