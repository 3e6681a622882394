#!/usr/bin/env python3
"""library_calls_test.py BIN WAITS LOCKS LIBRARY_CALLS…: calls of library functions that may block are recorded without
being asked for; those that are brief leave nothing, and --libcalls chooses. WAITS is programs/waits.c; LOCKS is
programs/system/locks.c, which knows who had its locks; LIBRARY_CALLS are programs/system/library_calls.c, linked in
several ways: what the functions return and set is as without us."""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

BIN, WAITS, LOCKS, *LIBRARY_CALLS = map(os.path.abspath, sys.argv[1:])
CLEAN = {key: value for key, value in os.environ.items() if not key.startswith("COLLECT_")}


def run(*words):
    return subprocess.run(words, env=CLEAN, capture_output=True, text=True, timeout=120, check=False)


class LibraryCallsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="library_calls_")
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name, "traces")

    def record(self, program, *words, arguments=()):
        done = run(f"{BIN}/collectctl", "run", *words, "-o", str(self.root), "--", program, *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("left out", done.stderr)
        checked = run(f"{BIN}/collectctl", "verify", str(self.root))
        self.assertEqual(checked.returncode, 0, checked.stdout)
        self.assertNotIn("warning", checked.stdout)
        return done.stdout

    def functions(self):
        done = run(f"{BIN}/collectctl", "report", "--json", str(self.root))
        self.assertEqual(done.returncode, 0, done.stderr)
        return {row["name"]: row for row in json.loads(done.stdout)["functions"]}

    def test_waits_are_named(self):
        self.record(WAITS)
        rows = self.functions()
        self.assertEqual(rows["nanosleep"]["calls"], 52)
        self.assertEqual(rows["read"]["calls"], 1)
        # One more is taken at once.
        self.assertEqual(rows["pthread_mutex_lock"]["calls"], 1)
        self.assertIn(rows["pthread_join"]["calls"], (1, 2, 3))  # a thread may have ended
        self.assertGreater(rows["nanosleep"]["total_ns"], 300_000_000)
        self.assertGreater(rows["pthread_mutex_lock"]["total_ns"], 80_000_000)
        text = run(f"{BIN}/collectctl", "report", str(self.root)).stdout
        if "# time on the processor is not known" not in text:
            waits = [re.search(r" in (\w+)", line).group(1) for line in text.splitlines() if " in " in line]
            self.assertIn("nanosleep", waits)
            self.assertNotIn("sleeps", waits)
            self.assertLess(rows["nanosleep"]["cpu_total_ns"], rows["nanosleep"]["total_ns"] / 10)

    def test_unwanted_are_not_there(self):
        self.record(WAITS, "--libcalls", "off")
        self.assertEqual({"nanosleep", "read", "pthread_mutex_lock"} & set(self.functions()), set())

    def test_every_call_of_those_that_are_named(self):
        self.record(WAITS, "--libcalls", "pthread_mutex_*,write")
        rows = self.functions()
        self.assertEqual(rows["pthread_mutex_lock"]["calls"], 2)
        self.assertEqual(rows["write"]["calls"], 1)
        self.assertNotIn("nanosleep", rows)

    def test_owner_of_each_lock_is_known(self):
        for which in ("on", "pthread_*"):
            with self.subTest(libcalls=which):
                said = self.record(LOCKS, "--libcalls", which, arguments=("1000",))
                wanted = {(int(owner), lock): int(waits) for owner, lock, waits in map(str.split, said.splitlines())
                          if "0x" in lock}
                self.assertEqual(sum(wanted.values()), 1000)
                newest = max(self.root.glob("*/pid_*"), key=lambda path: path.stat().st_mtime_ns)
                document = json.loads(run(f"{BIN}/collectctl", "report", "--locks", "--json", str(newest)).stdout)
                rows = [row for row in document["rows"] if row["function"].startswith("store")]
                # Where the drain comes late, some are joined: their number is known, and not their owners.
                self.assertEqual(sum(row["waits"] for row in rows), 1000)
                for row in rows:
                    if "owner_tid" in row and "lock" in row:
                        wanted[row["owner_tid"], row["lock"]] -= row["waits"]
                joined = sum(row["waits"] for row in rows if not ("owner_tid" in row and "lock" in row))
                self.assertGreaterEqual(min(wanted.values()), 0)
                self.assertEqual(sum(wanted.values()), joined)
                self.assertLess(joined, 1000)
                functions = json.loads(run(f"{BIN}/collectctl", "report", "--json", str(newest)).stdout)["functions"]
                total = sum(row["total_ns"] for row in functions if row["name"] == "pthread_mutex_lock")
                self.assertLessEqual(document["waited_ns"], total)
                with open(newest / "manifest.json", encoding="utf-8") as manifest:
                    totals = json.load(manifest)["totals"]
                self.assertEqual((totals["lock_waits"], totals["lock_wait_ns"]),
                                 (document["waits"], document["waited_ns"]))
                dumped = run(f"{BIN}/collectctl", "dump", str(newest)).stdout
                self.assertIn("~ waited for a lock at 0x", dumped)

    def test_results_are_as_without(self):
        for program in LIBRARY_CALLS:
            with self.subTest(program=program):
                bare = run(program).stdout
                self.assertIn("cleaned up\n", bare)
                for which in ("on", "*"):
                    self.assertEqual(self.record(program, "--libcalls", which), bare)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
