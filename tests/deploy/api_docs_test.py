#!/usr/bin/env python3
"""api_docs_test.py SOURCE DOXYFILE: Doxygen makes pages of the public headers and of the control
plane without a warning, and everything in the C API and the control plane has a comment. Skipped
(77) without doxygen."""
import html
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE, DOXYFILE = map(os.path.abspath, sys.argv[1:3])
PATIENCE = 240

if shutil.which("doxygen") is None:
    print("skipped: doxygen is not installed")
    sys.exit(77)


class ApiDocs(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="api_docs_")
        self.addCleanup(self.folder.cleanup)

    def run_with(self, *settings):
        """(exit code, warnings)"""
        with open(DOXYFILE) as file:
            text = file.read()
        text += "\n".join(["", "OUTPUT_DIRECTORY = " + self.folder.name, *settings, ""])
        done = subprocess.run(["doxygen", "-"], input=text, capture_output=True, text=True, cwd=SOURCE,
                              timeout=PATIENCE)
        return done.returncode, done.stdout + done.stderr

    def test_pages(self):
        self.assertEqual(self.run_with("GENERATE_XML = YES", "GENERATE_HTML = YES"), (0, ""))
        self.assertTrue(os.path.exists(os.path.join(self.folder.name, "html", "index.html")))
        texts = []
        xml = os.path.join(self.folder.name, "xml")
        for name in os.listdir(xml):
            with open(os.path.join(xml, name)) as file:
                texts.append(html.unescape(re.sub(r"<[^>]*>", "", file.read())))
        whole = " ".join(" ".join(texts).split())
        # A name of each part, and words of its comment.
        for wanted in ("collect_agent_start", "Starts the agent. 0: it runs", "the oldest events are lost, and counted",
                       "StartSessionRequest", "Detail is recorded when something happens.",
                       "collect::atf::IndexReader", "collect::rtc::Reader", "collect::wtf::Reader",
                       "Reads WTF-trace files, format version 10", "collect::dial9::StreamDecoder"):
            self.assertTrue(wanted in whole, wanted)

    def test_everything_of_the_c_api_and_the_control_plane_has_a_comment(self):
        for part in ("agent/include/collect", "proto/control/collect/control/v1"):
            self.assertEqual(self.run_with("INPUT = " + part, "EXTRACT_ALL = NO", "GENERATE_HTML = NO",
                                           "GENERATE_XML = YES"), (0, ""), part)

    def test_a_missing_comment_is_noticed(self):
        for path, comment in (("agent/include/collect/agent.h", r"/\* A static English sentence.*?\*/\n"),
                              ("proto/control/collect/control/v1/triggers.proto", r"  // Fires at most so often.*\n")):
            with open(os.path.join(SOURCE, path)) as file:
                text, count = re.subn(comment, "", file.read(), flags=re.S if path.endswith(".h") else 0)
            self.assertEqual(count, 1, path)
            copy = os.path.join(self.folder.name, os.path.basename(path))
            with open(copy, "w") as file:
                file.write(text)
            code, said = self.run_with("INPUT = " + copy, "EXTRACT_ALL = NO", "GENERATE_HTML = NO",
                                       "GENERATE_XML = YES")
            self.assertNotEqual(code, 0, path)
            self.assertIn("is not documented", said)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
