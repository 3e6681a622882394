#!/usr/bin/env python3
"""benchmarks.py takes the lines of run.sh part by part, and replaces its own section alone."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAM = os.path.join(HERE, "benchmarks.py")

# As contract.cc pads them.
OUTPUT = f"""== hooks: ns of the traced thread's CPU
{'call + return':<58} {'19.60':>9} ns       contract <= 25.00  met
{'idle hooks':<58} {'6.10':>9} ns

== end to end
{'events stored':<58} {'30.0':>9} M/s      contract >= 40.0  MISSED
{'share':<58} {'1.21':>9} x        contract <= 1.35  met

== readers
Benchmark            Time
\x1b[0;32mBM_Walk/4096\x1b[m     1234 ns
"""
DOCUMENT = """# Title
before
<!-- begin: written by benchmarks.py -->
old
<!-- end: written by benchmarks.py -->
after
"""


class Benchmarks(unittest.TestCase):
    def written(self, document):
        with tempfile.TemporaryDirectory() as directory:
            source, target = pathlib.Path(directory, "run"), pathlib.Path(directory, "doc.md")
            source.write_text(OUTPUT, encoding="utf-8")
            target.write_text(document, encoding="utf-8")
            ran = subprocess.run([sys.executable, PROGRAM, "--from", source, target], text=True,
                                 capture_output=True, check=False)
            return ran, target.read_text(encoding="utf-8")

    def test_lines_stand_in_their_order_between_the_marks(self):
        ran, text = self.written(DOCUMENT)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertTrue(text.startswith("# Title\nbefore\n<!-- begin: written by benchmarks.py -->\n"))
        self.assertTrue(text.endswith("\n<!-- end: written by benchmarks.py -->\nafter\n"))
        self.assertNotIn("old", text)
        self.assertIn("### Hooks: ns of the traced thread's CPU\n\n```\n"
                      f"{'call + return':<58} {'19.60':>9} ns       contract <= 25.00  met\n"
                      f"{'idle hooks':<58} {'6.10':>9} ns\n```\n", text)
        self.assertIn("### Readers\n\n```\nBenchmark            Time\nBM_Walk/4096     1234 ns\n```\n", text)

    def test_refuses_a_document_without_its_marks(self):
        ran, text = self.written("# Title\n")
        self.assertNotEqual(ran.returncode, 0)
        self.assertIn("begin: written by benchmarks.py", ran.stderr)
        self.assertEqual(text, "# Title\n")

    def test_the_document_has_the_marks(self):
        text = pathlib.Path(HERE, "BENCHMARKS.md").read_text(encoding="utf-8")
        self.assertEqual(text.count("<!-- begin: written by benchmarks.py -->"), 1)
        self.assertEqual(text.count("<!-- end: written by benchmarks.py -->"), 1)


if __name__ == "__main__":
    unittest.main()
