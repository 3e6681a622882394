#!/usr/bin/env python3
"""Strict reader of RTC containers, written from the specification alone.

usage: check_rtc.py FILE [--summary | --objects | --frames]

  --summary  one JSON document: Units, checksums, objects of each stream, times, problems (the default)
  --objects  one JSON line for each whole object: stream, time, payload in hex
  --frames   one line for each frame: offset, id, more, payload size

A file may be cut at both ends. Where no frame can be read, reading continues at the next Marker, and
the objects that were open are dropped. Exit status: 0 no problem, 3 problems, 1 no container, 2 usage.

As a module: Reader(bytes).
"""
import json
import struct
import sys
import zlib
from collections import namedtuple
from fractions import Fraction

from checksums import published_rtc

NUL, PADDING, MARKER, INDEX, MINOR, META, META_DELTA, PLATFORM, CRC = range(9)
FIRST_STREAM = 9
MAX_PAYLOAD = 1024
MARKER_BYTES = b"\x04" + b"\xb9" * 1024
SECOND = 1_000_000_000
INTEGERS = {"int8": "b", "uint8": "B", "int16": "h", "uint16": "H", "int32": "i", "uint32": "I",
            "int64": "q", "uint64": "Q", "float32": "f", "float64": "d"}


Object = namedtuple("Object", "offset stream payload time_ns name is_clock")


class Unreadable(Exception):
    """No frame can be read here."""


class End(Exception):
    """The file ends within a frame."""


def leb128(data, at, end):
    """(value, where it ends)"""
    value = shift = 0
    while at < end:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise Unreadable("a number of more than 64 bits")
    raise End


def signed_leb128(data):
    value, at = leb128(data, 0, len(data))
    return value - (1 << 7 * at) if data[at - 1] & 0x40 else value


def number_of(payload, stream, order):
    """The value of a clock in seconds, a Fraction; None where the payload is no such value."""
    form = stream.get("format", stream.get("type", "raw"))
    if form == "timespec":
        if len(payload) != 12:
            return None
        seconds, ns = struct.unpack(order + "QI", payload)
        return seconds + Fraction(ns, SECOND)
    try:
        if form in ("uleb128", "leb128"):
            # The number at the beginning: the format says nothing of bytes behind it.
            raw, end = leb128(payload, 0, len(payload))
            raw = signed_leb128(payload[:end]) if form == "leb128" else raw
        else:
            own = {"le": "<", "be": ">"}.get(form[-2:], order)
            (raw,) = struct.unpack(own + INTEGERS[form.removesuffix("le").removesuffix("be")],
                                   payload)
        return (Fraction(raw) * Fraction(str(stream.get("gain", 1)))
                + Fraction(str(stream.get("offset", 0))))
    except (KeyError, struct.error, End, Unreadable, ValueError, OverflowError):
        return None


class Reader:
    """read() fills units, objects, problems and the rest; False when there is no Marker."""

    def __init__(self, data):
        self.data = data
        self.prefixed = None  # seen from the first platform frame
        self.order = "<"
        self.units = []  # {"offset", "count", "crc", "unit", "minor"}
        self.streams = {}
        self.frames = []  # (offset, id, more, payload's size)
        self.starts = {}  # offset -> id
        self.objects = []  # Object
        self.problems = []
        self.resyncs = []
        self.incomplete = {}
        self.head = self.tail = 0
        self.open = {}  # id -> [offset, payload, time]
        self.special = {}  # Index, Meta, meta that go on: id -> [offset, payload]
        self.clocks = {}  # name -> Fraction of seconds
        self.index_at = None

    def name(self, stream):
        name = self.streams.get(stream, {}).get("name")
        return f"id {stream}" if name is None else name

    def problem(self, at, sentence):
        self.problems.append(f"{at:#x}: {sentence}")

    # ---- frames

    def next_marker(self, at):
        """The offset of a Marker with an Index behind it, from `at` on."""
        while True:
            at = self.data.find(MARKER_BYTES, at)
            if at < 0 or self.data[at + 1025:at + 1026] == b"\x06":
                return at
            at += 1

    def payload_bytes(self, stream, at):
        """(size, where the payload begins)"""
        data, end = self.data, len(self.data)
        if stream == NUL:
            return 0, at
        if stream == MARKER:
            return 1024, at
        if stream == PLATFORM and self.prefixed is None:
            self.learn_dialect(at)
        if stream in (PLATFORM, CRC) and not self.prefixed:
            return 4, at
        if stream >= FIRST_STREAM:
            if stream not in self.streams:
                raise Unreadable(f"unknown stream id {stream}")
            length = self.streams[stream].get("length")
            if length is not None:
                return length, at
        return leb128(data, at, end)

    def learn_dialect(self, at):
        head = self.data[at:at + 5]
        if len(head) < 4:
            raise End
        if head[:4] in (b"\x04\x03\x02\x01", b"\x01\x02\x03\x04"):
            self.prefixed = False
            self.order = "<" if head[0] == 4 else ">"
        elif head[:1] == b"\x04" and head[1:] in (b"\x04\x03\x02\x01", b"\x01\x02\x03\x04"):
            self.prefixed = True
            self.order = "<" if head[1] == 4 else ">"
        else:
            raise Unreadable("platform frame")

    def read(self):
        at = self.next_marker(0)
        if at < 0:
            return False
        self.head = at
        while at < len(self.data):
            begin = at
            try:
                id_and_more, at = leb128(self.data, at, len(self.data))
                stream, more = id_and_more >> 1, bool(id_and_more & 1)
                size, at = self.payload_bytes(stream, at)
                if size > MAX_PAYLOAD:
                    raise Unreadable(f"a payload of {size} bytes")
                if at + size > len(self.data):
                    raise End
                payload = self.data[at:at + size]
                at += size
                if stream == MARKER and payload != MARKER_BYTES[1:]:
                    raise Unreadable("a Marker of other bytes")
            except End:
                self.tail = len(self.data) - begin
                break
            except Unreadable as why:
                self.problem(begin, str(why))
                self.drop_open()
                at = self.next_marker(begin + 1)
                if at < 0:
                    self.tail = len(self.data) - begin
                    break
                self.resyncs.append(at)
                continue
            self.frames.append((begin, stream, more, size))
            self.starts[begin] = stream
            self.take(begin, stream, more, payload)
        for stream in self.open:
            self.count_incomplete(stream)
        return True

    def count_incomplete(self, stream):
        name = self.name(stream)
        self.incomplete[name] = self.incomplete.get(name, 0) + 1

    def drop_open(self):
        for stream in self.open:
            self.count_incomplete(stream)
        self.open = {}
        self.special = {}

    # ---- what they mean

    def take(self, at, stream, more, payload):
        if stream >= FIRST_STREAM:
            self.take_data(at, stream, more, payload)
        elif stream == MARKER:
            self.begin_unit(at)
        elif stream in (INDEX, MINOR, META, META_DELTA):
            begin, before = self.special.pop(stream, (at, b""))
            if more:
                self.special[stream] = (begin, before + payload)
            elif stream in (INDEX, MINOR):
                self.take_index(begin, stream, before + payload)
            else:
                self.take_meta(begin, stream, before + payload)
        elif stream == CRC:
            self.take_crc(at, payload)

    def begin_unit(self, at):
        if self.units and self.units[-1]["unit"] is not None:
            distance = at - self.units[-1]["offset"]
            if distance != self.units[-1]["unit"]:
                self.problem(at, f"Marker off the grid (distance {distance})")
        self.units.append({"offset": at, "count": None, "crc": "none", "unit": None,
                           "minor": None})
        self.index_at = None

    def take_crc(self, at, payload):
        unit = self.units[-1]
        (stored,) = struct.unpack(self.order + "I", payload)
        summed = self.data[unit["offset"] + 1025:at]
        if stored == zlib.crc32(summed):
            unit["crc"] = "ieee"
        elif stored == published_rtc(summed):
            unit["crc"] = "writer"
        else:
            unit["crc"] = "mismatch"
            self.problem(at, "Crc mismatch")

    def take_index(self, at, stream, payload):
        here, entries = 0, []
        try:
            if stream == INDEX:
                count, here = leb128(payload, 0, len(payload))
                self.count_unit(count)
                self.index_at = at
            while here < len(payload):
                target, here = leb128(payload, here, len(payload))
                offset, here = leb128(payload, here, len(payload))
                if not target & 1 or offset & 1:
                    raise Unreadable("marks of id and offset")
                entries.append((target >> 1, offset >> 1))
        except (End, Unreadable):
            self.problem(at, "Index syntax")
            return
        ids = [entry[0] for entry in entries]
        if ids != sorted(set(ids)):
            self.problem(at, "Index entries are not in order")
        if stream == INDEX:
            of = dict(entries)
            self.units[-1]["unit"] = of.get(INDEX) or None
            self.units[-1]["minor"] = of.get(MINOR) or None
        for target, offset in entries:
            self.check_entry(at, stream, target, offset)

    def check_entry(self, at, stream, target, offset):
        # In Index, those of Index and index are the sizes of Unit and unit.
        nominal = stream == INDEX and target in (INDEX, MINOR)
        if nominal or offset == 0 or at - offset < self.head:
            return
        if self.starts.get(at - offset) != target:
            self.problem(at, f"Index entry for id {target} hits no frame of it")

    def count_unit(self, count):
        unit = self.units[-1]
        unit["count"] = count
        if len(self.units) > 1 and self.units[-2]["count"] is not None:
            if count != self.units[-2]["count"] + 1:  # another recording
                # Lost Units of the same one, or an appended one: nothing that was open continues.
                self.drop_open()
                self.clocks = {}
                self.streams = {}

    def take_meta(self, at, stream, payload):
        try:
            described = json.loads(payload)
            next_id = described.pop()
            ids = [one["id"] for one in described]
            assert all(isinstance(one, int) for one in [*ids, next_id])
            assert all(FIRST_STREAM <= one < next_id for one in ids)
        except (ValueError, KeyError, TypeError, AttributeError, IndexError, AssertionError):
            self.problem(at, "Meta is no list of streams")
            return
        for one in described:
            length = one.get("length")
            if length is not None and not 0 <= length <= MAX_PAYLOAD:
                self.problem(at, f"stream {one['id']} has a length of {length}")
        if stream == META:
            self.streams = {}
        self.streams.update((one["id"], one) for one in described)

    # ---- objects and time

    def clock_name(self, stream):
        description = self.streams[stream]
        if description.get("clock") is True:
            return description.get("name")
        return description.get("clock")

    def time_of(self, stream):
        seconds = self.clocks.get(self.clock_name(stream))
        if seconds is None:
            return None
        return int((seconds * SECOND + Fraction(1, 2)) // 1)

    def take_data(self, at, stream, more, payload):
        if stream not in self.open:
            self.open[stream] = [at, b"", self.time_of(stream)]
        begun = self.open[stream]
        begun[1] += payload
        if more:
            return
        del self.open[stream]
        at, whole, time_ns = begun
        description = self.streams[stream]
        if description.get("clock") is True:
            self.set_clock(description, whole)
            time_ns = self.time_of(stream)
        self.objects.append(Object(at, stream, whole, time_ns, self.name(stream),
                                   description.get("clock") is True))

    def set_clock(self, description, payload):
        value = number_of(payload, description, self.order)
        if value is not None and description.get("delta") is not None:
            base = self.clocks.get(description["delta"])
            value = None if base is None else base + value
        self.clocks[description.get("name")] = value

    # ---- the document

    def summary(self):
        crc = {}
        for unit in self.units:
            crc[unit["crc"]] = crc.get(unit["crc"], 0) + 1
        table = {}
        for one in self.objects:
            time_ns = one.time_ns
            row = table.setdefault(one.name, {"id": one.stream, "objects": 0, "bytes": 0,
                                          "first_time_ns": None, "last_time_ns": None,
                                          "without_time": 0})
            row["objects"] += 1
            row["bytes"] += len(one.payload)
            if time_ns is None:
                row["without_time"] += 1
                continue
            first, last = row["first_time_ns"], row["last_time_ns"]
            row["first_time_ns"] = time_ns if first is None else min(first, time_ns)
            row["last_time_ns"] = time_ns if last is None else max(last, time_ns)
        times = [one.time_ns for one in self.objects if one.time_ns is not None]
        return {"format": "rtc", "bytes": len(self.data), "head_skipped": self.head,
                "tail_bytes": self.tail,
                "special_frames": "prefixed" if self.prefixed else "fixed",
                "endian": "le" if self.order == "<" else "be", "units": len(self.units),
                "Unit": self.units[0]["unit"], "unit": self.units[0]["minor"],
                "unit_positions": [unit["offset"] for unit in self.units],
                "unit_counts": [unit["count"] for unit in self.units], "crc": crc,
                "frames": len(self.frames), "objects": len(self.objects), "streams": table,
                "first_time_ns": min(times, default=None),
                "last_time_ns": max(times, default=None), "incomplete": self.incomplete,
                "resyncs": self.resyncs, "problems": len(self.problems),
                "first_problems": self.problems[:20]}


def main(arguments):
    forms = ("--summary", "--objects", "--frames")
    paths = [argument for argument in arguments if argument not in forms]
    if len(paths) != 1 or paths[0].startswith("-"):
        sys.stderr.write(__doc__)
        return 2
    with open(paths[0], "rb") as file:
        reader = Reader(file.read())
    if not reader.read():
        print("no Marker")
        return 1
    if "--objects" in arguments:
        for one in reader.objects:
            print(json.dumps({"stream": one.name, "time_ns": one.time_ns,
                              "data": one.payload.hex()}))
    elif "--frames" in arguments:
        for at, stream, more, size in reader.frames:
            print(f"{at:8x} id={stream} more={int(more)} bytes={size}")
    else:
        print(json.dumps(reader.summary()))
    return 3 if reader.problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
