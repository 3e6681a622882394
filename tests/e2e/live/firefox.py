"""Drives Firefox through its own WebDriver BiDi, with the standard library alone."""

import base64
import json
import os
import re
import shutil
import socket
import struct
import subprocess
import tempfile

import browser
from collector import PATIENCE, eventually, text_of

# Nothing is fetched, asked or remembered that a test did not ask for.
PREFERENCES = {
    "app.normandy.enabled": False,
    "app.update.disabledForTesting": True,
    "browser.aboutwelcome.enabled": False,
    "browser.newtabpage.enabled": False,
    "browser.safebrowsing.downloads.enabled": False,
    "browser.safebrowsing.malware.enabled": False,
    "browser.safebrowsing.phishing.enabled": False,
    "browser.shell.checkDefaultBrowser": False,
    "browser.startup.homepage": "about:blank",
    "browser.startup.page": 0,
    "datareporting.policy.dataSubmissionEnabled": False,
    "dom.disable_open_during_load": False,
    "extensions.getAddons.cache.enabled": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "remote.prefs.recommended": True,
    "services.settings.server": "data:,#",
    "toolkit.telemetry.reportingpolicy.firstRun": False,
}
TEXT, CLOSE, PING, PONG = 1, 8, 9, 10  # opcodes of RFC 6455


def missing_programs():
    return [name for name in ("firefox-esr",) if shutil.which(name) is None]


class WebSocket:
    """The client's side, of text messages."""

    def __init__(self, port, path):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=2 * PATIENCE)
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall((f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                             f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n").encode())
        self.input = self.socket.makefile("rb")
        status = self.input.readline()
        if b" 101 " not in status:
            raise AssertionError(f"no WebSocket: {status}")
        while self.input.readline().strip():
            pass

    def close(self):
        self.input.close()
        self.socket.close()

    def send(self, text, opcode=TEXT):
        payload, mask = text.encode() if isinstance(text, str) else text, os.urandom(4)
        size = len(payload)
        head = bytes([0x80 | opcode])
        if size < 126:
            head += bytes([0x80 | size])
        elif size < 1 << 16:
            head += bytes([0x80 | 126]) + struct.pack(">H", size)
        else:
            head += bytes([0x80 | 127]) + struct.pack(">Q", size)
        repeated = (mask * (size // 4 + 1))[:size]
        masked = (int.from_bytes(payload, "big") ^ int.from_bytes(repeated, "big")).to_bytes(size, "big") if size else b""
        self.socket.sendall(head + mask + masked)

    def receive(self):
        whole = b""
        while True:
            first, second = self.input.read(2)
            size = second & 0x7F
            if size == 126:
                size = struct.unpack(">H", self.input.read(2))[0]
            elif size == 127:
                size = struct.unpack(">Q", self.input.read(8))[0]
            payload = self.input.read(size)
            opcode = first & 0x0F
            if opcode == PING:
                self.send(payload, PONG)
                continue
            if opcode == CLOSE:
                raise AssertionError("Firefox closed the connection")
            whole += payload
            if first & 0x80:
                return whole.decode()


class Driver:
    """Every browser is a process of its own; this knows where their logs go."""

    def __init__(self, folder):
        self.folder = folder

    def close(self):
        pass


class BiDiError(Exception):
    pass


class Browser(browser.Browser):
    """A Firefox with an empty profile. `local_names`: hosts that are this machine to it."""

    def __init__(self, driver, size=(1280, 800), dark=False, local_names=()):
        self.profile = tempfile.mkdtemp(prefix="firefox_", dir=driver.folder)
        preferences = {**PREFERENCES, "network.dns.localDomains": ",".join(local_names)}
        with open(os.path.join(self.profile, "user.js"), "w") as file:
            for name, value in preferences.items():
                file.write(f"user_pref({json.dumps(name)}, {json.dumps(value)});\n")
        self.log = os.path.join(self.profile, "firefox.log")
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(
                ["firefox-esr", "--headless", "--no-remote", "--remote-allow-system-access", "--profile", self.profile, "--remote-debugging-port", "0",
                 f"--width={size[0]}", f"--height={size[1]}", "about:blank"],
                stdout=log, stderr=subprocess.STDOUT, env={**os.environ, "HOME": self.profile, "MOZ_CRASHREPORTER_DISABLE": "1"})
        port = eventually(lambda: re.search(r"WebDriver BiDi listening on ws://[^:]+:(\d+)", text_of(self.log)),
                          lambda: text_of(self.log))[1]
        self.socket = WebSocket(int(port), "/session")
        self.asked, self.written = 0, []
        self.ask("session.new", {"capabilities": {"alwaysMatch": {"unhandledPromptBehavior": {"default": "ignore"}}}})
        self.ask("session.subscribe", {"events": ["log.entryAdded", "browsingContext.userPromptOpened"]})
        self.page = self.windows()[0]
        self.ask("browsingContext.setViewport", {"context": self.page, "viewport": {"width": size[0], "height": size[1]}})
        self.color_scheme("dark" if dark else "light")

    def close(self):
        try:
            self.send("browser.close", {})
            self.process.wait(PATIENCE)
        finally:
            self.process.kill()
            self.process.wait()
            self.socket.close()
            shutil.rmtree(self.profile, ignore_errors=True)

    def send(self, method, parameters):
        self.asked += 1
        self.socket.send(json.dumps({"id": self.asked, "method": method, "params": parameters}))
        return self.asked

    def ask(self, method, parameters, until_prompt=False):
        """The answer; None when a prompt of the page came first and `until_prompt`."""
        number = self.send(method, parameters)
        while True:
            message = json.loads(self.socket.receive())
            if message.get("method") == "browsingContext.userPromptOpened" and until_prompt:
                return None
            if message.get("method") == "log.entryAdded" and message["params"]["level"] == "error":
                self.written.append(message["params"]["text"])
            if message.get("id") != number:
                continue
            if message["type"] == "error":
                raise BiDiError(f"{method}: {message['error']}: {message['message']}")
            return message["result"]

    def open(self, url):
        try:
            self.ask("browsingContext.navigate", {"context": self.page, "url": url, "wait": "complete"})
        except BiDiError as error:
            if "Address rejected" not in str(error):  # of a frame in the page
                raise
            self.wait_for("return document.readyState === 'complete' && location.href === arguments[0]", url)

    def refresh(self):
        self.ask("browsingContext.reload", {"context": self.page, "wait": "complete"})

    def contexts(self, root=None):
        return self.ask("browsingContext.getTree", {"root": root} if root else {})["contexts"]

    def address(self):
        return self.contexts(self.page)[0]["url"]

    def run_in(self, context, script, *arguments):
        wrapped = ("function(text) { return Promise.resolve((function() { " + script + " }).apply(null, JSON.parse(text)))"
                   ".then(returned => JSON.stringify(returned === undefined ? null : returned)); }")
        result = self.ask("script.callFunction", {
            "functionDeclaration": wrapped, "arguments": [{"type": "string", "value": json.dumps(arguments)}],
            "awaitPromise": True, "target": {"context": context}, "userActivation": True})
        if result["type"] == "exception":
            raise BiDiError(f"{result['exceptionDetails']['text']}\n{script}")
        return json.loads(result["result"]["value"])

    def run(self, script, *arguments):
        return self.run_in(self.page, script, *arguments)

    def perform(self, actions):
        self.ask("input.performActions", {"context": self.page, "actions": [actions]}, until_prompt=True)

    def accept(self):
        self.ask("browsingContext.handleUserPrompt", {"context": self.page, "accept": True})

    def answer_prompt(self, text):
        self.ask("browsingContext.handleUserPrompt", {"context": self.page, "accept": True, "userText": text})

    def frame_text(self, css):
        """What an iframe shows, once it was loaded: also that it was refused."""
        frames = "[...document.querySelectorAll('iframe')]"
        position = self.run(f"return {frames}.indexOf(document.querySelector(arguments[0]))", css)
        def look():
            context = self.contexts(self.page)[0]["children"][position]["context"]
            return self.run_in(context, "return document.readyState === 'complete' && document.documentURI !== 'about:blank' && document.documentURI + ' ' + document.body.innerText")
        return eventually(look, f"the text of {css}")

    def windows(self):
        return [context["context"] for context in self.contexts()]

    def switch_to(self, window):
        self.page = window

    def color_scheme(self, which):
        chrome = self.ask("browsingContext.getTree", {"moz:scope": "chrome"})["contexts"][0]["context"]
        self.run_in(chrome, "Services.prefs.setIntPref('layout.css.prefers-color-scheme.content-override', arguments[0])",
                    0 if which == "dark" else 1)
        self.wait_for("return matchMedia(`(prefers-color-scheme: ${arguments[0]})`).matches", which)

    def errors(self):
        """What pages wrote to the console as errors since the last time."""
        self.windows()  # what was written before comes before this answer
        errors, self.written = self.written, []
        # It asks every server for an icon, and says that the page's policy forbids it.
        return [error for error in errors if "/favicon.ico" not in error]

    def screenshot(self, path):
        image = self.ask("browsingContext.captureScreenshot", {"context": self.page})["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(image))
