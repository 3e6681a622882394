"""A real collector for the tests that are written in Python, and what it traces."""

import json
import os
import re
import signal
import subprocess
import time

PATIENCE = 60  # seconds


def eventually(look, what, patience=PATIENCE):
    """The first true answer of `look`."""
    end = time.monotonic() + patience
    while True:
        seen = look()
        if seen:
            return seen
        if time.monotonic() > end:
            raise AssertionError(f"not in {patience} s: {what() if callable(what) else what}")
        time.sleep(0.05)


def clean_environment(**more):
    clean = {key: value for key, value in os.environ.items() if not key.startswith("COLLECT_")}
    return {**clean, "TZ": "UTC", **more}


def text_of(path):
    with open(path) as file:
        return file.read()


class Collector:
    """A collectord, and the programs that it traces. `bin` and `lib` are the build's."""

    def __init__(self, bin, lib, folder, web=False, options=()):
        self.bin, self.lib = bin, lib
        page = ["--web", "127.0.0.1:0"] if web else []
        self.root = os.path.join(folder, "root")
        os.mkdir(self.root)
        ready = os.path.join(folder, "ready")
        self.log = os.path.join(folder, "collectord.log")
        with open(ready, "w") as out, open(self.log, "w") as log:
            self.process = subprocess.Popen(
                [os.path.join(bin, "collectord"), "--root", self.root, "--ingest", "127.0.0.1:0", "--control",
                 "127.0.0.1:0", "--adb", "off", "--usbmux", "off", "--ready-fd", "1", *page,
                 *options],
                stdout=out, stderr=log, env=clean_environment())
        eventually(lambda: "}" in text_of(ready), lambda: text_of(self.log))
        self.address = json.loads(text_of(ready))
        if web:
            self.port = int(re.search(r":(\d+)/", self.address["web"])[1])
        self.programs = []

    def close(self):
        for program in self.programs:
            program.kill()
            program.wait()
        self.process.send_signal(signal.SIGCONT)
        self.process.terminate()
        self.process.wait()

    def trace(self, *command, **more):
        program = subprocess.Popen(
            [os.path.join(self.bin, "e2e", command[0]), *command[1:]], stdout=subprocess.DEVNULL,
            env=clean_environment(LD_PRELOAD=os.path.join(self.lib, "libcollect_agent.so"),
                                  COLLECT_CONNECT=self.address["ingest"], **more))
        self.programs.append(program)
        return program

    def command(self, *arguments):
        return [os.path.join(self.bin, "collectctl"), "--control", self.address["control"], *arguments]

    def ctl(self, *arguments):
        done = subprocess.run(self.command(*arguments), capture_output=True, text=True, env=clean_environment(),
                              timeout=PATIENCE)
        return json.loads(done.stdout) if done.stdout else {}

    def session(self, pid):
        """As the control plane has it; empty before it is there."""
        for session in self.ctl("sessions", "--json").get("sessions", []):
            if session["pid"] == pid:
                return session
        return {}

    def wait_for(self, pid, is_wanted):
        return eventually(lambda: (lambda s: s if s and is_wanted(s) else None)(self.session(pid)),
                          lambda: f"{self.session(pid)} {text_of(self.log)}")

    def seal(self, program, wanted=lambda session: True):
        program.wait(PATIENCE)
        return self.wait_for(program.pid, lambda s: s["state"] not in ("recording", "sealing") and
                             s.get("symbols") != "pending" and wanted(s))

    def path_of(self, session):
        return os.path.join(self.root, session["name"].removeprefix("sessions/"))
