#!/usr/bin/env python3
"""perf_switches_test.py BIN WAITS: the same switches as `perf record --switch-events` has, of one run of one program
that both record."""

import collections
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import unittest

BIN, WAITS = map(os.path.abspath, sys.argv[1:3])
CLEAN = {key: value for key, value in os.environ.items() if not key.startswith("COLLECT_")}
SWITCH = re.compile(r"(\d+) (?:\[-?\d+\] )? *(\d+)\.(\d{9}): PERF_RECORD_SWITCH (OUT preempt|OUT|IN)")
# Both are called at each switch, one after the other; in between, a virtual machine may stand still.
APART_NS = 50_000


def by_thread(text):
    """{tid: [(first_ns, last_ns, whether it was preempted)]} of `perf script --show-switch-events`."""
    times = collections.defaultdict(list)
    out = {}
    for tid, seconds, ns, what in SWITCH.findall(text):
        at = int(seconds) * 1_000_000_000 + int(ns)
        if what != "IN":
            out[tid] = (at, what == "OUT preempt")
        elif tid in out:
            first, preempted = out.pop(tid)
            times[int(tid)].append((first, at, preempted))
    return times


@unittest.skipUnless(shutil.which("perf"), "perf is not installed (Debian's linux-perf)")
class PerfSwitchesTest(unittest.TestCase):
    def test_same_switches_of_the_same_run(self):
        folder = tempfile.TemporaryDirectory(prefix="perf_switches_")
        self.addCleanup(folder.cleanup)
        root, data = pathlib.Path(folder.name, "traces"), pathlib.Path(folder.name, "perf.data")
        done = subprocess.run(
            [f"{BIN}/collectctl", "run", "-q", "-o", root, "--", "perf", "record", "-e", "dummy:u", "--switch-events",
             "-k", "CLOCK_BOOTTIME", "-o", data, "--", WAITS],
            env=CLEAN, capture_output=True, text=True, timeout=120, check=False)
        if not data.exists():
            self.skipTest("perf records no switches here: " + done.stderr)
        script = subprocess.run(["perf", "script", "-i", data, "--show-switch-events", "--ns"], env=CLEAN,
                                capture_output=True, text=True, timeout=60, check=True).stdout
        theirs = by_thread(script)
        session = next(path for path in root.glob("session_*/pid_*")
                       if json.loads((path / "manifest.json").read_text("utf-8"))["process"]["name"] == "waits")
        process = json.loads((session / "manifest.json").read_text("utf-8"))["process"]
        if "no_switches" in process:
            self.skipTest("switches cannot be had here: " + process["no_switches"])
        ours, events = collections.defaultdict(list), collections.defaultdict(list)
        dumped = subprocess.run([f"{BIN}/collectctl", "dump", "--json", session], env=CLEAN, capture_output=True,
                                text=True, timeout=60, check=True).stdout
        for row in map(json.loads, dumped.splitlines()):
            if row.get("stall") in ("preempted", "blocked"):
                self.assertEqual(row["joined"], 1)
                ours[row["tid"]].append((row["ts_ns"], row["last_ns"], row["stall"] == "preempted"))
            elif row["kind"] in ("call", "return"):
                events[row["tid"]].append(row["ts_ns"])
        self.assertEqual(len(events), 4)
        apart, wrong, count = [], [], 0
        for tid, when in events.items():
            # Between its first event and its last, so that both were recording.
            has = [one for one in ours[tid] if one[0] > min(when) and one[1] < max(when)]
            had = [one for one in theirs[tid] if one[0] > min(when) and one[1] < max(when)]
            self.assertEqual(len(has), len(had), tid)
            for mine, other in zip(sorted(has), sorted(had)):
                apart += [abs(mine[0] - other[0]), abs(mine[1] - other[1])]
                wrong += [(mine, other)] if mine[2] != other[2] else []
            off, of_perf = (sum(last - first for first, last, _ in times) for times in (has, had))
            self.assertLessEqual(abs(off - of_perf), APART_NS * (1 + len(has)), tid)
            count += len(has)
        print(f"{count} switches; apart: median {statistics.median(apart)} ns, most {max(apart)} ns")
        self.assertGreater(count, 100)
        self.assertEqual(wrong, [])
        self.assertLessEqual(statistics.median(apart), APART_NS)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
