#!/usr/bin/env python3
"""transcript_test.py COLLECTORD COLLECTCTL SESSION_TXT WIRE_MD: the transcript of a whole session
beside WIRE.md holds in itself, and replayed byte for byte to the real collector it goes as it says."""
import hashlib
import hmac
import json
import os
import re
import socket
import struct
import subprocess
import sys
import unittest

from collector_of_test import PATIENCE, CollectorTest

COLLECTORD, COLLECTCTL, TRANSCRIPT, WIRE = map(os.path.abspath, sys.argv[1:5])
PAGE = 19


def crc32c(data):
    """RFC 3720, bit by bit."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


class Transcript:
    """values: {name: (kind, bytes)}; frames: [(sender, channel, name, words)]."""

    def __init__(self, path):
        self.values, self.frames = {}, []
        words = []
        with open(path) as file:
            for line in file:
                line = line.split("#")[0].rstrip()
                if line.startswith("= "):
                    _, name, kind = line.split()
                    words = []
                    self.values[name] = (kind, words)
                elif line[:2] in ("> ", "< "):
                    sender, channel, name = line.split()
                    words = []
                    self.frames.append((sender, channel, name, words))
                else:
                    words += line.split()
        self.values = {name: (kind, bytes.fromhex("".join(words))) for name, (kind, words) in self.values.items()}

    def kind(self, name):
        return self.values[name][0]


def assembled(words, values):
    return b"".join(values[word[1:-1]] if word[0] == "{" else bytes.fromhex(word) for word in words)


def resealed(frame):
    """With the length and the checksums of what is in it."""
    body = frame[24:]
    head = frame[:8] + struct.pack("<II", len(body), crc32c(body)) + frame[16:20]
    return head + struct.pack("<I", crc32c(head)) + body


def proof_of(values):
    process_id, nonce = bytes(range(0x10, 0x20)), bytes(range(0x50, 0x60))
    text = b"collect-wire agent resume\0" + bytes([0, 2]) + process_id + nonce + values["data_nonce"]
    return hmac.new(values["resume_key"], text, hashlib.sha256).digest()


class TranscriptTest(CollectorTest):
    collectord = COLLECTORD

    def setUp(self):
        super().setUp()
        self.transcript = Transcript(TRANSCRIPT)
        self.example = {name: value for name, (_, value) in self.transcript.values.items()}

    def test_it_holds_in_itself(self):
        with open(WIRE) as file:
            numbers = {name: int(number) for number, name in
                       re.findall(r"^\| (\d+) \| (\w+) \| (?:both|data|control) \|", file.read(), re.M)}
        self.assertGreater(len(self.transcript.frames), 20)
        for sender, channel, name, words in self.transcript.frames:
            frame = assembled(words, self.example)
            magic, kind, flags, size, body_crc, reserved, head_crc = struct.unpack("<4sHHIIII", frame[:24])
            said = (magic, kind, flags, size, reserved, head_crc)
            checked = frame[24:96] if kind == PAGE else frame[24:]
            with self.subTest(sender + channel + name):
                self.assertEqual(said, (b"CLW1", numbers[name], 0, len(frame) - 24, 0, crc32c(frame[:20])))
                self.assertEqual(body_crc, crc32c(checked))
                if kind == PAGE:
                    self.assertEqual(struct.unpack_from("<I", frame, 24 + 24)[0], crc32c(frame[96:]))
        self.assertEqual(self.example["resume_proof"], proof_of(self.example))
        self.assertEqual({word[1:-1] for *_, words in self.transcript.frames for word in words if word[0] == "{"},
                         set(self.example))

    # ---- the replay

    def read(self, link, size):
        data = b""
        while len(data) < size:
            some = link.recv(size - len(data))
            self.assertNotEqual(some, b"", "the collector closed the connection")
            data += some
        return data

    def next_frame(self, link, wanted):
        """The next frame that may not come at any time."""
        while True:
            head = self.read(link, 24)
            frame = head + self.read(link, struct.unpack_from("<I", head, 8)[0])
            kind = frame[4]
            if kind == wanted or kind not in (35, 37):  # ClockProbe, Heartbeat
                return frame

    def matched(self, words, frame, values):
        """Takes the values of names out of the frame. Without a name every byte is compared."""
        if all(word[0] != "{" for word in words):
            self.assertEqual(frame.hex(" "), " ".join(words))
            return
        self.assertEqual(frame, resealed(frame))
        self.assertEqual(frame[:8].hex(" "), " ".join(words[:8]))
        at = 24
        for word in words[24:]:
            size = 1
            if word[0] == "{":
                name = word[1:-1]
                if self.transcript.kind(name) == "varint":
                    while frame[at + size - 1] >= 0x80:
                        size += 1
                elif self.transcript.kind(name) == "string":
                    size += frame[at]
                else:
                    size = len(self.example[name])
                values[name] = frame[at:at + size]
            else:
                self.assertEqual(frame[at:at + 1].hex(), word)
            at += size
        self.assertEqual(at, len(frame))

    def test_the_collector_goes_as_it_says(self):
        host, port = self.start_collector().rsplit(":", 1)
        links, values = {}, {}
        for sender, channel, name, words in self.transcript.frames:
            if channel not in links:
                links[channel] = socket.create_connection((host, int(port)), PATIENCE)
                self.addCleanup(links[channel].close)
            if sender == "<":
                with self.subTest(channel + " " + name):
                    self.matched(words, self.next_frame(links[channel], int(words[4], 16)), values)
                continue
            if "{resume_proof}" in words:
                values["resume_proof"] = proof_of(values)
            frame = assembled(words, values)
            links[channel].sendall(frame if all(word[0] != "{" for word in words) else resealed(frame))
        while links["control"].recv(4096):  # probes and heartbeats
            pass
        links["data"].close()
        session = self.session()
        checked = subprocess.run([COLLECTCTL, "verify", session], capture_output=True, text=True)
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)
        dumped = subprocess.run([COLLECTCTL, "dump", "--json", session], capture_output=True, text=True, check=True)
        events = [json.loads(line) for line in dumped.stdout.splitlines()]
        self.assertEqual([(event["kind"], int(event["function_id"], 16)) for event in events],
                         [("call", 0x40), ("call", 0x80), ("return", 0x80), ("return", 0x40)])
        with open(os.path.join(session, "manifest.json")) as file:
            self.assertEqual(json.load(file)["process"]["tag"], "transcript")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[5:])
