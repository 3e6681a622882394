#!/usr/bin/env python3
"""make_rtc.py FOLDER: small RTC containers in several dialects, whole and damaged, each with what a
reader should find in it.

FOLDER gets NAME.rtc and NAME.expected.json beside each. The writer notes every frame that it lays
out; what a damage leaves is counted from those notes, nothing reads a container back.
"""
import json
import os
import struct
import sys
import zlib

from checksums import published_rtc
from files import write_bytes, write_json

INDEX, MINOR, META, META_DELTA, PLATFORM, CRC = 3, 4, 5, 6, 7, 8
FIRST_STREAM = 9
MARKER_BYTES = 1025
MAX_PAYLOAD = 1024
START_S = 1609772400  # sample i is the value i, at START_S + (i + 1) * 100 us
STEP_US = 100


def leb128(value):
    out = bytearray()
    while True:
        out.append(value & 0x7F | (0x80 if value > 0x7F else 0))
        value >>= 7
        if not value:
            return bytes(out)


class Frame:
    def __init__(self, at, size, stream, more, payload, time_ns=None, begins=True):
        self.at = at
        self.size = size
        self.stream = stream
        self.more = more
        self.payload = payload
        self.clock_ns = time_ns  # of a clock: its value; of a delta: the difference
        self.begins = begins  # an object, rather than continuing with one


class Container:
    """Lays out one recording."""

    def __init__(self, unit_bytes=4096, minor_bytes=2048, prefixed=False, big_endian=False,
                 checksum="ieee", streams=()):
        self.unit_bytes = unit_bytes
        self.minor_bytes = minor_bytes
        self.prefixed = prefixed
        self.order = ">" if big_endian else "<"
        self.checksum = checksum
        self.data = bytearray()
        self.frames = []
        self.units = []  # [offset, state of the checksum]
        self.streams = list(streams)
        self.entries = []  # (offset of the Index or index, id, offset of the target)
        self.first_in_section = {}  # of each id, in the last section that has any
        self.section = 0
        self.metas = []  # [(offset, text)] whose text differs from the one before
        self.has_meta_changed = False
        self.begin_unit()

    # ---- frames

    def special_length(self, size):
        return leb128(size) if self.prefixed else b""

    def put(self, stream, head, payload, more=False, begins=True, clock_ns=None):
        at = len(self.data)
        self.data += head + payload
        self.frames.append(Frame(at, len(head) + len(payload), stream, more, payload, clock_ns,
                                 begins))
        if begins and self.first_in_section.get(stream, (-1, 0))[0] != self.section:
            self.first_in_section[stream] = (self.section, at)

    def put_with_length(self, stream, payload, **more):
        id_and_more = leb128(stream << 1 | (1 if more.get("more") else 0))
        self.put(stream, id_and_more + leb128(len(payload)), payload, **more)

    # ---- the grid

    def unit_at(self):
        return self.units[-1][0]

    def crc_bytes(self):
        return 6 if self.prefixed else 5

    def boundary(self):
        """Where the frames of this section have to end."""
        minors = self.unit_bytes // self.minor_bytes - 1
        if self.minor < minors:
            return self.unit_at() + MARKER_BYTES + (self.minor + 1) * self.minor_bytes
        return self.unit_at() + self.unit_bytes - self.crc_bytes()

    def pad(self):
        """Up to the end of the section, and over it."""
        while (room := self.boundary() - len(self.data)) > 0:
            if room == 1:
                self.put(0, b"\0", b"")
                continue
            size = min(room - 2, MAX_PAYLOAD)
            if size > 127:
                size = min(room - 3, MAX_PAYLOAD)
            if room - size - len(leb128(size)) - 1 < 0:
                size -= 1
            self.put(1, b"\x02" + leb128(size), bytes(size))
        self.next_section()

    def next_section(self):
        if self.minor < self.unit_bytes // self.minor_bytes - 1:
            self.minor += 1
            self.put_minor_index()
        else:
            self.put_crc()
            self.begin_unit()

    def put_minor_index(self):
        at = len(self.data)
        entries = b""
        for stream, (_, target) in sorted(self.first_in_section.items()):
            is_since_index = target >= self.index_at and stream not in (0, 1, 2, MINOR, META_DELTA)
            if is_since_index and (stream != META or self.has_meta_changed):
                entries += leb128(stream << 1 | 1) + leb128((at - target) << 1)
                self.entries.append((at, stream, target))
        self.section += 1
        self.put_with_length(MINOR, entries)

    def put_index(self):
        at = self.index_at = len(self.data)
        offsets = {INDEX: self.unit_bytes, MINOR: self.minor_bytes,
                   META: at - self.metas[-1][0] if self.metas else 0}
        for stream in [PLATFORM, CRC] + [one["id"] for one in self.streams]:
            target = self.first_in_section.get(stream)
            offsets[stream] = at - target[1] if target else 0
        payload = leb128(len(self.units) - 1)
        for stream, offset in sorted(offsets.items()):
            self.entries.append((at, stream, at - offset))
            payload += leb128(stream << 1 | 1) + leb128(offset << 1)
        self.section += 1
        self.put_with_length(INDEX, payload)

    def meta_text(self, streams):
        return json.dumps([*streams, FIRST_STREAM + len(self.streams)],
                          separators=(",", ":")).encode()

    def begin_unit(self):
        self.units.append([len(self.data), "none"])
        self.minor = 0
        self.put(2, b"\x04", b"\xb9" * 1024)
        self.summed_from = len(self.data)
        self.put_index()
        text = self.meta_text(self.streams)
        at = len(self.data)
        self.put_object(META, text)
        self.has_meta_changed = not self.metas or self.metas[-1][1] != text
        if self.has_meta_changed:
            self.metas.append((at, text))
        self.put(PLATFORM, b"\x0e" + self.special_length(4),
                 struct.pack(self.order + "I", 0x01020304))

    def put_crc(self):
        summed = bytes(self.data[self.summed_from:])
        value = zlib.crc32(summed) if self.checksum == "ieee" else published_rtc(summed)
        self.put(CRC, b"\x10" + self.special_length(4), struct.pack(self.order + "I", value))
        self.units[-1][1] = self.checksum

    # ---- objects

    def open(self, **description):
        """A stream that begins within the Unit."""
        stream = {"id": FIRST_STREAM + len(self.streams), **description}
        self.streams.append(stream)
        text = self.meta_text([stream])
        if self.boundary() - len(self.data) < len(text) + 3:
            self.pad()
        self.put_with_length(META_DELTA, text)
        return stream["id"]

    def put_object(self, stream, payload, clock_ns=None):
        """In as many frames as it takes; others stand between them where the grid has it so."""
        length = next((one.get("length") for one in self.streams if one["id"] == stream), None)
        if length is not None:
            head = leb128(stream << 1)
            while self.boundary() - len(self.data) < len(head) + length:
                self.pad()
            self.put(stream, head, payload, clock_ns=clock_ns)
            return
        at, begins = 0, True
        while True:
            rest = len(payload) - at
            room = self.boundary() - len(self.data) - len(leb128(stream << 1))
            size = min(rest, MAX_PAYLOAD, room - 1)
            if size > 127:
                size = min(size, room - 2)
            if size < min(rest, 1) or room < 1:
                self.pad()
                continue
            self.put_with_length(stream, payload[at:at + size], more=size < rest, begins=begins,
                                 clock_ns=clock_ns if begins else None)
            at += size
            begins = False
            if at == len(payload):
                return

    def stop(self):
        if self.boundary() - len(self.data) < 0:
            self.pad()
        self.put_crc()
        return self


# ---- what is to be found of the frames that are left


class Found:
    def __init__(self, container, frames):
        self.streams = {one["id"]: one for one in container.streams}
        self.by_name = {one["name"]: one["id"] for one in container.streams}
        self.frames = len(frames)
        self.objects = []  # (name, bytes, time)
        self.open = {}
        self.clocks = {}
        for frame in frames:
            if frame.stream >= FIRST_STREAM:
                self.take(frame)

    def time_of(self, stream):
        clock = self.streams[stream].get("clock")
        if clock is True:
            return self.clocks.get(stream)
        return self.clocks.get(self.by_name[clock]) if clock else None

    def take(self, frame):
        if frame.stream not in self.open:
            if frame.clock_ns is not None:
                base = self.streams[frame.stream].get("delta")
                start = self.clocks.get(self.by_name[base]) if base else 0
                self.clocks[frame.stream] = None if start is None else start + frame.clock_ns
            self.open[frame.stream] = [0, self.time_of(frame.stream)]
        self.open[frame.stream][0] += len(frame.payload)
        if not frame.more:
            size, time_ns = self.open.pop(frame.stream)
            self.objects.append((self.streams[frame.stream]["name"], size, time_ns))

    def forget_open(self):
        lost = self.incomplete()
        self.open = {}
        return lost

    def incomplete(self):
        return {self.streams[stream]["name"]: 1 for stream in sorted(self.open)}

    def stream_table(self):
        table = {}
        for name in sorted({name for name, _, _ in self.objects}, key=self.by_name.get):
            of = [one for one in self.objects if one[0] == name]
            times = [time_ns for _, _, time_ns in of if time_ns is not None]
            table[name] = {"id": self.by_name[name], "objects": len(of),
                           "bytes": sum(size for _, size, _ in of),
                           "first_time_ns": min(times, default=None),
                           "last_time_ns": max(times, default=None),
                           "without_time": len(of) - len(times)}
        return table


def expect(name, container, data, found, units, **more):
    """units: [(offset, count, state of the checksum)]"""
    crc = {}
    for _, _, state in units:
        crc[state] = crc.get(state, 0) + 1
    times = [time_ns for _, _, time_ns in found.objects if time_ns is not None]
    out = {"sample": name + ".rtc", "format": "rtc", "bytes": len(data), "head_skipped": 0,
           "tail_bytes": 0, "special_frames": "prefixed" if container.prefixed else "fixed",
           "endian": "be" if container.order == ">" else "le", "units": len(units),
           "Unit": container.unit_bytes, "unit": container.minor_bytes,
           "unit_positions": [offset for offset, _, _ in units],
           "unit_counts": [count for _, count, _ in units], "crc": crc, "frames": found.frames,
           "objects": len(found.objects), "streams": found.stream_table(),
           "first_time_ns": min(times, default=None), "last_time_ns": max(times, default=None),
           "incomplete": found.incomplete(), "resyncs": [], "problems": 0, "first_problems": []}
    out.update(more)
    return out


def units_of(container):
    return [(offset, count, state) for count, (offset, state) in enumerate(container.units)]


# ---- content


def descriptions(order, with_lengths):
    native = "" if order == ">" else "le"
    clock = {"id": 9, "name": "clk", "clock": True, "format": "timespec"}
    delta = {"id": 10, "name": "clk delta", "clock": True, "format": "uleb128", "gain": 1e-6,
             "delta": "clk"}
    sample = {"id": 11, "name": "sample", "clock": "clk delta", "format": "uint16" + native,
              "gain": 0.5, "offset": -10}
    if with_lengths:
        clock["length"], sample["length"] = 12, 2
    return [clock, delta, sample,
            {"id": 12, "name": "stdout", "cont": True, "clock": "clk", "format": "utf-8"},
            {"id": 13, "name": "blob"}]


def record(samples=80, with_lengths=False, extra_streams=(), stop=True, **options):
    order = ">" if options.get("big_endian") else "<"
    container = Container(streams=[*descriptions(order, with_lengths), *extra_streams], **options)
    late = None
    for i in range(samples):
        us = (i + 1) * STEP_US
        if i % 20 == 0:
            seconds, ns = START_S + us // 1_000_000, us % 1_000_000 * 1000
            container.put_object(9, struct.pack(order + "QI", seconds, ns),
                                 clock_ns=seconds * 1_000_000_000 + ns)
            base_us = us
        container.put_object(10, leb128(us - base_us), clock_ns=(us - base_us) * 1000)
        container.put_object(11, struct.pack(order + "H", i))
        if i % 10 == 0:
            container.put_object(12, f"{i} of the words\n".encode())
        if i % 36 == 3:
            container.put_object(13, bytes((i + n * 7) & 0xFF for n in range(1800)))
        if i == 50:
            late = container.open(name="late", format="uint32" + ("" if order == ">" else "le"))
        if late and i % 15 == 0:
            container.put_object(late, struct.pack(order + "I", i))
    return container.stop() if stop else container


def whole(name, **options):
    container = record(**options)
    data = bytes(container.data)
    return name, data, expect(name, container, data, Found(container, container.frames),
                              units_of(container))


def many_streams():
    """Meta has more than one frame, and a minor index between them."""
    extra = [{"id": 14 + n, "name": f"channel {n}", "clock": "clk", "format": "float32le",
              "description": f"the {n}th of many that are never written"} for n in range(24)]
    return whole("mk_bigmeta", samples=55, extra_streams=extra, unit_bytes=8192)


def without_its_head(name, container, cut):
    """From the first Marker behind the cut on; an object that was open has its rest only."""
    data = bytes(container.data)[cut:]
    first = min(offset for offset, _ in container.units if offset >= cut)
    found = Found(container, [frame for frame in container.frames if frame.at >= first])
    units = [(offset - cut, count, state) for offset, count, state in units_of(container)
             if offset >= first]
    blobs = [size for of, size, _ in found.objects if of == "blob"]
    return name, data, expect(name, container, data, found, units, head_skipped=first - cut,
                              sizes_of_blobs=blobs)


def without_its_tail(name, container, size):
    data = bytes(container.data)[:size]
    frames = [frame for frame in container.frames if frame.at + frame.size <= size]
    units = [(offset, count, state if offset + container.unit_bytes <= size else "none")
             for offset, count, state in units_of(container) if offset < size]
    return name, data, expect(name, container, data, Found(container, frames), units,
                              tail_bytes=size - frames[-1].at - frames[-1].size)


def with_changed_bytes(name, container):
    """Within the payload of a blob in the second Unit: no reader loses anything by it."""
    begin, end = container.units[1][0], container.units[2][0]
    frame = next(frame for frame in container.frames
                 if frame.stream == 13 and begin < frame.at and len(frame.payload) > 100)
    crc = next(frame for frame in container.frames
               if frame.stream == CRC and begin < frame.at < end)
    data = bytearray(container.data)
    at = frame.at + frame.size - 60
    for i in range(at, at + 32):
        data[i] ^= 0x55
    units = units_of(container)
    units[1] = (*units[1][:2], "mismatch")
    return name, bytes(data), expect(name, container, data, Found(container, container.frames),
                                     units, problems=1,
                                     first_problems=[f"{crc.at:#x}: Crc mismatch"])


def with_an_unknown_id(name, container):
    """A frame near the end of the first Unit gets the id of no stream: no one knows where the next
    one begins, and reading continues at the next Marker, which is the next place of the grid too. Index
    entries for frames that could not be read hit nothing."""
    end = container.units[1][0]
    frame = [frame for frame in container.frames if frame.stream == 11 and frame.at < end][-2]
    data = bytearray(container.data)
    data[frame.at] = 63 << 1
    found = Found(container, [one for one in container.frames if one.at < frame.at])
    lost = found.forget_open()
    behind = [one for one in container.frames if one.at >= end]
    for one in behind:
        if one.stream >= FIRST_STREAM:
            found.take(one)
    found.frames += len(behind)
    units = units_of(container)
    units[0] = (*units[0][:2], "none")
    problems = [f"{frame.at:#x}: unknown stream id 63"]
    problems += [f"{at:#x}: nothing was read where the entry of id {stream} points"
                 for at, stream, target in container.entries if at > end > target >= frame.at]
    return name, bytes(data), expect(
        name, container, data, found, units, resyncs=[end], incomplete=lost,
        problems=len(problems), first_problems=problems)


def never_stopped(name):
    container = record(samples=62, stop=False)
    data = bytes(container.data)
    return name, data, expect(name, container, data, Found(container, container.frames),
                              units_of(container))


def appended(name):
    """Two recordings in one file: the second one's Marker is off the grid of the first."""
    first, second = record(samples=18), record(samples=12)
    data = bytes(first.data + second.data)
    found, more = Found(first, first.frames), Found(second, second.frames)
    found.frames += more.frames
    found.objects += more.objects
    base = len(first.data)
    units = units_of(first) + [(base + offset, count, state)
                               for offset, count, state in units_of(second)]
    distance = base - first.units[-1][0]
    return name, data, expect(name, first, data, found, units, problems=1, first_problems=[
        f"{base:#x}: Marker off the grid (distance {distance})"])


def make(folder):
    samples = [
        whole("mk_ieee_fixed"),
        whole("mk_ieee_fixed_lengths", samples=62, with_lengths=True),
        whole("mk_ieee_prefixed", samples=62, prefixed=True),
        whole("mk_writercrc_fixed", samples=62, checksum="writer"),
        whole("mk_big_endian", samples=62, big_endian=True),
        whole("mk_equal_units", samples=62, minor_bytes=4096),
        many_streams(),
        without_its_head("mk_ieee_fixed.headcut", record(), 1500),
        without_its_tail("mk_ieee_fixed.tailcut", record(), 7001),
        with_changed_bytes("mk_ieee_fixed.corrupt", record()),
        with_an_unknown_id("mk_ieee_fixed.badid", record()),
        never_stopped("mk_killed"),
        appended("mk_appended"),
    ]
    for name, data, expected in samples:
        write_bytes(os.path.join(folder, name + ".rtc"), data)
        write_json(os.path.join(folder, name + ".expected.json"), expected)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    make(sys.argv[1])
