#!/usr/bin/env python3
"""Files of deploy/ for systems that are not here: that they can be read, name files that exist and
flags that collectord has. Usage: deploy_files_test.py SOURCE_DIR BUILD_DIR"""

import glob
import json
import os
import plistlib
import re
import subprocess
import sys
import tempfile
import tomllib
import unittest

try:
    import yaml
except ModuleNotFoundError:
    yaml = None

SOURCE, BUILD = sys.argv[1], sys.argv[2]
sys.argv = sys.argv[:1]
COLLECTORD = os.path.join(BUILD, "bin/collectord")
INSTRUCTIONS = {"FROM", "ENV", "WORKDIR", "COPY", "RUN", "USER", "VOLUME", "EXPOSE", "HEALTHCHECK",
                "STOPSIGNAL", "ENTRYPOINT"}


def read(*path):
    with open(os.path.join(SOURCE, *path), encoding="utf-8") as file:
        return file.read()


def flags_of(command):
    return {word for word in command if word.startswith("--")}


def effective_settings(arguments):
    """Of a collectord with these arguments, or None and what it says."""
    ran = subprocess.run([COLLECTORD, *arguments, "--print-config"], capture_output=True, text=True,
                         check=False)
    return (tomllib.loads(ran.stdout), "") if ran.returncode == 0 else (None, ran.stderr)


HELP = subprocess.run([COLLECTORD, "--help"], check=True, capture_output=True, text=True).stdout
KNOWN = set(re.findall(r"^  (?:-\w,)?(--[\w-]+)", HELP, re.M))


class Phases(unittest.TestCase):
    """deploy/phases.sh: nothing that had to run is passed over in silence."""

    def run_phases(self, calls):
        script = f"""
            set -euo pipefail
            say() {{ printf '%s\\n' "$*"; }}
            good() {{ say good ran; }}
            bad() {{ false; say 'not reached'; }}
            source deploy/phases.sh
            {calls}
            end_phases"""
        return subprocess.run(["bash", "-c", script], cwd=SOURCE, capture_output=True, text=True, check=False)

    def test_each_phase_is_named_with_its_outcome(self):
        ran = self.run_phases('phase "first" good; phase "second" good')
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertEqual(ran.stdout.count("good ran"), 2)
        self.assertRegex(ran.stdout, r"(?m)^first +\d+ s  passed$")
        self.assertRegex(ran.stdout, r"(?m)^second +\d+ s  passed$")

    def test_a_phase_that_fails_ends_itself_alone(self):
        ran = self.run_phases('phase "first" bad; phase "second" good')
        self.assertEqual(ran.returncode, 1)
        self.assertNotIn("not reached", ran.stdout)
        self.assertIn("good ran", ran.stdout)
        self.assertRegex(ran.stdout, r"(?m)^first +\d+ s  FAILED$")
        self.assertIn("FAILED: first\n", ran.stdout)


class Progress(unittest.TestCase):
    """deploy/progress.py: what a build and its tests say while they run."""

    def run_it(self, *command):
        with tempfile.TemporaryDirectory() as folder:
            log = os.path.join(folder, "log")
            done = subprocess.run([sys.executable, os.path.join(SOURCE, "deploy/progress.py"), log, *command],
                                  capture_output=True, text=True, check=False)
            with open(log, encoding="utf-8") as file:
                return done, file.read()

    def test_what_goes_well_is_one_line(self):
        done, log = self.run_it("sh", "-c", "echo '[1/2] Building a.cc'; echo '[2/2] Linking a'")
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stdout, r"\Adone after \d+ s; the log is \S+\n\Z")
        self.assertEqual(log, "[1/2] Building a.cc\n[2/2] Linking a\n")

    def test_a_build_that_fails_shows_its_end_and_has_its_exit_code(self):
        done, _ = self.run_it("sh", "-c", "seq 100; echo 'a.cc:7: error'; exit 3")
        self.assertEqual(done.returncode, 3)
        self.assertIn("a.cc:7: error", done.stderr)
        self.assertNotIn("\n7\n", done.stderr)

    def test_of_tests_only_failures_are_shown(self):
        lines = ["      Start 1: a", "1/3 Test #1: a ....   Passed    0.02 sec", "2/3 Test #2: b ....***Failed    1.00 sec",
                 "expected 7", "      Start 3: c", "3/3 Test #3: c ....***Skipped   0.00 sec", "why",
                 "50% tests passed, 1 tests failed out of 2", "Errors while running CTest"]
        done, log = self.run_it("sh", "-c", "printf '%s\\n' \"$@\"; exit 8", "sh", *lines)
        self.assertEqual(done.returncode, 8)
        self.assertEqual(log.splitlines(), lines)
        self.assertEqual(done.stdout.splitlines()[:-1], lines[2:4])
        self.assertEqual(done.stderr, "")


class Launchd(unittest.TestCase):
    def test_the_plist_says_what_launchd_reads(self):
        for path in glob.glob(os.path.join(SOURCE, "deploy/launchd/*.plist")):
            with open(path, "rb") as file:
                job = plistlib.load(file, fmt=plistlib.FMT_XML)
            self.assertEqual(job["Label"] + ".plist", os.path.basename(path))
            self.assertTrue(job["ProgramArguments"][0].startswith("/"))
            self.assertEqual(flags_of(job["ProgramArguments"]) - KNOWN, set())
            self.assertEqual(job["KeepAlive"], {"SuccessfulExit": False})
            self.assertEqual(job["Umask"], 0o027)
            self.assertGreater(job["ExitTimeOut"], 10)


class Service(unittest.TestCase):
    def test_the_packaged_settings_are_the_sample_with_sockets_of_the_group(self):
        with open(os.path.join(BUILD, "service/collectord.toml"), encoding="utf-8") as file:
            text = file.read()
        self.assertEqual(tomllib.loads(text), {
            "ingest": "unix:/run/collectord/ingest.sock",
            "control": "unix:/run/collectord/control.sock",
            "local_access": "group:collectord"})
        # All other lines are the sample's.
        sample = read("deploy/collectord.toml").split("\n")
        self.assertLess(len(set(text.split("\n")) - set(sample)), 7)

    def test_sockets_lie_where_the_settings_say(self):
        for unit, name in (("collectord", "ingest"), ("collectord-control", "control")):
            text = read("deploy/systemd", unit + ".socket")
            self.assertIn("ListenStream=/run/collectord/" + name + ".sock\n", text)
            self.assertIn("SocketGroup=collectord\n", text)
            self.assertIn("SocketMode=0660\n", text)

    def test_the_service_may_ask_whose_a_connection_is(self):
        text = read("deploy/systemd/collectord.service")
        families = re.search(r"^RestrictAddressFamilies=(.*)$", text, re.M).group(1).split()
        self.assertIn("AF_NETLINK", families)
        self.assertNotRegex(text, r"(?m)^PrivateUsers=yes")


class Container(unittest.TestCase):
    def instructions(self):
        text = re.sub(r"(?m)^\s*#.*\n", "", read("deploy/container/Containerfile"))
        lines = text.replace("\\\n", " ").split("\n")
        return [line.split(None, 1) for line in lines if line.strip()]

    def test_every_line_is_an_instruction(self):
        self.assertEqual({name for name, _ in self.instructions()} - INSTRUCTIONS, set())

    def test_the_whole_tree_is_copied_and_nothing_else(self):
        copied = set()
        for name, rest in self.instructions():
            if name == "COPY" and not rest.startswith("--from"):
                copied |= {word.split("/")[0] for word in rest.split()[:-1]}
        for word in copied:
            self.assertTrue(os.path.exists(os.path.join(SOURCE, word)), word)
        top = subprocess.run(["sed", "-n", r"s/^add_subdirectory(\([a-z]*\).*)/\1/p",
                              os.path.join(SOURCE, "CMakeLists.txt")], check=True, text=True,
                             capture_output=True).stdout.split()
        self.assertEqual(set(top) - copied, set())

    def test_runs_unprivileged_with_existing_flags(self):
        last = {name: rest for name, rest in self.instructions()}
        self.assertEqual(last["USER"], "collectord")
        command = json.loads(last["ENTRYPOINT"])
        self.assertEqual(command[0], "collectord")
        self.assertEqual(flags_of(command) - KNOWN, set())
        json.loads(last["HEALTHCHECK"].partition("CMD ")[2])
        defaults = re.findall(r"127\.0\.0\.1:(\d+)", HELP)
        self.assertEqual(sorted(last["EXPOSE"].split()), sorted(defaults[:2]))


@unittest.skipIf(yaml is None, "apt install python3-yaml")
class Compose(unittest.TestCase):
    def setUp(self):
        self.text = read("deploy/compose.yaml")
        self.services = yaml.safe_load(self.text)["services"]

    def test_collectors_take_their_flags(self):
        self.assertEqual(len(self.services), 2)
        for name, one in self.services.items():
            settings, fault = effective_settings(one["command"])
            self.assertIsNotNone(settings, fault)
            self.assertEqual(one["hostname"], name)
            inside = {address.rpartition(":")[2]
                      for address in (settings["ingest"], settings["control"], settings["metrics"])}
            self.assertEqual({port.split(":")[-1] for port in one["ports"]}, inside)
            # Which ones everybody may reach needs what makes that safe.
            for key in ("tls_certificate", "tls_key", "token_file", "control_token_file"):
                self.assertTrue(settings[key].startswith("/certs/"), key)

    def test_ports_and_folders_of_two_are_two(self):
        published = [port.rpartition(":")[0] for one in self.services.values() for port in one["ports"]]
        self.assertEqual(len(published), len(set(published)))
        folders = [one["volumes"][0].split(":") for one in self.services.values()]
        self.assertEqual({inside for _, inside in folders}, {"/var/lib/collectord"})
        self.assertEqual(len({outside for outside, _ in folders}), 2)
        for outside, _ in folders:
            self.assertIn("mkdir -p", self.text)
            self.assertIn(outside.removeprefix("./"), self.text.split("name: collectord")[0])

    def test_names_only_things_that_exist(self):
        for one in self.services.values():
            if "build" in one:
                self.assertTrue(os.path.exists(os.path.join(SOURCE, one["build"]["dockerfile"])))
            for volume in one["volumes"]:
                self.assertTrue(volume.startswith("./"), volume)
        # Each variable that must be set is explained where it is used.
        for variable in re.findall(r"\$\{(\w+):\?[^}]*first lines of this file", self.text):
            self.assertIn("export " + variable, self.text.split("name: collectord")[0])
        self.assertNotRegex(self.text, r"\$\{\w+\}")


class Documents(unittest.TestCase):
    def test_every_file_has_its_line(self):
        shown = set(re.findall(r"^\| (.*?) \|", read("deploy/README.md"), re.M))
        shown = {name.rstrip("/") for cell in shown for name in re.findall(r"`([^`]+)`", cell)}
        listed = subprocess.run(["git", "-C", SOURCE, "ls-files", "deploy"], text=True,
                                capture_output=True, check=False)
        if listed.returncode != 0:
            self.skipTest("this is no checkout")
        there = {path.split("/")[1] for path in listed.stdout.split()} - {"README.md"}
        self.assertEqual(there - shown, set())

    def test_units_have_flags_that_exist(self):
        for line in re.findall(r"^ExecStart=(.*)$", read("deploy/systemd/collectord.service"), re.M):
            self.assertEqual(flags_of(line.split()) - KNOWN, set())


CASE = '<testcase name="%s" classname="Storage">%s</testcase>'
REPORT = '<testsuites><testsuite name="Storage">%s</testsuite></testsuites>'


class SkippedTests(unittest.TestCase):
    def test_all_kinds_are_counted_with_their_reason(self):
        with tempfile.TemporaryDirectory() as folder:
            def write(name, text):
                with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                    file.write(text)
                return os.path.join(folder, name)

            write("storage_test.xml", REPORT % (
                CASE % ("Whole", '<skipped message="./a.cc:7&#x0A;there is no pack"/>') +
                CASE % ("Part", '<properties><property name="left_out" value="no node"/>'
                                '<property name="seed" value="7"/></properties>') +
                CASE % ("Ran", "")))
            write("cut_test.xml", "<testsuites><tests")
            log = write("ctest.log", " 3/9 Test  #31: adb_build ......***Skipped   0.02 sec\n"
                                     " 4/9 Test  #32: adb_test .......   Passed   0.02 sec\n")
            outputs = write("LastTest.log", "7/9 Testing: agents_test\n"
                            "test_arm (__main__.Elf.test_arm) ... skipped 'not built'\n"
                            "test_x (__main__.Elf.test_x) ... ok\n")
            listed = subprocess.run(
                [sys.executable, os.path.join(SOURCE, "deploy/skipped_tests.py"), folder, log, outputs],
                text=True, capture_output=True, check=True).stdout
        self.assertEqual(listed.splitlines(), [
            "4 tests did not run, or not all of them:",
            "  1 × there is no pack", "      storage_test Storage.Whole",
            "  1 × a part of it: no node", "      storage_test Storage.Part",
            "  1 × the whole test skipped itself or could not be started", "      adb_build",
            "  1 × not built", "      agents_test test_arm",
            "the 2 slowest, in seconds:", "      0.0  adb_test", "      0.0  adb_build"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
