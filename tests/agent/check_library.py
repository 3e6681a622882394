#!/usr/bin/env python3
"""What a guest may bring into someone else's process.
Usage: check_library.py LIBRARY [--tls] [--tools PREFIX] [--android API]"""

import argparse
import os
import re
import subprocess
import sys
import tempfile

import bionic_symbols

MAX_STRIPPED_BYTES = 300 * 1024
# With an OpenSSL inside, which names the program's allocator and streams and is kept from them at run
# time: e2e_agent_tls_test has a program that notices.
MAX_STRIPPED_TLS_BYTES = 6 * 1024 * 1024
# The loader and libgcc_s belong to every process; older C libraries keep threads apart.
ALLOWED_LIBRARIES = r"(libc|libpthread|libdl|ld-linux.*|libgcc_s)\.so\.\d+"
ANDROID_LIBRARIES = r"(libc|libdl)\.so"
# Pages of 16 KiB, which newer phones have.
ANDROID_SEGMENTS = 0x4000
# What others may see: the C API, the compiler's hooks, the functions that it replaces, and the way
# in for Android's runtime.
ALLOWED_EXPORTS = (r"collect_\w+|Agent_OnAttach|__cyg_profile_func_(enter|exit)|_exit|_Exit|dlclose|clone"
                   r"|pthread_setname_np|prctl|sigaltstack|_Unwind_SetIP|__cxa_begin_catch|_?longjmp|siglongjmp|__longjmp_chk")
# What the library may take from the C library, and why. All else it asks of the system itself
# (agent/platform/system.h), or has itself (agent/platform/memory_functions.cc): someone else may have
# taken the C library's place. Nothing of this is called by the drain, but where it says so.
ALLOWED_IMPORTS = {
    "put there by the compiler and the linker": """
        __cxa_finalize __cxa_atexit __gmon_start__ _ITM_deregisterTMCloneTable _ITM_registerTMCloneTable
        __stack_chk_fail __tls_get_addr""",
    "the calling thread's own variable; the drain's too": "__errno_location __errno",
    "what the loader and the environment say: at the start, and where code is changed or looked for": """
        getauxval __getauxval getenv environ __environ sysconf dl_iterate_phdr""",
    "at the start: a host name, when the address has one": "getaddrinfo freeaddrinfo inet_pton",
    "at the start: a thread, without the signals that the C library does not keep for itself": """
        pthread_create pthread_attr_init pthread_attr_destroy pthread_attr_setdetachstate
        pthread_attr_getstacksize pthread_attr_setstacksize pthread_sigmask sigfillset""",
    "at the start: to be called at fork, at the end of threads and of the process": """
        __register_atfork pthread_atfork pthread_key_create on_exit""",
    "in a thread's first event: where it is kept, and that its end is reported": """
        pthread_self pthread_setspecific gettid""",
    "the drain thread, when it is the last one: the end that the program would have had": "exit",
    "for the functions that the library replaces": "dlsym dlopen dlclose dladdr dlerror _setjmp abort",
    "Android's: its properties, and memory functions with a check of their own": """
        __system_property_get android_get_device_api_level android_set_abort_message __memchr_chk
        __memcpy_chk __memmove_chk __memset_chk __strchr_chk __strlen_chk __strrchr_chk""",
    "named by nanopb's decoder for pointer fields, of which wire.options makes none": "realloc free",
}


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def android_findings(library, tools, api, dynamic, imports):
    """What Android's linker wants of a library that an app may load late."""
    segments = run(tools + "readelf", "-l", "-W", library)
    alignments = [int(word, 16) for word in re.findall(r"^\s+LOAD\s.*\s(0x[0-9a-f]+)$", segments, re.M)]
    if not alignments:
        yield "has no segments"
    for alignment in alignments:
        if alignment != ANDROID_SEGMENTS:
            yield f"has a segment aligned to {alignment:#x}, not {ANDROID_SEGMENTS:#x}"
    if re.search(r"^\s+GNU_STACK\s.*\sRWE\s", segments, re.M):
        yield "has an executable stack"
    if "STATIC_TLS" in dynamic:
        yield "has thread-local variables for which there is no room after the start (STATIC_TLS)"
    if re.search(r"\((RPATH|RUNPATH)\)", dynamic):
        yield "has a search path of its own"
    for name in imports:
        since = bionic_symbols.since(name)
        if since is None:
            yield f"uses {name}, which {bionic_symbols.SOURCE} does not have"
        elif since > api:
            yield f"uses {name}, which Android has from API {since} on, not {api}"


def empty_bytes(segments):
    """Of the file, between what is loaded: where pages may have 64 KiB, linkers leave up to as much."""
    loaded = [(int(at, 16), int(size, 16)) for at, size in
              re.findall(r"^ +LOAD +(0x\w+) 0x\w+ 0x\w+ (0x\w+)", segments, re.MULTILINE)]
    return sum(after - (at + size) for (at, size), (after, _) in zip(loaded, loaded[1:]) if after > at + size)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("library")
    parser.add_argument("--tls", action="store_true", help="the library with an OpenSSL inside")
    parser.add_argument("--tools", default="", help="prefix of strip, nm and readelf")
    parser.add_argument("--android", type=int, metavar="API", help="it is for Android from this on")
    arguments = parser.parse_args()
    library, with_tls, tools = arguments.library, arguments.tls, arguments.tools
    max_bytes = MAX_STRIPPED_TLS_BYTES if with_tls else MAX_STRIPPED_BYTES
    findings = []

    with tempfile.TemporaryDirectory() as folder:
        stripped = os.path.join(folder, "stripped.so")
        run(tools + "strip", "-o", stripped, library)
        size = os.path.getsize(stripped) - empty_bytes(run(tools + "readelf", "-lW", stripped))
    if size >= max_bytes:
        findings.append(f"{size} bytes stripped, limit {max_bytes}")

    dynamic = run(tools + "readelf", "-d", "-W", library)
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic)
    allowed = ANDROID_LIBRARIES if arguments.android else ALLOWED_LIBRARIES
    findings += [f"needs {name}" for name in needed if not re.fullmatch(allowed, name)]
    for flag in ("NOW", "NODELETE"):
        if not re.search(rf"FLAGS_1.*\b{flag}\b", dynamic):
            findings.append(f"is not linked with -z {flag.lower()}")
    if "TEXTREL" in dynamic:
        findings.append("has text relocations")

    exports = re.findall(r"^\S+ \S (\S+)$", run(tools + "nm", "-D", "--defined-only", library), re.M)
    findings += [f"exports {name}" for name in exports if not re.fullmatch(ALLOWED_EXPORTS, name)]
    if "collect_agent_start" not in exports:
        findings.append("does not export collect_agent_start")

    imports = re.findall(r"\b[Uw] ([^\s@]+)", run(tools + "nm", "-D", "--undefined-only", library))
    if not with_tls:
        allowed_imports = " ".join(ALLOWED_IMPORTS.values()).split()
        if arguments.android:
            allowed_imports += bionic_symbols.COMPILERS.split()
        findings += [f"uses {name}" for name in imports if name not in allowed_imports]
    if arguments.android:
        findings += android_findings(library, tools, arguments.android, dynamic, imports)

    for finding in findings:
        print(f"{library}: {finding}")
    print(f"{size} bytes stripped, needs {', '.join(needed) or 'no library'}, {len(exports)} exports")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
