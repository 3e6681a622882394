"""A real collector for the tests of the example agents, and the session that it stored."""
import json
import os
import signal
import subprocess
import tempfile
import time
import unittest

PATIENCE = 60


class CollectorTest(unittest.TestCase):
    collectord = ""  # set by the test

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = os.path.join(self.folder.name, "traces")

    def start_collector(self, *more):
        read, write = os.pipe()
        log = open(os.path.join(self.folder.name, "log"), "w")
        self.addCleanup(log.close)
        collector = subprocess.Popen(
            [self.collectord, "--root", self.root, "--ingest", "127.0.0.1:0", "--control", "127.0.0.1:0",
             "--adb", "off", "--usbmux", "off", "--ready-fd", str(write), *more],
            pass_fds=[write], stdout=log, stderr=log)
        os.close(write)
        self.addCleanup(self.stop, collector)
        with os.fdopen(read) as ready:
            return json.loads(ready.readline())["ingest"]

    @staticmethod
    def stop(collector):
        collector.send_signal(signal.SIGTERM)
        collector.wait(PATIENCE)

    def session(self):
        for _ in range(PATIENCE * 10):
            for folder, _, files in os.walk(self.root):
                if "manifest.json" in files:
                    with open(os.path.join(folder, "manifest.json")) as file:
                        if json.load(file)["state"] == "complete":
                            return folder
            time.sleep(0.1)
        self.fail("no session was sealed")
