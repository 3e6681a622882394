/* Linked statically: LD_PRELOAD does nothing for it, and nothing can be loaded into it. With an
 * argument it stays. */
#include <unistd.h>

int main(int argc, char** argv) {
  (void)argv;
  if (argc > 1) pause();
  return 0;
}
