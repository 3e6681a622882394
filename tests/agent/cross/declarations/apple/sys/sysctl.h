/* Of Apple's SDK, what the agent uses. For a compile check. */
#pragma once
#include <stddef.h>
#ifdef __cplusplus
extern "C"
#endif
    int
    sysctlbyname(const char* name, void* old, size_t* old_bytes, void* fresh, size_t bytes);
