/* Preloaded into a program in the place of Android's runtime: when the file that ATTACH_AGENT names
 * appears, with LIBRARY=OPTIONS in it, loads the library and calls its Agent_OnAttach, in a thread
 * of its own, while the others run. What that returns is in the file ATTACH_AGENT.returned. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MAX_TEXT 65536
#define MAX_PATH 1024

static char text[MAX_TEXT];

static int attach(char* agent) {
  char* const options = strchr(agent, '=');
  if (options == NULL) return 100;
  *options = '\0';
  void* const library = dlopen(agent, RTLD_LAZY | RTLD_LOCAL);
  if (library == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return 101;
  }
  int (*on_attach)(void*, char*, void*);
  void* const found = dlsym(library, "Agent_OnAttach");
  if (found == NULL) return 102;
  memcpy((void*)&on_attach, &found, sizeof found);
  return on_attach(NULL, options + 1, NULL);
}

static void* await(void* unused) {
  (void)unused;
  const char* const path = getenv("ATTACH_AGENT");
  const struct timespec pause = {0, 10000000};
  while (access(path, F_OK) != 0) nanosleep(&pause, NULL);
  FILE* file = fopen(path, "r");
  if (file == NULL) return NULL;
  text[fread(text, 1, sizeof text - 1, file)] = '\0';
  fclose(file);
  const int returned = attach(text);
  char name[MAX_PATH];
  snprintf(name, sizeof name, "%s.returned", path);
  file = fopen(name, "w");
  if (file == NULL) return NULL;
  fprintf(file, "%d\n", returned);
  fclose(file);
  return NULL;
}

__attribute__((constructor)) static void begin(void) {
  pthread_t thread;
  if (getenv("ATTACH_AGENT") != NULL && pthread_create(&thread, NULL, await, NULL) == 0) {
    pthread_detach(thread);
  }
}
