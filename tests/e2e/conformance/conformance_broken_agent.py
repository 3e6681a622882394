#!/usr/bin/env python3
"""conformance_broken_agent.py AGENT FAULT HOST:PORT PROGRAM: the agent of proto/wire/example with one
mistake."""
import importlib.util
import struct
import sys

AGENT, FAULT = sys.argv[1:3]
specification = importlib.util.spec_from_file_location("agent", AGENT)
agent = importlib.util.module_from_spec(specification)
specification.loader.exec_module(agent)
Agent, Link, Stream = agent.Agent, agent.Link, agent.Stream
whole_frame, send = agent.frame, Link.send


def replaces(owner, name):
    """The function takes the place of owner's, which is its first argument."""
    def take(function):
        original = getattr(owner, name)
        setattr(owner, name, lambda *arguments, **more: function(original, *arguments, **more))
        return function
    return take


def drops(kind):
    """Frames of this type are not sent."""
    @replaces(Link, "send")
    def send_others(original, link, what, *rest):
        if what != kind:
            original(link, what, *rest)


def body_checksum():
    @replaces(agent, "frame")
    def broken(original, kind, body, checked=None):
        return original(kind, body, b"other" if kind == agent.RECORDING_START else checked)


def page_checksum():
    @replaces(agent, "frame")
    def broken(original, kind, body, checked=None):
        return original(kind, body[:-1] + bytes([body[-1] ^ 1]) if kind == agent.PAGE else body, checked)


def header_flags():
    @replaces(agent, "frame")
    def flagged(original, kind, body, checked=None):
        head = bytearray(original(kind, body, checked))
        head[6] = 1
        head[20:24] = struct.pack("<I", agent.crc32c(bytes(head[:20])))
        return bytes(head)


def record_gap():
    @replaces(Stream, "flush")
    def jumps(original, stream):
        first = stream.first_seq == 0
        original(stream)
        stream.first_seq += first


def late_stream():
    held = []

    @replaces(Link, "send")
    def reordered(original, link, kind, *rest):
        if kind == agent.STREAM_OPEN and not held:
            held.append(rest)
            return
        original(link, kind, *rest)
        if kind == agent.PAGE and held != [None]:
            original(link, agent.STREAM_OPEN, *held[0])
            held[:] = [None]


def time_steps_back():
    @replaces(Stream, "add")
    def earlier(original, stream, *rest):
        original(stream, *rest)
        if len(stream.events) == 100:
            ns, *other = stream.events[-1]
            stream.events[-1] = (ns - 1_000_000_000, *other)


def page_times():
    @replaces(agent, "frame")
    def broken(original, kind, body, checked=None):
        if kind != agent.PAGE:
            return original(kind, body, checked)
        head = body[:56] + struct.pack("<Q", 1) + body[64:72]
        return original(kind, head + body[72:], head)


def module_missing():
    drops(agent.MODULES)


def same_nonce():
    agent.os.urandom = lambda count: b"n" * count


def other_process():
    @replaces(Link, "__init__")
    def again(original, link, address, channel, owner):
        owner.process_id = agent.os.urandom(16)
        original(link, address, channel, owner)


def no_resume_proof():
    @replaces(Link, "__init__")
    def without(original, link, address, channel, owner):
        owner.resume_key = b""
        original(link, address, channel, owner)


def no_stream_close():
    drops(agent.STREAM_CLOSE)


def wrong_count():
    @replaces(Stream, "close")
    def counts(_original, stream):
        stream.flush()
        stream.agent.data.send(agent.STREAM_CLOSE, agent.message(f1=stream.number, f4=stream.first_seq - 1))


def no_recording_end():
    @replaces(Link, "send")
    def others(original, link, kind, *rest):
        if kind != agent.RECORDING_END:
            original(link, kind, *rest)

    @replaces(Agent, "end")
    def at_once(original, owner, exit_code):
        owner.finished.set()
        original(owner, exit_code)


def no_bye():
    drops(agent.BYE)


def no_heartbeat():
    drops(agent.HEARTBEAT)


def no_clock_reply():
    drops(agent.CLOCK_REPLY)


def wrong_clock_reply():
    @replaces(Link, "send")
    def broken(original, link, kind, body, *rest):
        if kind == agent.CLOCK_REPLY:
            body = agent.message(f1=1, f2=1, f3=1, f4=agent.now_ns(), f5=agent.now_ns())
        original(link, kind, body, *rest)


def two_results():
    @replaces(Link, "send")
    def twice(original, link, kind, body, *rest):
        if kind == agent.COMMAND_RESULT and agent.parsed(body)[1] == 7:
            original(link, kind, body)
        original(link, kind, body, *rest)


def any_command_is_done():
    @replaces(Link, "send")
    def done(original, link, kind, body, *rest):
        if kind == agent.COMMAND_RESULT:
            body = agent.message(f1=agent.parsed(body)[1], f2=1)
        original(link, kind, body, *rest)


def unknown_is_refused():
    agent.KNOWN.add(999)


def takes(magic=False, header=False, body=False, length=False):
    """Frames whose part is wrong are taken."""
    def receive(link):
        head = link.read(24)
        if head is None:
            return None
        kind, _, size, body_crc, _, head_crc = struct.unpack("<HHIIII", head[4:])
        if ((head[:4] != agent.MAGIC and not magic) or (agent.crc32c(head[:20]) != head_crc and not header) or
                (size > agent.MAX_BODY and not length)):
            raise agent.Refused(agent.PROTOCOL_ERROR, "the header of a frame is wrong")
        content = link.read(size)
        if content is None:
            return None
        if agent.crc32c(content) != body_crc and not body:
            raise agent.Refused(agent.PROTOCOL_ERROR, "a frame is damaged")
        return kind, content
    Link.receive = receive


def any_magic():
    takes(magic=True)


def any_header_checksum():
    takes(header=True)


def any_body_checksum():
    takes(body=True)


def any_length():
    takes(length=True)


def any_channel():
    @replaces(Agent, "serve")
    def kind(original, owner, link, take):
        original(owner, link, (lambda *_: None) if link is owner.data else take)


def any_side():
    @replaces(Agent, "on_control")
    def kind(original, owner, what, body):
        return None if what == agent.CLOCK_REPLY else original(owner, what, body)


def no_timeout():
    @replaces(Agent, "serve")
    def patient(original, owner, link, take):
        link.socket.settimeout(None)
        original(owner, link, take)


def bye_is_ignored():
    @replaces(Agent, "on_control")
    def kind(original, owner, what, body):
        return None if what == agent.BYE else original(owner, what, body)


if FAULT != "none":
    globals()[FAULT]()
sys.argv = sys.argv[:1] + sys.argv[3:]
sys.exit(agent.main())
