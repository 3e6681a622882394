#!/usr/bin/env python3
"""machine_faults_test.py BIN FAIL_CALLS AGENT.py: faults of this machine under real programs: too few threads, too
little memory, no descriptors. collectord does not start and says why in one sentence (exit 2), or it serves; while it
runs, what is hit fails by itself. Nothing crashes or waits for ever. FAIL_CALLS is programs/preloaded/fail_calls.c."""

import concurrent.futures
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

BIN, FAIL_CALLS, AGENT = map(os.path.abspath, sys.argv[1:4])
PATIENCE = 60
AT_ONCE = 6
PROGRAM = "def work(n):\n    return n if n < 2 else work(n - 1) + work(n - 2)\nwork(9)\n"
IS_ROOT = os.getuid() == 0


def environment(**more):
    clean = {key: value for key, value in os.environ.items() if not key.startswith("COLLECT_")}
    return {**clean, **more}


def limited(limit, uid):
    """The words before a command that runs within an option of prlimit, as that user."""
    words = [] if uid is None else ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups"]
    return [*words, "prlimit", *limit]


class Collector:
    """A daemon with this command before its own. `ready` is None where it ended instead."""

    def __init__(self, folder, before, uid=None, **more):
        self.folder = pathlib.Path(folder)
        self.root = self.folder / "root"
        self.root.mkdir(parents=True)
        if uid is not None:
            os.chown(self.root, uid, uid)
        self.errors = open(self.folder / "errors", "w+", encoding="utf-8")
        self.process = subprocess.Popen(
            [*before, f"{BIN}/collectord", "--ready-fd", "1", "--root", str(self.root), "--ingest", "127.0.0.1:0",
             "--control", "127.0.0.1:0", "--adb", "off", "--usbmux", "off"],
            stdout=subprocess.PIPE, stderr=self.errors, env=environment(**more), text=True)
        line = self.process.stdout.readline()
        self.ready = json.loads(line) if line else None
        if self.ready is None:
            self.process.wait(PATIENCE)

    def said(self):
        return (self.folder / "errors").read_text(encoding="utf-8")

    def record(self):
        """Whether a whole recording came of it."""
        before = set(self.root.glob("session_*/pid_*"))
        program = self.folder / "program.py"
        program.write_text(PROGRAM, encoding="utf-8")
        try:
            subprocess.run([sys.executable, AGENT, self.ready["ingest"], str(program)], env=environment(),
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=PATIENCE, check=False)
        except subprocess.TimeoutExpired:
            return False
        return [self.state(one) for one in set(self.root.glob("session_*/pid_*")) - before] == ["complete"]

    @staticmethod
    def state(directory):
        end = time.monotonic() + PATIENCE
        while True:
            try:
                state = json.loads((directory / "manifest.json").read_bytes())["state"]
            except (OSError, ValueError):
                state = "none"
            if state not in ("recording", "none") or time.monotonic() > end:
                return state
            time.sleep(0.02)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE)

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.errors.close()


class MachineFaultsTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="machine_faults_")
        self.addCleanup(self.folder.cleanup)
        os.chmod(self.folder.name, 0o755)

    def serves(self, limit, uid=None):
        """Started within the limit. None: well, and it served; else what went wrong, or why it did not start."""
        folder = os.path.join(self.folder.name, limit.strip("-").replace("=", "_"))
        collector = Collector(folder, limited([limit], uid), uid)
        try:
            if collector.ready is None:
                lines = collector.said().splitlines()
                if collector.process.returncode == 2 and len(lines) == 1 and lines[0].startswith("collectord: "):
                    return "refused"
                return f"exit {collector.process.returncode}: {collector.said()}"
            asks = limited([], uid) if uid is not None else []
            listed = subprocess.run([*asks, f"{BIN}/collectctl", "--control", collector.ready["control"], "sessions"],
                                    env=environment(), capture_output=True, text=True, timeout=PATIENCE, check=False)
            if listed.returncode != 0:
                return f"sessions: {listed.returncode} {listed.stderr} {collector.said()}"
            if not collector.record():
                return f"not recorded: {collector.process.poll()} {collector.said()}"
            code = collector.stop()
            return "served" if code == 0 else f"exit {code}: {collector.said()}"
        finally:
            collector.close()

    def sweep(self, limits):
        """limits: option -> user. What became of each."""
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            became = dict(zip(limits, pool.map(lambda one: self.serves(*one), limits.items())))
        for limit, outcome in became.items():
            with self.subTest(limit):
                self.assertIn(outcome, ("served", "refused"))
        return list(became.values())

    @unittest.skipUnless(IS_ROOT, "takes root, which becomes users whose threads are counted")
    def test_few_threads(self):
        became = self.sweep({f"--nproc={count}": 640_000 + count for count in [1, *range(5, 46, 5), 100]})
        self.assertEqual(became[1], "refused")
        self.assertEqual(became[-1], "served")

    def test_little_address_space(self):
        became = self.sweep({f"--as={size}000000": None for size in [60, *range(200, 701, 50), 1500]})
        self.assertEqual(became[0:1] + became[-1:], ["refused", "served"])

    def test_few_descriptors(self):  # also bpftrace/bpftrace#2110: ten of them
        became = self.sweep({f"--nofile={count}": None for count in (6, 10, 15, 20, 30, 40, 1024)})
        self.assertEqual(became[-1], "served")

    def runs(self, limit, uid=None):
        """collectctl run, with a collector of its own."""
        folder = pathlib.Path(self.folder.name, limit.strip("-").replace("=", "_"))
        folder.mkdir()
        if uid is not None:
            os.chown(folder, uid, uid)
        try:
            done = subprocess.run([*limited([limit], uid), f"{BIN}/collectctl", "run", "-o", str(folder / "traces"), "--",
                                   "sh", "-c", "exit 7"], cwd=folder, env=environment(HOME=str(folder)),
                                  capture_output=True, text=True, timeout=PATIENCE, check=False)
        except subprocess.TimeoutExpired:
            return "it waits for ever"
        if done.returncode == 7:
            return "ran"
        if done.returncode in (125, 126) and done.stderr.startswith("collectctl: "):
            return "refused"
        return f"exit {done.returncode}: {done.stderr}"

    def test_collectctl_run(self):
        limits = {f"--as={size}000000": None for size in (100, *range(160, 301, 20), 600)}
        limits["--nofile=10"] = None
        if IS_ROOT:
            limits |= {f"--nproc={count}": 641_000 + count for count in (3, 10, 20, 30, 40, 50)}
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            for limit, outcome in zip(limits, pool.map(lambda one: self.runs(*one), limits.items())):
                with self.subTest(limit):
                    self.assertIn(outcome, ("ran", "refused"))

    def fails(self, call, rounds, **more):
        """Each round fails one call further on, while an agent records; behind it another one records completely."""
        collector = Collector(os.path.join(self.folder.name, call), ["env", f"LD_PRELOAD={FAIL_CALLS}"], FAIL_CALL=call,
                              **more)
        self.addCleanup(collector.close)
        self.assertIsNotNone(collector.ready, collector.said())
        for number in range(1, rounds + 1):
            with self.subTest(call, round=number):
                collector.process.send_signal(signal.SIGUSR2)
                collector.record()
                if collector.said().count("fail_calls: ") < number:
                    collector.record()  # it made fewer of them: the next one hits
                    break
                self.assertIsNone(collector.process.poll(), collector.said()[-2000:])
                self.assertTrue(collector.record(), collector.said()[-2000:])
        self.assertEqual(collector.stop(), 0)
        # A recording makes a dozen such calls, more or less; how many depends on the machine.
        self.assertGreaterEqual(collector.said().count("fail_calls: "), rounds // 2)
        for directory in collector.root.glob("session_*/pid_*"):
            self.assertIn(Collector.state(directory), ("complete", "failed", "recovered"), directory)
        # What is there says what is missing, and what it has is as it says.
        checked = subprocess.run([f"{BIN}/collectctl", "verify", "--allow-incomplete", str(collector.root)],
                                 env=environment(), capture_output=True, text=True, timeout=PATIENCE, check=False)
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)

    def test_open_fails(self):
        self.fails("open", 10)

    def test_large_allocations_fail(self):
        self.fails("memory", 10, FAIL_BYTES="4096")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[4:])
