/* Of Apple's SDK, what the agent uses. For a compile check. */
#pragma once
#include_next <stdlib.h>

#ifdef __cplusplus
extern "C"
#endif
    void
    arc4random_buf(void* out, size_t bytes);
