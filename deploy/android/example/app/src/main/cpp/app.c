/* The native part of an app that starts the agent when Java loads it. */
#include <collect/agent.h>

#define EXPORTED __attribute__((visibility("default")))
#define JNI_1_6 0x00010006

static unsigned fibonacci(unsigned n) {
  return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

EXPORTED unsigned example_work(unsigned n) {
  return fibonacci(n);
}

/* static native int work(int n), of MainActivity. */
EXPORTED int Java_org_collectord_example_MainActivity_work(void* environment, void* type, int n) {
  (void)environment;
  (void)type;
  return (int)example_work((unsigned)n);
}

/* jint JNI_OnLoad(JavaVM*, void*). Its own call would come before the agent runs. */
EXPORTED __attribute__((no_instrument_function)) int JNI_OnLoad(void* vm, void* reserved) {
  (void)vm;
  (void)reserved;
  collect_agent_options options = {.struct_bytes = sizeof(collect_agent_options)};
  options.listen = "abstract:";        /* collect_agent_<pid> */
  (void)collect_agent_start(&options); /* what goes wrong costs the trace, not the app */
  return JNI_1_6;
}
