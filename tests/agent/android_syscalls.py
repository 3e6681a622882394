#!/usr/bin/env python3
"""Whether Android lets its apps make each system call that the agent makes: a call that it does not ends
the app. Usage: android_syscalls.py AGENT_FOLDER

The facts are those of AOSP's platform/bionic (android14 and later), for 64-bit apps: libc/SYSCALLS.TXT,
without libc/SECCOMP_BLOCKLIST_APP.TXT and SECCOMP_BLOCKLIST_COMMON.TXT, with
libc/SECCOMP_ALLOWLIST_COMMON.TXT and SECCOMP_ALLOWLIST_APP.TXT. What is not here was not looked up."""

import pathlib
import re
import sys

SYSCALLS_TXT = """
    accept4 bind chdir clock_gettime close connect dup3 exit_group faccessat fcntl fstat ftruncate geteuid
    getpeername getpid getppid getrandom getrusage getsockname getsockopt kill listen madvise mmap mprotect
    mremap munmap nanosleep newfstatat openat ppoll prctl pread64 prlimit64 pwrite64 read readlinkat recvfrom
    sched_yield sendmsg sendto setsockopt sigaltstack socket tgkill uname unlinkat write"""
ALLOWLIST_COMMON = "futex gettid membarrier"
ALLOWLIST_APP = "renameat"

# Not for Android: agent/CMakeLists.txt.
OTHER_SYSTEMS = ("drain/drain_process.*", "drain/drain_process_memory.*", "drain/ship/traced_process.*",
                 "drain/switches/switch_rings.cc", "run_records.*", "dynamic/attach.*", "platform/*_apple.*")


def main():
    folder = pathlib.Path(sys.argv[1])
    allowed = set(" ".join((SYSCALLS_TXT, ALLOWLIST_COMMON, ALLOWLIST_APP)).split())
    found = set()
    left_out = {pattern: set(folder.glob(pattern)) for pattern in OTHER_SYSTEMS}
    findings = [f"{pattern} is the name of no file" for pattern, files in left_out.items() if not files]
    for path in sorted([*folder.rglob("*.cc"), *folder.rglob("*.h")]):
        name = path.relative_to(folder).as_posix()
        if any(path in files for files in left_out.values()):
            continue
        for call in re.findall(r"\bSYS_(\w+)", path.read_text()):
            found.add(call)
            if call not in allowed:
                findings.append(f"{name} makes the system call {call}, which Android forbids its apps")
    for call in sorted(allowed - found):
        findings.append(f"nothing makes the system call {call}")
    for finding in sorted(set(findings)):
        print(finding)
    print(f"{len(found)} system calls")
    return 1 if findings or not found else 0


if __name__ == "__main__":
    sys.exit(main())
