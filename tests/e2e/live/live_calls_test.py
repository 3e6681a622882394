#!/usr/bin/env python3
"""live_calls_test.py BIN LIB: WatchCalls of a real collector, as `collectctl dump --follow` and `collectctl top`
show it, beside what `collectctl dump` and `report` say of the same recording; `top` on a
pseudo-terminal."""

import fcntl
import json
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
import unittest

from collector import PATIENCE, Collector, clean_environment, eventually, text_of

BIN, LIB = map(os.path.abspath, sys.argv[1:3])
WHOLE = 60 * 60 * 1000  # ms: a program that continues until it is killed


class Lines:
    """A program's output as it comes."""

    def __init__(self, command):
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        env=clean_environment())
        self.lines = []
        self.thread = threading.Thread(target=self._read)
        self.thread.start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))

    def wait(self):
        self.process.wait(PATIENCE)
        self.thread.join()
        errors = self.process.stderr.read()
        self.process.stdout.close()
        self.process.stderr.close()
        return errors

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
        if not self.process.stdout.closed:
            self.wait()


class LiveTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="live_calls_")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.collector = Collector(BIN, LIB, self.folder)
        self.addCleanup(self.collector.close)

    def start(self, *arguments):
        lines = Lines(self.collector.command(*arguments))
        self.addCleanup(lines.stop)
        return lines

    def run_ctl(self, *arguments):
        return subprocess.run(self.collector.command(*arguments), capture_output=True, text=True,
                              env=clean_environment(), timeout=PATIENCE)

    def trace(self, *command, **more):
        program = self.collector.trace(*command, **more)
        self.collector.wait_for(program.pid, lambda s: s["state"] == "recording" and s["events"] > 0)
        return program

    def batches(self, lines):
        return [json.loads(line) for line in lines.lines]

    def seal(self, program):
        """Ends the program by itself."""
        return self.collector.seal(program)


class TailTest(LiveTest):
    def test_calls_are_those_of_the_files(self):
        program = self.trace("moods", "8000")
        tail = self.start("dump", "--follow", "--json", "--interval", "200ms", "--limit", "1000", "--function", "*slow*")
        session = self.seal(program)
        errors = tail.wait()
        self.assertEqual((tail.process.returncode, errors), (0, ""))
        batches = self.batches(tail)
        calls = [call for batch in batches for call in batch["calls"]]
        self.assertGreater(len(calls), 0)
        self.assertEqual({batch["session"] for batch in batches}, {session["name"]})
        self.assertEqual(sum(batch[key] for batch in batches for key in ("skipped_calls", "skipped_events", "lost_events")), 0)
        # Every call from the first one on, as the files have them.
        dumped = subprocess.run(self.collector.command("dump", "--json", "--function", "*slow*", self.collector.path_of(session)),
                                capture_output=True, text=True, check=True).stdout
        events = [json.loads(line) for line in dumped.splitlines()]
        begins = [e["ts_ns"] for e in events if e["kind"] == "call"]
        ends = [e["ts_ns"] for e in events if e["kind"] == "return"]
        stored = [(b, e - b) for b, e in zip(begins, ends)]
        seen = [(c["start_ns"], c["duration_ns"]) for c in calls]
        self.assertEqual(seen, stored[stored.index(seen[0]):])
        for call in calls:
            self.assertEqual(call["function"], "(anonymous namespace)::slow()")
            self.assertEqual(call["thread_name"], "moods")
            self.assertEqual(call["thread_id"], program.pid)
            self.assertGreaterEqual(call["duration_ns"], 20_000_000)
            self.assertFalse(call["unwound"])
            self.assertEqual("cpu_ns" in call, batches[0]["has_switches"])
            self.assertLess(call.get("cpu_ns", 0), call["duration_ns"] / 2)  # it sleeps

    def test_words_for_people_and_what_they_choose(self):
        program = self.trace("moods", str(WHOLE))
        tail = self.start("dump", "--follow", "--interval", "100ms", "--slower-than", "15ms")
        eventually(lambda: len(tail.lines) > 6, lambda: tail.lines)
        tail.stop()
        self.assertRegex(tail.lines[0], r"^# calls of session_\S+/pid_%d; seconds since its begin" % program.pid)
        for line in tail.lines[1:]:
            self.assertRegex(line, r"^ +[\d.]+  +[\d.]+ ms(  +[\d.]+ [mun]s)?  %d moods +(std::this_thread|void std::this_thread|\(anonymous namespace\)::slow\(\))" % program.pid)
        thrown = self.run_ctl("dump", "--follow", "--function", "thrower", "--duration", "300ms", "--interval", "100ms")
        self.assertEqual(thrown.returncode, 0, thrown.stderr)
        self.assertRegex(thrown.stdout, r"thrower\(\)  \(exception\)")
        none = self.run_ctl("dump", "--follow", "--thread", "name=absent*", "--duration", "300ms")
        self.assertEqual(none.stdout.splitlines()[1:], [])
        few = self.run_ctl("dump", "--follow", "--limit", "3", "--duration", "900ms", "--interval", "300ms", "--json")
        for batch in map(json.loads, few.stdout.splitlines()):
            self.assertLessEqual(len(batch["calls"]), 3)
            self.assertGreater(batch["skipped_calls"], 50)

    def test_explains_refused_watches(self):
        empty = self.run_ctl("dump", "--follow")
        self.assertEqual((empty.returncode, empty.stdout), (1, ""))
        self.assertIn("no session records now", empty.stderr)
        session = self.seal(self.collector.trace("steady", "fill", "1000"))
        sealed = self.run_ctl("dump", "--follow", session["name"])
        self.assertIn("is sealed", sealed.stderr)
        self.assertEqual(sealed.returncode, 1)
        self.trace("steady", "pace", str(WHOLE))
        odd = self.run_ctl("dump", "--follow", "--function", "0xzz")
        self.assertEqual(odd.returncode, 1)
        self.assertIn("0xzz", odd.stderr)
        watches = [self.start("dump", "--follow") for _ in range(8)]
        eventually(lambda: all(watch.lines for watch in watches), lambda: [watch.lines for watch in watches])
        self.assertIn("8 watches already", self.run_ctl("dump", "--follow").stderr)
        for watch in watches:
            watch.stop()
        # Their programs go with them.
        eventually(lambda: self.run_ctl("dump", "--follow", "--duration", "100ms").returncode == 0, "a watch is free again")

    def test_the_program_that_follows_is_killed(self):
        program = self.trace("steady", "pace", str(WHOLE))
        tail = self.start("dump", "--follow")
        follower = eventually(lambda: self.followers(), "collect-calls runs")[0]
        eventually(lambda: tail.lines, "it says something")
        os.kill(follower, signal.SIGKILL)
        errors = tail.wait()
        self.assertEqual(tail.process.returncode, 1)
        self.assertIn("someone killed it", errors)
        self.collector.wait_for(program.pid, lambda s: s["state"] == "recording")

    def followers(self):
        found = subprocess.run(["ps", "--ppid", str(self.collector.process.pid), "-o", "pid=,comm="],
                               capture_output=True, text=True).stdout
        return [int(line.split()[0]) for line in found.splitlines() if "collect-calls" in line]

    def test_reports_skipped_events_when_it_falls_behind(self):
        program = self.trace("steady", "burst", "600000", "2000", COLLECT_FULL="wait")
        tail = self.start("dump", "--follow", "--json", "--limit", "10", "--interval", "200ms")
        follower = eventually(lambda: self.followers(), "collect-calls runs")[0]
        eventually(lambda: tail.lines, "it says something")
        os.kill(follower, signal.SIGSTOP)
        stored = self.collector.session(program.pid)["events"]
        self.collector.wait_for(program.pid, lambda s: s["events"] > stored + 10_000_000)
        os.kill(program.pid, signal.SIGUSR2)
        session = self.seal(program)  # no one waits for it
        self.assertEqual((session["state"], session["lost_events"]), ("complete", 0))
        os.kill(follower, signal.SIGCONT)
        anonymous = max(int(found[1]) for found in [re.search(r"RssAnon:\s+(\d+)", self.status_of(follower))] if found)
        self.assertLess(anonymous, 100 << 10, "kB")
        self.assertEqual(tail.wait(), "")
        batches = self.batches(tail)
        self.assertTrue(all(len(batch["calls"]) <= 10 for batch in batches))
        self.assertGreater(sum(batch["skipped_events"] for batch in batches), 1_000_000)
        self.assertGreater(sum(batch["skipped_calls"] for batch in batches), 1_000)
        self.assertGreater(sum(f["calls"] for b in batches for f in b["functions"] if f["function"] == "step"), 1_000)

    @staticmethod
    def status_of(pid):
        return text_of(f"/proc/{pid}/status")

    def test_losses_of_the_recording_are_reported(self):
        program = self.trace("steady", "burst", str(WHOLE), "2000", COLLECT_FULL="drop", COLLECT_BUFFER_MB="1")
        tail = self.start("dump", "--follow", "--json", "--interval", "200ms")
        eventually(lambda: tail.lines, "it says something")
        self.collector.process.send_signal(signal.SIGSTOP)
        begin = int(text_of(f"/proc/{program.pid}/stat").rsplit(")", 1)[1].split()[11])
        eventually(lambda: int(text_of(f"/proc/{program.pid}/stat").rsplit(")", 1)[1].split()[11]) > begin + 20, "it ran on")
        self.collector.process.send_signal(signal.SIGCONT)
        eventually(lambda: sum(b["lost_events"] for b in self.batches(tail)) > 0, lambda: tail.lines[-1:])


class TopTest(LiveTest):
    def test_tables_where_no_terminal_is(self):
        self.trace("moods", str(WHOLE))
        shown = self.run_ctl("top", "-n", "2", "--interval", "500ms", "--sort", "calls")
        self.assertEqual((shown.returncode, shown.stderr), (0, ""))
        self.assertEqual(len(re.findall(r"^moods \(\d+\) on \S+  session_\S+  recording", shown.stdout, re.M)), 2, shown.stdout)
        self.assertEqual(len(re.findall(r"^ *(?:CPU % +CPU|SELF %) +SELF +TOTAL +CALLS/s +LONGEST  FUNCTION$", shown.stdout, re.M)), 2)
        self.assertRegex(shown.stdout, r"(?m)^ *[\d.]+ +.*std::this_thread::sleep_for")
        self.assertRegex(shown.stdout, r"(?m)^ *\d+ +[\d.]+ k/s +\d+  moods ")
        self.assertNotIn("\x1b", shown.stdout)
        self.assertRegex(self.run_ctl("top", "--once", "--threads").stdout, r"(?s)IN FUNCTION.*(CPU|SELF) %")
        once = self.run_ctl("top", "--once", "--json")
        document = json.loads(once.stdout)
        self.assertEqual(document["session"]["process_name"], "moods")
        calls = [function["calls"] for function in document["activity"]["functions"]]
        self.assertGreater(sum(calls), 500)
        slow = next(f for f in document["activity"]["functions"] if "::slow()" in f["function"])
        self.assertGreaterEqual(slow["longest_ns"], 20_000_000)
        self.assertEqual(document["activity"]["unread_events"], 0)
        self.assertEqual(self.run_ctl("top", "--once", "-n", "3").returncode, 2)

    def test_a_page_with_keys_on_a_terminal(self):
        program = self.trace("moods", str(WHOLE))
        terminal = Terminal(self.collector.command("top", "--interval", "200ms"))
        self.addCleanup(terminal.close)
        terminal.wait_for(lambda screen: "FUNCTION" in screen and "slow()" in screen)
        self.assertIn("\x1b[?1049h", terminal.text)
        self.assertFalse(terminal.echoes())
        self.assertLessEqual(max(map(len, terminal.screen().splitlines())), 100)
        terminal.press("h")
        terminal.wait_for(lambda screen: "IN FUNCTION" in screen and str(program.pid) in screen)
        terminal.press("h")
        terminal.press("/")
        terminal.wait_for(lambda screen: "filter: _" in screen)
        terminal.press("SLOW\r")
        terminal.wait_for(lambda screen: 'with "SLOW"' in screen and "slow()" in screen and "quick" not in screen)
        terminal.press("\x1b")  # alone: with what comes at once it is an arrow key
        terminal.wait_for(lambda screen: "SLOW" not in screen)
        terminal.press("c")
        terminal.wait_for(lambda screen: "by calls" in screen and "quick" in screen)
        terminal.press("p")
        terminal.wait_for(lambda screen: "PAUSED" in screen)
        terminal.press("q")
        self.assertEqual(terminal.wait(), 0)
        self.assertIn("\x1b[?1049l", terminal.text)
        self.assertTrue(terminal.echoes())  # the terminal is as it was

    def test_the_terminal_is_given_back_however_it_ends(self):
        program = self.trace("steady", "pace", str(WHOLE))
        for end in (lambda t: t.press("\x03"), lambda t: t.process.terminate(),
                    lambda t: program.send_signal(signal.SIGUSR2)):  # it ends by itself, and the session with it
            terminal = Terminal(self.collector.command("top", "--interval", "200ms"))
            self.addCleanup(terminal.close)
            terminal.wait_for(lambda screen: "FUNCTION" in screen)
            end(terminal)
            self.assertIn(terminal.wait(), (0, -signal.SIGTERM))
            self.assertIn("\x1b[?1049l", terminal.text)
            self.assertTrue(terminal.echoes())


class Terminal:
    """A program on a pseudo-terminal of 100 columns and 30 rows, and what it shows."""

    def __init__(self, command):
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
        self.process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=subprocess.DEVNULL,
                                        env={**clean_environment(), "TERM": "xterm"})
        self.slave = slave
        self.text = ""

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.slave)
        os.close(self.master)

    def read(self):
        while select.select([self.master], [], [], 0)[0]:
            self.text += os.read(self.master, 65536).decode(errors="replace")

    def screen(self):
        """The last page that was written whole."""
        self.read()
        pages = self.text.split("\x1b[H")
        whole = [page for page in pages if "\x1b[J" in page]
        return re.sub(r"\x1b\[[?\d]*[a-zA-Z]", "", whole[-1]) if whole else ""

    def wait_for(self, is_wanted):
        eventually(lambda: is_wanted(self.screen()), self.screen)

    def press(self, keys):
        os.write(self.master, keys.encode())

    def echoes(self):
        return bool(termios.tcgetattr(self.slave)[3] & termios.ECHO)

    def wait(self):
        end = time.monotonic() + PATIENCE
        while self.process.poll() is None and time.monotonic() < end:
            self.read()  # no one waits for room
            time.sleep(0.02)
        self.read()
        return self.process.returncode


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
