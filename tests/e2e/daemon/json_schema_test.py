#!/usr/bin/env python3
"""json_schema_test.py COLLECTORD COLLECTCTL AGENT_LIBRARY TRACED_PROGRAM SCHEMA: every command of
collectctl that knows --json, run on a real recording and on a real collector, prints what the schema
says, and nothing else. Skipped (77) without the Python package jsonschema."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

try:
    import jsonschema
except ImportError:
    print("skipped: no Python package jsonschema")
    sys.exit(77)

COLLECTORD, COLLECTCTL, AGENT, PROGRAM, SCHEMA_FILE = map(os.path.abspath, sys.argv[1:6])
CONFORMANCE, LOADER = (os.path.join(os.path.dirname(COLLECTCTL), name) for name in ("collect-conformance", "collect-load"))
PATIENCE = 60
with open(SCHEMA_FILE) as schema_file:
    SCHEMA = json.load(schema_file)
SCRIPTED_SERVER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "daemon", "warehouse", "scripted_server.py")
GUIDE = os.path.join(os.path.dirname(SCHEMA_FILE), "..", "guide", "json.md")
# What are maps: their keys are names of the recording, or sentences.
MAPS = {"counts", "left_out", "events_by_name", "registers", "args"}
# The manifest itself, whose format STORAGE.md describes.
NO_DIALECT = {"manifest"}

# Answers that look like others: of the same command for another format or another phone.
WITHOUT_EXAMPLE = {
    "failure", "inspect_atf", "inspect_rtc", "inspect_wtf",
    "inspect_dial9", "inspect_rejected", "dump_event", "dump_stall", "dump_detail", "dump_rtc",
    "dump_wtf",
}

validated = set()  # definitions that an answer was compared with
asked = set()      # commands that were asked for JSON


def validator(name):
    return jsonschema.Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": SCHEMA["$defs"]})


def environment(**more):
    clean = {key: value for key, value in os.environ.items() if not key.startswith("COLLECT_")}
    return {**clean, "COLLECT_AGENT_LIBRARY": AGENT, "COLLECT_COLLECTORD": COLLECTORD, "TZ": "UTC", **more}


def words_of(arguments):
    """The command's name: the leading words that are commands."""
    known = commands_with_json()
    for count in (2, 1):
        name = " ".join(arguments[:count])
        if name in known:
            return name
    return arguments[0]


_commands = None


def commands_with_json():
    global _commands
    if _commands is None:
        _commands = set()

        def look(path):
            text = subprocess.run([COLLECTCTL, *path, "--help"], capture_output=True, text=True,
                                  check=True).stdout
            if path and re.search(r"^ +--json\b", text, re.M):
                _commands.add(" ".join(path))
            # Each group of subcommands ends before the footer, whose lines are not indented so.
            for part in re.findall(r"^(?:Subcommands|[A-Z][a-z ]+):\n((?:  \S.*\n(?:   .*\n)*)+)", text, re.M):
                for word in re.findall(r"^  ([a-z][a-z-]*) {2,}", part, re.M):
                    if len(path) < 2 and word not in path:
                        if subprocess.run([COLLECTCTL, *path, word, "--help"], capture_output=True).returncode == 0:
                            look([*path, word])
        look([])
    return _commands


class JsonTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="json_schema_")
        cls.root = os.path.join(cls.folder.name, "traces")
        done = cls.ctl("run", "--json", "--detail", "on", "--sample", "1kHz", "-o", cls.root, "--", PROGRAM, "400")
        assert done.returncode == 0, done.stderr
        cls.summary = json.loads(done.stderr.strip().splitlines()[-1])
        cls.session = cls.summary["sessions"][0]["path"]

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def ctl(cls, *arguments, **more):
        if "--json" in arguments:
            asked.add(words_of(arguments))
        return subprocess.run([COLLECTCTL, *arguments], capture_output=True, text=True, timeout=PATIENCE,
                              cwd=cls.folder.name, env=environment(), **more)

    def at(self, name):
        return os.path.join(self.folder.name, name)

    def check(self, name, document):
        validated.add(name)
        errors = [f"{list(error.absolute_path)}: {error.message}"
                  for error in validator(name).iter_errors(document)]
        self.assertEqual(errors, [], f"{name}: {json.dumps(document)[:400]}")
        self.check_keys(document)

    def check_keys(self, value):
        if isinstance(value, dict):
            for key, item in value.items():
                self.assertRegex(key, r"^[a-z][a-z0-9_]*$")
                self.assertIsNotNone(item, key)
                if key not in MAPS:
                    self.check_keys(item)
        elif isinstance(value, list):
            for item in value:
                self.check_keys(item)

    def lines(self, name, text):
        documents = [json.loads(line) for line in text.splitlines()]
        for document in documents:
            self.assertEqual(next(iter(document)), "version", "it is first")
            self.check(name, document)
        return documents

    def answer(self, name, *arguments, code=0):
        """The one document that a command prints."""
        done = self.ctl(*arguments, "--json")
        self.assertEqual(done.returncode, code, f"{arguments}: {done.stdout[-300:]} {done.stderr[-300:]}")
        documents = self.lines(name, done.stdout)
        self.assertEqual(len(documents), 1, arguments)
        return documents[0]


class Files(JsonTest):
    def test_run(self):
        self.check("run", self.summary)
        self.assertGreater(self.summary["sessions"][0]["events"], 100)
        self.assertEqual(self.summary["sessions"][0]["state"], "complete")
        filtered = self.ctl("run", "--json", "--only", "qu*", "--only", "nothing_is_called_so", "-o",
                            self.at("filtered"), "--", PROGRAM, "50")
        self.assertEqual(filtered.returncode, 125)
        self.assertEqual(self.lines("run", filtered.stderr)[0]["unmatched"], ["nothing_is_called_so"])

    def test_sessions_of_a_directory(self):
        stored = self.answer("sessions", "sessions", self.root)["sessions"]
        self.assertEqual(len(stored), 1)
        said = self.summary["sessions"][0]
        for key in ("name", "state", "pid", "process_name", "threads", "events", "detail_records",
                    "lost_events", "losses_known", "stored_bytes", "symbols", "path"):
            self.assertEqual(stored[0][key], said[key], key)
        # The collector's own begin is a little before that of the files.
        self.assertEqual(stored[0]["start_time"][:16], said["start_time"][:16])

    def test_session(self):
        inspected = self.answer("inspect", "inspect", self.session)
        self.check("inspect_atf", inspected)
        self.assertEqual(self.answer("verify", "verify", self.session)["ok"], True)
        for more in ((), ("--detail",), ("--merged",), ("--merged", self.root)):
            done = self.ctl("dump", "--json", "--limit", "3000", self.session, *more)
            self.assertEqual(done.returncode, 0, done.stderr)
            dumped = self.lines("dump", done.stdout)
            self.assertGreater(len(dumped), 100)
            self.assertLessEqual({"call", "return"}, {event["kind"] for event in dumped})
        self.assertEqual(self.answer("symbolize", "symbolize", self.session)["path"], self.session)
        self.answer("recover", "recover", self.session)
        files = self.answer("pack", "pack", self.session)["sessions"][0]["files"]
        self.assertGreater(files, 0)
        self.assertEqual(self.answer("verify", "verify", self.session)["ok"], True)
        self.assertEqual(self.answer("inspect_atf", "inspect", self.session), inspected)
        self.assertEqual(self.answer("pack", "unpack", self.session)["sessions"][0]["files"], files)
        merged = self.answer("merge", "merge", self.session, "-o", self.at("merged"))
        self.assertEqual([part["path"] for part in merged["sessions"][0]["parts"]],
                         [os.path.realpath(self.session)])
        self.assertEqual(merged["sessions"][0]["missing"], [])
        # A server that takes everything.
        server = subprocess.Popen([sys.executable, "-B", SCRIPTED_SERVER, '[[200, ""]]'], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True)
        done = subprocess.run([LOADER, self.session, "--json", "--server", "http://127.0.0.1:" + server.stdout.readline().strip()],
                              capture_output=True, text=True, env=environment())
        server.communicate()
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        loaded = self.lines("load", done.stdout)[0]
        self.assertEqual([part["outcome"] for part in loaded["parts"]], ["loaded"])

    def test_store(self):
        fake = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "daemon", "upload", "fake_s3.py")
        with subprocess.Popen([sys.executable, "-B", fake, "traces"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              text=True) as server:
            os.environ.update(AWS_ENDPOINT_URL=f"http://127.0.0.1:{int(server.stdout.readline())}",
                              AWS_ACCESS_KEY_ID="FAKEACCESSKEY", AWS_SECRET_ACCESS_KEY="fake/secret+key")
            store = "s3://traces"
            self.answer("failure", "sessions", "--store", store, code=2)
            uploaded = self.answer("upload", "upload", self.session, "--store", store)["sessions"]
            self.assertEqual([one["was_there"] for one in uploaded], [False])
            self.assertEqual(self.answer("sessions", "sessions", "--store", store)["sessions"][0]["path"],
                             uploaded[0]["url"])
            checked = self.answer("verify_store", "verify", store)["sessions"]
            self.assertEqual([one["report"]["ok"] for one in checked], [True])
            self.answer("download_store", "download", store, "-o", self.at("from_store"))
            os.environ["AWS_SECRET_ACCESS_KEY"] = "wrong"
            self.assertIn("error", self.answer("upload", "upload", self.session, "--store", store, code=1)["sessions"][0])
            server.stdin.close()

    def test_plan(self):
        plan = self.answer("plan", "list", "--plan", "/usr/bin/perl")
        self.assertGreater(plan["recorded"], 1000)
        self.assertEqual(len(plan["left_out"]), plan["functions"] - plan["recorded"])
        self.assertEqual(sum(one["functions"] for one in plan["reasons"]), len(plan["left_out"]))
        self.assertEqual(self.answer("failure", "list", "--plan", SCHEMA_FILE, code=1)["error"]["code"], "unsupported")

    def test_list(self):
        plan = self.answer("plan", "list", "--plan", "/usr/bin/lua5.4")
        functions = self.answer("list", "list", "--all", "/usr/bin/lua5.4")["functions"]
        self.assertEqual(len(functions), plan["functions"])
        self.assertEqual({one["address"]: one["reason"] for one in functions if not one["recorded"]},
                         {one["address"]: one["reason"] for one in plan["left_out"]})
        self.assertIn("lua_newstate", {one.get("name") for one in functions})
        some = self.answer("list_functions", "list", "--function", "lua_push*", "/usr/bin/lua5.4")["functions"]
        self.assertGreater(len(some), 5)
        self.assertTrue(all(one["name"].startswith("lua_push") and one["recorded"] for one in some), some)
        self.assertEqual(self.answer("failure", "list", "--function", "absent", "/usr/bin/lua5.4", code=1)["error"]["code"],
                         "not_found")
        with subprocess.Popen(["/usr/bin/lua5.4", "-"], stdin=subprocess.PIPE) as program:
            process = self.answer("list_process", "list", str(program.pid))
            program.stdin.close()
        self.assertEqual((process["pid"], process["name"], process["has_agent"]), (program.pid, "lua5.4", False))
        own = {os.path.basename(file["path"]): file for file in process["files"]}["lua5.4"]
        self.assertEqual((own["functions"], own["recorded"]), (plan["functions"], plan["recorded"]))
        self.assertEqual(self.answer("failure", "list", str(program.pid), code=2)["error"]["code"], "not_found")

    def test_detail_alone(self):
        detail = os.path.join(self.session, "thread_0", "detail.atf")
        copy = self.at("detail.atf")
        with open(detail, "rb") as source, open(copy, "wb") as target:
            target.write(source.read())
        dumped = self.lines("dump", self.ctl("dump", "--json", "--limit", "20", copy).stdout)
        self.assertTrue(all("registers" in record or "payload" in record for record in dumped))
        for record in dumped:
            self.check("dump_detail", record)

    def test_report(self):
        by_name = {row["name"]: row for row in self.answer("report", "report", self.session)["functions"]}
        quick = next(row for name, row in by_name.items() if "quick" in name)
        source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "programs", "moods.cc")
        with open(source, encoding="utf-8") as file:
            begins = [n for n, line in enumerate(file, 1) if " void quick() {" in line]
        self.assertTrue(quick["file"].endswith("tests/e2e/programs/moods.cc"), quick)
        self.assertEqual([quick["line"]], begins)
        for by in ("thread", "module", "caller"):
            self.answer("report", "report", "--by", by, self.session)
        self.answer("report", "report", "--from", "1ms", "--until", "200ms", self.session)
        self.answer("report_graph", "report", "--graph", "quick", self.session)
        self.answer("report_locks", "report", "--locks", self.session)
        # Where the kernel says when threads were off the processor, and where they ran.
        with open(os.path.join(self.session, "manifest.json"), encoding="utf-8") as manifest:
            process = json.load(manifest)["process"]
        for kind, is_known in (("waits", "switches" in process), ("samples", "sample_hz" in process)):
            if is_known:
                self.answer("report_" + kind, "report", "--" + kind, self.session)
            else:
                validated.add("report_" + kind)
                self.answer("failure", "report", "--" + kind, self.session, code=1)
        for by in ("function", "thread", "module", "caller"):
            self.answer("report_diff", "report", "--by", by, self.session, "--diff", self.session)

    def test_other_formats(self):
        made = {}
        for target in ("rtc", "wtf", "wtf-json", "dial9", "atf", "perfetto", "folded"):
            made[target] = self.at("made." + target)
            self.answer("convert", "convert", self.session, "--to", target, "-o", made[target])
        for target, definition in (("rtc", "rtc"), ("wtf", "wtf"), ("wtf-json", "wtf"), ("dial9", "dial9")):
            self.answer("inspect", "inspect", made[target])
            self.answer("inspect_" + definition, "inspect", made[target])
            self.answer("verify", "verify", made[target])
            self.answer("recover", "recover", made[target], "-o", self.at("whole." + target))
            if target == "dial9":
                continue
            done = self.ctl("dump", "--json", "--limit", "500", made[target])
            self.assertEqual(done.returncode, 0, done.stderr)
            for line in self.lines("dump", done.stdout):
                self.check("dump_" + definition, line)

    def test_unreadable_captures_match_the_schema(self):
        text = self.at("text")
        with open(text, "w") as file:
            file.write("no capture at all\n")
        self.answer("inspect_rejected", "inspect", text, code=1)
        cut = self.at("cut.rtc")
        self.answer("convert", "convert", self.session, "--to", "rtc", "-o", cut)
        with open(cut, "r+b") as file:
            file.truncate(os.path.getsize(cut) // 2)
        found = self.answer("verify", "verify", cut, code=1)
        self.assertEqual(found["ok"], False)

    def test_a_damaged_session(self):
        copy = self.at("damaged/session_20250101_000000/pid_1")
        os.makedirs(os.path.dirname(copy))
        subprocess.run(["cp", "-r", self.session, copy], check=True)
        with open(os.path.join(copy, "thread_0", "index.atf"), "r+b") as file:
            file.truncate(1000)
        found = self.answer("verify", "verify", copy, code=1)
        self.assertTrue(found["findings"])
        with open(os.path.join(copy, "manifest.json"), "w") as file:
            file.write("{")
        found = self.answer("verify", "verify", copy, code=1)
        self.assertTrue(any("pointer" in finding for finding in found["findings"]))
        listed = self.answer("sessions", "sessions", self.at("damaged"), code=1)["sessions"]
        self.assertEqual(listed[0]["state"], "failed")

    def test_errors_are_objects(self):
        none = self.at("none")
        for arguments in (("inspect", none), ("verify", none), ("dump", none), ("report", none),
                          ("recover", none), ("symbolize", none), ("sessions", none),
                          ("merge", none, "-o", self.at("x")), ("pack", none), ("unpack", none),
                          ("convert", none, "--to", "rtc", "-o", self.at("x.rtc"))):
            said = self.answer("failure", *arguments, code=2)
            self.assertEqual(said["error"]["code"], "not_found", arguments)
        said = self.answer("failure", "report", self.session, "--from", "noon", code=2)
        self.assertEqual(said["error"]["code"], "invalid_argument")
        self.assertIn("--from", said["error"]["message"])
        said = self.answer("failure", "dump", self.session, "--thread", "99", code=1)
        self.assertEqual(said["error"]["code"], "not_found")
        self.answer("failure", "verify", "--no-such-option", code=2)
        self.answer("failure", "repport", code=2)
        # run says it where its summary would stand.
        done = self.ctl("run", "--json", "--", self.at("no_program"))
        self.assertEqual((done.returncode, done.stdout), (127, ""))
        self.lines("failure", done.stderr)
        for command in (("sessions",), ("agents",), ("collectors",), ("stop",), ("watch",), ("dump", "--follow"), ("top",)):
            done = self.ctl(*command, "--json", "--control", "127.0.0.1:1")
            self.assertEqual((done.returncode, done.stderr), (1, ""), command)
            self.assertEqual(self.lines("failure", done.stdout)[0]["error"]["code"], "unavailable")


class Collector(JsonTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        read, write = os.pipe()
        cls.log = open(os.path.join(cls.folder.name, "log"), "w")
        cls.collector = subprocess.Popen(
            [COLLECTORD, "--root", os.path.join(cls.folder.name, "store"), "--ingest", "127.0.0.1:0",
             "--control", "127.0.0.1:0", "--adb", "off", "--usbmux", "off", "--ready-fd", str(write)],
            pass_fds=[write], stdout=cls.log, stderr=cls.log, env=environment())
        os.close(write)
        with os.fdopen(read) as ready:
            addresses = json.loads(ready.readline())
        cls.control = addresses["control"]
        cls.ingest = addresses["ingest"]
        cls.program = subprocess.Popen(
            [PROGRAM, "600000"], stdout=subprocess.DEVNULL,
            env=environment(LD_PRELOAD=AGENT, COLLECT_CONNECT=addresses["ingest"]))

    @classmethod
    def tearDownClass(cls):
        for process in (cls.program, cls.collector):
            process.send_signal(signal.SIGTERM)
            process.wait(PATIENCE)
        cls.log.close()
        super().tearDownClass()

    def online(self, name, *arguments, code=0):
        return self.answer(name, *arguments, "--control", self.control, code=code)

    def wait_for(self, what, is_there):
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            if is_there():
                return
            time.sleep(0.1)
        self.fail(what)

    def first_line(self, name, *arguments):
        """Of a command that continues."""
        asked.add(words_of(arguments))
        process = subprocess.Popen([COLLECTCTL, *arguments, "--json", "--control", self.control],
                                   stdout=subprocess.PIPE, text=True, env=environment())
        try:
            return self.lines(name, process.stdout.readline())[0]
        finally:
            process.kill()
            process.wait(PATIENCE)
            process.stdout.close()

    def recording(self):
        return [one for one in self.online("sessions", "sessions")["sessions"] if one.get("state") == "recording"]

    # One after another, as a day goes; the last ones end the agent.
    def test_a_day_of_work(self):
        self.wait_for("no session", lambda: any(one["events"] > 100 for one in self.recording()))
        agent = self.online("agents", "agents")["agents"][0]
        self.assertEqual(agent["state"], "recording")
        self.assertGreater(self.online("collectors", "collectors")["events_stored"], 100)
        self.assertEqual(self.first_line("watch", "watch")["state"], "recording")
        batch = self.online("dump_follow", "dump", "--follow", "--duration", "1s", "--interval", "2s")
        self.assertGreater(len(batch["calls"]), 10)
        top = self.online("top", "top", "--once")
        self.assertEqual(top["activity"]["session"], top["session"]["name"])
        self.assertGreater(len(top["activity"]["functions"]), 1)
        self.assertEqual(self.first_line("watch_agents", "watch", "--agents")["kind"], "present")
        self.online("devices", "devices")
        self.first_line("devices_watch", "devices", "--watch")
        self.online("detail", "detail", "start", "--arm")
        self.online("detail", "detail", "start", "--function", "quick", "--duration", "100ms")
        self.online("detail", "detail", "stop")
        self.online("failure", "detail", "start", "--function", "no_such_function", code=1)
        self.online("trigger", "trigger", "--set", "--function", "slow", "--longer-than", "5ms", "--duration", "10ms",
                    "--times", "1")
        shown = self.online("trigger", "trigger")["outcomes"][0]["triggers"][0]
        self.assertEqual((shown["event"], shown["longer_than_s"]), ("long_call", 0.005))
        self.online("trigger", "trigger", "--set", "--counter", "mood", "--above", "48", "--times", "1")
        self.online("trigger", "trigger", "--clear")
        self.online("filter", "filter", "--set", "--only", "qu*")
        self.online("filter_shown", "filter")
        self.online("filter", "filter", "--clear")
        self.online("annotate", "annotate", "here")
        self.online("snapshot", "snapshot")
        rules = {"rules": [{"target": {"process_name": "absent*"}, "action": "record", "duration_s": 1.5,
                            "detail": {"mode": "on", "functions": ["a*"]}, "when_full": "drop"}]}
        with open(self.at("rules.json"), "w") as file:
            json.dump(rules, file)
        self.check("rules", rules)
        shown = self.online("rules", "rules", "--set", self.at("rules.json"))
        self.assertEqual(shown["rules"][0]["duration_s"], 1.5)
        self.assertEqual(self.online("rules", "rules"), shown)
        self.assertEqual(self.online("rules", "rules", "--clear")["rules"], [])

        stopped = self.online("stop", "stop")["outcomes"][0]["session"]
        self.wait_for("not sealed", lambda: not self.recording())
        manifest = json.loads(self.ctl("inspect", "--at-collector", "--json", "--control", self.control).stdout)
        self.assertEqual(manifest["state"], "complete")
        files = self.online("files", "inspect", "--at-collector", "--files", stopped["name"])
        self.assertIn("manifest.json", {file["path"] for file in files["files"]})
        copy = self.at("copy")
        self.assertEqual(self.online("download", "download", stopped["name"], "-o", copy)["files"],
                         len(files["files"]))
        made = self.online("convert_session", "convert", "--at-collector", stopped["name"], "--atf-version", "1")
        self.online("delete", "delete", made["session"]["name"])
        self.online("failure", "delete", made["session"]["name"], code=1)
        started = self.online("start", "start", "--duration", "60s")
        self.assertIn("session", started["outcomes"][0])
        self.online("failure", "start", code=1)  # no agent is idle
        self.assertEqual(self.online("threads", "agents", "--threads", agent["name"])["agent"], agent["name"])
        self.assertEqual(self.online("detach", "detach", agent["name"])["name"], agent["name"])
        # No one listens there; it is dialled until it is let go.
        dialled = self.online("attach", "attach", "127.0.0.1:1")
        self.assertEqual(dialled["state"], "dialling")
        self.online("detach", "detach", dialled["name"])

    def test_doctor(self):
        self.assertIn("works", self.answer("doctor", "doctor", "-o", self.at("store")))

    def test_conformance(self):
        def said(name, *arguments, code=0):
            done = subprocess.run([CONFORMANCE, "--json", *arguments], capture_output=True, text=True, timeout=PATIENCE,
                                  env=environment())
            self.assertEqual((done.returncode, done.stderr), (code, ""))
            return self.lines(name, done.stdout)[0]

        done = said("conformance", "--check", "opening", "--check", "agent-token", self.ingest)
        self.assertEqual([one["result"] for one in done["checks"]], ["ok", "skipped"])
        failed = said("conformance", "--timeout", "100ms", "--check", "opening", "--", "true", code=1)
        self.assertEqual([one["result"] for one in failed["checks"]], ["failed"])
        said("conformance_list", "--list")
        said("failure", "127.0.0.1:1", code=125)
        said("failure", "--check", "no-such-check", self.ingest, code=2)


class Schema(unittest.TestCase):
    def test_is_one(self):
        jsonschema.Draft202012Validator.check_schema(SCHEMA)

    def test_every_object_is_closed(self):
        def look(where, value):
            if isinstance(value, dict):
                if isinstance(value.get("properties"), dict) and "type" in value:
                    self.assertIs(value.get("additionalProperties"), False, where)
                    self.assertLessEqual(set(value.get("required", [])), set(value["properties"]), where)
                for key, item in value.items():
                    look(where + "/" + key, item)
        look("#", SCHEMA)

    def test_the_examples_of_the_guide(self):
        with open(GUIDE) as guide:
            text = guide.read()
        examples = re.findall(r"^\*\*[^\n]*\*\* \(`(\w+)`\)\n\n```json\n(.*?)\n```$", text, re.M | re.S)
        self.assertEqual(len(examples), text.count("```json"))
        answers = {name for name, one in SCHEMA["$defs"].items() if "version" in one.get("properties", {})}
        self.assertEqual(answers - {name for name, _ in examples}, WITHOUT_EXAMPLE,
                         "an answer needs an example in json.md")
        for name, example in examples:
            self.assertEqual([error.message for error in validator(name).iter_errors(json.loads(example))], [], name)

    def test_a_new_field_is_noticed(self):
        good = {"version": 1, "path": "x", "result": "whole", "missing": []}
        self.assertTrue(validator("recover").is_valid(good))
        for bad in ({**good, "new": 1}, {**good, "version": 2}, {**good, "missing": None},
                    {key: value for key, value in good.items() if key != "path"}):
            self.assertFalse(validator("recover").is_valid(bad), bad)


class Whole(unittest.TestCase):
    """Runs last: what the others have looked at."""

    def test_every_command_was_asked(self):
        # They need a phone; tests/e2e/phones/android_test.cc and ios_test.cc read their summaries.
        phones = {"android run", "android attach", "ios run", "ios attach"}
        self.assertGreater(len(commands_with_json()), 30)
        self.assertEqual(commands_with_json() - asked - phones, set())

    def test_every_definition_was_used(self):
        used = set(re.findall(r'"\$ref": "#/\$defs/(\w+)"', json.dumps(SCHEMA))) | validated
        self.assertEqual(set(SCHEMA["$defs"]) - used, set())


if __name__ == "__main__":
    loader = unittest.TestLoader()
    suite = unittest.TestSuite(loader.loadTestsFromTestCase(case) for case in (Schema, Files, Collector, Whole))
    sys.exit(0 if unittest.TextTestRunner(verbosity=2).run(suite).wasSuccessful() else 1)
