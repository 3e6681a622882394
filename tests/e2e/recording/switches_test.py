#!/usr/bin/env python3
"""switches_test.py BIN WAITS: time on the processor, as `run --switches` records it, beside what programs/waits.c
measured of itself by the system's clocks."""

import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

BIN, WAITS = map(os.path.abspath, sys.argv[1:3])
CLEAN = {key: value for key, value in os.environ.items() if not key.startswith("COLLECT_")}


def collectctl(*words, **more):
    return subprocess.run([f"{BIN}/collectctl", *words], env=CLEAN, capture_output=True, text=True, timeout=120,
                          check=False, **more)


class SwitchesTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="switches_")
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name, "traces")

    def record(self, *words):
        done = collectctl("run", *words, "-o", str(self.root), "--", WAITS)
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
        measured, said = self.record("--switches")
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

    def test_drain_thread_says_that_it_has_none(self):
        _, said = self.record("--switches", "--drain", "thread")
        self.assertRegex(said, r"switches +none: .*drain process")
        self.assertIn("# time on the processor is not known", self.report())
        process = self.manifest()["process"]
        self.assertNotIn("switches", process)
        self.assertIn("drain process", process["no_switches"])

    def test_unasked_records_none(self):
        self.record()
        self.assertNotIn("switches", self.manifest()["process"])
        self.assertNotIn("CPU", self.report())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
