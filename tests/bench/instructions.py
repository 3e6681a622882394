#!/usr/bin/env python3
"""Instructions for each event of the paths that every event takes, counted by valgrind: the same
number on a busy machine as on a quiet one, where a time is not.

    tests/bench/instructions.py [--build DIR] [--accept] [WORK]…

Each piece of work is done on so many events and on twice as many; the difference is what an event
takes. instructions.txt has the numbers that were accepted. More than 2 % above one fails; fewer by
more than that fails too, so that the file says what is true. `--accept` writes what was counted into
the file: commit it with the change that needs it, and say there why.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from machine import cpuinfo

HERE = pathlib.Path(__file__).resolve().parent
ACCEPTED = HERE / "instructions.txt"
TOLERANCE = 0.02
SKIPPED = 77


def counted(command, variables=None, within=()):
    """Instructions of one program with its threads, or of these functions of it and what they call; of children
    nothing."""
    tool = (["--tool=callgrind", "--callgrind-out-file=/dev/null", *(f"--toggle-collect={name}" for name in within)]
            if within else ["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"])
    with tempfile.NamedTemporaryFile("r") as log:
        done = subprocess.run(
            ["valgrind", *tool, "--child-silent-after-fork=yes", f"--log-file={log.name}", *map(str, command)],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env={**os.environ, **(variables or {})},
            check=False)
        said = log.read()
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} ended with {done.returncode}\n"
                 f"{done.stderr.decode(errors='replace')}{said}")
    found = re.findall(r"(?:I\s+refs|Collected)\s*:\s+([\d,]+)", said)
    if not found:
        sys.exit(f"valgrind counted nothing:\n{said}")
    return int(found[-1].replace(",", ""))


class Works:
    """What can be counted. Each is a function of a number of events."""

    def __init__(self, build, scratch):
        self.bin = build / "bin"
        self.bench = self.bin / "bench"
        self.library = build / "lib" / "libcollect_agent.so"
        self.scratch = scratch
        self.sessions = {}

    def fresh(self, name):
        folder = self.scratch / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        return folder

    def session(self, events, lod):
        """A sealed session of so many events, with level-of-detail indexes or without."""
        made = self.sessions.get(events)
        if made is None:
            folder = self.fresh(f"session{events}")
            said = subprocess.run([self.bench / "large_session", folder, str(events // 1_000_000), "1"],
                                  check=True, capture_output=True, text=True)
            made = self.sessions[events] = pathlib.Path(said.stdout.strip())
        for index in made.glob("thread_*/index.lod"):
            index.unlink()
        if lod:
            subprocess.run([self.bench / "instructions", "lod", made], check=True)
        return made

    def hook(self, events):
        # No collector: a ring that is overwritten, and a loop of calls of one function. What the drain does
        # depends on the clock, and is not counted.
        return counted([self.bench / "hook_loop", events // 2, 1],
                       {"LD_PRELOAD": str(self.library), "COLLECT_CONNECT": "127.0.0.1:9",
                        "COLLECT_FULL": "overwrite", "COLLECT_BUFFER_MB": "1", "XDG_RUNTIME_DIR": str(self.scratch)},
                       ["__cyg_profile_func_enter", "__cyg_profile_func_exit"])

    def encode(self, events):
        return counted([self.bench / "instructions", "encode", events])

    def decode(self, events):
        return counted([self.bench / "instructions", "decode", events])

    def store(self, events):
        return counted([self.bench / "instructions", "store", events, self.fresh("store")])

    def lod(self, events):
        return counted([self.bench / "instructions", "lod", self.session(events, False)])

    def verify(self, events):
        return counted([self.bin / "collectctl", "verify", self.session(events, False)])

    def report(self, events):
        return counted([self.bin / "collectctl", "report", self.session(events, False)])

    def dump(self, events):
        return counted([self.bin / "collectctl", "dump", "--json", self.session(events, False)])


WORKS = ("hook", "encode", "decode", "store", "lod", "verify", "report", "dump")
EVENTS = 2_000_000  # of the smaller run; a session needs so many for level-of-detail indexes


def made_on():
    """What the numbers depend on besides the code: libraries choose their loops by the processor."""
    compiler = subprocess.run(["g++", "-dumpfullversion"], capture_output=True, text=True, check=False)
    return (f"{cpuinfo('model name') or 'unknown processor'} model {cpuinfo('model') or '?'}, "
            f"g++ {compiler.stdout.strip()}")


def accepted():
    """What the numbers were made on, and the numbers."""
    machine, numbers = None, {}
    for line in ACCEPTED.read_text().splitlines() if ACCEPTED.exists() else []:
        if line.startswith("# On "):
            machine = line.removeprefix("# On ")
        elif line and not line.startswith("#"):
            name, number = line.split()
            numbers[name] = float(number)
    return machine, numbers


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parents[1] / "build" / "release")
    parser.add_argument("--accept", action="store_true", help="write what is counted into instructions.txt")
    parser.add_argument("work", nargs="*", help=f"of {', '.join(WORKS)}; all by default")
    options = parser.parse_args()
    if unknown := set(options.work) - set(WORKS):
        parser.error(f"no such work: {', '.join(sorted(unknown))}")
    machine, numbers = accepted()
    if shutil.which("valgrind") is None:
        print("Skipped: valgrind is not installed.")
        return SKIPPED
    if machine != made_on() and not options.accept:
        print(f"Skipped: the accepted numbers are of {machine}, and this is {made_on()}.")
        return SKIPPED
    wrong = []
    with tempfile.TemporaryDirectory() as scratch:
        works = Works(options.build, pathlib.Path(scratch))
        print(f"{'':8}{'instructions':>14}{'accepted':>10}")
        for name in options.work or WORKS:
            work = getattr(works, name)
            each = (work(2 * EVENTS) - work(EVENTS)) / EVENTS
            before = numbers.get(name)
            print(f"{name:8}{each:14.1f}" + (f"{before:10.1f}{each / before - 1:+8.1%}" if before else ""),
                  flush=True)
            if before is None or abs(each / before - 1) > TOLERANCE:
                wrong.append(name)
            numbers[name] = each
    if options.accept:
        ACCEPTED.write_text("# Instructions for each event, as instructions.py counts them: see there.\n"
                            f"# On {made_on()}\n" +
                            "".join(f"{name} {numbers[name]:.1f}\n" for name in WORKS if name in numbers))
    elif wrong:
        print(f"Not as accepted (within {TOLERANCE:.0%}): {', '.join(wrong)}. If the change is worth it:\n"
              f"  tests/bench/instructions.py --accept {' '.join(wrong)}\n"
              "and commit instructions.txt with the change and the reason.")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
