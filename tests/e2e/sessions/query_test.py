#!/usr/bin/env python3
"""query_test.py BIN ENGINES: `collectctl query` on a real recording. DuckDB's engine is the npm package
@duckdb/node-api (NODE_PATH), behind the `duckdb` of deploy/duckdb; DuckDB's own command line program is not
part of any registry here. Skipped (77) without node or the package."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

BIN, ENGINES = map(os.path.abspath, sys.argv[1:3])  # ENGINES: a folder with `duckdb`
COLLECTCTL = os.path.join(BIN, "collectctl")
PATIENCE = 120


def clean_environment(**more):
    clean = {key: value for key, value in os.environ.items() if not key.startswith("COLLECT_")}
    return {**clean, **more}


class QueryTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="query_")
        cls.addClassCleanup(cls.folder.cleanup)
        cls.scratch = os.path.join(cls.folder.name, "tmp")
        os.mkdir(cls.scratch)
        cls.path = ENGINES + ":" + os.environ["PATH"]
        done = cls.ctl("run", "-q", "--", os.path.join(BIN, "e2e", "moods"), "300")
        assert done.returncode == 0, done.stderr
        cls.report = json.loads(cls.ctl("report", "--json").stdout)

    @classmethod
    def ctl(cls, *arguments, path=None):
        return subprocess.run([COLLECTCTL, *arguments], capture_output=True, text=True, timeout=PATIENCE, cwd=cls.folder.name,
                              env=clean_environment(PATH=path or cls.path, TMPDIR=cls.scratch), check=False)

    def answer(self, *arguments):
        done = self.ctl("query", "--format", "json", *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(os.listdir(self.scratch), [], "nothing is left")
        return json.loads(done.stdout)

    def test_sums_are_those_of_the_report(self):
        rows = self.answer("SELECT name, calls, total_ns, self_ns FROM functions")
        self.assertEqual({row["name"]: (int(row["calls"]), int(row["total_ns"]), int(row["self_ns"])) for row in rows},
                         {one["name"]: (one["calls"], one["total_ns"], one["self_ns"]) for one in self.report["functions"]})
        by_calls = self.answer("SELECT f.name, count(*) AS n, sum(c.self_ns) AS self_ns FROM calls c "
                               "JOIN functions f USING (session, function) GROUP BY f.name")
        self.assertEqual({row["name"]: (int(row["n"]), int(row["self_ns"])) for row in by_calls},
                         {one["name"]: (one["calls"], one["self_ns"]) for one in self.report["functions"]})

    def test_sums_of_seconds_are_those_of_the_functions(self):
        rows = self.answer("SELECT f.name, f.calls = sum(s.calls) AND f.total_ns = sum(s.total_ns) AND "
                           "f.self_ns = sum(s.self_ns) AND f.longest_ns = max(s.longest_ns) AS same FROM functions f "
                           "JOIN function_seconds s USING (session, function, \"offset\") "
                           "GROUP BY f.name, f.calls, f.total_ns, f.self_ns, f.longest_ns")
        self.assertEqual({row["name"]: row["same"] for row in rows},
                         {one["name"]: True for one in self.report["functions"]})
        rows = self.answer("SELECT count(*) AS n, sum(h.n) AS whole, sum(s.calls) AS calls FROM function_seconds s JOIN ("
                           "SELECT session, thread, function, second, sum(count) AS n FROM function_histograms GROUP BY ALL"
                           ") h USING (session, thread, function, second) WHERE h.n > s.calls")
        self.assertEqual(int(rows[0]["n"]), 0, "only whole calls are in a histogram")
        # The longest call of a second is in the last bucket.
        rows = self.answer("SELECT s.longest_ns AS ns, max(h.bucket) AS bucket FROM function_seconds s JOIN function_histograms h "
                           "USING (session, thread, function, second) GROUP BY ALL")
        self.assertTrue(rows)
        for row in rows:
            octave, step = divmod(int(row["bucket"]), 16)
            width = 1 << max(octave - 1, 0)
            first = step if octave == 0 else (16 + step) * width
            self.assertTrue(first <= int(row["ns"]) < first + width, row)

    def test_seconds_are_of_the_time_of_day(self):
        rows = self.answer("SELECT s.second >= x.start_unix_ns // 1000000000 AND s.second <= "
                           "(x.last_ns - x.start_ns + x.start_unix_ns) // 1000000000 AS within, count(*) AS n "
                           "FROM function_seconds s JOIN sessions x USING (session) GROUP BY ALL")
        self.assertEqual([row["within"] for row in rows], [True])

    def test_tables_are_taken_as_they_are(self):
        made = self.ctl("convert", "ada_traces", "--to", "parquet", "-o", "it's here")
        self.assertEqual(made.returncode, 0, made.stderr)
        events = self.answer("SELECT count(*) AS n FROM events", "it's here")
        self.assertEqual(int(events[0]["n"]), 2 * sum(one["calls"] for one in self.report["functions"]))
        part = self.ctl("query", "--function", "main", "SELECT 1", "it's here")
        self.assertEqual(part.returncode, 2)
        self.assertIn("WHERE chooses", part.stderr)

    def test_a_part_and_other_forms(self):
        rows = self.answer("--function", "*quick*", "SELECT DISTINCT name FROM functions")
        self.assertTrue(rows and all("quick" in row["name"] for row in rows), rows)
        done = self.ctl("query", "--format", "csv", "SELECT process, pid > 0 FROM sessions")
        self.assertEqual((done.returncode, done.stdout), (0, "moods,true\n"), done.stderr)

    def test_reports_failing_queries_and_missing_inputs(self):
        wrong = self.ctl("query", "SELECT nothing FROM nowhere")
        self.assertEqual(wrong.returncode, 1, "as the engine ended")
        self.assertIn("nowhere", wrong.stderr)
        self.assertEqual(os.listdir(self.scratch), [])
        missing = self.ctl("query", "SELECT 1", "nowhere")
        self.assertEqual(missing.returncode, 2)
        self.assertIn("nowhere", missing.stderr)
        none = self.ctl("query", "SELECT 1", path="/nowhere")
        self.assertEqual(none.returncode, 2)
        self.assertIn("install DuckDB", none.stderr)


def is_available():
    try:
        return subprocess.run(["node", "-e", "require('@duckdb/node-api')"], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


if __name__ == "__main__":
    if not is_available():
        print("skipped: no node or no @duckdb/node-api (NODE_PATH)")
        sys.exit(77)
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
