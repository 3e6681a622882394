#!/usr/bin/env python3
"""Small dial9 streams, each with what a decoder should show of it.

usage: make_dial9.py FOLDER                   the vectors, the samples, and what is in them
       make_dial9.py --large FOLDER           vectors that are too large to be kept
       make_dial9.py --random N SEED FOLDER   N valid streams of random content

FOLDER gets vectors/NAME.bin, vectors.json (how a strict decoder ends, and where), and
golden/NAME.jsonl, the lines of what is before the end; and samples with NAME.expected.json.
The lines are made from the values that were written, not from the bytes.
"""
import hashlib
import json
import os
import random
import struct
import sys
import zlib

from files import write_bytes, write_json, write_text

I64, F64, BOOL, STRING, BYTES, POOLED_STACK, POOLED, STACK, VARINT, MAP, U8, U16, U32, LIST, \
    DYNAMIC_MAP = range(1, 16)
OPTIONAL = 0x80
MAX_DELTA = 0xFFFFFF
FIXED = {U8: "<B", U16: "<H", U32: "<I"}


def leb128(value):
    out = bytearray()
    while True:
        out.append(value & 0x7F | (0x80 if value > 0x7F else 0))
        value >>= 7
        if not value:
            return bytes(out)


def counted(data):
    return struct.pack("<I", len(data)) + data


def octets(text):
    return text.encode("utf-8") if isinstance(text, str) else text


def words(text):
    """Of bytes that are no text, what is shown for them."""
    return text if isinstance(text, str) else text.decode("utf-8", "replace")


def encoded(kind, value):
    if kind & OPTIONAL:
        return b"\0" if value is None else b"\1" + encoded(kind & 0x7F, value)
    if kind == I64:
        return struct.pack("<q", value)
    if kind == F64:
        return struct.pack("<d", value)
    if kind == BOOL:
        return struct.pack("<B", value)
    if kind in (STRING, BYTES):
        return counted(octets(value))
    if kind in (POOLED, POOLED_STACK):
        return struct.pack("<I", value)
    if kind == STACK:
        return struct.pack(f"<I{len(value)}Q", len(value), *value)
    if kind == VARINT:
        return value if isinstance(value, bytes) else leb128(value)
    if kind == MAP:
        return struct.pack("<I", len(value)) + b"".join(
            counted(octets(part)) for pair in value for part in pair)
    if kind in FIXED:
        return struct.pack(FIXED[kind], value)
    # A list of (type, value); a map of pairs of those.
    flat = value if kind == LIST else [one for pair in value for one in pair]
    return struct.pack("<I", len(value)) + b"".join(
        bytes([element]) + encoded(element, content) for element, content in flat)


class Stream:
    """The bytes, and beside them the lines and counts."""

    def __init__(self, header=b"TRC\0\1"):
        self.data = bytearray()
        self.lines = []
        self.counts = {"schemas": 0, "events": 0, "string_pools": 0, "stack_pools": 0, "resets": 0,
                       "annotations": 0}
        self.sub_streams = self.pool_strings = self.pool_stacks = 0
        self.names, self.types, self.times = {}, {}, []
        self.without_time = 0
        self.error = None
        if header:
            self.header(header)

    def line(self, **parts):
        self.lines.append(json.dumps(parts, sort_keys=True, separators=(",", ":"),
                                     ensure_ascii=False))

    def header(self, data=b"TRC\0\1"):
        self.data += data
        self.schemas, self.strings_of, self.stacks_of, self.base = {}, {}, {}, 0
        self.sub_streams += 1
        if self.sub_streams == 1:
            self.line(k="header", version=1)
        return self

    def raw(self, data):
        self.data += data
        return self

    def fails(self, data, *, at=None):
        """Bytes at which a strict decoder stops."""
        self.error = len(self.data) if at is None else at
        self.data += data
        return self

    @staticmethod
    def schema_bytes(type_id, name, fields, has_time=1):
        name = octets(name)
        out = struct.pack("<BHH", 1, type_id, len(name)) + name
        out += struct.pack("<BH", has_time, len(fields))
        for field, kind in fields:
            out += struct.pack("<H", len(octets(field))) + octets(field) + bytes([kind])
        return out

    def schema(self, type_id, name, fields, has_time=1):
        self.data += self.schema_bytes(type_id, name, fields, has_time)
        self.schemas[type_id] = (name, fields, has_time)
        self.counts["schemas"] += 1
        self.line(k="schema", name=name, ts=bool(has_time), fields=[list(one) for one in fields],
                  end=len(self.data))
        return self

    def shown(self, kind, value, is_element=False):
        if value is None:
            return None
        kind &= 0x7F
        if is_element:
            content = str(value) if kind in (POOLED, POOLED_STACK) else self.shown(kind, value)
            return [VARINT if kind in FIXED else kind, content]
        if kind in (I64, *FIXED):
            return str(value)
        if kind == VARINT:
            if isinstance(value, bytes):
                return str(sum((byte & 0x7F) << 7 * i for i, byte in enumerate(value)))
            return str(value)
        if kind == F64:
            return "f:" + struct.pack(">d", value).hex()
        if kind == BOOL:
            return bool(value)
        if kind == STRING:
            return words(value)
        if kind == BYTES:
            return octets(value).hex()
        if kind == STACK:
            return [str(address) for address in value]
        if kind == POOLED:
            return self.strings_of.get(value, f"<unresolved pool#{value}>")
        if kind == POOLED_STACK:
            return self.stacks_of.get(value, f"<unresolved stack#{value}>")
        if kind == MAP:
            return {words(key): words(content) for key, content in value}
        if kind == LIST:
            return [self.shown(*one, True) for one in value]
        return [[self.shown(*key, True), self.shown(*content, True)] for key, content in value]

    @staticmethod
    def event_bytes(type_id, delta, fields, values):
        out = struct.pack("<BH", 2, type_id)
        if delta is not None:
            out += struct.pack("<I", delta)[:3]
        return out + b"".join(encoded(kind, value) for (_, kind), value in zip(fields, values))

    def event(self, type_id, delta, *values):
        """Of `delta` ns behind the base; None for a type without times."""
        name, fields, has_time = self.schemas[type_id]
        self.data += self.event_bytes(type_id, delta, fields, values)
        if has_time:
            self.base += delta
            self.times.append(self.base)
        else:
            self.without_time += 1
        self.counts["events"] += 1
        self.names[name] = self.names.get(name, 0) + 1
        for _, kind in fields:
            self.types[str(kind)] = self.types.get(str(kind), 0) + 1
        self.line(k="event", id=type_id, name=name, ts=str(self.base) if has_time else None,
                  v=[self.shown(kind, value) for (_, kind), value in zip(fields, values)],
                  end=len(self.data))
        return self

    def at(self, type_id, time_ns, *values):
        """An event of that time, with a reset before it where it needs one."""
        if not 0 <= time_ns - self.base <= MAX_DELTA:
            self.reset(time_ns)
        return self.event(type_id, time_ns - self.base, *values)

    def strings(self, *entries):
        self.data += struct.pack("<BI", 3, len(entries))
        for pool_id, text in entries:
            self.data += struct.pack("<I", pool_id) + counted(octets(text))
            self.strings_of[pool_id] = words(text)
        self.counts["string_pools"] += 1
        self.pool_strings += len(entries)
        self.line(k="strings", e=[[pool_id, words(text)] for pool_id, text in entries],
                  end=len(self.data))
        return self

    def stacks(self, *entries):
        self.data += struct.pack("<BI", 4, len(entries))
        for pool_id, addresses in entries:
            self.data += struct.pack(f"<II{len(addresses)}Q", pool_id, len(addresses), *addresses)
            self.stacks_of[pool_id] = [str(address) for address in addresses]
        self.counts["stack_pools"] += 1
        self.pool_stacks += len(entries)
        self.line(k="stacks", e=[[pool_id, [str(address) for address in addresses]]
                                 for pool_id, addresses in entries], end=len(self.data))
        return self

    def reset(self, time_ns):
        self.data += struct.pack("<BQ", 5, time_ns)
        self.base = time_ns
        self.counts["resets"] += 1
        return self

    def annotations(self, type_id, *entries):
        self.data += b"\x06" + leb128(type_id) + struct.pack("<H", len(entries))
        for field, key, value in entries:
            self.data += struct.pack("<HH", field, len(octets(key))) + octets(key)
            self.data += counted(octets(value))
        self.counts["annotations"] += 1
        self.line(k="annotations", id=type_id, e=[list(one) for one in entries],
                  end=len(self.data))
        return self

    def dump(self):
        end = {"k": "end"} if self.error is None else {"k": "error", "pos": self.error}
        return "".join(line + "\n" for line in [*self.lines, json.dumps(end, separators=(",", ":"))])

    def summary(self, name, stored, packed):
        older, latest = 0, None
        for time_ns in self.times:
            older += latest is not None and time_ns < latest
            latest = time_ns if latest is None else max(latest, time_ns)
        return {
            "sample": name, "format": "dial9", "stored_bytes": len(stored), "gzip": packed,
            "bytes": len(self.data), "result": "end", "error": None,
            "sub_streams": self.sub_streams, "frames": self.counts,
            "pool_strings": self.pool_strings, "pool_stacks": self.pool_stacks,
            "events_by_name": self.names, "field_types": self.types,
            "events_without_time": self.without_time,
            "first_ts": self.times[0], "last_ts": self.times[-1], "min_ts": min(self.times),
            "min_nonzero_ts": min(time_ns for time_ns in self.times if time_ns),
            "max_ts": max(self.times), "events_older_than_an_earlier_one": older,
            "jsonl_sha256": hashlib.sha256(self.dump().encode()).hexdigest(),
            "file_sha256": hashlib.sha256(stored).hexdigest()}


# ---- samples


def one_of_each():
    """(name, type, value) of every type."""
    return [("i", I64, -42), ("f", F64, 2.5), ("b", BOOL, 1), ("s", STRING, "grüße"),
            ("y", BYTES, b"\x00\xff"), ("ps", POOLED_STACK, 0), ("p", POOLED, 2),
            ("st", STACK, [0x1000, 2**64 - 1]), ("v", VARINT, 2**64 - 1),
            ("m", MAP, [("key", "value"), ("", "")]), ("u8", U8, 255), ("u16", U16, 65535),
            ("u32", U32, 2**32 - 1),
            ("l", LIST, [(VARINT, 300), (STRING, "x"), (U16, 5), (LIST, [(BOOL, 0)])]),
            ("d", DYNAMIC_MAP, [((STRING, "k"), (DYNAMIC_MAP, [((U8, 7), (F64, -0.5))]))])]


def all_types(annotated=False):
    each = one_of_each()
    fields = [(name, kind) for name, kind, _ in each]
    optional = [("opt_" + name, kind | OPTIONAL) for name, kind in fields]
    values = [value for _, _, value in each]
    stream = Stream().schema(0, "Every", fields).schema(300, "EveryOptional", optional)
    stream.schema(65535, "Timeless", [("n", VARINT)], 0)
    if annotated:
        stream.annotations(0, (0, "unit", "ns"), (3, "kind", "label"))
        stream.annotations(0, (0, "unit", "us"))
    stream.strings((2, "from the pool")).stacks((0, [10, 20, 0xFFFFFFFF80000000]))
    stream.reset(5_000_000_000).event(0, 0, *values).event(300, MAX_DELTA, *values)
    return stream.event(300, 1, *[None] * len(values)).event(65535, None, 0)


METADATA = [("service", "small"), ("worker_threads", "2")]


def service():
    """As a recorder of a service writes: batches of two threads, each a stream with a header, whose
    times are interleaved; the symbols behind the last have no header and no time."""
    stream = Stream()
    start = 900_000_000_000
    stream.schema(0, "ClockSyncEvent", [("realtime_ns", VARINT)])
    stream.at(0, start, 1_700_000_000_000_000_000)
    stream.schema(1, "SegmentMetadataEvent", [("entries", MAP)]).at(1, start + 500, METADATA)
    for worker in (0, 1):
        stream.header()
        stream.schema(256, "PollStartEvent", [("worker_id", VARINT), ("local_queue", U8),
                                              ("task_id", VARINT), ("spawn_loc", POOLED)])
        stream.schema(257, "PollEndEvent", [("worker_id", VARINT)])
        stream.schema(258, "WorkerParkEvent", [("worker_id", VARINT), ("local_queue", U8),
                                               ("cpu_time_ns", VARINT), ("tid", U32)])
        stream.schema(259, "WorkerUnparkEvent", [
            ("worker_id", VARINT), ("local_queue", U8), ("cpu_time_ns", VARINT),
            ("sched_wait_ns", VARINT), ("tid", U32)])
        stream.schema(260, "CpuSampleEvent", [
            ("worker_id", VARINT), ("tid", U32), ("source", U8),
            ("thread_name", POOLED | OPTIONAL), ("callchain", POOLED_STACK),
            ("cpu", VARINT | OPTIONAL)])
        stream.schema(261, "WakeEventEvent", [("waker_task_id", VARINT), ("woken_task_id", VARINT),
                                              ("target_worker", U8)])
        stream.strings((0, "service/src/main.rs:12:5"), (1, f"worker {worker}"))
        stream.strings((2, "service/src/store.rs:40:9"))
        stream.stacks((0, [0x401000, 0x402000]), (1, [0x401100]))
        now, tid = start + 10_000 + worker * 300, 4000 + worker
        for i in range(12):
            stream.at(256, now, worker, i % 3, 100 + i % 4, 0 if i % 2 else 2)
            if i % 3 == 0:
                stream.at(261, now + 40, 100 + i % 4, 101, 1 - worker)
            if i % 4 == 1:
                name = 1 if i == 1 else None
                stream.at(260, now + 60, worker, tid, 1, name, i % 2, None if i == 5 else worker)
            stream.at(257, now + 900 + 70 * i, worker)
            stream.at(258, now + 2_000, worker, 0, 1000 * i, tid)
            now += 20_000_000 if i == 6 else 5_000
            stream.at(259, now, worker, 0, 1000 * i, 350, tid)
            now += 100
    stream.schema(262, "SymbolTableEntry", [
        ("addr", VARINT), ("size", VARINT), ("symbol_name", POOLED), ("inline_depth", VARINT),
        ("source_file", POOLED), ("source_line", VARINT)])
    stream.strings((3, "service::poll"), (4, "service::store::get"))
    stream.at(262, 0, 0x401000, 0x100, 3, 0, 0, 12).at(262, 0, 0x401100, 0x80, 4, 0, 2, 40)
    return stream


def gzip_of(data):
    """In two members of stored blocks: the same bytes from every zlib."""
    out = b""
    half = len(data) // 2
    for part in (data[:half], data[half:]):
        assert len(part) < 65536
        out += b"\x1f\x8b\x08\0\0\0\0\0\0\xff"
        out += struct.pack("<BHH", 1, len(part), len(part) ^ 0xFFFF) + part
        out += struct.pack("<II", zlib.crc32(part), len(part))
    return out


# ---- vectors


def plain(*fields):
    """A schema with these types, and one event's worth of room for a mistake."""
    fields = fields or (VARINT,)
    return Stream().schema(0, "One", [(chr(ord("a") + i), kind) for i, kind in enumerate(fields)])


def with_event(*fields):
    return plain(*fields).event(0, 10, 1)


def event_of(payload, delta=1):
    """An event of type 0 with these bytes as its values."""
    return struct.pack("<BHI", 2, 0, delta)[:6] + payload


def nested(depth):
    """The payload of a list in a list in a list."""
    return struct.pack("<I", 1) + (bytes([LIST]) + struct.pack("<I", 1)) * (depth - 2) + bytes(
        [LIST]) + struct.pack("<I", 0)


def two_streams():
    stream = all_types().header().schema(0, "Other", [("x", U8)])
    return stream.event(0, 9, 1)


def nested_once_more(depth):
    value = []
    for _ in range(depth - 1):
        value = [(LIST, value)]
    return plain(LIST).event(0, 1, value)


def vectors():
    """NAME: the stream."""
    a = [("a", VARINT)]
    huge = b"\xff\xff\xff\xff"
    yield "ok_all_types", all_types()
    yield "ok_all_types_annotated", all_types(annotated=True)
    yield "ok_concat_two_streams", two_streams()
    yield "ok_empty", Stream()
    yield "ok_service", service()
    yield "ok_same_schema_again", with_event().schema(0, "One", a).event(0, 1, 2)
    yield "ok_same_schema_behind_annotations", (
        with_event().annotations(0, (0, "unit", "ns")).schema(0, "One", a).event(0, 1, 2))
    yield "ok_time_only_from_timed_events", (
        plain().schema(1, "Timeless", a, 0).event(0, 10, 1).event(1, None, 2).event(0, 5, 3))
    yield "ok_reset_backwards", with_event().reset(4).event(0, 1, 2)
    yield "ok_reset_at_the_end", with_event().reset(99)
    yield "ok_no_reset_first", plain().event(0, 7, 1)
    yield "ok_largest_delta", plain().event(0, MAX_DELTA, 1).event(0, MAX_DELTA, 2)
    yield "ok_latest_time", plain().reset(2**64 - 2).event(0, 1, 1)
    yield "ok_leb_not_minimal", plain().event(0, 1, b"\x80\x00").event(0, 1, 5)
    yield "ok_leb_of_10_bytes", plain().event(0, 1, b"\x85" + b"\x80" * 8 + b"\x00")
    yield "ok_pool_undefined", plain(POOLED, POOLED_STACK).event(0, 1, 42, 43)
    yield "ok_pool_behind_its_use", (
        plain(POOLED).event(0, 1, 3).strings((3, "late")).event(0, 1, 3))
    yield "ok_pool_redefined", (
        plain(POOLED).strings((3, "one")).event(0, 1, 3).strings((3, "two")).event(0, 1, 3))
    yield "ok_pools_of_the_same_id", (
        plain(POOLED, POOLED_STACK).strings((1, "a")).stacks((1, [9])).event(0, 1, 1, 1))
    yield "ok_pools_end_at_a_header", (
        plain(POOLED).strings((1, "a")).event(0, 1, 1).header()
        .schema(0, "One", [("a", POOLED)]).event(0, 1, 1))
    yield "ok_pooled_elements", (
        plain(LIST).strings((1, "a")).event(0, 1, [(POOLED, 1), (POOLED_STACK, 2)]))
    yield "ok_bool_of_2", plain(BOOL).event(0, 1, 2)
    yield "ok_optional_prefix_2", _optional_prefix_2()
    yield "ok_bad_utf8_in_a_string", plain(STRING).event(0, 1, b"a\xffb").event(0, 1, "fine")
    yield "ok_bad_utf8_in_a_pool", plain(POOLED).strings((1, b"a\xffb")).event(0, 1, 1)
    yield "ok_bad_utf8_in_a_map", plain(MAP).event(0, 1, [(b"k\xff", "v"), ("k2", "v2")])
    yield "ok_byte_order_mark", plain(STRING).event(0, 1, "\ufeffa")
    yield "ok_map_with_equal_keys", plain(MAP).event(0, 1, [("k", "1"), ("k", "2")])
    yield "ok_map_with_proto", plain(MAP).event(0, 1, [("__proto__", "1")])
    yield "ok_equal_field_names", (
        Stream().schema(0, "One", [("a", U8), ("a", U8)]).event(0, 1, 1, 2))
    yield "ok_empty_names", Stream().schema(0, "", [("", U8)]).event(0, 1, 1)
    yield "ok_no_fields", Stream().schema(0, "None", []).event(0, 1).event(0, 1)
    yield "ok_annotations_of_no_type", with_event().annotations(77, (0, "unit", "ns"))
    yield "ok_annotations_of_no_field", with_event().annotations(0, (99, "unit", "ns"))
    yield "ok_annotations_beyond_u16", with_event().annotations(65536, (0, "unit", "ns"))
    yield "ok_lists_50_deep", nested_once_more(50)
    yield "bad_lists_400_deep", plain(LIST).fails(event_of(nested(400)))
    yield "bad_version_2", Stream(header=b"").fails(b"TRC\0\2")
    yield "bad_version_9_inside", with_event().fails(b"TRC\0\x09").raw(b"\0" * 9)
    yield "bad_magic", Stream(header=b"").fails(b"TOKIOTRC\1\0\0\0")
    yield "bad_short_header", Stream(header=b"").fails(b"TRC\0")
    yield "bad_cut_header_inside", with_event().fails(b"TRC")
    yield "bad_tag", with_event().fails(b"\x07\0\0\0\0\0\0\0\0")
    yield "bad_type_id", with_event().fails(Stream.event_bytes(9, 1, a, [1]))
    yield "bad_cut_event", with_event().fails(Stream.event_bytes(0, 1, a, [1 << 20])[:-1])
    yield "bad_cut_schema", with_event().fails(Stream.schema_bytes(1, "Two", a)[:-2])
    yield "bad_cut_reset", with_event().fails(b"\x05\0\0\0")
    yield "bad_other_schema", with_event().fails(Stream.schema_bytes(0, "Two", a))
    for kind in (0, 16, 0x80, 0x90):
        yield f"bad_field_type_{kind}", (
            Stream().fails(Stream.schema_bytes(0, "One", [("a", kind)])))
    yield "bad_schema_name", Stream().fails(Stream.schema_bytes(0, b"O\xffe", a))
    yield "bad_field_name", Stream().fails(Stream.schema_bytes(0, "One", [(b"\xff", VARINT)]))
    yield "bad_leb_of_65_bits", plain().fails(event_of(b"\xff" * 9 + b"\x02"))
    yield "bad_leb_of_11_bytes", plain().fails(event_of(b"\x80" * 10 + b"\x00"))
    yield "bad_time_of_65_bits", plain().reset(2**64 - 2).fails(event_of(b"\1", delta=2))
    yield "bad_element_type_0", plain(LIST).fails(event_of(struct.pack("<IB", 1, 0)))
    yield "bad_element_type_137", plain(LIST).fails(event_of(struct.pack("<IBBB", 1, 137, 1, 1)))
    yield "bad_string_length", plain(STRING).fails(event_of(huge + b"ab"))
    yield "bad_stack_count", plain(STACK).fails(event_of(huge))
    yield "bad_list_count", plain(LIST).fails(event_of(huge))
    yield "bad_map_count", plain(MAP).fails(event_of(huge))
    yield "bad_string_pool_count", with_event().fails(b"\x03" + huge)
    yield "bad_stack_pool_count", with_event().fails(b"\x04" + struct.pack("<II", 1, 0) + huge)


def _optional_prefix_2():
    stream = plain(VARINT | OPTIONAL).event(0, 1, 5)
    at = len(stream.data) - 2
    stream.data[at] = 2
    return stream


def large_vectors():
    resets = with_event()
    for n in range(200_000):
        resets.reset(n)
    yield "many_resets", resets.event(0, 1, 2)
    headers = Stream()
    headers.data += b"TRC\0\1" * 200_000
    headers.sub_streams += 200_000
    yield "many_headers", headers.schema(0, "One", [("a", VARINT)]).event(0, 1, 2)
    yield "many_fields", Stream().schema(0, "One", [("f", U8)] * 65535).event(0, 1, *[1] * 65535)
    yield "lists_200000_deep", plain(LIST).fails(event_of(nested(200_000)))


def random_value(of, kind, depth=0):
    number = of.choice([0, 1, 127, 128, 16384, 2**32, 2**63, 2**64 - 1, of.getrandbits(64)])
    texts = ["", "a", "grüße", "中", "\"\\\n\x01", "\ufeff", "x" * 300]
    if kind & OPTIONAL:
        return None if of.random() < 0.4 else random_value(of, kind & 0x7F, depth)
    if kind == I64:
        return number - 2**63
    if kind == F64:
        return of.choice([0.0, -0.0, 1.5, float("inf"), 5e-324, of.random()])
    if kind in (BOOL, U8, U16, U32):
        return number % {BOOL: 2, U8: 2**8, U16: 2**16, U32: 2**32}[kind]
    if kind == STRING:
        return of.choice(texts)
    if kind == BYTES:
        return of.choice(texts).encode()
    if kind in (POOLED, POOLED_STACK):
        return of.randrange(6)
    if kind == STACK:
        return [of.getrandbits(64) for _ in range(of.randrange(5))]
    if kind == VARINT:
        return number
    if kind == MAP:
        return [(f"{i}{of.choice(texts)}", of.choice(texts)) for i in range(of.randrange(4))]
    kinds = range(1, 16) if depth < 3 else range(1, 14)

    def element():
        element_kind = of.choice(kinds)
        return element_kind, random_value(of, element_kind, depth + 1)
    count = of.randrange(4)
    return [element() if kind == LIST else (element(), element()) for _ in range(count)]


def random_stream(of):
    stream = Stream()
    for part in range(of.randrange(1, 4)):
        if part:
            stream.header()
        ids = of.sample(range(65536), 4)
        for type_id in ids:
            fields = [(f"f{i}", of.randrange(1, 16) | of.choice([0, 0, OPTIONAL]))
                      for i in range(of.randrange(6))]
            stream.schema(type_id, f"Type{type_id}", fields, of.choice([1, 1, 1, 0]))
        now = of.getrandbits(50)
        for _ in range(of.randrange(40)):
            what = of.random()
            if what < 0.1:
                stream.strings(*[(of.randrange(6), of.choice(["", "pooled", "é"]))
                                 for _ in range(of.randrange(3))])
            elif what < 0.2:
                stream.stacks((of.randrange(6), [of.getrandbits(64)] * of.randrange(3)))
            elif what < 0.25:
                stream.annotations(of.choice(ids), (0, "unit", "ns"))
            type_id = of.choice(ids)
            _, fields, has_time = stream.schemas[type_id]
            values = [random_value(of, kind) for _, kind in fields]
            now += of.choice([0, 5, MAX_DELTA, MAX_DELTA + 1, -1000])
            if has_time:
                stream.at(type_id, max(now, 0), *values)
            else:
                stream.event(type_id, None, *values)
    return stream


# ---- files


def write_vectors(folder, made):
    table = {}
    for name, stream in made:
        write_bytes(os.path.join(folder, "vectors", name + ".bin"), stream.data)
        write_text(os.path.join(folder, "golden", name + ".jsonl"), stream.dump())
        strict = {"result": "end" if stream.error is None else "error",
                  "events": stream.counts["events"]}
        if stream.error is not None:
            strict["at"] = stream.error
        table[name] = {"bytes": len(stream.data), "strict": strict, "golden": True}
    write_json(os.path.join(folder, "vectors.json"), table)


def make(folder):
    write_vectors(folder, vectors())
    stream = service()
    # Without those of another clock: metadata and symbols.
    for name, stored, packed in [("service.bin", stream.data, False),
                                 ("service_packed.bin.gz", gzip_of(stream.data), True)]:
        write_bytes(os.path.join(folder, name), stored)
        expected = stream.summary(name, stored, packed)
        start = stream.times[0]
        expected["clock_sync_and_range_ns"] = [start, 1_700_000_000_000_000_000, start,
                                               max(stream.times)]
        symbols = stream.names["SymbolTableEntry"]
        expected["events_older_on_the_same_clock"] = (
            expected["events_older_than_an_earlier_one"] - symbols)
        write_json(os.path.join(folder, name.partition(".")[0] + ".expected.json"), expected)


def main(arguments):
    if len(arguments) == 4 and arguments[0] == "--random":
        of = random.Random(int(arguments[2]))
        for n in range(int(arguments[1])):
            write_bytes(os.path.join(arguments[3], f"random_{n}.bin"), random_stream(of).data)
    elif len(arguments) == 2 and arguments[0] == "--large":
        write_vectors(arguments[1], large_vectors())
    elif len(arguments) == 1 and not arguments[0].startswith("-"):
        make(arguments[0])
    else:
        sys.stderr.write(__doc__)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
