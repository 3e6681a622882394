"""Drives Chromium through chromedriver's WebDriver protocol, with the standard library alone."""

import base64
import http.client
import json
import os
import shutil
import subprocess
import tempfile

import browser
from collector import PATIENCE, eventually

START_TRIES = 3
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # the key of an element's id in the protocol


def missing_programs():
    return [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]


class WebDriverError(Exception):
    def __init__(self, value):
        super().__init__(f"{value.get('error')}: {value.get('message')}")


class Driver:
    """One chromedriver process."""

    def __init__(self, folder):
        self.log_path = os.path.join(folder, "chromedriver.log")
        for _ in range(START_TRIES):
            self.port = self._start()
            if self.port:
                return
        raise AssertionError("chromedriver does not start: " + open(self.log_path).read()[-2000:])

    def _start(self):
        log = open(self.log_path, "w")
        self.process = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, stderr=log, text=True)
        log.close()
        for line in self.process.stdout:  # ends with the process
            if "started successfully on port" in line:
                return int(line.rsplit("port", 1)[1].strip(" .\n"))
        self.process.wait()
        return None

    def close(self):
        self.process.terminate()
        self.process.wait()
        self.process.stdout.close()

    def ask(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=2 * PATIENCE)
        try:
            connection.request(method, path, None if body is None else json.dumps(body),
                               {"Content-Type": "application/json"})
            value = json.loads(connection.getresponse().read())["value"]
        finally:
            connection.close()
        if isinstance(value, dict) and "error" in value and "message" in value:
            raise WebDriverError(value)
        return value


class Browser(browser.Browser):
    """A Chromium with an empty profile. `local_names`: hosts that are this machine to it."""

    def __init__(self, driver, size=(1280, 800), dark=False, local_names=()):
        self.driver = driver
        self.profile = tempfile.mkdtemp(prefix="chromium_")
        arguments = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
                     "--disable-background-networking", "--disable-component-update", "--disable-sync",
                     "--disable-dev-shm-usage", f"--user-data-dir={self.profile}", "--lang=en",
                     f"--window-size={size[0]},{size[1]}",
                     "--host-resolver-rules=" + ",".join(f"MAP {name} 127.0.0.1" for name in local_names)]
        if dark:
            arguments.append("--blink-settings=preferredColorScheme=0")
        options = {"args": arguments, "binary": shutil.which("chromium")}
        made = driver.ask("POST", "/session", {"capabilities": {"alwaysMatch": {
            "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"},
            "unhandledPromptBehavior": "ignore"}}})
        self.path = "/session/" + made["sessionId"]
        self.color_scheme("dark" if dark else "light")

    def close(self):
        try:
            self.driver.ask("DELETE", self.path)
        finally:
            shutil.rmtree(self.profile, ignore_errors=True)

    def post(self, path, body=None):
        return self.driver.ask("POST", self.path + path, body or {})

    def get(self, path):
        return self.driver.ask("GET", self.path + path)

    def open(self, url):
        self.post("/url", {"url": url})

    def refresh(self):
        self.post("/refresh")

    def address(self):
        return self.get("/url")

    def run(self, script, *arguments):
        return self.post("/execute/sync", {"script": script, "args": list(arguments)})

    def perform(self, actions):
        self.post("/actions", {"actions": [actions]})

    def accept(self):
        self.post("/alert/accept")

    def answer_prompt(self, text):
        self.post("/alert/text", {"text": text})
        self.post("/alert/accept")

    def frame_text(self, css):
        """What an iframe shows, once it shows something."""
        frame = self.post("/element", {"using": "css selector", "value": css})
        self.post("/frame", {"id": {ELEMENT: frame[ELEMENT]}})
        try:
            return eventually(self.visible_text, f"the text of {css}")
        finally:
            self.post("/frame", {"id": None})

    def windows(self):
        return self.get("/window/handles")

    def switch_to(self, window):
        self.post("/window", {"handle": window})

    def screenshot(self, path):
        with open(path, "wb") as image:
            image.write(base64.b64decode(self.get("/screenshot")))

    def color_scheme(self, which):
        self.devtools("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": which}]})

    def devtools(self, command, parameters):
        return self.post("/goog/cdp/execute", {"cmd": command, "params": parameters})

    def errors(self):
        """What pages wrote to the console as errors since the last time."""
        return [entry["message"] for entry in self.post("/se/log", {"type": "browser"}) if entry["level"] == "SEVERE"]
