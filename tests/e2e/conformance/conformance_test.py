#!/usr/bin/env python3
"""conformance_test.py COLLECTORD CONFORMANCE AGENT_LIBRARY TRACED_PROGRAM PYTHON_AGENT: the real
collector, the real agent and the agent in Python pass every check of collect-conformance; with
one mistake, exactly the check of that mistake fails."""
import concurrent.futures
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import unittest

COLLECTORD, CONFORMANCE, LIBRARY, PROGRAM, PYTHON_AGENT = map(os.path.abspath, sys.argv[1:6])
HERE = os.path.dirname(os.path.abspath(__file__))
WIRE = os.path.join(os.path.dirname(PYTHON_AGENT), "..", "WIRE.md")
PATIENCE = 200
# Each check starts its agent again, hundreds of times in all: without the paths of packages.
PYTHON = (sys.executable, "-S")
TOKEN = "correct horse"
SCRIPT = """
def leaf(n):
    return n + 1
for n in range(3000):
    leaf(n)
"""
# They wait for seconds with any collector.
SLOW = {"opening-bound", "pair-ends", "silent-agent"}
SLOW_OF_AGENTS = {"resume", "silent-collector", "final-refusal", "page-codecs"}
# A mistake of the agent, and what has to fail.
AGENT_FAULTS = {
    "body_checksum": {"whole-frames"}, "page_checksum": {"whole-frames"}, "header_flags": {"whole-frames"},
    "record_gap": {"record-numbers"}, "late_stream": {"streams-first"}, "time_steps_back": {"record-times"},
    "page_times": {"page-header"}, "module_missing": {"modules-first"}, "same_nonce": {"fresh-nonces"},
    "other_process": {"one-process"}, "no_resume_proof": {"resume-proof"}, "no_stream_close": {"stream-close"},
    "wrong_count": {"stream-close"}, "no_recording_end": {"recording-end"}, "no_bye": {"bye"},
    "no_heartbeat": {"heartbeats"}, "no_clock_reply": {"clock-reply"}, "wrong_clock_reply": {"clock-reply"},
    "two_results": {"commands"}, "any_command_is_done": {"unknown-command"},
    "unknown_is_refused": {"unknown-frame"}, "any_magic": {"bad-magic"},
    "any_header_checksum": {"bad-header-checksum"}, "any_body_checksum": {"bad-body-checksum"},
    "any_length": {"frame-too-long"}, "any_channel": {"wrong-channel"}, "any_side": {"wrong-side"},
    "no_timeout": {"silent-collector"}, "bye_is_ignored": {"collector-bye"},
}
# The same of the collector.
COLLECTOR_FAULTS = {
    "ack_beyond": {"acks", "resume"}, "never_closed": {"close-acked"}, "ended_once": {"recording-ended"},
    "resume_beyond": {"resume", "page-twice"}, "no_resume": {"resume", "close-acked"},
    "other_code": {"resume-proof-missing", "resume-proof-wrong"}, "no_probes": {"clock-probes"},
    "more_features": {"features"}, "other_version": {"opening"},
    "ack_flags": {"whole-frames"}, "unknown_refused": {"unknown-frame"}, "page_mended": {"page-bytes-checksum"},
}


class Conformance(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="conformance_")
        self.addCleanup(self.folder.cleanup)
        self.script = os.path.join(self.folder.name, "script.py")
        with open(self.script, "w") as file:
            file.write(SCRIPT)
        self.token = os.path.join(self.folder.name, "token")
        with open(self.token, "w") as file:
            file.write(TOKEN + "\n")

    def check(self, *arguments, code=0):
        """{check: (result, text)}"""
        done = subprocess.run([CONFORMANCE, "--json", *arguments], capture_output=True,
                              text=True, timeout=PATIENCE)
        self.assertEqual(done.returncode, code, done.stdout[-2000:] + done.stderr[-500:])
        answer = json.loads(done.stdout)
        results = {one["name"]: (one["result"], one.get("text", "")) for one in answer["checks"]}
        for word in ("ok", "failed", "skipped"):
            self.assertEqual(answer[word], sum(result == word for result, _ in results.values()))
        return results

    def check_all(self, slow, *arguments):
        """Every check; the slow ones, which mostly wait, beside the others."""
        agent = arguments[arguments.index("--"):] if "--" in arguments else ("127.0.0.1:1",)
        names = [one["name"] for one in self.listed(*agent)]
        self.assertLessEqual(slow, set(names))
        parts = [[name] for name in sorted(slow)] + [[name for name in names if name not in slow]]
        with concurrent.futures.ThreadPoolExecutor(len(parts)) as pool:
            running = [pool.submit(self.check, *(word for name in part for word in ("--check", name)), *arguments)
                       for part in parts]
        return {name: result for one in running for name, result in one.result().items()}

    def of_result(self, results, word):
        return {name: text for name, (result, text) in results.items() if result == word}

    def start(self, *command, **more):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **more)

        def stop():
            process.send_signal(signal.SIGTERM)
            process.wait(PATIENCE)
            process.stdout.close()
        self.addCleanup(stop)
        return process

    def start_collector(self, *more):
        read, write = os.pipe()
        self.start(COLLECTORD, "--root", os.path.join(self.folder.name, "traces"), "--ingest", "127.0.0.1:0",
                   "--control", "127.0.0.1:0", "--adb", "off", "--usbmux", "off", "--log-level", "off",
                   "--heartbeat-ms", "500", "--ready-fd", str(write), *more, pass_fds=[write], stderr=subprocess.DEVNULL)
        os.close(write)
        with os.fdopen(read) as ready:
            return json.loads(ready.readline())["ingest"]

    def python_agent(self, *more, script=None):
        return ["--", "sh", "-c", 'exec "$0" "$@" "$COLLECT_CONNECT" ' + (script or self.script), *PYTHON, *more]

    def listed(self, *arguments):
        done = subprocess.run([CONFORMANCE, "--list", "--json", *arguments], capture_output=True,
                              text=True, check=True)
        return json.loads(done.stdout)["checks"]

    # ---- who has no mistake

    def test_our_collector(self):
        results = self.check_all(SLOW, self.start_collector())
        self.assertEqual(set(self.of_result(results, "skipped")), {"agent-token"})

    def test_our_collector_with_a_token(self):
        address = self.start_collector("--token-file", self.token)
        names = ("opening", "collector-token", "agent-token", "acks", "resume")
        results = self.check("--token-file", self.token, address,
                             *(word for name in names for word in ("--check", name)))
        self.assertEqual(results, {name: ("ok", "") for name in names})
        with open(self.token, "w") as file:
            file.write("another")
        results = self.check("--token-file", self.token, "--check", "collector-token", address, code=1)
        self.assertIn("it is wrong", results["collector-token"][1])

    def test_our_agent(self):
        results = self.check("--token-file", self.token, "--", "env", "LD_PRELOAD=" + LIBRARY, PROGRAM, "400")
        self.assertEqual(self.of_result(results, "skipped"), {})

    def test_our_agent_with_a_drain_process(self):
        results = self.check("--", "env", "LD_PRELOAD=" + LIBRARY, "COLLECT_DRAIN=process", PROGRAM, "400")
        self.assertEqual(set(self.of_result(results, "skipped")), {"token-proof", "wrong-token"})

    def test_the_python_agent(self):
        results = self.check_all(SLOW_OF_AGENTS, "--token-file", self.token,
                                 *self.python_agent(PYTHON_AGENT, "--token-file", self.token))
        self.assertEqual(set(self.of_result(results, "skipped")), {"page-codecs", "resume"})

    # ---- who has one

    def test_agents_with_a_mistake(self):
        broken = os.path.join(HERE, "conformance_broken_agent.py")
        slow = os.path.join(self.folder.name, "slow.py")
        with open(slow, "w") as file:
            file.write(SCRIPT + "import time\ntime.sleep(5)\n")  # longer than three heartbeats
        names = [one["name"] for one in self.listed("--", "x")]

        def run(fault):
            chosen = [word for name in names if name not in SLOW_OF_AGENTS - AGENT_FAULTS[fault]
                      for word in ("--check", name)]
            program = self.python_agent(broken, PYTHON_AGENT, fault,
                                        script=slow if fault == "no_heartbeat" else self.script)
            return self.check("--timeout", "4s", *chosen, *program, code=1)

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            running = {fault: pool.submit(run, fault) for fault in AGENT_FAULTS}
        for fault, expected in AGENT_FAULTS.items():
            with self.subTest(fault):
                results = running[fault].result()
                self.assertEqual(set(self.of_result(results, "failed")), expected, results)

    def test_collectors_with_a_mistake(self):
        collector = self.start_collector()
        names = [one["name"] for one in self.listed(collector) if one["name"] not in SLOW]
        chosen = [word for name in names for word in ("--check", name)]
        faults = {"none": set(), **COLLECTOR_FAULTS}

        def run(fault):
            proxy = self.start(*PYTHON, os.path.join(HERE, "conformance_proxy.py"), PYTHON_AGENT, fault, collector)
            return self.check("--timeout", "4s", *chosen, proxy.stdout.readline().strip(),
                              code=1 if faults[fault] else 0)

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            running = {fault: pool.submit(run, fault) for fault in faults}
        for fault, expected in faults.items():
            with self.subTest(fault):
                results = running[fault].result()
                self.assertEqual(set(self.of_result(results, "failed")), expected, results)

    # ---- the command

    def test_each_check_names_a_section_of_the_protocol(self):
        with open(WIRE) as file:
            sections = set(re.findall(r"^## (.*)$", file.read(), re.M))
        checks = self.listed()
        self.assertEqual({one["peer"] for one in checks}, {"collector", "agent"})
        self.assertLessEqual({one["section"] for one in checks}, sections)
        for peer in ("collector", "agent"):
            names = [one["name"] for one in checks if one["peer"] == peer]
            self.assertEqual(len(names), len(set(names)))
        self.assertEqual([one for one in checks if one["peer"] == "agent"], self.listed("--", "x"))

    def run_words(self, *arguments):
        done = subprocess.run([CONFORMANCE, *arguments], capture_output=True, text=True,
                              timeout=PATIENCE)
        return done.returncode, done.stdout, done.stderr

    def test_a_line_for_each_check(self):
        code, out, _ = self.run_words("--check", "opening", "--check", "acks", self.start_collector())
        self.assertEqual((code, out), (0, "Opening a connection\n  ok      opening\nAcks and resume\n  ok      acks\n"
                                          "2 ok, 0 failed, 0 skipped\n"))

    def test_wrong_usage_is_2(self):
        for arguments in ((), ("127.0.0.1:1", "--", "true"), ("--check", "openin", "127.0.0.1:1"), ("nowhere",),
                          ("--timeout", "0s", "127.0.0.1:1"), ("--",)):
            code, out, err = self.run_words(*arguments)
            self.assertEqual((code, out), (2, ""), arguments)
            self.assertNotEqual(err, "", arguments)
        self.assertIn("did you mean opening?", self.run_words("--check", "openin", "127.0.0.1:1")[2])

    def test_exits_with_125_when_it_cannot_check(self):
        self.assertEqual(self.run_words("127.0.0.1:1")[0], 125)
        self.assertEqual(self.run_words("--", "/no/such/program")[0], 125)
        self.assertEqual(self.run_words("--token-file", "/no/such/file", "127.0.0.1:1")[0], 125)

    def test_a_program_without_an_agent(self):
        results = self.check("--timeout", "500ms", "--", "sleep", "100", code=1)
        self.assertEqual(self.of_result(results, "failed").keys(), {"opening"})
        self.assertIn("the agent did not connect", results["opening"][1])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[6:], verbosity=2)
