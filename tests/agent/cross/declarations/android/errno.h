/* bionic's own name for where errno is. */
#include_next <errno.h>
#undef errno
#ifdef __cplusplus
extern "C" {
#endif
int* __errno(void);
#ifdef __cplusplus
}
#endif
#define errno (*__errno())
