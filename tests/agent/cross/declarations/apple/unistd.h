/* Of Apple's SDK, what the agent uses. For a compile check. */
#pragma once
#include_next <unistd.h>

#ifdef __cplusplus
extern "C"
#endif
    int
    getpeereid(int socket, uid_t* user, gid_t* group);
