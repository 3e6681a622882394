#!/usr/bin/env python3
"""The tidy checks find what they are for: each case plants one fault in a small tree that is
otherwise clean, and expects the one line that names it."""

import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))

CLEAN = {
    "README.md": "`bash deploy/quickstart.sh` and `bash deploy/test.sh`\n",
    "CONTRIBUTING.md": "".join(
        f"[]({document})\n" for document in (
            "formats/core/TEXT.md", "formats/atf/FORMAT.md", "storage/STORAGE.md",
            "daemon/DAEMON.md", "agent/AGENT.md")),
    "tests/fuzz/formats/atf_fuzz.cc": "\n",
    "tests/fuzz/corpus/atf_fuzz.tar.gz": "\n",
    "formats/core/result.h": "#pragma once\n#include <string>\n",
    "formats/core/TEXT.md": "# Text\n## Limits\n## Known issues\n",
    "formats/atf/layout.h": "#pragma once\n",
    "formats/atf/reader.cc": '#include "formats/core/result.h"\n',
    "formats/atf/FORMAT.md": "# ATF\n## Limits\n## Known issues\n",
    "storage/STORAGE.md": "# Storage\n## Limits\n## Known issues\n",
    "storage/fs/fs.h": "#pragma once\n",
    "storage/writer.cc": '#include "formats/atf/layout.h"\n',
    "storage/CMakeLists.txt": "target_link_libraries(collect_storage PUBLIC collect_atf)\n",
    "daemon/DAEMON.md": "# Daemon\n## Limits\n## Known issues\n",
    "daemon/ingest/page.cc": '#include "storage/fs/fs.h"\n#include <asio/ip/tcp.hpp>\n',
    "agent/AGENT.md": "# Agent\n## Limits\n## Known issues\n",
    "agent/include/collect/agent.h": "#include <stdint.h>\n#include <stddef.h>\n",
    "agent/ring/ring.cc": '#include "formats/atf/layout.h"\n',
}

FAULTS = [
    # check, path, content, part of the line that must be printed
    ("check_layers.py", "storage/writer.cc", '#include "collect/control/v1/control.pb.h"\n',
     "storage/writer.cc:1: storage must not include proto/control/collect/control/v1/control.pb.h"),
    ("check_layers.py", "storage/writer.cc", '#include "proto/wire/layout.h"\n',
     "storage/writer.cc:1: storage must not include proto/wire/layout.h"),
    ("check_layers.py", "storage/writer.cc", '#include "daemon/ingest/page.h"\n',
     "storage must not include daemon/ingest/page.h"),
    ("check_layers.py", "formats/atf/reader.cc", '#include "formats/rtc/read/reader.h"\n',
     "formats/atf must not include formats/rtc/read/reader.h"),
    ("check_layers.py", "formats/core/result.h", "#pragma once\n#include <sys/socket.h>\n",
     "formats/core must not include <sys/socket.h>"),
    ("check_layers.py", "agent/ring/ring.cc", '#include "formats/atf/reader.h"\n',
     "agent must not include formats/atf/reader.h"),
    ("check_layers.py", "agent/ring/ring.cc", "#include <grpcpp/grpcpp.h>\n",
     "agent must not include <grpcpp/grpcpp.h>"),
    ("check_layers.py", "daemon/ctl/run.cc", '#include "daemon/ingest/page.h"\n',
     "daemon/ctl must not include daemon/ingest/page.h"),
    ("check_layers.py", "formats/new/x.cc", "\n", "formats/new/x.cc: lies in no known room"),
    ("check_layers.py", "storage/CMakeLists.txt",
     "target_link_libraries(collect_storage\n  PUBLIC collect_wire)\n",
     "must not link collect_wire"),
    ("check_layers.py", "agent/CMakeLists.txt",
     "target_link_libraries(collect_agent PRIVATE gRPC::grpc++)\n", "must not link gRPC::grpc++"),
    ("check_house.py", "storage/writer.cc", "// TO" + "DO: later\n",
     "storage/writer.cc:1: contains TO" + "DO"),
    ("check_house.py", "storage/writer.cc", "int x = sprintf(a, b);\n", "calls sprintf"),
    ("check_house.py", "storage/writer.cc", "void f() { std::system(command); }\n",
     "calls system"),
    ("check_house.py", "storage/writer.cc", "std::jthread worker([] { work(); });\n",
     "starts a thread itself"),
    ("check_house.py", "storage/writer.cc", "std::thread worker;\n", "starts a thread itself"),
    ("check_house.py", "storage/writer.cc", "auto later = std::async(work);\n",
     "starts a thread itself"),
    ("check_house.py", "deploy/x.py", "\n" * 401, "401 lines, limit 400"),
    ("check_classes.py", "storage/writer.cc", "\n" * 401, "401 lines that belong to no class"),
    ("check_classes.py", "storage/writer.cc", "int Writer::f() {\n" + "\n" * 599 + "}\n",
     "class Writer has 601 lines, limit 600"),
    ("check_classes.py", "storage/writer.cc", "class Writer {\n" + "\n" * 599 + "};\n",
     "class Writer has 601 lines, limit 600"),
    ("check_house.py", "tests/storage/writer_test.cc", "\n" * 601, "601 lines, limit 600"),
    ("check_house.py", "storage/file_utils.cc", "\n", "has a name that says nothing"),
    ("check_house.py", "storage/FileWriter.cc", "\n", "is not named in snake_case"),
    ("check_house.py", "storage/fs/fs.h", "int x;\n", "has no #pragma once"),
    ("check_house.py", "agent/include/collect/agent.h", "#include <stdio.h>\n",
     "includes stdio.h"),
    ("check_house.py", "storage/STORAGE.md", "# Storage\n## Limits\n", "has no section Known issues"),
    ("check_house.py", "storage/STORAGE.md",
     "# Storage\n## Limits\n## Known issues\n## More\n", "ends with More"),
    ("check_house.py", "README.md", CLEAN["README.md"].replace("bash deploy/quickstart.sh", "x"),
     "does not show `bash deploy/quickstart.sh`"),
    ("check_house.py", "README.md",
     CLEAN["README.md"] + "[x](storage/NOWHERE.md)\n", "links storage/NOWHERE.md"),
    ("check_house.py", "CONTRIBUTING.md", CLEAN["CONTRIBUTING.md"].replace("(storage/STORAGE.md)", "()"),
     "does not link storage/STORAGE.md"),
    ("check_house.py", "formats/new/x.cc", "\n", "formats/new: has no document"),
    ("check_house.py", "tests/fuzz/corpus/old_fuzz.tar.gz", "\n",
     "tests/fuzz/corpus/old_fuzz: belongs to no fuzz target"),
    ("check_budgets.py", "storage/writer.cc", "// nobo" + "dy reads it\n", "nobo" + "dy: 1, budget 0"),
    ("check_budgets.py", "storage/writer.cc", "int f() {\n" + "\n" * 69 + "}\n",
     "functions: 1, budget 0"),
    ("check_budgets.py", "storage/writer.h", "class A {\n  int f() {\n" + "\n" * 69 + "  }\n};\n",
     "functions: 1, budget 0"),
    ("check_budgets.py", "storage/writer.cc", 'auto s = "at " + std::to_' + 'string(n) + " bytes";\n',
     "in_pieces: 1, budget 0"),
    ("check_budgets.py", "tests/x_test.cc", "TEST(S, AFullDiskFails) {}\n", "begins with an article"),
    ("check_budgets.py", "tests/x_test.cc", "TEST(S, OneTwoThreeFourFiveSixSevenEightNineTen) {}\n",
     "test_words: 1, budget 0"),
    ("check_budgets.py", "tests/tidy/budgets.txt", "functions 1\n", "lower the budget to 0"),
    ("check_house.py", "scripts/x.py", "\n", "scripts: is not a folder or file of the house"),
    ("check_house.py", "tests/storage/writer_test.cc", '#include "storage/nowhere.h"\n',
     "tests/storage/writer_test.cc:1: includes storage/nowhere.h, which is not there"),
]


# A tree in which everything has a test.
SURFACE = {
    "README.md": "x\n",
    "daemon/ctl/main.cc": 'app.add_flag("-q,--quiet", quiet, "");\n',
    "daemon/ctl/command_line/online.cc": 'add("--control", control, "", "");\n',
    "daemon/ctl/commands/look/dump.cc": 'command.option(\n    "--limit", "N", limit, "");\n',
    "daemon/ctl/commands/record/run.cc": 'add_when_full(command, "--when-full,--full", agent, "");\n',
    "daemon/config.h": 'visit("rtc", "", c.rtc);\n',
    "daemon/config.cc": 'app.add_option("--ready-fd", fd, "");\n',
    "formats/core/text/environment_names.h": '"COLLECT_TAG",\n',
    "agent/settings.cc": 'variable("COLLECT_TAG");\n',
    "proto/control/collect/control/v1/control.proto":
        "message A {\n  uint64 events_lost = 1;\n}\n",
    "storage/manifest/manifest.cc": 'Json x = {{"parent_pid", y}};\njson["markers_left_out"] = 1;\n',
    "tests/e2e/a_test.cc": "events_lost parent_pid\n",
    "tests/e2e/REDTEAM.md": "# Attacks\n## Attacks\n| From | Attack | Defence | Test |\n|---|---|---|---|\n"
                            "| x | y | z | `a_test` (`Suite.Case`) |\n## Limits\n",
    "tests/b_test.cc": "TEST(Suite, Case)\n",
    "tests/a_test.cc": 'run({"-q", "--quiet", "--control", "--limit=1", "--rtc", "--ready-fd",\n'
                       '     "--when-full", "--full"});\n'
                       'setenv("COLLECT_TAG", a.events_lost(), json["markers_left_out"]);\n',
}

SURFACE_FAULTS = [
    ("tests/a_test.cc", "--quiet", "--loud", "collectctl --quiet is in no test"),
    ("tests/a_test.cc", "--control", "--contro", "collectctl --control is in no test"),
    ("tests/a_test.cc", "--limit", "--limits", "dump.cc:1: collectctl --limit is in no"),
    ("tests/a_test.cc", '"--full"', '"--ful"', "collectctl --full is in no test"),
    ("tests/a_test.cc", '"--rtc"', '"--rtc-roll"', "config.h:1: no test runs a daemon with rtc"),
    ("tests/a_test.cc", "--ready-fd", "--fd", "collectord --ready-fd is in no test"),
    ("tests/a_test.cc", "COLLECT_TAG", "COLLECT_TA", "COLLECT_TAG is in no test"),
    ("tests/e2e/a_test.cc", "parent_pid", "pid", "the manifest's parent_pid is in no test"),
    ("tests/a_test.cc", "markers_left_out", "left_out", "the manifest's markers_left_out is in no"),
    ("tests/e2e/a_test.cc", "events_lost", "events",
     "control.proto:2: events_lost is in no test of the real daemon"),
    ("tests/b_test.cc", "Case", "Other", "REDTEAM.md:5: there is no test Suite.Case"),
    ("tests/e2e/REDTEAM.md", "`a_test`", "`c_test`", "there is no test c_test"),
    ("tests/e2e/REDTEAM.md", "`a_test` (`Suite.Case`)", "", "an attack without a test"),
    ("agent/settings.cc", "COLLECT_TAG", "COLLECT_NEW", "COLLECT_NEW is not in"),
]


def run(check, tree):
    with tempfile.TemporaryDirectory() as root:
        for path, content in tree.items():
            full = os.path.join(root, path)
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, "w", encoding="utf-8") as file:
                file.write(content)
        outcome = subprocess.run([sys.executable, os.path.join(HERE, check), root],
                                 capture_output=True, text=True)
        return outcome.returncode, outcome.stdout + outcome.stderr


class Tidy(unittest.TestCase):
    def test_clean_tree_passes(self):
        for check in ("check_layers.py", "check_house.py", "check_classes.py"):
            code, output = run(check, CLEAN)
            self.assertEqual(code, 0, output)

    def test_each_fault_is_named(self):
        for check, path, content, expected in FAULTS:
            with self.subTest(expected):
                code, output = run(check, {**CLEAN, path: content})
                self.assertEqual(code, 1, output)
                self.assertIn(expected, output)
                self.assertIn("1 findings", output, "one fault, one line")

    def test_reports_surface_that_no_test_names(self):
        code, output = run("check_surface.py", SURFACE)
        self.assertEqual(code, 0, output)
        for path, word, other, expected in SURFACE_FAULTS:
            with self.subTest(expected):
                content = SURFACE[path].replace(word, other, 1)
                code, output = run("check_surface.py", {**SURFACE, path: content})
                self.assertEqual(code, 1, output)
                self.assertIn(expected, output)
                self.assertIn("1 findings", output, "one fault, one line")

    def test_a_class_is_counted_over_all_its_files(self):
        part = "int Writer::f() {\n" + "\n" * 298 + "}\n"
        files = {"storage/writer.cc": part, "storage/writer_more.cc": part}
        code, output = run("check_classes.py", {**CLEAN, **files})
        self.assertEqual(code, 0, output)
        files["storage/writer_more.cc"] += "int Writer::g() { return 1; }\n"
        code, output = run("check_classes.py", {**CLEAN, **files})
        self.assertEqual(code, 1, output)
        self.assertIn("class Writer has 601 lines", output)

    def test_words_in_comments_are_not_calls(self):
        code, output = run("check_house.py", {
            **CLEAN, "storage/writer.cc": '// sprintf(x) and system(y)\nauto s = "gets(z)";\n'})
        self.assertEqual(code, 0, output)

    def test_a_folder_of_31_files_is_a_finding(self):
        files = {f"storage/read/part_{n}.cc": "\n" for n in range(30)}
        code, output = run("check_house.py", {**CLEAN, **files})
        self.assertEqual(code, 0, output)
        files["storage/read/one_more.cc"] = "\n"
        files |= {f"tests/storage/expected/{n}.txt": "\n" for n in range(31)}
        code, output = run("check_house.py", {**CLEAN, **files})
        self.assertEqual(code, 1, output)
        self.assertIn("storage/read: has 31 files, limit 30", output)
        self.assertIn("1 findings", output)

    def test_an_empty_tree_is_a_finding(self):
        code, _ = run("check_layers.py", {"README.md": "x\n"})
        self.assertEqual(code, 1)


if __name__ == "__main__":
    unittest.main()
