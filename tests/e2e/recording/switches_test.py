#!/usr/bin/env python3
"""switches_test.py BIN WAITS: time on the processor, as `run` records it, beside what programs/waits.c
measured of itself by the system's clocks."""

import collections
import ctypes
import errno
import json
import os
import pathlib
import platform
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

BIN, WAITS = map(os.path.abspath, sys.argv[1:3])
CLEAN = {key: value for key, value in os.environ.items() if not key.startswith("COLLECT_")}


SECCOMP_ERRNO, SECCOMP_KILL_PROCESS, SECCOMP_ALLOW = 0x00050000, 0x80000000, 0x7FFF0000


def forbid_perf_events(action):
    """A filter of system calls (seccomp(2)) on this process and all that it starts."""
    number = {"x86_64": 298, "aarch64": 241}[platform.machine()]
    # Load the call's number; is it that one; what then; what else.
    program = b"".join(struct.pack("HBBI", *line) for line in (
        (0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, action), (0x06, 0, 0, SECCOMP_ALLOW)))
    kept = ctypes.create_string_buffer(program)
    header = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", 4, ctypes.addressof(kept)))
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    # PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP with SECCOMP_MODE_FILTER.
    if prctl(38, 1, 0, 0, 0) != 0 or prctl(22, 2, header, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "seccomp")


def collectctl(*words, env=None, **more):
    return subprocess.run([f"{BIN}/collectctl", *words], env=env or CLEAN, capture_output=True, text=True, timeout=120,
                          check=False, **more)


class SwitchesTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="switches_")
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name, "traces")

    def record(self, *words, switches=None, **more):
        environment = CLEAN if switches is None else {**CLEAN, "COLLECT_SWITCHES": switches}
        done = collectctl("run", *words, "-o", str(self.root), "--", WAITS, env=environment, **more)
        self.assertEqual(done.returncode, 0, done.stderr)
        measured = collections.defaultdict(list)
        for line in done.stdout.splitlines():
            name, wall_ns, cpu_ns = line.split()
            measured[name].append((int(wall_ns), int(cpu_ns)))
        return measured, done.stderr

    def manifest(self):
        return json.loads(next(self.root.glob("session_*/pid_*/manifest.json")).read_text(encoding="utf-8"))

    def report(self, *words):
        done = collectctl("report", str(self.root), *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def record_with_switches(self):
        measured, said = self.record()
        if "no_switches" in self.manifest()["process"]:
            self.skipTest("switches cannot be had here: " + self.manifest()["process"]["no_switches"])
        return measured, said

    def test_times_are_those_of_the_clocks(self):
        measured, said = self.record_with_switches()
        self.assertIn("self CPU", said)
        rows = {row["name"]: row for row in json.loads(self.report("--json"))["functions"]}
        self.assertEqual(len(measured), 5)
        for name, calls in measured.items():
            wall_ns, cpu_ns = (sum(column) for column in zip(*calls))
            row = rows[name + "()"] if name + "()" in rows else rows[name]
            for said, known in ((row["total_ns"], wall_ns), (row["cpu_total_ns"], cpu_ns)):
                with self.subTest(name=name, said=said, known=known):
                    self.assertLessEqual(abs(said - known), max(known * 0.02, 200_000 * len(calls)))

    # Of every 10 ms it is known how much a thread ran; not when.
    def expect_estimates(self, measured):
        rows = {row["name"]: row for row in json.loads(self.report("--json"))["functions"]}
        for name, calls in measured.items():
            known = sum(cpu_ns for _, cpu_ns in calls)
            row = rows[name + "()"] if name + "()" in rows else rows[name]
            with self.subTest(name=name, said=row["cpu_total_ns"], known=known):
                self.assertLessEqual(abs(row["cpu_total_ns"] - known), max(known * 0.25, 25_000_000 * len(calls)))
        totals = self.manifest()["totals"]
        self.assertGreater(totals["blocked_ns"], 300_000_000)
        self.assertGreater(totals["preempted_ns"], 100_000_000)

    def test_reasons(self):
        self.record_with_switches()
        totals = self.manifest()["totals"]
        # 50 sleeps of 2 ms, a lock and a pipe of 100 ms, and waiting for threads; two threads of 150 ms on one
        # processor.
        self.assertGreater(totals["blocked_ns"], 300_000_000)
        self.assertGreater(totals["preempted_ns"], 100_000_000)
        self.assertNotIn("switches_lost", totals)

    def test_report_begins_with_what_computes(self):
        self.record_with_switches()
        lines = self.report().splitlines()
        self.assertIn("Self CPU", lines[0])
        self.assertRegex(lines[1], r"(computes|waits_for_processor)")
        waits = [line for line in lines if line.startswith("#")]
        self.assertRegex(waits[0], r"^# off the processor: .* blocked .* preempted .* switches$")
        rows = json.loads(self.report("--json"))["functions"]
        rows.sort(key=lambda row: row["cpu_self_ns"] - row["self_ns"])
        self.assertEqual([re.search(r" in (\w+)", line).group(1) for line in waits[1:]],
                         [re.match(r"\w+", row["name"]).group() for row in rows[:5]])
        self.assertNotIn("CPU", self.report("--wall"))
        paths = json.loads(self.report("--waits", "--json"))
        self.assertIn(paths["backtraces"][0]["functions"][-1], {row["name"] for row in rows[:2]})
        self.assertEqual(sum(path["waited_ns"] for path in paths["backtraces"]),
                         sum(row["self_ns"] - row["cpu_self_ns"] for row in rows))

    def test_drain_thread_says_that_it_has_none(self):
        _, said = self.record("--drain", "thread", switches="on")
        self.assertRegex(said, r"switches +none: .*drain process")
        self.assertIn("# time on the processor is not known", self.report())
        process = self.manifest()["process"]
        self.assertNotIn("switches", process)
        self.assertIn("drain process", process["no_switches"])

    def test_unwanted_are_not_recorded(self):
        for words in (("--no-switches",), ("--drain", "thread")):
            with self.subTest(words=words):
                shutil.rmtree(self.root, ignore_errors=True)
                _, said = self.record(*words)
                self.assertNotRegex(said, r"switches +none")
                process = self.manifest()["process"]
                self.assertNotIn("switches", process)
                self.assertNotIn("no_switches", process)
                self.assertNotIn("CPU", self.report())

    # As a container, and as a service whose other calls are not survived.
    def test_filter_of_system_calls_is_the_reason(self):
        for action in (SECCOMP_ERRNO | errno.EPERM, SECCOMP_KILL_PROCESS):
            with self.subTest(action=hex(action)):
                shutil.rmtree(self.root, ignore_errors=True)
                measured, said = self.record(preexec_fn=lambda chosen=action: forbid_perf_events(chosen))
                self.assertRegex(said, r"switches +estimated: .*filter")
                self.assertIn("# time on the processor is estimated", self.report())
                self.assertIn("filter", json.loads(self.report("--json"))["no_switches"])
                self.assertEqual(self.manifest()["state"], "complete")
                self.expect_estimates(measured)

    def test_times_are_in_a_file_that_is_checked(self):
        self.record_with_switches()
        session = next(self.root.glob("session_*/pid_*"))
        done = collectctl("verify", str(session))
        self.assertEqual(done.returncode, 0)
        self.assertNotIn("warning", done.stdout)  # index.lod has them, too
        file = session / "switches.bin"
        whole = file.read_bytes()
        file.write_bytes(whole[:-1])
        done = collectctl("verify", str(session))
        self.assertEqual(done.returncode, 1)
        self.assertIn("switches.bin: offset", done.stdout)
        self.assertIn("# time on the processor is not known: switches.bin", self.report())
        file.unlink()
        self.assertIn("switches.bin", collectctl("verify", str(session)).stdout)

    def test_containers_and_packed_sessions_have_them(self):
        self.record_with_switches()
        session = next(self.root.glob("session_*/pid_*"))
        before = self.times_on_the_processor(session)
        rebuilt = self.root.parent / "rebuilt"
        done = collectctl("convert", *map(str, session.glob("*.rtc")), "--to", "atf", "-o", str(rebuilt))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(collectctl("pack", str(session)).returncode, 0)
        for path in (session, rebuilt):
            self.assertEqual(self.times_on_the_processor(path), before, path)

    def times_on_the_processor(self, path):
        done = collectctl("report", "--json", str(path))
        rows = json.loads(done.stdout)["functions"]
        return sorted((row["calls"], row["cpu_self_ns"]) for row in rows)  # containers have no names


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
