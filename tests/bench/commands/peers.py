#!/usr/bin/python3
"""Runs programs under recorders, in rotating order, and prints one table: peers.sh says which.

    peers.py WORK [--rounds N] [--program NAME]…

The first round warms files and memory, and is not counted. Wall time and CPU seconds are medians,
beside the program without instrumentation and with our hooks alone, into a ring that is overwritten and
that no one reads, in the same round: less than that no recorder of ours can take.
"""

import argparse
import json
import mmap
import os
import re
import shutil
import statistics
import subprocess
import sys
import time

ROOT = os.getcwd()
sys.path.insert(0, os.path.join(ROOT, "tests/bench"))
import machine  # pylint: disable=wrong-import-position

BIN = os.path.join(ROOT, "build/release/bin")
LIB = os.path.join(ROOT, "build/release/lib")
TICKS = os.sysconf("SC_CLK_TCK")
MADV_POPULATE_WRITE = 23


def busy_seconds():
    """CPU seconds of the whole machine: user, nice, system, irq, softirq."""
    with open("/proc/stat") as stat:
        fields = [int(word) for word in stat.readline().split()[1:]]
    return (fields[0] + fields[1] + fields[2] + fields[5] + fields[6]) / TICKS


def run(command, **more):
    return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True, errors="replace", **more)


def bytes_below(folder):
    return sum(os.path.getsize(os.path.join(where, name))
               for where, _, names in os.walk(folder) for name in names)


class Recorder:
    """record(program, folder) runs it; result(folder) is (bytes, kept, lost), each None if unknown."""

    traced = True

    def __init__(self, name, *options):
        self.name, self.options = name, options
        self.said = None

    def missing(self):
        return None

    def begin(self):
        pass

    def end(self):
        pass


class Untraced(Recorder):
    traced = False

    def record(self, program, folder):
        return run(program).returncode == 0

    def result(self, folder):
        return None, None, None


class HooksAlone(Recorder):
    """Its address is one at which no one listens. An agent that is off would be faster: its log says so."""

    def record(self, program, folder):
        done = run(program, env={**os.environ, "LD_PRELOAD": LIB + "/libcollect_agent.so", "COLLECT_LOG": "1",
                                 "COLLECT_FULL": "overwrite", "COLLECT_CONNECT": "127.0.0.1:1"})
        return done.returncode == 0 and ": starting" in done.stderr and "agent is off" not in done.stderr

    def result(self, folder):
        return None, None, None


class Ours(Recorder):
    def record(self, program, folder):
        done = run([BIN + "/collectctl", "run", "--json", "-o", folder, *self.options, "--", *program])
        self.said = json.loads(done.stderr.strip().splitlines()[-1])
        return done.returncode == 0

    def result(self, folder):
        sessions = self.said["sessions"]
        number = lambda key: sum(int(session.get(key, 0)) for session in sessions)
        return bytes_below(folder), number("events"), number("lost_events")


class Uftrace(Recorder):
    RECORD_BYTES = 16

    def missing(self):
        return None if shutil.which("uftrace") else "uftrace"

    def record(self, program, folder):
        done = run(["uftrace", "record", "--no-pager", "--no-libcall", "-d", folder, *self.options,
                    *program])
        self.said = done.stderr
        return done.returncode == 0

    def result(self, folder):
        records = sum(os.path.getsize(os.path.join(folder, name)) // self.RECORD_BYTES
                      for name in os.listdir(folder) if re.fullmatch(r"\d+\.dat", name))
        lost = sum(int(number) for number in re.findall(r"LOST (\d+)|lost (\d+)", self.said)
                   for number in number if number)
        return bytes_below(folder), records, lost


class Lttng(Recorder):
    PRELOAD = "liblttng-ust-cyg-profile.so.1"

    def missing(self):
        return None if shutil.which("lttng") and shutil.which("lttng-sessiond") else "lttng"

    def begin(self):
        self.own = subprocess.run(["pgrep", "-x", "lttng-sessiond"],
                                  stdout=subprocess.DEVNULL).returncode != 0
        if self.own:
            self.daemon = subprocess.Popen(["lttng-sessiond", "--quiet"], stdin=subprocess.DEVNULL,
                                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            for _ in range(100):
                if run(["lttng", "--no-sessiond", "list"]).returncode == 0:
                    return
                time.sleep(0.1)

    def end(self):
        if self.own:
            self.daemon.terminate()
            self.daemon.wait()

    def record(self, program, folder):
        lttng = lambda *words: run(["lttng", "--no-sessiond", *words]).returncode == 0
        begun = lttng("create", "peers", "--output", folder) and lttng(
            "enable-channel", "-u", "all", *self.options) and lttng(
            "enable-event", "-u", "-c", "all", "lttng_ust_cyg_profile:*") and lttng("start")
        done = run(program, env={**os.environ, "LD_PRELOAD": self.PRELOAD})
        lttng("stop")
        listed = subprocess.run(["lttng", "--no-sessiond", "list", "peers"], capture_output=True,
                                text=True).stdout
        lost = [int(number) for number in re.findall(r"Discarded events: (\d+)", listed)]
        # LTTng's own count has been seen to wrap round.
        self.said = sum(lost) if lost and max(lost) < 1 << 62 else None
        lttng("destroy", "peers")
        return begun and done.returncode == 0

    def result(self, folder):
        return bytes_below(folder), None, self.said


RECORDERS = [
    Untraced("untraced"),
    HooksAlone("hooks alone"),
    Ours("collectctl run"),
    Ours("collectctl run --when-full drop", "--when-full", "drop"),
    Uftrace("uftrace record"),
    Lttng("lttng (as shipped)"),
    Lttng("lttng (8 x 4 MB, waits)", "--subbuf-size=4M", "--num-subbuf=8", "--blocking-timeout=inf"),
]
PROGRAMS = {
    "lua": [os.path.join(ROOT, "tests/bench/programs/peers.lua")],
    "json": ["1", "4"],
}


def warm_memory():
    """Has memory touched and free: a virtual machine pays for its first use (warm_memory.h)."""
    with mmap.mmap(-1, 2 << 30, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        memory.madvise(MADV_POPULATE_WRITE)


def measure(recorder, program, folder):
    shutil.rmtree(folder, ignore_errors=True)
    os.sync()
    warm_memory()
    begin, busy = time.monotonic(), busy_seconds()
    whole = recorder.record(program, folder)
    wall, cpu = time.monotonic() - begin, busy_seconds() - busy
    stored, kept, lost = recorder.result(folder) if whole else (None, None, None)
    shutil.rmtree(folder, ignore_errors=True)
    return {"whole": whole, "wall": wall, "cpu": cpu, "bytes": stored, "kept": kept, "lost": lost}


def median(rounds, key):
    values = [one[key] for one in rounds if one[key] is not None]
    return statistics.median(values) if values else None


def ratio(rounds, base, key):
    pairs = [one[key] / other[key] for one, other in zip(rounds, base) if other[key] > 0]
    return statistics.median(pairs) if pairs else float("nan")


def bytes_an_event(rounds):
    each = [one["bytes"] / one["kept"] for one in rounds if one["bytes"] and one["kept"]]
    return f"{statistics.median(each):.2f}" if each else "-"


def show(name, recorders, results):
    print(f"\n{name}: medians of {len(results[0])} rounds, in rotating order")
    print(f"  {'':32} {'wall s':>8} {'x untr.':>8} {'x hooks':>8} {'CPU s':>8} {'MB':>8} {'events kept':>13} "
          f"{'lost':>13} {'B/event':>8}")
    for recorder, rounds in zip(recorders, results):
        failed = sum(not one["whole"] for one in rounds)
        if failed:
            print(f"  {recorder.name:32} failed in {failed} of {len(rounds)} rounds")
            continue
        cell = lambda key, form: "-" if median(rounds, key) is None else form(median(rounds, key))
        print(f"  {recorder.name:32} {median(rounds, 'wall'):8.2f} "
              f"{ratio(rounds, results[0], 'wall'):8.1f} {ratio(rounds, results[1], 'wall'):8.2f} "
              f"{median(rounds, 'cpu'):8.2f} "
              f"{cell('bytes', lambda value: f'{value / 1e6:.0f}'):>8} "
              f"{cell('kept', lambda value: f'{value:,.0f}'):>13} "
              f"{cell('lost', lambda value: f'{value:,.0f}'):>13} {bytes_an_event(rounds):>8}")
    by_name = {recorder.name: rounds for recorder, rounds in zip(recorders, results)}
    ours, theirs = by_name["collectctl run"], by_name.get("uftrace record")
    if theirs and all(one["whole"] for one in ours + theirs):
        print(f"  collectctl run / uftrace record, paired: wall {ratio(ours, theirs, 'wall'):.2f}, "
              f"CPU {ratio(ours, theirs, 'cpu'):.2f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("work")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--program", action="append")
    given = parser.parse_args()
    print(f"{machine.processors()}; {machine.costs()}")
    recorders = []
    for recorder in RECORDERS:
        if missing := recorder.missing():
            print(f"left out: {recorder.name}; {missing} is not installed")
        else:
            recorders.append(recorder)
    names = given.program or sorted(name[:-len(".traced")] for name in os.listdir(given.work)
                                    if name.endswith(".traced"))
    folder = os.path.join(given.work, "traces")
    for recorder in recorders:
        recorder.begin()
    try:
        for name in names:
            base = os.path.join(given.work, name)
            if not os.path.exists(base + ".traced"):
                sys.exit(f"peers.py: there is no program {name}")
            words = PROGRAMS[name.split("-")[0]]
            results = [[] for _ in recorders]
            for turn in range(given.rounds + 1):
                for step in range(len(recorders)):
                    at = (turn + step) % len(recorders)
                    program = [base + (".traced" if recorders[at].traced else ".plain"), *words]
                    results[at].append(measure(recorders[at], program, folder))
            show(name, recorders, [rounds[1:] for rounds in results])
    finally:
        for recorder in recorders:
            recorder.end()
        shutil.rmtree(folder, ignore_errors=True)


main()
