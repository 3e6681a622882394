"""What figures of this machine depend on: processors, and what the kernel takes for a page and a call."""
import mmap
import os
import pathlib
import platform
import re
import tempfile
import time

PAGE = mmap.PAGESIZE
PAGES = 16384
CALLS = 200_000


def seconds(work):
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def write_pages(memory):
    for offset in range(0, len(memory), PAGE):
        memory[offset] = 1


def read_pages(memory):
    for offset in range(0, len(memory), PAGE):
        memory[offset]  # pylint: disable=pointless-statement


def times(call):
    for _ in range(CALLS):
        call()


def first_over_second(work, memory):
    """Seconds for each page that its first use takes more than its second: the fault, not the loop."""
    with memory:
        first = seconds(lambda: work(memory))
        return max(0, first - seconds(lambda: work(memory))) / (len(memory) // PAGE)


def fault_of_memory():
    return first_over_second(write_pages, mmap.mmap(-1, PAGES * PAGE, flags=mmap.MAP_PRIVATE))


def fault_of_file():
    with tempfile.TemporaryFile() as file:
        file.write(bytes(PAGES * PAGE))
        file.flush()
        return first_over_second(read_pages, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def system_call():
    return (seconds(lambda: times(os.getppid)) - seconds(lambda: times(bool))) / CALLS


def cpuinfo(key):
    """What /proc/cpuinfo says of the first processor; None if it does not."""
    try:
        text = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    found = re.search(rf"^{key}\s*:\s*(.*)$", text, re.M)
    return found[1] if found else None


def processors():
    model = cpuinfo("model name") or platform.processor() or platform.machine()
    return f"{os.cpu_count()} × {model}, Linux {platform.release()}"


def costs():
    """The first try touches memory that the machine may never have used."""
    cold, warm = fault_of_memory(), min(fault_of_memory() for _ in range(3))
    return (f"a page of memory takes {warm * 1e6:.2f} µs when it is first used ({cold * 1e6:.2f} at the first try), "
            f"a mapped page of a file {min(fault_of_file() for _ in range(3)) * 1e6:.2f}, "
            f"a system call {min(system_call() for _ in range(3)) * 1e6:.2f}")
