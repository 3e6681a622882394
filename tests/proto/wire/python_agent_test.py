#!/usr/bin/env python3
"""python_agent_test.py COLLECTORD COLLECTCTL AGENT: the agent that was written from WIRE.md alone
records a real Python program, and every call that the program makes is stored.
"""
import json
import os
import subprocess
import sys
import unittest

from collector_of_test import PATIENCE, CollectorTest

COLLECTORD, COLLECTCTL, AGENT = sys.argv[1:4]
PROGRAM = """
import sys, threading
def leaf(n):
    return n + 1
def work(times):
    for n in range(times):
        leaf(n)
threads = [threading.Thread(target=work, args=(700 * (i + 1),), name="worker %d" % i) for i in range(3)]
for thread in threads: thread.start()
for thread in threads: thread.join()
work(100)
sys.exit(3)
"""
LEAF_LINE, WORK_LINE = 3, 5
LEAF_CALLS = 700 + 1400 + 2100 + 100


class PythonAgent(CollectorTest):
    collectord = COLLECTORD

    def setUp(self):
        super().setUp()
        self.program = os.path.join(self.folder.name, "program.py")
        with open(self.program, "w") as file:
            file.write(PROGRAM)

    def record(self, address, *more):
        return subprocess.run([sys.executable, AGENT, *more, address, self.program],
                              capture_output=True, text=True, timeout=PATIENCE)

    def test_every_call_is_stored(self):
        ended = self.record(self.start_collector(), "--tag", "snake")
        self.assertEqual((ended.returncode, ended.stderr), (3, ""))
        session = self.session()
        checked = subprocess.run([COLLECTCTL, "verify", session], capture_output=True, text=True)
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)
        dumped = subprocess.run([COLLECTCTL, "dump", "--json", session], capture_output=True, text=True)
        self.assertEqual(dumped.returncode, 0, dumped.stderr)
        with open(os.path.join(session, "manifest.json")) as file:
            manifest = json.load(file)
        modules = {module["path"]: module["module_id"] for module in manifest["modules"]}
        module = modules[self.program]
        calls, returns = {}, {}
        for line in dumped.stdout.splitlines():
            event = json.loads(line)
            counted = calls if event["kind"] == "call" else returns
            function = int(event["function_id"], 16)
            counted[function] = counted.get(function, 0) + 1
        leaf, work = module << 32 | LEAF_LINE, module << 32 | WORK_LINE
        self.assertEqual(calls.get(leaf), LEAF_CALLS)
        self.assertEqual(returns.get(leaf), LEAF_CALLS)
        self.assertEqual(calls.get(work), 4)
        self.assertEqual({thread["name"] for thread in manifest["threads"]} &
                         {"worker 0", "worker 1", "worker 2", "MainThread"},
                         {"worker 0", "worker 1", "worker 2", "MainThread"})
        process = manifest["process"]
        self.assertEqual(process["tag"], "snake")

    def test_a_token_is_proved_by_both(self):
        token = os.path.join(self.folder.name, "token")
        with open(token, "w") as file:
            file.write("correct horse\n")
        address = self.start_collector("--token-file", token)
        self.assertIn("refused", self.record(address).stderr)
        ended = self.record(address, "--token-file", token)
        self.assertEqual((ended.returncode, ended.stderr), (3, ""))
        self.session()
        with open(token, "w") as file:
            file.write("another\n")
        self.assertIn("does not know the token", self.record(address, "--token-file", token).stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
