/* Of Apple's SDK, what the agent uses. For a compile check. */
#pragma once
#define pthread_setname_np pthread_setname_np_of_musl
#include_next <pthread.h>
#undef pthread_setname_np
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
int pthread_setname_np(const char* name);
int pthread_threadid_np(pthread_t thread, uint64_t* id);
#ifdef __cplusplus
}
#endif
