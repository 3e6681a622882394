#!/usr/bin/env python3
"""Runs a build or its tests with all output in a log, and says how far it is.

    progress.py LOG COMMAND…

Ninja's "[184/318] …" and CTest's "184/318 Test …" are read: in a terminal one line that changes, elsewhere
a line every half minute. Of CTest what fails is shown whole. Ends with the command's exit code; when that
is not 0, a build's last lines are shown.
"""

import re
import subprocess
import sys
import time

STEP = re.compile(r"^\s*\[?(\d+)/(\d+)\]? ")
CTEST_FAILED = re.compile(r"\*\*\*(?!Skipped|Not Run)\w+")
EVERY = 30  # seconds between lines, outside of a terminal
SHOWN_BEFORE = 5  # seconds until the first of them, so that a second run says nothing
MANY = 40  # lines of a build that failed


def spent(seconds):
    minutes, seconds = divmod(int(seconds), 60)
    return f"{minutes} min {seconds:02d} s" if minutes else f"{seconds} s"


def left(seconds):
    return "less than a minute left" if seconds < 60 else f"about {round(seconds / 60)} min left"


class Meter:
    def __init__(self, out):
        self.out = out
        self.is_terminal = out.isatty()
        self.began = time.monotonic()
        self.next = self.began + SHOWN_BEFORE
        self.width = 0

    def step(self, done, of):
        now = time.monotonic()
        if not self.is_terminal and now < self.next:
            return
        self.next = now + EVERY
        words = f"{done}/{of}"
        # What ends first says little about the rest.
        if done >= of / 10 and now - self.began > SHOWN_BEFORE:
            words += f", {left((now - self.began) / done * (of - done))}"
        if self.is_terminal:
            self.out.write("\r" + words.ljust(self.width))
            self.width = len(words)
        else:
            self.out.write(words + "\n")
        self.out.flush()

    def clear(self):
        if self.is_terminal and self.width:
            self.out.write("\r" + " " * self.width + "\r")
            self.width = 0


def main():
    path, command = sys.argv[1], sys.argv[2:]
    meter, last, shows = Meter(sys.stdout), "", False
    with open(path, "w", encoding="utf-8", errors="replace") as log, subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", bufsize=1) as process:
        for line in process.stdout:
            log.write(line)
            step = STEP.match(line)
            if step:
                # What a test that failed has written follows its line, up to the next test's.
                shows = CTEST_FAILED.search(line) is not None
                meter.step(int(step[1]), int(step[2]))
            elif re.match(r"\s*Start +\d+: |\s*\d+% tests passed", line):
                shows = False
            if shows:
                meter.clear()
                sys.stdout.write(line)
            last = line
    meter.clear()
    if process.returncode != 0 and not re.search(r"Errors while running CTest", last):
        with open(path, encoding="utf-8", errors="replace") as log:
            sys.stderr.write("".join(log.readlines()[-MANY:]))
    sys.stdout.write(f"{'done' if process.returncode == 0 else 'failed'} after {spent(time.monotonic() - meter.began)}; "
                     f"the log is {path}\n")
    return process.returncode


if __name__ == "__main__":
    sys.exit(main())
