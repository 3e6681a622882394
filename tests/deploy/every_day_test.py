#!/usr/bin/env python3
"""A person's day: the commands of README.md "Every day" and of the guide's how-to.md, as they are
written there, and what follows each other in two terminals. Every command of these pages and of the
tutorial is run here, or has a reason in NOT_HERE.
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
del sys.argv[1:3]
BIN = os.path.join(BUILD, "bin")
PATIENCE = 120  # seconds: a bound, for a busy machine
BUILT = []  # the program below, for all tests after the first

# Makes some calls; with "on", or as a server, until the file "end" is there.
APP = r"""
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <pthread.h>
#include <thread>
int parse(int n) { return n * 7; }
int parse_char(int n) { return n + 1; }
int parse_word(int n) {
  std::this_thread::sleep_for(std::chrono::milliseconds(6));
  return parse(n) + parse_char(n);
}
void begin_frame() {}
void end_frame() {}
void handle_request(int n) {
  begin_frame();
  parse_word(n);
  end_frame();
}
void store(int n) { volatile int kept = n; (void)kept; }
int main(int argc, char** argv) {
  const bool goes_on = (argc > 1 && std::strcmp(argv[1], "on") == 0) || std::strstr(argv[0], "server");
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(5);
  std::thread worker([&] {
    pthread_setname_np(pthread_self(), "worker 1");
    for (int n = 0; n < 5 || goes_on; ++n) {
      handle_request(n);
      store(n);
      if (std::filesystem::exists("end") || std::chrono::steady_clock::now() > end) break;
    }
  });
  worker.join();
}
"""

# Sections of how-to.md and single commands that need more than this machine, and where they are tested.
SECTIONS_NOT_HERE = {
    "Several collectors": "other machines; e2e_store_test merges their parts",
    "Keep sessions in object storage": "no store; e2e_store_test",
}
NOT_HERE = {
    "sudo mount -t tmpfs -o size=8g,huge=within_size,uid=$(id -u) tmpfs /mnt/traces": "needs root",
    "collect-conformance -- ./program_with_an_agent": "e2e_conformance_test",
    "collect-conformance 127.0.0.1:7710": "e2e_conformance_test",
    "collectctl android run com.example.app": "no phone; e2e_android_test",
    "collectctl android attach --dynamic --max-time 10s com.example.app": "no phone; e2e_android_attach_test",
    "collectctl ios run UDID com.example.app": "no phone; e2e_ios_test",
    "clickhouse-client --query 'CREATE DATABASE collect'": "no server, with all of its block; e2e_warehouse_test",
    "collectctl symbolize --debuginfod PATH": "no servers; e2e_debuginfod_test",
    "collectctl report --tui PATH": "no terminal; e2e_tui_test",
}
# What a line needs beside us; without it the line is skipped.
NEEDS = {"buf curl": "buf", "grpcurl": "grpcurl", "collectctl query": "duckdb", "| jq": "jq", "| less": "less",
         "lua5.4": "lua5.4", "perl": "perl"}
# What a line may end with where that is not 0.
ENDINGS = {
    r"start\b": (0, 1),  # all agents may record already
    r"doctor": (0, 1),  # this machine lacks something
    r"recover damaged.rtc": (1,),  # not all of it is there
    r"run -- ./words crash": (134,),
}


def blocks(document):
    """(section, commands) of each indented block: no comments, a continued command is one line."""
    with open(os.path.join(SOURCE, document), encoding="utf-8") as file:
        text = re.sub(r"\\\n\s*", "", re.sub(r"^```.*?^```", "", file.read(), flags=re.S | re.M))
    section, found = "", []
    for part in re.findall(r"^## .*|(?:^    .*\n)+", text, re.M):
        if part.startswith("## "):
            section = part[3:]
            continue
        lines = [re.sub(r"(^|\s+)#.*", "", line[4:]) for line in part.split("\n")]
        found.append((section, [line for line in lines if line]))
    return found


class DayTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="every_day_")
        self.work = self.made("work")
        self.home = self.made("home")
        self.environment = {name: value for name, value in os.environ.items()
                            if not name.startswith("COLLECT_")}
        self.environment.update(
            HOME=self.home, XDG_RUNTIME_DIR=self.made("runtime", 0o700), PATH=BIN + ":" + os.environ["PATH"],
            BROWSER=self.browser(), LC_ALL="C.UTF-8")
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

    def browser(self):
        """A user who looks at the page, and ends what serves it."""
        path = os.path.join(self.folder, "browser")
        with open(path, "w", encoding="utf-8") as file:
            file.write('#!/bin/sh\ncase $1 in http://127.0.0.1:*/#token=*) kill -INT $PPID;; file:///*) ;; *) exit 1;; esac\n')
        os.chmod(path, 0o755)
        return path

    def write_words(self):
        """The tutorial's first program. Returns the text of the tutorial."""
        with open(os.path.join(SOURCE, "deploy/guide/tutorial.md"), encoding="utf-8") as file:
            text = file.read()
        with open(os.path.join(self.work, "words.cc"), "w", encoding="utf-8") as file:
            file.write(re.search(r"```cpp\n(.*?)```", text, re.S)[1])
        return text

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
        app = os.path.join(self.work, "app")
        if not BUILT:
            self.does("g++ -g -finstrument-functions -finstrument-functions-exclude-file-list=/usr/ -o app app.cc")
            with open(app, "rb") as file:
                BUILT.append(file.read())
        with open(app, "wb") as file:
            file.write(BUILT[0])
        os.chmod(app, 0o755)

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


class PagesTest(DayTest):
    """A page from top to bottom, as a reader types it. Placeholders (PATH, 4711, a port) are replaced,
    commands that run until Ctrl-C get a time limit, and collectors and servers run in the background."""

    def setUp(self):
        super().setUp()
        self.environment["LD_LIBRARY_PATH"] = os.path.join(BUILD, "lib")
        with open(os.path.join(self.work, "script.pl"), "w", encoding="utf-8") as file:
            file.write("my $n = 0; $n += $_ for 1..1000; print $n, \"\\n\";\n")
        with open(os.path.join(self.work, "script.lua"), "w", encoding="utf-8") as file:
            file.write("local n = 0 for i = 1, 1000 do n = n + i end print(n)\n")
        for folder in ("work/build", "work/traces"):  # a user's unstripped files; a mount
            self.made(folder)
        self.ports = {}

    def start_redis(self):
        """A server that was not built for it, and a pidof that finds this one even where another runs."""
        self.does("g++ -g -o redis-server app.cc")
        self.server = self.start("./redis-server")
        self.does(f"printf '#!/bin/sh\\necho {self.server.pid}\\n' > ../pidof && chmod 755 ../pidof")
        self.environment["PATH"] = self.folder + ":" + self.environment["PATH"]

    def test_the_every_day_commands_of_the_readme_work_as_they_are_written(self):
        lines = [line for section, block in blocks("README.md") if section == "Every day" for line in block]
        self.assertEqual(sum(line.startswith("collect") for line in lines), 10)
        self.start_redis()
        for line in lines:
            self.run_line(line)

    def test_the_commands_of_the_how_to_page_work_as_they_are_written(self):
        page = blocks("deploy/guide/how-to.md")
        known = {line for _, block in page for line in block} | {section for section, _ in page}
        self.assertEqual({*NOT_HERE, *SECTIONS_NOT_HERE} - known, set(), "no more in how-to.md")
        lines = [line for section, block in page for line in block
                 if section not in (*SECTIONS_NOT_HERE, "Remote collectors")
                 and not block[0].startswith(("Environment=", "clickhouse-client")) and line not in NOT_HERE]
        self.assertGreater(len(lines), 60)
        self.start_redis()
        for line in lines:
            self.run_line(line)

    def test_the_commands_of_the_tutorial_work_as_they_are_written(self):
        self.build()
        self.write_words()
        for _, block in blocks("deploy/guide/tutorial.md"):
            for line in block:
                self.run_line(line)

    def test_the_commands_for_a_remote_collector_work_as_they_are_written(self):
        self.build()
        for section, block in blocks("deploy/guide/how-to.md"):
            for line in block:
                if section == "Remote collectors":
                    self.run_line(line)
        self.assertTrue(any(name.startswith("session_") for name in os.listdir(os.path.join(self.work, "ada_traces"))))

    def run_line(self, line):
        if any(part in line and not shutil.which(name) for part, name in NEEDS.items()):
            return
        if line.startswith("collectord"):
            self.start_collector(line)
        elif line.startswith("export "):
            done = self.does(self.with_our_names(line) + "; env -0").stdout
            self.environment = dict(one.split("=", 1) for one in done.split("\0") if one)
        elif "./server" in line:
            self.does("cp app server")
            self.start("env " + self.with_our_names(line))
            self.records()
        else:
            with self.subTest(line):
                codes = (codes for end, codes in ENDINGS.items() if re.match("collectctl " + end, line))
                self.does(self.with_our_names(line), codes=next(codes, (0,)))

    def start_collector(self, line):
        """A collector at free ports, with an idle agent and a program that keeps recording."""
        line = re.sub(r"--web$", "--web 127.0.0.1:0", re.sub(r"0\.0\.0\.0:\d+", "127.0.0.1:0", line))
        if "--ingest" not in line:
            line += " --ingest 127.0.0.1:0 --control 127.0.0.1:0"
        ready = os.path.join(self.folder, "ready")
        self.collector = self.start(f"{line} --ready-fd 3 3>{ready}")
        self.until(lambda: os.path.exists(ready) and os.path.getsize(ready), "no collector")
        with open(ready, encoding="utf-8") as file:
            self.ports = json.loads(file.read())
        if "--tls" in line:
            return
        # At the default port the commands find the collector without this variable.
        self.environment["COLLECT_CONTROL"] = self.ports["control"]
        self.start(f"env COLLECT_CONNECT={self.ports['ingest']} COLLECT_START=idle LD_PRELOAD=libcollect_agent.so ./app on")
        self.until(lambda: "idle" in self.shell("collectctl agents").stdout, "no idle agent")
        self.start("collectctl run -- ./app on")
        self.records()
        # A complete session, newer than the one that still records.
        self.does("collectctl run -- ./app")

    def session(self, state):
        sessions = json.loads(self.does("collectctl sessions ~/traces --json").stdout)["sessions"]
        return next(one["path"] for one in sessions
                    if one["state"] == state and one["process_name"] in ("app", "server"))

    def with_our_names(self, line):
        if line == "collectctl recover PATH":
            self.collector.kill()  # so it left a session unsealed
            self.collector.wait()
            line = line.replace("PATH", self.session("recording"))
        if line.startswith("collectctl recover damaged.rtc"):
            self.does("head -c -100 app.rtc > damaged.rtc")
        if " trace.json" in line:  # another tool's
            self.does(f"collectctl convert {self.session('complete')} --to chrome --force -o trace.json && gzip -kf trace.json")
        if line.startswith("collectctl convert --at-collector"):
            self.does("collectctl run -- ./app")  # the newest is sealed
        if re.search(r"\b(PATH|OLD|NEW)\b", line):
            sealed = self.session("complete")
            line = re.sub(r"\b(PATH|OLD|NEW)\b", sealed, line)
            line = line.replace("--thread 4711", "--thread " + sealed.split("_")[-1])
        if re.search(r"\b(PID|4711)\b", line):
            line = re.sub(r"\b(PID|4711)\b", str(self.server.pid), line)
        for name, written in (("ingest", "127.0.0.1:7710"), ("control", "localhost:7711"), ("control", "ADDRESS")):
            line = line.replace(written, self.ports.get(name, written))
        for name, written in (("ingest", "build.example.org:7710"), ("control", "build.example.org:7711")):
            line = line.replace(written, "localhost:" + self.ports.get(name, "").split(":")[-1])
        line = line.replace("build.example.org", "localhost").replace("/usr/share/collectord", SOURCE + "/deploy")
        line = line.replace("/mnt/traces", "traces")
        if line.startswith("collectctl attach"):
            line = line.replace(" --max-time 10s", "").replace("collectctl attach", "collectctl attach --max-time 1s")
        if line.startswith("collectctl dump --follow"):
            line += " --duration 1s"
        if line == "collectctl watch":
            line = "timeout 1 collectctl watch || [ $? = 124 ]"
        return line + " --once" if line == "collectctl top" else line


class TutorialTest(DayTest):
    def test_its_first_outputs_have_the_lines_and_columns_of_today(self):
        text = self.write_words()
        summary, table, events = (block for _, block in re.findall(r"```(\w*)\n(.*?)```", text, re.S)[1:4])
        commands = re.findall(r"^    ((?:g\+\+|collectctl) .*)$", text, re.M)
        self.does(commands[0])
        run = self.does(commands[1])
        self.assertEqual(run.stdout, "4 words\n")
        self.assertEqual(commands[2:4], ["collectctl report", "collectctl dump --limit 8"])
        report, dump = self.does(commands[2]), self.does(commands[3])

        def labels(lines):  # what is before the figures of each line, and the functions behind them
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
    def test_commands_without_a_path_take_the_last_run_of_any_collector(self):
        self.build()
        self.does("collectctl run -- ./app")  # an older one, in this directory
        older = self.does("collectctl inspect --json").stdout
        # The machine's collector, as after the installation of the package.
        traces = self.made("machine")
        self.start(f"collectord --root {traces} --ingest 127.0.0.1:0 --control unix:{self.folder}/control",
                   folder=self.folder)
        control = f"unix:{self.folder}/control"
        self.until(lambda: self.shell(f"collectctl --control {control} collectors").returncode == 0, "no collector")
        self.does(f"collectctl --control {control} run -- ./app")
        newest = self.does("collectctl inspect --json")
        self.assertNotEqual(newest.stdout, older)
        self.assertIn(traces, newest.stdout)
        self.assertIn("collectctl: takes your newest recording, " + traces, newest.stderr)
        elsewhere = self.made("elsewhere")
        for command in ("report", "verify", "dump --limit 3", "open --no-browser --no-serve", "symbolize",
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
        unreachable = self.shell("collectctl collectors", COLLECT_CONTROL="127.0.0.1:1")
        self.assertEqual(unreachable.returncode, 1)  # what is given comes first
        self.start("collectctl run -o mine -- ./app on")
        elsewhere = self.made("elsewhere")
        self.records(folder=elsewhere)
        for command in ("sessions", "agents", "collectors", "detail start", "detail stop",
                        "trigger --set --function parse --duration 1s", "trigger --clear", "annotate here",
                        "top --once", "dump --follow --duration 1s", "report", "open --no-browser --no-serve"):
            self.does("collectctl " + command, folder=elsewhere)
        self.assertIn("detail stays armed", self.does(
            "collectctl trigger --set --function parse --longer-than 1h --pre-roll 1s --duration 1s && collectctl trigger --clear",
            folder=elsewhere).stderr)

        # A second one: which is meant cannot be known, and both are named.
        second = self.start("collectctl run -o other -- ./app on")
        def both():
            done = self.shell("collectctl agents", elsewhere)
            return done.returncode == 1 and done
        said = self.until(both, "the second collector is not known").stderr
        self.assertRegex(said, r"several collectors of yours (run|record): 127\.0\.0\.1:\d+ \(.*/(mine|other)\), ")
        self.assertIn("--control", said)
        control = re.search(r"(127\.0\.0\.1:\d+) \([^)]*/mine\)", said)[1]
        self.does(f"collectctl --control {control} agents", folder=elsewhere)
        # What runs is shown all the same.
        shown = self.does("collectctl collectors", folder=elsewhere).stdout
        self.assertRegex(shown, r"(?s)root +/.*/(mine|other)\n.*root +/.*/(mine|other)\n")
        self.does("collectctl collectors", folder=elsewhere, COLLECT_CONTROL=control)
        self.assertIsNone(second.poll())

    def test_one_that_was_killed_is_forgotten(self):
        self.build()
        collector = self.start("collectord --root killed --ingest 127.0.0.1:0 --control 127.0.0.1:0")
        self.until(lambda: self.shell("collectctl collectors").returncode == 0, "no collector")
        collector.kill()
        collector.wait()
        self.start("collectord --root lives --ingest 127.0.0.1:0 --control 127.0.0.1:0")
        self.until(lambda: "lives" in self.shell("collectctl collectors").stdout, "no second collector")

    def test_a_word_that_is_wrong_is_named(self):
        for line, code, sentence in (
                ("collectctl attach notanumber", 2, '"notanumber" is neither the number of a process nor the address'),
                ("collectctl --control no-such-host.invalid:7711 collectors", 1, 'there is no host "no-such-host.invalid"'),
                ("collectord --rot x", 2, "there is no option --rot (did you mean --root?)"),
                ("collectctl report nothing", 2, "collectctl: nothing: No such file"),
        ):
            self.assertIn(sentence, self.does(line, codes=(code,)).stderr)


if __name__ == "__main__":
    unittest.main()
