#!/usr/bin/env python3
"""How long a large capture takes to be looked at: index.lod, first picture, windows.

    tests/bench/commands/views.py [--million N] [--threads N] [--windows N] [--browser] [--directory DIR] [BIN]

Writes a session of N million events below DIR (32 MB each, removed at the end), builds index.lod,
and asks collect-page for what a browser asks collectord for: the page, and the time line of random
windows of any width, with the files in the page cache and without; then the page of the same session
packed. With --browser also what Chromium makes of it, served by `collectctl open`: how long until there is a
picture, frames a second while it is zoomed, moved and searched, memory of the page and its server. BIN is the
directory of the programs, build/release/bin by default. Prints lines as contract.cc does; memory is the most that
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
PAGE, BARS, LODS = 0, 2, 6  # PageWant of daemon/web/page_request.h


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
                              "first_ns": first, "last_ns": last, "thread": 0, "record": 0, "function": []})
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


# Frames in a row, each of which changes what is seen; drawing alone, and with all that the browser does.
FRAMES = """
  const [view, change, count] = arguments;
  show(view);
  const changes = {
    zoom: i => views[view].range.zoom(i % 40 < 20 ? 0.8 : 1.25, 0.4),
    move: i => views[view].range.pan(i % 40 < 20 ? 0.05 : -0.05),
    search: i => { wanted = "abcdefghij"[i % 10]; },
  };
  views[view].range.reset();
  if (change === "move") views[view].range.show(0.4, 0.5);
  return new Promise(done => {
    const took = [], begin = performance.now();
    const next = () => {
      const at = performance.now();
      changes[change](took.length);
      views[view].draw();
      took.push(performance.now() - at);
      if (took.length < count) { requestAnimationFrame(next); return; }
      took.sort((a, b) => a - b);
      wanted = "";
      done([count / (performance.now() - begin) * 1000, took[count >> 1], took[Math.floor(count * 0.95)]]);
    };
    requestAnimationFrame(next);
  });"""


def look(programs, session, of_events):
    sys.path.insert(0, str(ROOT / "tests/e2e/live"))
    import chromium
    with tempfile.TemporaryDirectory() as scratch:
        opened = subprocess.Popen([programs / "collectctl", "open", "--no-browser", session],
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        driver = chromium.Driver(scratch)
        browser = chromium.Browser(driver, (1920, 1080))
        try:
            address = opened.stdout.readline().strip()
            begin = time.monotonic()
            browser.open(address)
            browser.wait_for("return document.getElementById('graph')?.width > 0 && boxes.length")
            say(f"Chromium, from the address to a picture {of_events}", time.monotonic() - begin, "s")
            for view in ("time", "flame"):
                for change in ("zoom", "move", "search"):
                    frames, median, p95 = browser.run(FRAMES, view, change, 240)
                    say(f"{view}, {change}: frames a second", frames, "/s")
                    say(f"{view}, {change}: a frame is drawn in, median; p95 {p95:.1f} ms", median, "ms")
            say("memory of the page, its scripts", browser.run("return performance.memory.usedJSHeapSize") / 1e6, "MB")
            say("memory of its server", own_memory(opened.pid), "MB")
        finally:
            browser.close()
            driver.close()
            opened.terminate()
            opened.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--million", type=int, default=200)
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--windows", type=int, default=1000)
    parser.add_argument("--browser", action="store_true")
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
        if options.browser:
            look(programs, session, of_events)
        subprocess.run([programs / "collectctl", "pack", session], check=True, stdout=subprocess.DEVNULL)
        for name, prepare in ways:
            prepare()
            say(f"first picture, packed / not packed, {name}", maker.ask(PAGE)[0] / first_picture[name], "x", 1.3)


main()
