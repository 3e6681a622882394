"""From which API level on Android's 64-bit C library has the functions that the agent uses.

The facts are those of AOSP's platform/bionic: libc/libc.map.txt, libdl/libdl.map.txt and, for functions
of API 24 and later, docs/status.md. What is not here was not looked up: add it with its level.
"""

SOURCE = "tests/agent/bionic_symbols.py"

# 21 is the first that has 64-bit processors.
LEVELS = {
    21: """
        __cxa_atexit __cxa_finalize __errno __stack_chk_fail __system_property_get _setjmp abort accept
        access android_set_abort_message bind clock_gettime close connect dl_iterate_phdr dladdr dlclose dlerror
        dlopen dlsym environ exit fcntl free freeaddrinfo fstat ftruncate getaddrinfo getauxval getenv
        geteuid getpeername getpid getppid getrlimit getrusage getsockname getsockopt gettid htonl htons
        inet_pton listen lstat madvise memchr memcmp memcpy memmove memset mmap mprotect
        mremap munmap nanosleep ntohl ntohs open poll pread prctl pthread_atfork pthread_attr_destroy
        pthread_attr_getstacksize pthread_attr_init pthread_attr_setdetachstate pthread_attr_setstacksize pthread_create pthread_getspecific pthread_join pthread_key_create
        pthread_self pthread_setname_np pthread_setspecific pthread_sigmask pwrite read readlink realloc
        recv rename sched_yield send sendmsg setsockopt sigaltstack sigfillset socket stat strchr strcmp
        strlen strncmp strnlen strrchr syscall sysconf tgkill uname unlink write
        __FD_CLR_chk __FD_ISSET_chk __FD_SET_chk __memcpy_chk __memmove_chk __memset_chk __open_2 __read_chk
        __strchr_chk __strlen_chk __strrchr_chk""",
    23: """
        __memchr_chk __poll_chk __pread_chk __readlink_chk __register_atfork stderr""",
    24: "__pwrite_chk __write_chk in6addr_any in6addr_loopback",
    26: "__sendto_chk",
    28: "getrandom",
    29: "__tls_get_addr android_get_device_api_level",
    30: "memfd_create statx",
}
# The compiler's own, of a static library that the NDK links in.
COMPILERS = "__clear_cache __udivti3 __umodti3"


def since(name):
    """The API level, 1 for the compiler's own functions, None if no one looked it up."""
    if name in COMPILERS.split():
        return 1
    return next((level for level, names in LEVELS.items() if name in names.split()), None)
