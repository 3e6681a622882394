#!/usr/bin/env python3
"""Strict decoder of dial9 streams, plain or gzip, written from the specification alone.

usage: read_dial9.py FILE             one JSON line for each frame, and one for how it ended
       read_dial9.py FILE --summary   counts and times

The lines: header, schema, event, strings, stacks, annotations, and at last end, or error with the
offset of the frame that could not be read. Resets of the time and headers inside the file have none.
Numbers of 64 bits are texts, F64 is f: and its bits, bytes are hex, pooled texts and stacks are what
their ids mean there. Exit status: 0 read to the end, 3 stopped before it, 2 usage.

As a module: Decoder(bytes).frames(), which raises Stop.
"""
import gzip
import hashlib
import json
import struct
import sys

I64, F64, BOOL, STRING, BYTES, POOLED_STACK, POOLED, STACK, VARINT, MAP, U8, U16, U32, LIST, \
    DYNAMIC_MAP = range(1, 16)
OPTIONAL = 0x80
FIXED = {I64: ("<q", 8), U8: ("<B", 1), U16: ("<H", 2), U32: ("<I", 4)}
MAGIC = b"TRC\0"
MAX_DEPTH = 256


class Stop(Exception):
    """Nothing behind this offset can be read."""

    def __init__(self, offset, why):
        super().__init__(why)
        self.offset = offset


class _Bad(Exception):
    pass


class Decoder:
    def __init__(self, data):
        self.data = data
        self.at = 0
        self.sub_streams = self.resets = 0
        self.field_types = {}

    # ---- pieces

    def take(self, size):
        if size > len(self.data) - self.at:
            raise _Bad("the data ends within the frame")
        piece = self.data[self.at:self.at + size]
        self.at += size
        return piece

    def unpack(self, layout):
        return struct.unpack("<" + layout, self.take(struct.calcsize("<" + layout)))

    def one(self, layout):
        return self.unpack(layout)[0]

    def leb128(self):
        value = 0
        for i in range(10):
            byte = self.one("B")
            value |= (byte & 0x7F) << 7 * i
            if byte < 0x80:
                if value >= 1 << 64:
                    raise _Bad("a number of more than 64 bits")
                return value
        raise _Bad("a number of more than 10 bytes")

    def count(self, least_bytes):
        """Of elements that take at least so many bytes each."""
        count = self.one("I")
        if count * least_bytes > len(self.data) - self.at:
            raise _Bad(f"{count} elements do not fit")
        return count

    def text(self, layout="I"):
        return self.take(self.one(layout)).decode("utf-8", "replace")

    def name(self):
        try:
            return self.take(self.one("H")).decode("utf-8")
        except UnicodeDecodeError:
            raise _Bad("a name that is not UTF-8") from None

    # ---- values

    def value(self, kind, depth=0):
        if kind in FIXED:
            layout, size = FIXED[kind]
            return str(struct.unpack(layout, self.take(size))[0])
        if kind == VARINT:
            return str(self.leb128())
        if kind == F64:
            return "f:" + self.take(8)[::-1].hex()
        if kind == BOOL:
            return self.one("B") != 0
        if kind == STRING:
            return self.text()
        if kind == BYTES:
            return self.take(self.one("I")).hex()
        if kind == STACK:
            return [str(address) for address in self.unpack(f"{self.count(8)}Q")]
        if kind in (POOLED, POOLED_STACK):
            return self.pooled(kind, self.one("I"), depth)
        if kind == MAP:
            return {key: content
                    for key, content in [(self.text(), self.text())
                                         for _ in range(self.count(8))]}
        if depth >= MAX_DEPTH:
            raise _Bad(f"lists more than {MAX_DEPTH} deep")
        if kind == LIST:
            return [self.element(depth + 1) for _ in range(self.count(2))]
        return [[self.element(depth + 1), self.element(depth + 1)] for _ in range(self.count(4))]

    def pooled(self, kind, pool_id, depth):
        if depth:
            return str(pool_id)
        if kind == POOLED:
            return self.strings.get(pool_id, f"<unresolved pool#{pool_id}>")
        return self.stacks.get(pool_id, f"<unresolved stack#{pool_id}>")

    def element(self, depth):
        kind = self.one("B")
        if not I64 <= kind <= DYNAMIC_MAP:
            raise _Bad(f"element type {kind}")
        return [VARINT if kind in (U8, U16, U32) else kind, self.value(kind, depth)]

    def field(self, kind):
        self.field_types[kind] = self.field_types.get(kind, 0) + 1
        if kind & OPTIONAL and self.one("B") == 0:
            return None
        return self.value(kind & ~OPTIONAL)

    # ---- frames

    def header(self):
        if self.take(4) != MAGIC:
            raise _Bad("no header")
        version = self.one("B")
        if version != 1:
            raise _Bad(f"version {version}")
        self.schemas, self.strings, self.stacks, self.base = {}, {}, {}, 0
        self.sub_streams += 1

    def schema(self):
        type_id = self.one("H")
        name, has_time, count = self.name(), self.one("B") != 0, self.one("H")
        fields = []
        for _ in range(count):
            field, kind = self.name(), self.one("B")
            if not I64 <= kind & ~OPTIONAL <= DYNAMIC_MAP:
                raise _Bad(f"field type {kind}")
            fields.append([field, kind])
        if self.schemas.setdefault(type_id, (name, has_time, fields)) != (name, has_time, fields):
            raise _Bad(f"another schema for type {type_id}")
        return {"k": "schema", "name": name, "ts": has_time, "fields": fields}

    def event(self):
        type_id = self.one("H")
        if type_id not in self.schemas:
            raise _Bad(f"unknown type {type_id}")
        name, has_time, fields = self.schemas[type_id]
        time_ns = None
        if has_time:
            low, high = self.unpack("HB")
            time_ns = self.base + (low | high << 16)
            if time_ns >= 1 << 64:
                raise _Bad("a time of more than 64 bits")
        counted = dict(self.field_types)
        try:
            values = [self.field(kind) for _, kind in fields]
        except _Bad:
            self.field_types = counted
            raise
        if has_time:
            self.base = time_ns
        return {"k": "event", "id": type_id, "name": name,
                "ts": None if time_ns is None else str(time_ns), "v": values}

    def string_pool(self):
        entries = [[self.one("I"), self.text()] for _ in range(self.count(8))]
        self.strings.update(entries)
        return {"k": "strings", "e": entries}

    def stack_pool(self):
        entries = []
        for _ in range(self.count(8)):
            pool_id = self.one("I")
            entries.append([pool_id, [str(one) for one in self.unpack(f"{self.count(8)}Q")]])
        self.stacks.update(entries)
        return {"k": "stacks", "e": entries}

    def annotations(self):
        type_id = self.leb128()
        entries = [[self.one("H"), self.text("H"), self.text()] for _ in range(self.one("H"))]
        return {"k": "annotations", "id": type_id, "e": entries}

    def reset(self):
        self.base = self.one("Q")
        self.resets += 1

    def frame(self):
        tag = self.data[self.at]
        if tag == MAGIC[0]:
            return self.header()
        kinds = {1: self.schema, 2: self.event, 3: self.string_pool, 4: self.stack_pool,
                 5: self.reset, 6: self.annotations}
        if tag not in kinds:
            raise _Bad(f"unknown tag {tag}")
        self.at += 1
        return kinds[tag]()

    def frames(self):
        """Every frame that is shown, with "end", the offset behind it."""
        begin = 0
        try:
            self.header()
            yield {"k": "header", "version": 1}
            while self.at < len(self.data):
                begin = self.at
                frame = self.frame()
                if frame is not None:
                    frame["end"] = self.at
                    yield frame
        except _Bad as why:
            raise Stop(begin, str(why)) from None


def _line(document):
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def lines(data):
    decoder = Decoder(data)
    try:
        for frame in decoder.frames():
            yield _line(frame)
        yield _line({"k": "end"})
    except Stop as stop:
        yield _line({"k": "error", "msg": str(stop), "pos": stop.offset})


def summary(stored, data):
    decoder = Decoder(data)
    counts = {"schema": 0, "event": 0, "strings": 0, "stacks": 0, "annotations": 0, "header": 0}
    pools = {"strings": 0, "stacks": 0}
    names, times, without_time, older, error = {}, [], 0, 0, None
    latest = -1
    try:
        for frame in decoder.frames():
            counts[frame["k"]] += 1
            if frame["k"] in pools:
                pools[frame["k"]] += len(frame["e"])
            if frame["k"] != "event":
                continue
            names[frame["name"]] = names.get(frame["name"], 0) + 1
            if frame["ts"] is None:
                without_time += 1
                continue
            times.append(int(frame["ts"]))
            older += times[-1] < latest
            latest = max(latest, times[-1])
    except Stop as stop:
        error = {"msg": str(stop), "pos": stop.offset}
    digest = hashlib.sha256()
    for line in lines(data):
        digest.update(line.encode() + b"\n")
    return {"format": "dial9", "stored_bytes": len(stored), "gzip": stored is not data,
            "bytes": len(data), "result": "error" if error else "end", "error": error,
            "sub_streams": decoder.sub_streams,
            "frames": {"schemas": counts["schema"], "events": counts["event"],
                       "string_pools": counts["strings"], "stack_pools": counts["stacks"],
                       "resets": decoder.resets, "annotations": counts["annotations"]},
            "pool_strings": pools["strings"], "pool_stacks": pools["stacks"],
            "events_by_name": names,
            "field_types": {str(kind): count
                            for kind, count in sorted(decoder.field_types.items())},
            "events_without_time": without_time, "first_ts": times[0] if times else None,
            "last_ts": times[-1] if times else None, "min_ts": min(times, default=None),
            "min_nonzero_ts": min((one for one in times if one), default=None),
            "max_ts": max(times, default=None), "events_older_than_an_earlier_one": older,
            "jsonl_sha256": digest.hexdigest()}


def main(arguments):
    paths = [argument for argument in arguments if argument != "--summary"]
    if len(paths) != 1 or paths[0].startswith("-"):
        sys.stderr.write(__doc__)
        return 2
    with open(paths[0], "rb") as file:
        stored = file.read()
    data = gzip.decompress(stored) if stored[:2] == b"\x1f\x8b" else stored
    if "--summary" in arguments:
        found = summary(stored, data)
        print(json.dumps(found, ensure_ascii=False))
        return 3 if found["error"] else 0
    last = ""
    for last in lines(data):
        sys.stdout.write(last + "\n")
    return 0 if last == '{"k":"end"}' else 3


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
