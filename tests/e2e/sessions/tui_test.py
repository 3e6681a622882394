#!/usr/bin/env python3
"""tui_test.py BIN: `collectctl report --tui` on a real recording, in a pseudo terminal: keys are pressed, and
what the screen shows is compared with `report --json`. Skipped (77) without python3-pyte, which is the
terminal, and where ncurses was not there when collect-tui was to be built."""

import fcntl
import json
import os
import pty
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest

BIN = os.path.abspath(sys.argv[1])
COLLECTCTL = os.path.join(BIN, "collectctl")
sys.path.append("/usr/lib/python3/dist-packages")  # Debian's, whichever Python this is
try:
    import pyte
except ImportError:
    print("skipped: python3-pyte is missing")
    sys.exit(77)
if not os.path.exists(os.path.join(BIN, "collect-tui")):
    print("skipped: collect-tui is not built")
    sys.exit(77)
PATIENCE = 60
# What a shell does: its child is the foreground of the terminal until Ctrl-Z stops it, then it waits for a line.
SHELL = """
import os, signal, sys
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
child = os.fork()
if child == 0:
    os.setpgid(0, 0)
    os.tcsetpgrp(0, os.getpid())
    signal.signal(signal.SIGTTOU, signal.SIG_DFL)
    os.execv(sys.argv[1], sys.argv[1:])
while os.WIFSTOPPED(status := os.waitpid(child, os.WUNTRACED)[1]):
    os.tcsetpgrp(0, os.getpid())
    os.write(1, b"stopped\\n")
    os.read(0, 100)
    os.tcsetpgrp(0, child)
    os.killpg(child, signal.SIGCONT)
sys.exit(os.waitstatus_to_exitcode(status))
"""
UP, DOWN, END, BACKSPACE = "\x1bOA", "\x1bOB", "\x1bOF", "\x7f"


def clean_environment(**more):
    clean = {key: value for key, value in os.environ.items()
             if not key.startswith(("COLLECT_", "LC_", "LANG", "NO_COLOR"))}
    # One that repeats no characters by a sequence of its own, which pyte does not know.
    return {**clean, "TERM": "screen-256color", **more}


def duration(ns):
    """As `report` prints it: 12.345 ms."""
    for size, unit in ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")):
        if ns >= size or unit == "us":
            thousandths = ns // (size // 1000)
            return f"{thousandths // 1000}.{thousandths % 1000:03} {unit}"
    return ""


class Terminal:
    """A program in a pseudo terminal of its own, whose foreground it is."""

    def __init__(self, *arguments, columns=60, rows=15, shell=(), program=COLLECTCTL, **variables):
        self.screen = pyte.Screen(columns, rows)
        self.stream = pyte.ByteStream(self.screen)
        self.bytes = b""
        self.control, self.terminal = pty.openpty()
        self.before = termios.tcgetattr(self.terminal)
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.program = subprocess.Popen(
            [*shell, program, *arguments], stdin=self.terminal, stdout=self.terminal, stderr=self.terminal,
            env=clean_environment(**variables), start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.program.poll() is None:
            self.program.kill()
            self.program.wait()
        os.close(self.control)
        os.close(self.terminal)

    def read(self, seconds):
        if not select.select([self.control], [], [], seconds)[0]:
            return False
        read = os.read(self.control, 65536)
        self.bytes += read
        self.stream.feed(read)
        return True

    def text(self):
        return "\n".join(line.rstrip() for line in self.screen.display)

    def wait_for(self, condition, what):
        end = time.monotonic() + PATIENCE
        while not condition(self.text()):
            if time.monotonic() > end:
                raise AssertionError(f"{what} is not on the screen:\n{self.text()}")
            self.read(0.5)

    def shows(self, *texts):
        for text in texts:
            self.wait_for(lambda screen, text=text: text in screen, text)

    def press(self, keys):
        os.write(self.control, keys.encode())

    def resize(self, columns, rows):
        self.screen.resize(rows, columns)
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def end(self):
        """The exit code, when it has ended by itself."""
        end = time.monotonic() + PATIENCE
        while self.program.poll() is None and time.monotonic() < end:
            self.read(0.1)
        while self.read(0.1):
            pass
        return self.program.poll()

    def is_restored(self):
        return termios.tcgetattr(self.terminal) == self.before and self.bytes.rfind(b"\x1b[?1049l") > self.bytes.rfind(b"\x1b[?1049h")


class TuiTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="tui_")
        cls.addClassCleanup(cls.folder.cleanup)
        done = cls.ctl("run", "-q", "-o", "traces", "--", os.path.join(BIN, "e2e", "moods"), "300")
        assert done.returncode == 0, done.stderr
        cls.traces = os.path.join(cls.folder.name, "traces")
        cls.functions = cls.report("--sort", "self")["functions"]

    @classmethod
    def ctl(cls, *arguments, **more):
        return subprocess.run([COLLECTCTL, *arguments], capture_output=True, text=True, timeout=PATIENCE,
                              cwd=cls.folder.name, env=clean_environment(), check=False, **more)

    @classmethod
    def report(cls, *arguments):
        return json.loads(cls.ctl("report", "--json", *arguments, "traces").stdout)

    def tui(self, *arguments, **more):
        return Terminal("report", "--tui", "--sort", "self", "--wall", *arguments, self.traces, **more)

    def line_of(self, terminal, name):
        return next(line for line in terminal.text().split("\n") if line.endswith("  " + name))

    def test_shows_what_report_says(self):
        with self.tui(columns=600, rows=40) as terminal:
            terminal.shows("*SELF", "/:search")
            for function in self.functions[:10]:
                line = self.line_of(terminal, function["name"])
                for key in ("self_ns", "total_ns", "p99_ns", "longest_ns"):
                    self.assertIn(duration(function[key]), line)
            pairs = self.report("--by", "caller")["callers"]
            called = max(pairs, key=lambda pair: pair["calls"])
            terminal.press(f"/{called['name']}\n\n")
            terminal.shows("Callers, by their part of the total time", duration(called["total_ns"]), called["caller"])
            terminal.press("c")
            longest = next(one["longest_ns"] for one in self.functions if one["name"] == called["name"])
            terminal.shows("Slowest ", duration(longest))
            terminal.press(BACKSPACE + "g")
            terminal.shows("Call graph")
            terminal.press("q")
            self.assertEqual(terminal.end(), 0)
            self.assertTrue(terminal.is_restored())

    def test_shows_captures_of_other_formats(self):
        other = os.path.join(self.folder.name, "moods.wtf-trace")
        self.assertEqual(self.ctl("convert", "traces", "--to", "wtf", "-o", other).returncode, 0)
        scratch = os.path.join(self.folder.name, "scratch")
        os.mkdir(scratch)
        with Terminal("report", "--tui", other, columns=200, TMPDIR=scratch) as terminal:
            terminal.shows("*TOTAL", "main", "moods.wtf-trace")
            self.assertEqual(len(os.listdir(scratch)), 1)
            terminal.press("q")
            self.assertEqual(terminal.end(), 0)
            self.assertEqual(os.listdir(scratch), [], "nothing is left")

    def test_small_screen_is_resized(self):
        with self.tui() as terminal:
            terminal.shows("*SELF", "Enter:open")
            self.assertNotIn("LONGEST", terminal.text())
            terminal.press(END)
            smallest = self.functions[-1]
            terminal.shows(duration(smallest["self_ns"]))
            terminal.resize(300, 50)
            terminal.shows("LONGEST", "/:search")
            terminal.resize(60, 15)
            terminal.wait_for(lambda text: "LONGEST" not in text and "Enter:open" in text, "a small table")
            terminal.press("?")
            terminal.shows("Backspace Esc")
            terminal.press("\x1b")
            terminal.shows("*SELF")
            terminal.press("\x1b[F")
            terminal.shows(duration(smallest["self_ns"]))
            terminal.press("\x1b[H" + UP + DOWN + "\x1b[B")
            third = self.functions[2]["name"][:40]
            terminal.wait_for(lambda text: text.split("\n")[12].startswith(third), third)
            terminal.press("q")
            self.assertEqual(terminal.end(), 0)

    def test_signals_give_the_terminal_back(self):
        with self.tui() as terminal:
            terminal.shows("*SELF")
            self.assertNotEqual(termios.tcgetattr(terminal.terminal), terminal.before)
            terminal.press("\x03")
            self.assertEqual(terminal.end(), -signal.SIGINT)
            self.assertTrue(terminal.is_restored())
        for number in (signal.SIGTERM, signal.SIGSEGV, signal.SIGABRT):
            with self.tui() as terminal:
                terminal.shows("*SELF")
                terminal.program.send_signal(number)
                self.assertEqual(terminal.end(), -number)
                self.assertTrue(terminal.is_restored(), number)

    def test_stops_and_continues(self):
        with self.tui(shell=(sys.executable, "-c", SHELL)) as terminal:
            terminal.shows("*SELF", "Enter:open")
            terminal.press("\x1a")
            terminal.shows("stopped")
            self.assertTrue(terminal.is_restored())
            terminal.resize(80, 20)
            terminal.press("\n")
            terminal.shows("*SELF", "/:search")
            terminal.press("?")
            terminal.shows("Backspace Esc")
            terminal.press("q")
            self.assertEqual(terminal.end(), 0)

    def test_colours_only_where_they_are_wanted(self):
        for variables, has_colour in (({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "vt100"}, False)):
            with self.tui(**variables) as terminal:
                terminal.shows("*SELF", "Enter:open")
                colours = {terminal.screen.buffer[row][2].bg for row in range(3)} | {
                    terminal.screen.buffer[row][2].fg for row in range(3)}
                self.assertEqual(colours != {"default"}, has_colour, variables)
                terminal.press("q")
                self.assertEqual(terminal.end(), 0)

    def test_refuses_what_is_no_terminal(self):
        done = self.ctl("report", "--tui", "traces", stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, 2)
        self.assertIn("--tui needs a terminal", done.stderr)
        self.assertIn("--graph FUNCTION", done.stderr)
        with Terminal("report", "--tui", self.traces, TERM="dumb") as terminal:
            self.assertEqual(terminal.end(), 2)
            self.assertIn("cannot move its cursor", terminal.text().replace("\n", ""))
        with Terminal("report", "--tui", "--by", "thread", self.traces, columns=150) as terminal:
            self.assertEqual(terminal.end(), 2)
            self.assertIn("--tui goes with --sort", terminal.text())

    def test_says_what_a_build_without_it_needs(self):
        alone = os.path.join(self.folder.name, "collectctl")
        shutil.copy(COLLECTCTL, alone)
        with Terminal("report", "--tui", self.traces, columns=200, program=alone) as terminal:
            self.assertEqual(terminal.end(), 2)
            self.assertIn("apt-get install libncurses-dev", terminal.text())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
