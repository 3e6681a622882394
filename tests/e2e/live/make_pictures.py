#!/usr/bin/env python3
"""make_pictures.py BIN LIB FOLDER: the pictures of README.md and the guide, taken of a real recording in Chromium."""

import json
import os
import subprocess
import sys
import tempfile

from chromium import Browser, Driver
from collector import eventually

BIN, LIB, FOLDER = map(os.path.abspath, sys.argv[1:4])
SIZE = (1280, 720)
LEAST_RATES = 50  # bars of the rates of the last minute


def main():
    with tempfile.TemporaryDirectory() as scratch:
        ready = os.path.join(scratch, "ready")
        with open(ready, "w") as out:
            collector = subprocess.Popen(
                [f"{BIN}/collectord", "--root", f"{scratch}/root", "--ingest", "127.0.0.1:0", "--control",
                 "127.0.0.1:0", "--adb", "off", "--usbmux", "off", "--web", "127.0.0.1:0", "--ready-fd", "1"],
                stdout=out, stderr=subprocess.DEVNULL)
        address = eventually(lambda: (lambda text: json.loads(text) if "}" in text else None)(open(ready).read()), "ready")
        programs = [subprocess.Popen(
            command, stdout=subprocess.DEVNULL,
            env={**os.environ, "LD_PRELOAD": f"{LIB}/libcollect_agent.so", "COLLECT_CONNECT": address["ingest"],
                 "COLLECT_FULL": "wait", "COLLECT_DRAIN": "process", "COLLECT_LIBCALLS": "on"})
            for command in ([f"{BIN}/e2e/moods", "60000"], [f"{BIN}/json_iso_codes", "60", "2", "1500"])]
        driver = Driver(scratch)
        browser = Browser(driver, SIZE, dark=True)
        try:
            browser.open(address["web"])
            browser.wait_for("return document.querySelectorAll('#sessions tbody tr').length === 2")
            browser.run("const b = [...document.querySelectorAll('#sessions tbody tr')].find(r => r.innerText.includes('moods')).querySelector('button'); b.click()")
            browser.run("window.states = 0; new EventSource('/api/events').addEventListener('state', () => ++states)")
            browser.wait_for("return states > arguments[0]", LEAST_RATES)
            browser.screenshot(f"{FOLDER}/live.png")
            page = browser.run("return [...document.querySelectorAll('#sessions tbody tr')].find(r => r.innerText.includes('json')).querySelector('a').href")
            browser.color_scheme("light")
            browser.open(page)
            browser.wait_for("return document.getElementById('detail')?.textContent")
            browser.press("/", *"scan_string", "escape")
            browser.run("select(boxes.find(b => nameOf(tree().name[b[0]]).includes('::handle('))[0], true)")
            browser.wait_for("return chosenCalls !== null")
            browser.screenshot(f"{FOLDER}/flame.png")
        finally:
            browser.close()
            driver.close()
            for program in programs:
                program.kill()
                program.wait()
            collector.terminate()
            collector.wait()


main()
