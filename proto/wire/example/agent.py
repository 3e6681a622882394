#!/usr/bin/env python3
"""A small agent in another language: records the function calls of a Python program.

    agent.py [--token-file FILE] [--tag TAG] HOST:PORT PROGRAM.py [ARGUMENT ...]

It is written from WIRE.md alone ("A minimal agent") and needs only Python's standard library. Every
call and return of a Python function becomes an index event: the module is the source file, the
symbol index is the line on which the function begins. Nothing is kept over a broken link.
"""
import argparse
import contextlib
import hashlib
import hmac
import os
import platform
import runpy
import socket
import struct
import sys
import threading
import time

# ---- frames (WIRE.md "Frame header", "Frame types")

MAGIC = b"CLW1"
HELLO, WELCOME, REFUSE, CHALLENGE, PROOF = 2, 4, 5, 6, 7
RECORDING_START, MODULES, STREAM_OPEN, PAGE, STREAM_CLOSE, RECORDING_END = 16, 17, 18, 19, 20, 22
ACK, COMMAND, COMMAND_RESULT, CLOCK_PROBE, CLOCK_REPLY, HEARTBEAT, BYE = 32, 33, 34, 35, 36, 37, 38
KNOWN = {*range(1, 8), *range(16, 24), *range(32, 41)}
CONTROL, DATA = 1, 2
VERSION = 2
PROTOCOL_ERROR, VERSION_ERROR, TOKEN_ERROR = 1, 2, 3
MAX_BODY = 65536
OPENING_SECONDS = 10

CRC_TABLE = []
for byte in range(256):
    crc = byte
    for _ in range(8):
        crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    CRC_TABLE.append(crc)


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = CRC_TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def frame(kind, body, checked=None):
    """`checked` is what the checksum covers: the body, or the header of a page."""
    head = MAGIC + struct.pack("<HHIII", kind, 0, len(body), crc32c(body if checked is None else checked), 0)
    return head + struct.pack("<I", crc32c(head)) + body


# ---- messages (wire.proto; Protobuf's encoding)

def varint(number):
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes(out) + bytes([number])


def message(**fields):
    """message(f1=7, f2="text"): field numbers with their values; zeros are left out."""
    out = b""
    for name, value in fields.items():
        number = int(name[1:])
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, str):
                one = one.encode(errors="replace")
            if isinstance(one, bytes):
                if one or isinstance(value, list):
                    out += varint(number << 3 | 2) + varint(len(one)) + one
            elif one:
                out += varint(number << 3) + varint(int(one))
    return out


def parsed(body):
    """{field number: last value}; numbers and bytes."""
    fields, at = {}, 0

    def number():
        nonlocal at
        value, shift = 0, 0
        while True:
            value |= (body[at] & 0x7F) << shift
            at += 1
            if body[at - 1] < 0x80:
                return value
            shift += 7

    while at < len(body):
        key = number()
        if key & 7 == 0:
            fields[key >> 3] = number()
        elif key & 7 == 1:
            fields[key >> 3] = struct.unpack_from("<Q", body, at)[0]
            at += 8
        elif key & 7 == 2:
            size = number()
            fields[key >> 3] = body[at:at + size]
            at += size
        else:
            fields[key >> 3] = struct.unpack_from("<I", body, at)[0]
            at += 4
    return fields


def now_ns():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


class Refused(Exception):
    """What the collector sent is refused, with this code."""

    def __init__(self, code, reason):
        super().__init__(reason)
        self.code = code


class Link:
    """One of the two connections of a process."""

    def __init__(self, address, channel, agent):
        host, port = address.rsplit(":", 1)
        self.socket = socket.create_connection((host.strip("[]"), int(port)), OPENING_SECONDS)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.lock = threading.Lock()
        try:
            self.open(channel, agent)
        except Refused as refused:
            self.refuse(refused)
            sys.exit(f"agent: {refused}")

    def open(self, channel, agent):
        nonce = os.urandom(16)
        self.send(HELLO, agent.hello(channel, nonce))
        challenge = parsed(self.expect(CHALLENGE))
        part = bytes([0, 0, channel]) + agent.process_id + nonce + challenge[1]
        if agent.token:
            wanted = proof(agent.token, "collect-wire collector token", part)
            if not hmac.compare_digest(challenge.get(2, b""), wanted):
                raise Refused(TOKEN_ERROR, "the collector does not know the token")
        self.send(PROOF, message(
            f1=agent.token and proof(agent.token, "collect-wire agent token", part),
            f2=agent.resume_key and proof(agent.resume_key, "collect-wire agent resume", part)))
        self.welcome = parsed(self.expect(WELCOME))
        if self.welcome.get(2, 0):
            raise Refused(VERSION_ERROR, "the Welcome names features that were not offered")

    def send(self, kind, body, checked=None):
        """What is sent on a connection that has ended is lost."""
        with self.lock, contextlib.suppress(OSError):
            self.socket.sendall(frame(kind, body, checked))

    def refuse(self, refused):
        """Refuse is the last frame."""
        self.send(REFUSE, message(f1=refused.code, f2=str(refused), f3=1))
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_WR)
            self.socket.settimeout(1)
            while self.socket.recv(4096):  # what is not read would take the Refuse away
                pass

    def close(self):
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)

    def receive(self):
        """(type, body) of the next frame; None at the end of the stream."""
        head = self.read(24)
        if head is None:
            return None
        kind, _, size, body_crc, _, head_crc = struct.unpack("<HHIIII", head[4:])
        if head[:4] != MAGIC or crc32c(head[:20]) != head_crc or size > MAX_BODY:
            raise Refused(PROTOCOL_ERROR, "the header of a frame is wrong")
        body = self.read(size)
        if body is None:
            return None
        if crc32c(body) != body_crc:
            raise Refused(PROTOCOL_ERROR, "a frame is damaged")
        return kind, body

    def read(self, size):
        data = b""
        while len(data) < size:
            try:
                some = self.socket.recv(size - len(data))
            except OSError:
                return None
            if not some:
                return None
            data += some
        return data

    def expect(self, wanted):
        while True:
            got = self.receive()
            if got is None:
                sys.exit("agent: the collector closed the connection")
            if got[0] == REFUSE:
                sys.exit("agent: refused: " + parsed(got[1]).get(2, b"").decode())
            if got[0] == wanted:
                return got[1]


def proof(secret, label, part):
    return hmac.new(secret, label.encode() + part, hashlib.sha256).digest()


class Stream:
    """One thread: its events until they are sent."""

    PAGE_EVENTS = 1024

    def __init__(self, agent, number):
        self.agent, self.number = agent, number
        self.first_seq, self.events, self.last_ns = 0, [], 0
        thread = threading.current_thread()
        agent.data.send(STREAM_OPEN, message(
            f1=1, f2=number, f3=threading.get_native_id(), f4=thread.name[:31], f5=now_ns()))

    def add(self, code, kind):
        ns = max(now_ns(), self.last_ns)
        self.last_ns = ns
        self.events.append((ns, self.agent.function_id(code), kind))
        if len(self.events) == self.PAGE_EVENTS:
            self.flush()

    def flush(self):
        if not self.events:
            return
        records = b"".join(
            struct.pack("<QQQB7x", ns, function, (1 << 64) - 1, kind) for ns, function, kind in self.events)
        head = struct.pack("<IBBHQIIIIQQQQQ", self.number, 0, 0, 0, self.first_seq, len(self.events),
                           len(records), crc32c(records), 0, 0, 0, 0, self.events[0][0], self.events[-1][0])
        self.agent.data.send(PAGE, head + records, head)
        self.first_seq += len(self.events)
        self.events = []

    def close(self):
        self.flush()
        self.agent.data.send(STREAM_CLOSE, message(f1=self.number, f3=now_ns(), f4=self.first_seq))


class Agent:
    CALL, RETURN = 1, 2

    def __init__(self, address, program, token, tag):
        self.program, self.token, self.tag = program, token, tag
        self.process_id, self.resume_key = os.urandom(16), b""
        self.modules, self.functions = {}, {}
        self.streams, self.local, self.lock = [], threading.local(), threading.Lock()
        self.is_stored = False
        self.finished = threading.Event()  # everything is stored, or the link has ended
        self.ended = threading.Event()     # the link has ended
        self.data = None
        self.control = Link(address, CONTROL, self)
        self.resume_key = self.control.welcome.get(7, b"")
        interval = (self.control.welcome.get(4, 0) or 1000) / 1000
        self.control.socket.settimeout(3 * interval)  # then the link is dead
        threading.Thread(target=self.beat, args=(interval / 2,), daemon=True).start()
        threading.Thread(target=self.serve, args=(self.control, self.on_control), daemon=True).start()
        self.data = Link(address, DATA, self)
        self.data.socket.settimeout(None)
        threading.Thread(target=self.serve, args=(self.data, self.on_data), daemon=True).start()
        if self.ended.is_set():  # control ended before there was data to be closed
            self.close()
        self.data.send(RECORDING_START, message(f1=1, f2=now_ns(), f3=time.time_ns(), f4=2))

    def hello(self, channel, nonce):
        return message(
            f1=channel, f2=VERSION, f3=VERSION, f5=self.process_id, f7=4,
            f8=2 if platform.machine() == "aarch64" else 1, f9=os.getpid(), f10=os.getppid(),
            f11=os.path.basename(self.program)[:63], f12=platform.node()[:63], f15=self.tag[:63],
            f16=3, f17=2, f18="python 1", f24=self.program[:511], f25=nonce)

    def serve(self, link, take):
        """Reads one channel to its end, which is the end of both."""
        try:
            while True:
                got = link.receive()
                if got is None or take(*got) == "end":
                    break
        except Refused as refused:
            print(f"agent: {refused}", file=sys.stderr)
            link.refuse(refused)
        self.close()

    def close(self):
        self.ended.set()
        self.finished.set()
        for link in (self.control, self.data):
            if link is not None:
                link.close()

    def on_control(self, kind, body):
        """Clock probes, commands, acks."""
        if kind == CLOCK_PROBE:
            arrived = now_ns()
            probe = parsed(body)
            self.control.send(CLOCK_REPLY, message(
                f1=probe.get(1, 0), f2=probe.get(2, 0), f3=probe.get(3, 0), f4=arrived, f5=now_ns()))
        elif kind == COMMAND:
            self.control.send(COMMAND_RESULT, message(
                f1=parsed(body).get(1, 0), f3="this agent records from beginning to end", f4=now_ns()))
        elif kind == ACK:
            if parsed(body).get(2, 0) == 1:
                self.is_stored = True
                self.finished.set()
        elif kind == BYE:
            return "end"
        elif kind != HEARTBEAT:
            return self.on_data(kind, body)

    @staticmethod
    def on_data(kind, body):
        """Nothing but a Refuse comes on data."""
        if kind == REFUSE:
            print("agent: refused: " + parsed(body).get(2, b"").decode(), file=sys.stderr)
            return "end"
        if kind in KNOWN:
            raise Refused(PROTOCOL_ERROR, f"frame type {kind} does not belong here")

    def beat(self, seconds):
        while not self.ended.wait(seconds):
            self.control.send(HEARTBEAT, message(f8=1, f11=1))

    def function_id(self, code):
        known = self.functions.get(code)
        if known is not None:
            return known
        with self.lock:
            module = self.modules.get(code.co_filename)
            if module is None:  # it goes before the first page that refers to it
                module = self.modules[code.co_filename] = len(self.modules)
                self.data.send(MODULES, message(f1=[message(
                    f1=module, f2=code.co_filename[:511], f5=1 << 20, f6=now_ns())]))
            self.functions[code] = module << 32 | code.co_firstlineno
        return self.functions[code]

    def profile(self, python_frame, event, _argument):
        if event not in ("call", "return") or python_frame.f_code.co_filename == __file__:
            return
        stream = getattr(self.local, "stream", None)
        if stream is None:
            with self.lock:
                stream = self.local.stream = Stream(self, len(self.streams) + 1)
                self.streams.append(stream)
        stream.add(python_frame.f_code, self.CALL if event == "call" else self.RETURN)

    def end(self, exit_code):
        for stream in self.streams:
            stream.close()
        end = message(f1=1, f2=exit_code)  # it exited
        self.data.send(RECORDING_END, message(f1=1, f2=now_ns(), f3="exit", f5=end))
        self.finished.wait(30)
        if not self.is_stored:
            print("agent: the collector did not store everything", file=sys.stderr)
        self.control.send(BYE, message(f1="exit"))
        self.ended.wait(1)  # the collector closes control when it has read that
        self.close()


def main():
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--token-file")
    words.add_argument("--tag", default="")
    words.add_argument("address", metavar="HOST:PORT")
    words.add_argument("program")
    words.add_argument("arguments", nargs=argparse.REMAINDER)
    given = words.parse_args()
    token = b""
    if given.token_file:
        with open(given.token_file, "rb") as file:
            token = file.read().rstrip(b"\r\n")
    agent = Agent(given.address, os.path.abspath(given.program), token, given.tag)
    sys.argv = [given.program] + given.arguments
    exit_code = 0
    threading.setprofile(agent.profile)
    sys.setprofile(agent.profile)
    try:
        runpy.run_path(given.program, run_name="__main__")
    except SystemExit as wanted:
        exit_code = wanted.code if isinstance(wanted.code, int) else int(wanted.code is not None)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
        agent.end(exit_code)
    return exit_code


if __name__ == "__main__":
    sys.exit(main())
