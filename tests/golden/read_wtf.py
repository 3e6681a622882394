#!/usr/bin/env python3
"""Strict reader of wtf-trace files, format 10 and the legacy format 3, written from the
specification alone.

usage: read_wtf.py FILE [--summary | --events]

  --summary  counts of each zone, as one JSON document (the default)
  --events   each event of each zone: time in ms, name, depth, arguments

Exit status: 0, 1 the file breaks the format (the first break is said), 2 usage.

As a module: load(path), which raises Broken.
"""
import json
import os
import re
import struct
import sys

NULL, EMPTY = 0xFFFFFFFF, 0xFFFFFFFE
SCOPE = 1
BUILTIN = 32
ALIASES = {"byte": "int8", "octet": "uint8", "short": "int16", "unsigned short": "uint16",
           "long": "int32", "unsigned long": "uint32", "float": "float32", "DOMString": "utf8"}
LAYOUTS = {"bool": "B", "int8": "b", "uint8": "B", "int16": "h", "uint16": "H", "int32": "i",
           "uint32": "I", "float32": "f", "char": "B", "wchar": "H", "flowId": "I", "time32": "I"}
TEXTS = ("ascii", "utf8", "any")
PARTS = {1: (0x10000,), 2: (0x20000, 0x20001, 0x20002, 0x30000, 0x40000, 0x40001)}
DEFINE = "uint16 wireId, uint16 eventClass, uint32 flags, ascii name, ascii args"


class Broken(Exception):
    """The file is not as the format says."""


def signature(text):
    """[(name, type, is an array)]"""
    out = []
    for part in (text or "").split(",") if text else []:
        kind, _, name = part.strip().rpartition(" ")
        inner = re.fullmatch(r"sequence<(.+)>|(.+)\[\]", kind.strip())
        kind = (inner[1] or inner[2]) if inner else kind.strip()
        kind = ALIASES.get(kind, kind)
        if kind not in LAYOUTS and kind not in TEXTS:
            raise Broken(f"argument type {kind!r}")
        if not re.match(r"[A-Za-z_]", name):
            raise Broken(f"argument name {name!r}")
        out.append((name, kind, inner is not None))
    return out


class Words:
    """Arguments in format 10: of whole words, texts as ordinals of the chunk's table."""

    def __init__(self, data, strings):
        self.data, self.strings, self.at = data, strings, 0

    def done(self):
        return self.at >= len(self.data)

    def take(self, size):
        if self.at + size > len(self.data):
            raise Broken("the events end within one")
        piece = self.data[self.at:self.at + size]
        self.at += size + -size % 4
        return piece

    def word(self):
        return struct.unpack("<I", self.take(4))[0]

    def begin_event(self):
        return self.word(), self.word()

    def text(self, kind):
        ordinal = self.word()
        if ordinal == EMPTY and kind != "any":
            return ""
        if ordinal == EMPTY:
            raise Broken("an any that is the empty text")
        return self.strings[ordinal] or None if ordinal < len(self.strings) else None

    def value(self, kind, is_array):
        if kind in TEXTS:
            return self.text(kind)
        layout = LAYOUTS[kind]
        if not is_array:
            return struct.unpack_from("<" + layout, self.take(4))[0]
        count = self.word()
        if count == NULL:
            return None
        size = count * struct.calcsize("<" + layout)
        return list(struct.unpack(f"<{count}{layout}", self.take(size)))


class Packed:
    """Arguments in format 3: packed, texts in place, big-endian but for floats."""

    def __init__(self, data, at):
        self.data, self.at = data, at

    def done(self):
        return self.at >= len(self.data)

    def unpack(self, layout):
        size = struct.calcsize(layout)
        if self.at + size > len(self.data):
            raise Broken("the events end within one")
        values = struct.unpack_from(layout, self.data, self.at)
        self.at += size
        return values

    def begin_event(self):
        return self.unpack(">HI")

    def octets(self, size):
        return bytes(self.unpack(f"{size}B"))

    def text(self, kind):
        (size,) = self.unpack(">H")
        if size == 0:
            return None
        if kind == "ascii":
            return self.octets(size).decode("latin-1")
        return self.octets(self.unpack(">H")[0]).decode("utf-8", "replace")

    def value(self, kind, is_array):
        if kind in TEXTS:
            return self.text(kind)
        layout = LAYOUTS[kind]
        order = "<" if kind == "float32" else ">"
        if not is_array:
            return self.unpack(order + layout)[0]
        return list(self.unpack(f"{order}{self.unpack('>I')[0]}{layout}"))


def shown(kind, is_array, value):
    """A value as it is printed."""
    if value is None:
        return None
    if kind == "any":
        return json.loads(value)
    if kind == "bool" and not is_array:
        return bool(value)
    if kind in ("char", "wchar"):
        units = value if is_array else [value]
        if kind == "char":
            return bytes(units).decode("latin-1")
        return struct.pack(f"<{len(units)}H", *units).decode("utf-16-le", "replace")
    if kind == "time32" and not is_array:
        return value / 1000
    return value


class Trace:
    """zones: {"name", "type", "location", "raw": [(us, type, {argument: value})]}; a type is
    {"name", "cls", "flags", "arguments"}."""

    def __init__(self):
        self.types = {1: {"name": "wtf.event#define", "cls": 0, "flags": 40,
                          "arguments": signature(DEFINE)}}
        self.names = {"wtf.event#define"}
        self.zones = [{"name": None, "type": None, "location": None, "raw": []}]
        self.zone_of_id = {}
        self.current = self.zones[0]
        self.created = 0
        self.chunks = 0
        self.version = self.timebase = None

    # ---- containers

    def read(self, data):
        if data[:4] == b"\xde\xad\xbe\xef":
            self.read_legacy(data)
        else:
            self.read_chunks(data)
        for zone in self.zones:
            zone["raw"].sort(key=lambda event: event[0])
        return self

    def read_legacy(self, data):
        self.version = struct.unpack_from(">I", data, 8)[0]
        if self.version != 3:
            raise Broken(f"format version {self.version}")
        stream = Packed(data, 12)
        stream.text("utf8")
        _, low, high = stream.unpack(">III")
        self.timebase = high << 32 | low
        stream.text("utf8")
        self.read_events(stream)

    def read_chunks(self, data):
        if len(data) < 48 or len(data) % 4:
            raise Broken(f"a file of {len(data)} bytes")
        magic, _, self.version = struct.unpack_from("<III", data)
        if magic != 0xDEADBEEF or self.version != 10:
            raise Broken(f"magic {magic:x}, format version {self.version}")
        at = 12
        while at < len(data):
            at = self.read_chunk(data, at)

    def read_chunk(self, data, at):
        if at + 24 > len(data):
            raise Broken("the file ends within the head of a chunk")
        _, kind, size, _, _, count = struct.unpack_from("<IIIIII", data, at)
        base = at + 24 + 12 * count
        if size < 24 + 12 * count or size % 4 or at + size > len(data):
            raise Broken(f"a chunk of {size} bytes at {at}")
        self.chunks += 1
        parts, expected = {}, 0
        for n in range(count):
            part, offset, length = struct.unpack_from("<III", data, at + 24 + 12 * n)
            if offset != expected or base + offset + length > at + size:
                raise Broken(f"a part at {offset} of {length} bytes")
            expected = offset + length + -length % 4
            known_in = [one for one, known in PARTS.items() if part in known]
            if known_in and kind in PARTS and kind not in known_in:
                raise Broken(f"part {part:#x} in a chunk of type {kind}")
            parts[part] = data[base + offset:base + offset + length]
        if base + expected != at + size:
            raise Broken("bytes behind the last part of a chunk")
        if kind == 1:
            self.read_header(parts.get(0x10000, b""))
        elif kind == 2:
            self.read_event_chunk(parts)
        return at + size

    def read_header(self, text):
        try:
            header = json.loads(text)
            self.timebase = header["timebase"]
        except (ValueError, KeyError, TypeError) as why:
            raise Broken(f"file header: {why!r}") from None
        if header.get("type") != "file_header" or not isinstance(header.get("flags", []), list):
            raise Broken("file header")
        if header.get("contextInfo", {}).get("contextType", "script") != "script":
            raise Broken("contextInfo")

    def read_event_chunk(self, parts):
        if 0x30000 not in parts or 0x20002 not in parts:
            raise Broken("no string table or no events in a chunk of events")
        if len(parts[0x20002]) % 4:
            raise Broken("events that are no whole words")
        table = parts[0x30000].removesuffix(b"\0")
        strings = [text.decode("utf-8", "replace") for text in table.split(b"\0")] if table else []
        self.read_events(Words(parts[0x20002], strings))

    # ---- events

    def read_events(self, stream):
        while not stream.done():
            wire_id, us = stream.begin_event()
            kind = self.types.get(wire_id)
            if kind is None:
                raise Broken(f"an event of no type: {wire_id}")
            values = {name: shown(of, is_array, stream.value(of, is_array))
                      for name, of, is_array in kind["arguments"]}
            self.take(us, kind, values)

    def take(self, us, kind, values):
        name = kind["name"]
        if name == "wtf.event#define":
            self.names.add(values["name"] or "")
            self.types[values["wireId"]] = {
                "name": values["name"] or "", "cls": values["eventClass"],
                "flags": values["flags"], "arguments": signature(values["args"])}
        elif kind["flags"] & BUILTIN and name == "wtf.zone#create":
            self.create_zone(values)
        elif kind["flags"] & BUILTIN and name in ("wtf.zone#set", "wtf.zone#delete"):
            if values["zoneId"] not in self.zone_of_id:
                raise Broken(f"zone {values['zoneId']} was not created")
            if name == "wtf.zone#set":
                self.current = self.zone_of_id[values["zoneId"]]
        else:
            self.names.add(listed_name(kind, values))
            self.current["raw"].append((us, kind, values))

    def create_zone(self, values):
        triple = [values[key] for key in ("name", "type", "location")]
        same = [zone for zone in self.zones[:self.created]
                if [zone["name"], zone["type"], zone["location"]] == triple]
        if same:
            zone = same[0]
        else:
            if self.created == len(self.zones):
                self.zones.append({"raw": []})
            zone = self.zones[self.created]  # the first takes over the one that is always there
            zone.update(zip(("name", "type", "location"), triple))
            self.created += 1
        self.zone_of_id[values["zoneId"]] = zone

    # ---- documents

    def summary(self):
        zones = [zone_summary(zone) for zone in self.zones]
        starts = [zone["first_time_ms"] for zone in zones if zone["events"]]
        ends = [zone["last_time_ms"] for zone in zones if zone["events"]]
        out = {"format": "wtf-trace", "format_version": self.version, "ok": True,
               "timebase": self.timebase, "first_time_ms": min(starts, default=None),
               "last_time_ms": max(ends, default=None), "event_types": len(self.names),
               "events": sum(zone["events"] for zone in zones), "zones": zones}
        if self.version != 3:
            out["chunks"] = self.chunks
        return out

    def listing(self):
        zones = []
        for zone in self.zones:
            events, depth = [], 0
            for us, kind, values in zone["raw"]:
                events.append({"t": us / 1000, "n": listed_name(kind, values), "d": depth,
                               "a": values})
                depth += step_of(kind) if depth or kind["cls"] == SCOPE else 0
            zones.append({"name": zone["name"], "type": zone["type"],
                          "location": zone["location"], "count": len(events), "events": events})
        return {"ok": True, "timebase": self.timebase, "zones": zones}


def listed_name(kind, values):
    """The viewer takes the names of these two for signatures: without spaces, and none with "("."""
    if kind["flags"] & BUILTIN and kind["name"] in ("wtf.scope#enter", "wtf.trace#timeStamp"):
        name = re.sub(r"\s", "", values["name"] or "")
        if "(" in name:
            raise Broken(f"the name {name!r}")
        return name
    return kind["name"]


def step_of(kind):
    """By how much an event changes the depth of scopes."""
    return 1 if kind["cls"] == SCOPE else -1 if kind["name"] == "wtf.scope#leave" else 0


def zone_summary(zone):
    names, started = {}, {"wtf.timing#frame": set(), "wtf.timeRange#": set()}
    ended = dict.fromkeys(started, 0)
    depth = deepest = scopes = marks = 0
    for _, kind, values in zone["raw"]:
        name = listed_name(kind, values)
        names[name] = names.get(name, 0) + 1
        step = step_of(kind)
        scopes += step < 0 < depth
        depth = max(0, depth + step)
        deepest = max(deepest, depth)
        marks += kind["name"] == "wtf.trace#mark"
        for prefix, open_ones in started.items():
            if not kind["name"].startswith(prefix):
                continue
            number = next(iter(values.values()), None)
            if kind["name"].endswith(("Start", "begin")):
                open_ones.add(number)
            elif number in open_ones:
                open_ones.remove(number)
                ended[prefix] += 1
    times = [event[0] / 1000 for event in zone["raw"]]
    frequent = sorted(names.items(), key=lambda one: (-one[1], one[0]))[:5]
    return {"name": zone["name"], "type": zone["type"], "location": zone["location"],
            "events": len(times), "scopes": scopes, "max_scope_depth": deepest,
            "first_time_ms": min(times, default=None), "last_time_ms": max(times, default=None),
            "distinct_names": len(names), "most_frequent": [list(one) for one in frequent],
            "frames": ended["wtf.timing#frame"], "marks": marks,
            "time_ranges": ended["wtf.timeRange#"]}


def load(path):
    with open(path, "rb") as file:
        return Trace().read(file.read())


def main(arguments):
    paths = [argument for argument in arguments if argument not in ("--summary", "--events")]
    if len(paths) != 1 or paths[0].startswith("-"):
        sys.stderr.write(__doc__)
        return 2
    try:
        trace = load(paths[0])
    except Broken as why:
        print(why)
        return 1
    document = trace.listing() if "--events" in arguments else trace.summary()
    document.setdefault("sample", os.path.basename(paths[0]))
    print(json.dumps(document))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
