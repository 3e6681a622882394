#!/usr/bin/env python3
"""c_agent_test.py COLLECTORD COLLECTCTL PROGRAM: the agent in C that was written from WIRE.md alone
records the program that it is linked into. Every call that the program counts itself is stored, and
the agent keeps to the protocol."""
import json
import os
import subprocess
import sys
import unittest

from collector_of_test import PATIENCE, CollectorTest

COLLECTORD, COLLECTCTL, PROGRAM = map(os.path.abspath, sys.argv[1:4])


class CAgent(CollectorTest):
    collectord = COLLECTORD

    def record(self, address, times=500, **more):
        return subprocess.run([PROGRAM, str(times)], capture_output=True, text=True, timeout=PATIENCE,
                              env={**os.environ, "COLLECT_CONNECT": address, **more})

    def ctl(self, *arguments, code=0):
        done = subprocess.run([COLLECTCTL, *arguments], capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout

    def test_every_call_is_stored(self):
        ended = self.record(self.start_collector())
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        counted = int(ended.stdout)
        self.assertGreater(counted, 10_000)
        session = self.session()
        self.ctl("verify", session)
        inspected = json.loads(self.ctl("inspect", "--json", session))
        self.assertEqual(inspected["events"], 2 * counted)
        self.assertEqual(inspected["lost_events"], 0)
        self.assertEqual([(one["calls"], one["returns"]) for one in inspected["threads"]],
                         [(one["calls"], one["calls"]) for one in inspected["threads"]])
        self.assertEqual(sum(one["calls"] for one in inspected["threads"]), counted)
        self.assertEqual(len(inspected["threads"]), 4)
        # Names come from the file of the module: base and addresses are right.
        self.ctl("symbolize", session)
        rows = json.loads(self.ctl("report", "--json", session))["functions"]
        calls = {row["name"]: row["calls"] for row in rows}
        self.assertEqual(set(calls), {"leaf", "branch", "work", "main"})
        self.assertEqual(calls["main"], 1)
        self.assertEqual(calls["leaf"], calls["branch"])

    def test_a_token_is_proved_by_both(self):
        token = os.path.join(self.folder.name, "token")
        with open(token, "w") as file:
            file.write("correct horse\n")
        address = self.start_collector("--token-file", token)
        self.assertIn("refused", self.record(address).stderr)
        ended = self.record(address, COLLECT_TOKEN_FILE=token)
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        self.session()
        with open(token, "w") as file:
            file.write("another\n")
        self.assertIn("does not know the token", self.record(address, COLLECT_TOKEN_FILE=token).stderr)

    def test_records_nothing_without_a_collector(self):
        environment = {name: value for name, value in os.environ.items() if name != "COLLECT_CONNECT"}
        ended = subprocess.run([PROGRAM], capture_output=True, text=True, timeout=PATIENCE, env=environment)
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        ended = self.record("127.0.0.1:1")
        self.assertEqual(ended.returncode, 0)
        self.assertIn("no collector answers", ended.stderr)

    def test_it_keeps_to_the_protocol(self):
        token = os.path.join(self.folder.name, "token")
        with open(token, "w") as file:
            file.write("correct horse\n")
        answer = json.loads(self.ctl("conformance", "--json", "--timeout", "3s", "--token-file", token, "--", PROGRAM))
        others = {one["name"]: one["text"] for one in answer["checks"] if one["result"] != "ok"}
        self.assertEqual(set(others), {"page-codecs", "resume"}, others)  # which it leaves out


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[4:])
