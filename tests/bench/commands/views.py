#!/usr/bin/env python3
"""How long a large capture takes to be looked at: index.lod, first picture, windows.

    tests/bench/commands/views.py [--million N] [--threads N] [--windows N] [--directory DIR] [BIN]

Writes a session of N million events below DIR (32 MB each, removed at the end), builds index.lod,
and asks collect-page for what a browser asks collectord for: the page, and the time line of random
windows of any width, with the files in the page cache and without; then the page of the same session
packed. BIN is the directory of the
programs, build/release/bin by default. Prints lines as contract.cc does; memory is the most that
collect-page had of its own (RssAnon: without mapped files), sampled.
"""
import argparse
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
PAGE, BARS, LODS = 0, 2, 5  # PageWant of daemon/web/page_request.h


def own_memory(pid):
    try:
        for line in pathlib.Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines():
            if line.startswith("RssAnon:"):
                return int(line.split()[1]) / 1024
    except OSError:
        pass
    return 0


class Maker:
    """collect-page, asked as collectord asks it."""

    def __init__(self, program, session):
        self.program = program
        self.session = session
        self.most_memory = 0

    def ask(self, want, first=0, last=2 ** 64 - 1):
        request = json.dumps({"directory": list(os.fsencode(self.session)), "can_change": False, "want": want,
                              "first_ns": first, "last_ns": last, "thread": 0, "record": 0})
        begin = time.monotonic()
        with subprocess.Popen([self.program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as running:
            ended = threading.Event()

            def watch():
                while not ended.is_set():
                    self.most_memory = max(self.most_memory, own_memory(running.pid))
                    ended.wait(0.002)
            watcher = threading.Thread(target=watch)
            watcher.start()
            output = running.communicate(request.encode())[0]
            took = time.monotonic() - begin
            ended.set()
            watcher.join()
        if output.startswith(b'{"error"') or running.returncode != 0:
            sys.exit(f"collect-page: {output[:500]!r}")
        return took, output


def drop_cache(session):
    for file in pathlib.Path(session).rglob("*"):
        if file.is_file():
            with open(file, "rb") as opened:
                os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def random_window(first, last, source):
    width = int((last - first) * 10 ** source.uniform(-6, 0))
    begin = first + source.randrange(max(1, last - first - width + 1))
    return begin, begin + width


def say(what, measured, unit, most=None):
    """As contract.cc; `most` is what is promised."""
    promise = "" if most is None else f"   contract <= {most:g}   {'met' if measured <= most else 'MISSED'}"
    print(f"{what:<58} {measured:9.3f} {unit}{promise}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--million", type=int, default=200)
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--windows", type=int, default=1000)
    parser.add_argument("--directory")
    parser.add_argument("bin", nargs="?", default=str(ROOT / "build/release/bin"))
    options = parser.parse_args()
    programs = pathlib.Path(options.bin)
    with tempfile.TemporaryDirectory(dir=options.directory) as directory:
        begin = time.monotonic()
        session = subprocess.run([programs / "bench" / "large_session", directory, str(options.million), str(options.threads)],
                                 check=True, capture_output=True, text=True).stdout.strip()
        of_events = f"of {options.million} million events"
        say(f"a session {of_events}, {options.threads} threads, written in", time.monotonic() - begin, "s")
        maker = Maker(programs / "collect-page", session)
        took, _ = maker.ask(LODS)
        index = sum(f.stat().st_size for f in pathlib.Path(session).rglob("index.atf"))
        lod = sum(f.stat().st_size for f in pathlib.Path(session).rglob("index.lod"))
        events = options.million * 1e6
        say("index.lod, bytes an event", lod / events, "B")
        say("index.lod, of index.atf", 100 * lod / index, "%")
        say("index.lod, made with its checksums", events / took / 1e6, "M_events/s")
        say("memory of collect-page that makes it", maker.most_memory, "MB")
        maker.most_memory = 0
        ways = (("cold", lambda: drop_cache(session)), ("warm", lambda: None))
        first_picture = {}
        for name, prepare in ways:
            prepare()
            first_picture[name], page = maker.ask(PAGE)
            say(f"first picture {of_events}, {name}", first_picture[name], "s", 1)
        say("memory of collect-page that makes it", maker.most_memory, "MB")
        data = json.loads(page.decode().split('<script id="data" type="application/json">')[1].split("</script")[0])
        for name, prepare in ways:
            source, times = random.Random(1), []
            maker.most_memory = 0
            for _ in range(options.windows):
                first, last = random_window(data["first_ns"], data["last_ns"], source)
                prepare()
                times.append(maker.ask(BARS, first, last)[0])
            times.sort()
            say(f"{options.windows} random windows, {name}, median", statistics.median(times) * 1e3, "ms")
            say(f"{options.windows} random windows, {name}, p99", times[int(len(times) * 0.99)] * 1e3, "ms")
        say("memory of collect-page that makes them", maker.most_memory, "MB")
        subprocess.run([programs / "collectctl", "pack", session], check=True, stdout=subprocess.DEVNULL)
        for name, prepare in ways:
            prepare()
            say(f"first picture, packed / not packed, {name}", maker.ask(PAGE)[0] / first_picture[name], "x", 1.3)


main()
