/* Linked with the agent, as a program that may be started with raised rights. Says by its exit code
 * how it found the agent: 42 when it runs with raised rights and nothing of the agent is there, 0
 * when it does not run with raised rights, else which check failed. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>

#include "collect/agent.h"

static int volatile called;

__attribute__((noinline)) static void work(void) {
  called = called + 1;
}

/* Tasks of this process: the agent's thread would be one. */
static int tasks(void) {
  int count = 0;
  DIR* directory = opendir("/proc/self/task");
  if (directory == NULL) return 1; /* not ours to look at: the process is not dumpable */
  for (struct dirent* entry = readdir(directory); entry != NULL; entry = readdir(directory)) {
    if (entry->d_name[0] != '.') ++count;
  }
  closedir(directory);
  return count;
}

int main(void) {
  for (int i = 0; i < 1000; ++i) work();
  if (getauxval(AT_SECURE) == 0) return 0;
  if (tasks() != 1) return 1;
  collect_agent_stats stats;
  memset(&stats, 0, sizeof stats);
  stats.struct_bytes = sizeof stats;
  collect_agent_get_stats(&stats);
  if (stats.recording || stats.recorded != 0 || stats.buffer_bytes != 0) return 2;
  /* What the program itself asks for is refused too. */
  collect_agent_options options;
  memset(&options, 0, sizeof options);
  options.struct_bytes = sizeof options;
  options.listen = "tcp:0";
  if (collect_agent_start(&options) != COLLECT_AGENT_PRIVILEGED) return 3;
  if (strstr(collect_agent_status(), "raised privileges") == NULL) return 4;
  collect_agent_get_stats(&stats);
  if (stats.recording || stats.buffer_bytes != 0 || tasks() != 1) return 5;
  collect_agent_stop(0);
  return called == 1000 ? 42 : 6;
}
