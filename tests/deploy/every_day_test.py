#!/usr/bin/env python3
"""A person's day: the commands of README.md "Every day", as they are written there, and what follows
each other in two terminals. Every line of that block is run here, or has a reason in NOT_HERE.
Usage: every_day_test.py SOURCE_DIR BUILD_DIR"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

SOURCE, BUILD = sys.argv[1], sys.argv[2]
sys.argv = sys.argv[:1]
BIN = os.path.join(BUILD, "bin")
PATIENCE = 120  # seconds: a bound, for a busy machine

# Makes some calls, and goes on until the file "end" is there when it was told to.
APP = r"""
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <thread>
int parse(int n) { return n * 7; }
int parse_word(int n) {
  std::this_thread::sleep_for(std::chrono::milliseconds(6));
  return parse(n);
}
void store(int n) { volatile int kept = n; (void)kept; }
int main(int argc, char** argv) {
  const bool goes_on = argc > 1 && std::strcmp(argv[1], "on") == 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(5);
  for (int n = 0; n < 5 || goes_on; ++n) {
    store(parse_word(n));
    if (std::filesystem::exists("end") || std::chrono::steady_clock::now() > end) break;
  }
}
"""

NOT_HERE = {
    "collectctl attach $(pidof redis-server)": "no server runs here; e2e_attach_process_test",
    "collectctl android run com.example.app": "no phone; e2e_android_test",
    "collectctl doctor": "says what this machine lacks; ctl_program_test",
    "collectctl dump --merged PHONE SERVER": "two devices; e2e_time_line_test",
    "collectctl upload ada_traces --store s3://traces": "no store; store_test",
    "collectctl download s3://traces -o back": "no store; store_test",
    "collectctl recover damaged.rtc -o whole.rtc": "nothing is damaged; ctl_offline_test",
    "collectctl load --server http://HOST:8123 ~/traces": "no server; warehouse_test",
    "collectctl query --server http://HOST:8123 'SELECT * FROM sessions'": "no server; warehouse_test",
    "collectctl conformance -- ./program_with_an_agent": "e2e_conformance_test",
    "collectord --root ~/traces --web": "the ports of the line before; e2e_web_test",
}
NEEDS_DUCKDB = "collectctl query"


def every_day_lines():
    """The commands of the block, without comments; one that is continued is one line."""
    with open(os.path.join(SOURCE, "README.md"), encoding="utf-8") as file:
        text = file.read()
    block = re.search(r"## Every day\n\n((?:    .*\n)+)", text)[1]
    lines = [re.sub(r"\s+#.*", "", line).strip() for line in block.split("\n")]
    return [line for line in lines if line]


class DayTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="every_day_")
        self.work = self.made("work")
        self.home = self.made("home")
        self.environment = {name: value for name, value in os.environ.items()
                            if not name.startswith("COLLECT_")}
        self.environment.update(
            HOME=self.home, XDG_RUNTIME_DIR=self.made("runtime", 0o700), PATH=BIN + ":" + os.environ["PATH"], BROWSER="true",
            LC_ALL="C.UTF-8")
        self.started = []
        with open(os.path.join(self.work, "app.cc"), "w", encoding="utf-8") as file:
            file.write(APP)

    def tearDown(self):
        self.end_app()
        for process in self.started:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def made(self, name, mode=0o755):
        path = os.path.join(self.folder, name)
        os.makedirs(path, exist_ok=True)
        os.chmod(path, mode)
        return path

    def end_app(self):
        with open(os.path.join(self.work, "end"), "w", encoding="utf-8"):
            pass

    def shell(self, line, folder=None, **more):
        return subprocess.run(["bash", "-c", line], cwd=folder or self.work, env={**self.environment, **more},
                              capture_output=True, text=True, errors="replace", timeout=PATIENCE, check=False)

    def start(self, line, folder=None, **more):
        process = subprocess.Popen(["bash", "-c", "exec " + line], cwd=folder or self.work,
                                   env={**self.environment, **more}, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.started.append(process)
        return process

    def does(self, line, folder=None, codes=(0,), **more):
        done = self.shell(line, folder, **more)
        self.assertIn(done.returncode, codes, f"$ {line}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        return done

    def build(self):
        self.does("g++ -g -finstrument-functions -finstrument-functions-exclude-file-list=/usr/ -o app app.cc")

    def until(self, condition, what):
        end = time.monotonic() + PATIENCE
        while True:
            found = condition()
            if found:
                return found
            self.assertLess(time.monotonic(), end, what)
            time.sleep(0.05)

    def records(self, count=1, folder=None, control=""):
        """Waits until so many sessions record, as the one collector says it."""
        def look():
            done = self.shell(f"collectctl {control} sessions --json", folder)
            return done.returncode == 0 and done.stdout.count('"state":"recording"') >= count
        self.until(look, "no recording began")


class ReadmeTest(DayTest):
    def test_the_every_day_commands_work_as_they_are_written(self):
        lines = every_day_lines()
        self.assertGreater(len(lines), 40)
        unknown = [line for line in NOT_HERE if line not in lines]
        self.assertEqual(unknown, [], "NOT_HERE has lines that README.md has no more")
        with open(os.path.join(self.work, "script.pl"), "w", encoding="utf-8") as file:
            file.write("my $n = 0; $n += $_ for 1..1000; print $n, \"\\n\";\n")
        self.made("work/build")  # where a user's unstripped files are
        for line in lines:
            if line in NOT_HERE or (line.startswith(NEEDS_DUCKDB) and not shutil.which("duckdb")):
                continue
            if line.startswith("collectord"):
                # A collector that goes on, at ports that no other test has, with a program.
                self.start(line + " --ingest 127.0.0.1:0 --control 127.0.0.1:0")
                self.until(lambda: self.shell("collectctl stats").returncode == 0, "no collector")
                control = self.collector()
                self.start(f"collectctl --control {control} run -- ./app on")
                self.records()
                # One that is complete, newer than the one that goes on.
                self.does(f"collectctl --control {control} run -- ./app")
                continue
            with self.subTest(line):
                self.run_line(line)
        self.end_app()

    def collector(self):
        folder = os.path.join(self.environment["XDG_RUNTIME_DIR"], "collectord")
        for name in os.listdir(folder):
            if name.startswith("collector-"):
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    return re.search(r'"control":"([^"]*)"', file.read())[1]
        self.fail("no collector is known")

    def run_line(self, line):
        sealed = ""
        if "~/traces/session" in line or "OLD" in line:
            sessions = json.loads(self.does("collectctl sessions ~/traces --json").stdout)["sessions"]
            sealed = next(one["path"] for one in sessions if one["state"] == "complete")
        written = line.replace("~/traces/session_…/pid_…", sealed)
        written = re.sub(r"\b(OLD|NEW)\b", sealed, written)
        if line.startswith(("collectctl tail", "collectctl watch")):
            written += " --duration 1s"
        if line == "collectctl top":
            written += " --once"
        # A running program is not idle: there is nobody to start.
        codes = (0, 1) if line.startswith("collectctl start") else (0,)
        self.does(written, codes=codes)


class TutorialTest(DayTest):
    def test_its_first_outputs_have_the_lines_and_columns_of_today(self):
        with open(os.path.join(SOURCE, "deploy/guide/tutorial.md"), encoding="utf-8") as file:
            text = file.read()
        blocks = re.findall(r"```(\w*)\n(.*?)```", text, re.S)
        program, summary, table, events = (block for _, block in blocks[:4])
        with open(os.path.join(self.work, "words.cc"), "w", encoding="utf-8") as file:
            file.write(program)
        commands = re.findall(r"^    ((?:g\+\+|collectctl) .*)$", text, re.M)
        self.does(commands[0])
        run = self.does(commands[1])
        self.assertEqual(run.stdout, "4 words\n")
        self.assertEqual(commands[2:4], ["collectctl report", "collectctl dump --limit 8"])
        report, dump = self.does(commands[2]), self.does(commands[3])

        def labels(lines):  # what stands before the figures of each line, and the functions behind them
            return [re.match(r"  (\w* ?\w*) {2,}|", line)[1] for line in lines.rstrip("\n").split("\n")]
        # A program that waited for its collector has a line more.
        self.assertLessEqual(set(labels(summary)), set(labels(run.stderr)))
        for command in re.findall(r"collectctl (\w+)", run.stderr):
            self.assertIn("collectctl " + command, summary + "collectctl detail")
        self.assertEqual(table.split("\n")[0].split(), report.stdout.split("\n")[0].split())
        self.assertLessEqual(self.functions(table), self.functions(report.stdout))
        self.assertLessEqual(self.functions(events), self.functions(dump.stdout))

    @staticmethod
    def functions(text):
        return set(re.findall(r"(?:\w+::)*\w+\([^)]*\)|\bmain\b", text))


class TwoTerminalsTest(DayTest):
    def test_after_a_run_report_and_its_like_take_its_recording_whoever_stored_it(self):
        self.build()
        self.does("collectctl run -- ./app")  # an older one, in this directory
        older = self.does("collectctl inspect --json").stdout
        # The machine's collector, as after the installation of the package.
        traces = self.made("machine")
        self.start(f"collectord --root {traces} --ingest 127.0.0.1:0 --control unix:{self.folder}/control",
                   folder=self.folder)
        control = f"unix:{self.folder}/control"
        self.until(lambda: self.shell(f"collectctl --control {control} stats").returncode == 0, "no collector")
        self.does(f"collectctl --control {control} run -- ./app")
        newest = self.does("collectctl inspect --json")
        self.assertNotEqual(newest.stdout, older)
        self.assertIn(traces, newest.stdout)
        self.assertIn("collectctl: takes your newest recording, " + traces, newest.stderr)
        elsewhere = self.made("elsewhere")
        for command in ("report", "verify", "dump --limit 3", "open --no-browser", "symbolize",
                        "convert --to folded -o app.folded", "inspect"):
            done = self.does("collectctl " + command, folder=elsewhere)
            self.assertIn(traces, done.stderr, command)
        # A path that is given is taken.
        given, newest_then = (json.loads(text) for text in (self.does("collectctl inspect --json ada_traces").stdout, older))
        self.assertEqual(os.path.join(self.work, given.pop("path")), newest_then.pop("path"))
        self.assertEqual(given, newest_then)

    def test_a_run_that_recorded_nothing_is_not_the_newest(self):
        self.build()
        self.does("collectctl run -- ./app")
        first = self.does("collectctl inspect --json").stdout
        missed = self.does("collectctl run --only stor -- ./app", codes=(125,))
        self.assertIn('no function matches "stor"; did you mean store?', missed.stderr)
        self.assertEqual(self.does("collectctl inspect --json").stdout, first)
        named = self.does("collectctl inspect ada_traces")
        self.assertIn("that has events", named.stderr)

    def test_another_terminal_finds_the_collector_of_a_run(self):
        self.build()
        nobody = self.shell("collectctl stats", COLLECT_CONTROL="127.0.0.1:1")
        self.assertEqual(nobody.returncode, 1)  # what is given comes first
        self.start("collectctl run -o mine -- ./app on")
        elsewhere = self.made("elsewhere")
        self.records(folder=elsewhere)
        for command in ("sessions", "agents", "stats", "detail start", "detail stop",
                        "trigger set --function parse --duration 1s", "trigger clear", "annotate here",
                        "top --once", "tail --duration 1s", "report", "open --no-browser"):
            self.does("collectctl " + command, folder=elsewhere)
        self.assertIn("detail stays armed", self.does(
            "collectctl trigger set --function parse --longer-than 1h --pre-roll 1s --duration 1s && collectctl trigger clear",
            folder=elsewhere).stderr)

        # A second one: which is meant cannot be known, and both are named.
        second = self.start("collectctl run -o other -- ./app on")
        def both():
            done = self.shell("collectctl stats", elsewhere)
            return done.returncode == 1 and done
        said = self.until(both, "the second collector is not known").stderr
        self.assertRegex(said, r"several collectors of yours (run|record): 127\.0\.0\.1:\d+ \(.*/(mine|other)\), ")
        self.assertIn("--control", said)
        control = re.search(r"(127\.0\.0\.1:\d+) \([^)]*/mine\)", said)[1]
        self.does(f"collectctl --control {control} stats", folder=elsewhere)
        self.does("collectctl stats", folder=elsewhere, COLLECT_CONTROL=control)
        self.assertIsNone(second.poll())

    def test_one_that_was_killed_is_forgotten(self):
        self.build()
        collector = self.start("collectord --root killed --ingest 127.0.0.1:0 --control 127.0.0.1:0")
        self.until(lambda: self.shell("collectctl stats").returncode == 0, "no collector")
        collector.kill()
        collector.wait()
        self.start("collectord --root lives --ingest 127.0.0.1:0 --control 127.0.0.1:0")
        self.until(lambda: "lives" in self.shell("collectctl stats").stdout, "no second collector")

    def test_a_word_that_is_wrong_is_named(self):
        for line, code, sentence in (
                ("collectctl attach notanumber", 2, '"notanumber" is neither the number of a process nor the address'),
                ("collectctl --control no-such-host.invalid:7711 stats", 1, 'there is no host "no-such-host.invalid"'),
                ("collectord --rot x", 2, "there is no option --rot (did you mean --root?)"),
                ("collectctl report nothing", 2, "collectctl: nothing: No such file"),
        ):
            self.assertIn(sentence, self.does(line, codes=(code,)).stderr)


if __name__ == "__main__":
    unittest.main()
