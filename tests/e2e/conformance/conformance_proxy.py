#!/usr/bin/env python3
"""conformance_proxy.py AGENT FAULT HOST:PORT: is before a collector and makes one mistake in its
name. Prints the address where it listens. AGENT is proto/wire/example/agent.py, whose encoder it
uses."""
import importlib.util
import socket
import struct
import sys
import threading

AGENT, FAULT, COLLECTOR = sys.argv[1:4]
specification = importlib.util.spec_from_file_location("agent", AGENT)
agent = importlib.util.module_from_spec(specification)
specification.loader.exec_module(agent)
RESUME = 3
ended_once = set()


def positions(body, change):
    """An Ack or Resume whose StreamPositions were changed."""
    out, at = b"", 0
    while at < len(body):
        if body[at] == 0x0A:
            size = body[at + 1]  # of a position: less than 128 bytes
            fields = agent.parsed(body[at + 2:at + 2 + size])
            change(fields)
            part = agent.message(**{f"f{number}": value for number, value in sorted(fields.items())})
            out += b"\x0a" + agent.varint(len(part)) + part
            at += 2 + size
        else:
            return out + body[at:]
    return out


def grown(by):
    def change(fields):
        fields[2] = fields.get(2, 0) + by
    return change


def not_closed(fields):
    fields.pop(4, None)


def edited(body, **fields):
    return agent.message(**{f"f{number}": value for number, value in
                            sorted({**agent.parsed(body), **{int(k[1:]): v for k, v in fields.items()}}.items())})


def from_collector(kind, body):
    """What is passed to the agent; None: nothing."""
    if FAULT == "ack_beyond" and kind == agent.ACK:
        return positions(body, grown(1))
    if FAULT == "never_closed" and kind == agent.ACK:
        return positions(body, not_closed)
    if FAULT == "resume_beyond" and kind == RESUME:
        return positions(body, grown(1000))
    if FAULT == "no_resume" and kind == RESUME:
        return None
    if FAULT == "ended_once" and kind == agent.ACK and agent.parsed(body).get(2):
        if threading.current_thread() in ended_once:
            return None
        ended_once.add(threading.current_thread())
    if FAULT == "other_code" and kind == agent.REFUSE and agent.parsed(body).get(1) == 11:
        return edited(body, f1=4)
    if FAULT == "no_probes" and kind == agent.CLOCK_PROBE:
        return None
    if FAULT == "more_features" and kind == agent.WELCOME:
        return edited(body, f2=1 << 40)
    if FAULT == "other_version" and kind == agent.WELCOME:
        return edited(body, f1=7)
    return body


def from_agent(kind, head, body):
    """The (type, body, header of a page) that continues to the collector."""
    if FAULT == "unknown_refused" and kind == 999:
        return agent.ACK, body, None
    whole = struct.pack("<I", agent.crc32c(body[:72])) == head[12:16]
    if FAULT == "page_mended" and kind == agent.PAGE and whole:
        head = body[:24] + struct.pack("<I", agent.crc32c(body[72:])) + body[28:72]
        return kind, head + body[72:], head
    return None


def read(source, size):
    data = b""
    while len(data) < size:
        some = source.recv(size - len(data))
        if not some:
            raise OSError
        data += some
    return data


def pump(source, target, edit):
    try:
        while True:
            head = read(source, 24)
            kind, _, size, _, _, _ = struct.unpack("<HHIIII", head[4:])
            if head[:4] != agent.MAGIC or struct.pack("<I", agent.crc32c(head[:20])) != head[20:] or size > 1 << 21:
                target.sendall(head)  # broken on purpose: from here on as it comes
                while True:
                    target.sendall(read(source, 1))
            limit = 1048648 if kind == agent.PAGE else agent.MAX_BODY
            if size > limit or (kind == agent.PAGE and size < 72):
                target.sendall(head)
                continue
            out = edit(kind, head, read(source, size))
            if out is not None:
                target.sendall(out)
    except OSError:
        for end in (source, target):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


def to_agent(kind, head, body):
    changed = from_collector(kind, body)
    if changed is None:
        return None
    if FAULT == "ack_flags" and kind == agent.ACK:
        head = head[:6] + b"\1" + head[7:20]
        return head + struct.pack("<I", agent.crc32c(head)) + body
    return head + body if changed == body else agent.frame(kind, changed)


def to_collector(kind, head, body):
    changed = from_agent(kind, head, body)
    return head + body if changed is None else agent.frame(*changed)


listener = socket.create_server(("127.0.0.1", 0))
print("127.0.0.1:%d" % listener.getsockname()[1], flush=True)
host, port = COLLECTOR.rsplit(":", 1)
while True:
    near, _ = listener.accept()
    far = socket.create_connection((host, int(port)))
    for end in (near, far):
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    threading.Thread(target=pump, args=(near, far, to_collector), daemon=True).start()
    threading.Thread(target=pump, args=(far, near, to_agent), daemon=True).start()
