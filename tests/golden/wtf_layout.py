"""Writes wtf-trace files, format 10 and the legacy format 3, and counts what it writes as the
published viewer counts: definitions and zone events are no events, a scope counts when it was left.
"""
import json
import re
import struct

TOOL_VERSION = 0xE8214400
NULL, EMPTY = 0xFFFFFFFF, 0xFFFFFFFE
SCOPE = 1  # the class
TYPES = {  # class, flags, arguments
    "wtf.event#define": (0, 40, "uint16 wireId, uint16 eventClass, uint32 flags, ascii name, "
                                "ascii args"),
    "wtf.zone#create": (0, 40, "uint16 zoneId, ascii name, ascii type, ascii location"),
    "wtf.zone#set": (0, 40, "uint16 zoneId"),
    "wtf.scope#enter": (1, 32, "ascii name"),
    "wtf.scope#leave": (0, 40, ""),
    "wtf.scope#appendData": (0, 56, "ascii name, any value"),
    "wtf.trace#mark": (0, 40, "ascii name, any value"),
    "wtf.trace#timeStamp": (0, 32, "ascii name, any value"),
    "wtf.timeRange#begin": (0, 40, "uint32 id, ascii name, any value"),
    "wtf.timeRange#end": (0, 40, "uint32 id"),
    "wtf.flow#branch": (0, 40, "flowId id, flowId parentId, ascii name, any value"),
    "wtf.flow#extend": (0, 40, "flowId id, ascii name, any value"),
    "wtf.flow#terminate": (0, 40, "flowId id, any value"),
    "wtf.timing#frameStart": (0, 8, "uint32 number"),
    "wtf.timing#frameEnd": (0, 8, "uint32 number"),
    "shop#order": (1, 0, "uint32 number, utf8 customer"),
    "shop#pick": (1, 0, ""),
    "shop#weigh": (0, 0, "int32 grams"),
    "every#type": (0, 0, "bool b, int8 i8, uint8 u8, int16 i16, uint16 u16, int32 i32, uint32 u32, "
                         "float32 f, ascii a, utf8 s, char c, wchar w, any j, flowId fl, time32 t, "
                         "int8[] a8, uint8[] b8, int16[] a16, uint16[] b16, int32[] a32, "
                         "uint32[] b32, float32[] af, char[] cs, wchar[] ws, "
                         "sequence<uint16> sq, unsigned long ul, DOMString ds"),
}
ALIASES = {"byte": "int8", "octet": "uint8", "short": "int16", "unsigned short": "uint16",
           "long": "int32", "unsigned long": "uint32", "float": "float32", "DOMString": "utf8"}
SCALARS = {"bool": "B", "int8": "b", "uint8": "B", "int16": "h", "uint16": "H", "int32": "i",
           "uint32": "I", "float32": "f", "char": "B", "wchar": "H", "flowId": "I", "time32": "I"}
TEXTS = ("ascii", "utf8", "any")


def arguments_of(signature):
    """[(type, is an array)]"""
    out = []
    for part in filter(None, signature.split(", ")):
        kind = part.rpartition(" ")[0]
        inner = re.fullmatch(r"sequence<(.*)>|(.*)\[\]", kind)
        kind = (inner[1] or inner[2]) if inner else kind
        out.append((ALIASES.get(kind, kind), inner is not None))
    return out


def milliseconds(us):
    return us // 1000 if us % 1000 == 0 else us / 1000


class Zone:
    def __init__(self, name, kind, location):
        self.name, self.kind, self.location = name, kind, location
        self.times, self.names = [], {}
        self.depth = self.deepest = self.scopes = self.marks = 0
        self.spans = {"frame": [set(), 0], "range": [set(), 0]}

    def span(self, which, number, begins):
        started, _ = self.spans[which]
        if begins:
            started.add(number)
        elif number in started:
            started.remove(number)
            self.spans[which][1] += 1

    def add(self, us, name, shown, event_class, values):
        self.times.append(us)
        self.names[shown] = self.names.get(shown, 0) + 1
        if event_class == SCOPE:
            self.depth += 1
            self.deepest = max(self.deepest, self.depth)
        elif name == "wtf.scope#leave" and self.depth:
            self.depth -= 1
            self.scopes += 1
        elif name == "wtf.trace#mark":
            self.marks += 1
        elif name.startswith("wtf.timing#frame"):
            self.span("frame", values[0], name.endswith("Start"))
        elif name.startswith("wtf.timeRange#"):
            self.span("range", values[0], name.endswith("begin"))

    def expected(self):
        frequent = sorted(self.names.items(), key=lambda one: (-one[1], one[0]))[:5]
        return {"name": self.name, "type": self.kind, "location": self.location,
                "events": len(self.times), "scopes": self.scopes,
                "max_scope_depth": self.deepest,
                "first_time_ms": milliseconds(min(self.times)) if self.times else None,
                "last_time_ms": milliseconds(max(self.times)) if self.times else None,
                "distinct_names": len(self.names), "most_frequent": [list(one) for one in frequent],
                "frames": self.spans["frame"][1], "marks": self.marks,
                "time_ranges": self.spans["range"][1]}


class Trace:
    """What is common to both forms: types, zones, and the counts of what was written."""

    def __init__(self):
        self.wire_ids = {"wtf.event#define": 1}
        self.shown = set()
        self.zones = {}
        self.current = None

    def define(self, name, wire_id=None):
        if name in self.wire_ids:
            return
        event_class, flags, signature = TYPES[name]
        wire_id = self.wire_ids[name] = wire_id or len(self.wire_ids) + 1
        self.write("wtf.event#define", 0, (wire_id, event_class, flags, name, signature))

    def zone(self, zone_id, name, kind, location, us=0):
        self.define("wtf.zone#create")
        self.write("wtf.zone#create", us, (zone_id, name, kind, location))
        self.zones[zone_id] = Zone(name, kind, location)

    def use(self, zone_id, us=0):
        self.define("wtf.zone#set")
        self.write("wtf.zone#set", us, (zone_id,))
        self.current = self.zones[zone_id]

    def event(self, name, us, *values):
        self.define(name)
        self.write(name, us, values)
        shown = values[0] if name in ("wtf.scope#enter", "wtf.trace#timeStamp") else name
        self.shown.add(shown)
        self.current.add(us, name, shown, TYPES[name][0], values)

    def expected(self, sample, data, version, timebase, chunks):
        times = [us for zone in self.zones.values() for us in zone.times]
        out = {"sample": sample, "format": "wtf-trace", "format_version": version,
               "bytes": len(data)}
        if chunks is not None:
            out["chunks"] = chunks
        out.update(ok=True, timebase=timebase, first_time_ms=milliseconds(min(times)),
                   last_time_ms=milliseconds(max(times)),
                   event_types=len(set(self.wire_ids) | self.shown), events=len(times),
                   zones=[zone.expected() for zone in self.zones.values()])
        return out


def padded(data):
    return data + bytes(-len(data) % 4)


HEADER = {"type": "file_header", "flags": ["has_high_resolution_times"],
          "timebase": 1_700_000_000_000,
          "contextInfo": {"contextType": "script", "uri": "golden", "title": "golden", "args": []},
          "metadata": {}}


def chunk(number, kind, *parts):
    """parts: (type, bytes)"""
    table, body = b"", b""
    for part, data in parts:
        table += struct.pack("<III", part, len(body), len(data))
        body += padded(data)
    return struct.pack("<IIIIII", number, kind, 24 + len(table) + len(body), NULL, NULL,
                       len(parts)) + table + body


def header_chunk(document):
    text = document if isinstance(document, bytes) else json.dumps(document).encode()
    return chunk(1, 1, (0x10000, text))


def file_of(*chunks, tool=TOOL_VERSION, version=10, magic=0xDEADBEEF):
    return struct.pack("<III", magic, tool, version) + b"".join(chunks)


class Binary(Trace):
    """Format 10."""

    def __init__(self):
        super().__init__()
        self.chunks = []
        self.table, self.events = [], b""

    def ordinal(self, text):
        if text is None:
            return NULL
        if text == "":
            return EMPTY
        if isinstance(text, int):  # an ordinal itself
            return text
        if text not in self.table:
            self.table.append(text)
        return self.table.index(text)

    def value(self, kind, is_array, value):
        if kind in TEXTS:
            return struct.pack("<I", self.ordinal(value))
        if not is_array:
            return padded(struct.pack("<" + SCALARS[kind], value))
        if value is None:
            return struct.pack("<I", NULL)
        return padded(struct.pack(f"<I{len(value)}{SCALARS[kind]}", len(value), *value))

    def write(self, name, us, values):
        self.events += struct.pack("<II", self.wire_ids[name], us)
        kinds = arguments_of(TYPES[name][2])
        assert len(kinds) == len(values), name
        self.events += b"".join(self.value(*kind, value) for kind, value in zip(kinds, values))

    def strings(self):
        return b"".join(text.encode() + b"\0" for text in self.table)

    def end_chunk(self):
        self.chunks.append(chunk(len(self.chunks) + 2, 2, (0x30000, self.strings()),
                                 (0x20002, self.events)))
        self.table, self.events = [], b""

    def file(self, header=HEADER, **more):
        if self.events:
            self.end_chunk()
        return file_of(header_chunk(header), *self.chunks, **more)


class Legacy(Trace):
    """Format 3: big-endian, one buffer, texts in place."""

    def __init__(self):
        super().__init__()
        context = json.dumps(HEADER["contextInfo"])
        self.data = struct.pack(">III", 0xDEADBEEF, TOOL_VERSION, 3) + self.utf8(context)
        timebase = HEADER["timebase"]
        self.data += struct.pack(">III", 1, timebase & 0xFFFFFFFF, timebase >> 32)
        self.data += self.utf8("{}")

    @staticmethod
    def utf8(text):
        if text is None:
            return b"\0\0"
        data = text.encode()
        return struct.pack(">HH", len(text), len(data)) + data

    def value(self, kind, is_array, value):
        order = "<" if kind == "float32" else ">"
        if kind == "ascii":
            data = (value or "").encode()
            return struct.pack(">H", len(data)) + data
        if kind in TEXTS:
            return self.utf8(value)
        if is_array:
            return struct.pack(">I", len(value)) + struct.pack(f"{order}{len(value)}{SCALARS[kind]}",
                                                               *value)
        return struct.pack(order + SCALARS[kind], value)

    def write(self, name, us, values):
        self.data += struct.pack(">HI", self.wire_ids[name], us)
        kinds = arguments_of(TYPES[name][2])
        self.data += b"".join(self.value(*kind, value) for kind, value in zip(kinds, values))
