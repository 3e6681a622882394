#!/usr/bin/env python3
"""An HTTP server that gives scripted answers. Usage: scripted_server.py '[[STATUS, BODY], …]'. Prints its port. The
last answer is that of all later requests; a BODY that is [TEXT, COUNT] is that often the text; GET gives the requests so far: [[path, headers, body in hexadecimal], …].
Ends with its standard input."""

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ANSWERS, SEEN = json.loads(sys.argv[1]), []


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, status, text):
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def do_GET(self):
        self.answer(200, json.dumps(SEEN).encode())

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        SEEN.append([self.path, {name.lower(): value for name, value in self.headers.items()}, body.hex()])
        status, text = ANSWERS[min(len(SEEN), len(ANSWERS)) - 1]
        text = text if isinstance(text, str) else text[0] * text[1]
        self.answer(status, text.encode())

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(server.server_address[1], flush=True)
sys.stdin.read()
