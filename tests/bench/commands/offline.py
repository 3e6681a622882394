#!/usr/bin/env python3
"""How fast collectctl reads sessions: verify, report, dump and dump --json.

    tests/bench/commands/offline.py [--rounds N] [--million N] [--session PATH]… [COLLECTCTL]…
    tests/bench/commands/offline.py --packed …    # each session and a packed copy of it, in turn

COLLECTCTL are the programs to compare, in turn in each round; build/release/bin/collectctl by
default. Without --session one is recorded: one thread, N million events of few functions. Prints
medians: seconds, CPU seconds, million events and MB of output a second, and how much the last
program is faster than the first. The first round of each command warms the page cache and does not
count. Output goes to /dev/null.
"""
import argparse
import json
import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
COMMANDS = (("verify",), ("report",), ("dump",), ("dump", "--json"))


def recorded(program, million, directory):
    loop = pathlib.Path(program).parent / "bench" / "hook_loop"
    subprocess.run([program, "run", "-q", "-o", directory, "--", loop, str(million * 500_000), "1"],
                   check=True, stdout=subprocess.DEVNULL)
    return next(pathlib.Path(directory).glob("session_*/pid_*"))


def events_of(program, session):
    inspected = subprocess.run([program, "inspect", "--json", session], capture_output=True, check=True)
    return sum(thread["events"] for thread in json.loads(inspected.stdout)["threads"])


def bytes_of(command):
    counted = 0
    with subprocess.Popen(command, stdout=subprocess.PIPE) as running:
        while part := running.stdout.read(1 << 20):
            counted += len(part)
    return counted


def timed(command):
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    code = subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode
    wall, after = time.monotonic() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    if code != 0:
        sys.exit(f"{' '.join(map(str, command))} ended with {code}")
    return wall, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def bytes_at(session):
    return sum(file.stat().st_size for file in pathlib.Path(session).rglob("*") if file.is_file())


def packed_copy(program, session, directory):
    copy = pathlib.Path(directory) / "packed" / pathlib.Path(session).parent.name / pathlib.Path(session).name
    shutil.copytree(session, copy)
    for command in ("pack", "unpack", "pack"):
        wall, cpu = timed([program, command, copy])
        print(f"{command:14}{'':8}{wall:9.3f}{cpu:9.3f}")
    return copy


def measure(programs, sessions, rounds):
    """Each program on its session."""
    events = events_of(programs[-1], sessions[-1])
    for session in dict.fromkeys(sessions):
        print(f"{session}: {events / 1e6:.1f} million events, {bytes_at(session) / events:.2f} bytes each")
    print(f"{'command':14}{'program':>8}{'s':>9}{'CPU s':>9}{'M events/s':>12}{'MB/s':>9}")
    for words in COMMANDS:
        lines = [[program, *words, session] for program, session in zip(programs, sessions)]
        size = bytes_of(lines[-1])
        times = [[] for _ in lines]
        for counts in [False] + [True] * rounds:
            for line, kept in zip(lines, times):
                took = timed(line)
                if counts:
                    kept.append(took)
        medians = [[statistics.median(column) for column in zip(*kept)] for kept in times]
        for number, (wall, cpu) in enumerate(medians, 1):
            print(f"{' '.join(words):14}{number:8}{wall:9.3f}{cpu:9.3f}{events / wall / 1e6:12.1f}"
                  f"{size / wall / 1e6:9.0f}")
        if len(medians) > 1:
            first, last = medians[0], medians[-1]
            print(f"{'':14}{'ratio':>8}{first[0] / last[0]:9.2f}{first[1] / last[1]:9.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--million", type=int, default=20)
    parser.add_argument("--session", action="append", default=[])
    parser.add_argument("--packed", action="store_true")
    parser.add_argument("programs", nargs="*", metavar="COLLECTCTL")
    options = parser.parse_args()
    programs = options.programs or [str(ROOT / "build/release/bin/collectctl")]
    programs = [os.path.abspath(program) for program in programs]
    with tempfile.TemporaryDirectory() as directory:
        sessions = options.session or [recorded(programs[-1], options.million, directory)]
        for session in sessions:
            if options.packed:
                measure(programs[-1:] * 2, [session, packed_copy(programs[-1], session, directory)], options.rounds)
                shutil.rmtree(pathlib.Path(directory) / "packed")
            else:
                measure(programs, [session] * len(programs), options.rounds)


main()
