"""Variants of wtf-trace files, and whether the published viewer loads them: facts about that viewer,
which is lenient in odd places."""
import base64
import json
import struct

from wtf_layout import EMPTY, HEADER, TYPES, Binary, Zone, chunk, file_of, header_chunk
from wtf_samples import tiny


def one_zone():
    trace = Binary()
    trace.zone(1, "z", "script", "")
    trace.use(1)
    return trace


def with_events(name="shop#weigh", values=(1,)):
    trace = one_zone()
    trace.event(name, 100, *values)
    return trace


def with_signature(signature):
    """A definition with other arguments than any."""
    trace = one_zone()
    trace.write("wtf.event#define", 0, (50, 0, 0, "odd#one", signature))
    return trace


def with_name(name):
    """A scope whose type has this name."""
    trace = one_zone()
    trace.write("wtf.event#define", 0, (50, 1, 0, name, None))
    trace.events += struct.pack("<II", 50, 100)
    trace.event("wtf.scope#leave", 200)
    return trace


def entering(name):
    trace = with_events("wtf.scope#enter", (name,))
    trace.event("wtf.scope#leave", 200)
    return trace


def parts_of(trace):
    return (0x30000, trace.strings()), (0x20002, trace.events)


def with_parts(*parts):
    return file_of(header_chunk(HEADER), chunk(2, 2, *parts))


def changed_header(remove=None, **members):
    header = {**HEADER, **members}
    header.pop(remove, None)
    return tiny().file(header=header)


def with_more(data):
    strings, (part, events) = parts_of(with_events())
    return with_parts(strings, (part, events + data))


def json_form(events_part, **keys):
    trace = with_events()
    names = keys or {"wtfVersion": 1, "formatVersion": 10}
    parts = [{"type": "string_table", "value": trace.table},
             events_part or {"type": "binary_event_buffer", "mode": "base64",
                             "byteLength": len(trace.events),
                             "value": base64.b64encode(trace.events).decode()}]
    return json.dumps({**names, "chunks": [
        {"id": 1, "type": "file_header", "parts": [HEADER]},
        {"id": 2, "type": "event_data", "parts": parts}]}).encode()


def zone_without_builtin():
    trace = Binary()
    for wire_id, name in enumerate(("wtf.zone#create", "wtf.zone#set"), 2):
        trace.wire_ids[name] = wire_id
        trace.write("wtf.event#define", 0, (wire_id, 0, 8, name, TYPES[name][2]))
    trace.zone(1, "z", "script", "")
    trace.use(1)
    trace.event("shop#weigh", 100, 1)
    return trace.file()


def no_zone():
    trace = Binary()
    trace.current = Zone("none", None, None)
    trace.event("shop#weigh", 100, 1)
    return trace.file()


def unknown_zone():
    trace = one_zone()
    trace.write("wtf.zone#set", 0, (77,))
    trace.event("shop#weigh", 100, 1)
    return trace.file()


def equal_zones():
    trace = one_zone()
    trace.event("shop#weigh", 100, 1)
    trace.zone(2, "z", "script", "")
    trace.use(2)
    trace.event("shop#weigh", 200, 1)
    return trace.file()


def zone_over_chunks():
    trace = one_zone()
    trace.zone(2, "other", "script", "")
    trace.use(2)
    trace.end_chunk()
    trace.event("shop#weigh", 100, 1)
    return trace.file()


def scope_over_chunks():
    trace = with_events("shop#pick", ())
    trace.end_chunk()
    trace.event("wtf.scope#leave", 200)
    return trace.file()


def unbalanced():
    trace = with_events("wtf.scope#leave", ())
    trace.event("shop#pick", 200)
    return trace.file()


def out_of_order():
    trace = one_zone()
    for i in range(20):
        trace.event("shop#weigh", 1000 + i * 7 % 20, i)
    return trace.file()


def deep():
    trace = one_zone()
    for i in range(1500):
        trace.event("shop#pick", i + 1)
    return trace.file()


def defined_twice():
    """Of two definitions of a name, the first one's arguments stay."""
    trace = one_zone()
    trace.define("shop#weigh")
    trace.write("wtf.event#define", 0, (60, 0, 0, "shop#weigh", "int32 grams, int32 more"))
    trace.event("shop#weigh", 100, 5)
    return trace.file()


def empty_entry():
    trace = with_events("wtf.trace#mark", ("m", None))
    return with_parts((0x30000, trace.strings() + b"\0"), (0x20002, trace.events))


def variants():
    """(name, what it is, bytes, zones and events, or None where it is refused)"""
    whole = tiny().file()
    counted = (2, sum(len(zone.times) for zone in tiny().zones.values()))
    head, body = header_chunk(HEADER), b"".join(_chunks(tiny()))
    strings, events = parts_of(with_events())
    one, none, empty = (1, 1), None, (1, 0)
    yield "good", "tiny.wtf-trace", whole, counted
    yield "header_only", "no chunk of events", file_of(head), empty
    yield "cut_12", "the first 12 bytes", whole[:12], none
    yield "cut_44", "the first 44 bytes", whole[:44], none
    yield "one_byte_more", "a byte behind the last chunk", whole + b"\0", none
    yield "a_word_more", "a word of 0 behind the last chunk", whole + bytes(4), none
    yield "a_chunk_of_0_more", "24 bytes of 0 behind the last chunk", whole + bytes(24), none
    yield "cut_by_8", "8 bytes short", whole[:-8], none
    yield "cut_by_3", "3 bytes short", whole[:-3], none
    for version in (9, 11):
        yield f"format_{version}", "another format version", tiny().file(version=version), none
    for tool in (0, 0xFFFFFFFF):
        yield f"tool_{tool:x}", "another tool version", tiny().file(tool=tool), counted
    yield "magic_swapped", "the magic in the other order", tiny().file(magic=0xEFBEADDE), none
    yield "no_header_chunk", "chunks of events only", file_of(body), counted
    yield "header_chunk_last", "header behind the events", file_of(body, head), counted
    yield "chunk_of_type_7", "an unknown chunk", whole + chunk(9, 7, (0x70000, b"abcd")), counted
    yield "no_timebase", "header without timebase", changed_header("timebase"), none
    yield "no_context", "header without contextInfo", changed_header("contextInfo"), counted
    yield "context_of_a_process", "another contextType", changed_header(
        contextInfo={"contextType": "process"}), none
    yield "flags_text", "flags are a text", changed_header(flags="x"), none
    yield "flags_unknown", "a flag that no one knows", changed_header(flags=["x"]), counted
    yield "timebase_fraction", "a timebase of 1.5", changed_header(timebase=1.5), counted
    yield "header_garbage", "a header that is no JSON", tiny().file(header=b"{..."), none
    yield "unknown_part", "a part of an unknown type", with_parts(
        strings, events, (0x50000, b"????")), one
    yield "resources", "two resources", with_parts(
        strings, events, (0x40000, b"\1\2\3"), (0x40001, b"text")), one
    yield "header_part_with_events", "a part in the wrong chunk", with_parts(
        strings, events, (0x10000, b"{}")), none
    yield "nothing_in_it", "empty table, empty events", with_parts(
        (0x30000, b""), (0x20002, b"")), empty
    yield "events_first", "events before the strings", with_parts(events, strings), one
    yield "no_strings", "no string table", with_parts(events), none
    yield "no_last_nul", "the table's last NUL is missing", with_parts(
        (0x30000, strings[1][:-1]), events), one
    yield "no_events_part", "no event buffer", with_parts(strings), none
    yield "two_event_parts", "of two event buffers the last counts", with_parts(
        strings, events, (0x20002, b"")), empty
    yield "odd_event_bytes", "2 bytes behind the last event", with_more(b"\0\0"), none
    yield "a_word_of_events", "a word of 0 behind the last event", with_more(bytes(4)), none
    yield "cut_arguments", "the last argument is missing", with_parts(
        strings, (0x20002, events[1][:-4])), one
    yield "unknown_wire_id", "an event of no type", with_more(struct.pack("<II", 99, 5)), none
    for i, signature in enumerate(("uint64 x", "float64 x", "uint32", "uint32 1a")):
        yield f"signature_{i}", f'arguments "{signature}"', with_signature(signature).file(), none
    for i, signature in enumerate(("uint32 a-b", "uint32 class"), 4):
        yield f"signature_{i}", f'arguments "{signature}"', with_signature(signature).file(), empty
    for i, name in enumerate(("has space", "per%cent", 'a"b', "a\\b", "世#x", "a::b", "1abc",
                              "a(b)", "")):
        yield f"name_{i}", f"a type named {name!r}", with_name(name).file(), (1, 2)
    yield "defined_twice", "a name with two signatures", defined_twice(), one
    yield "no_zone", "an event before any zone", no_zone(), one
    yield "unknown_zone", "zone#set of no zone", unknown_zone(), none
    yield "zones_without_builtin", "zone events are plain events", zone_without_builtin(), (1, 3)
    yield "equal_zones", "two zones that are one", equal_zones(), (1, 2)
    yield "zone_over_chunks", "a zone holds over chunks", zone_over_chunks(), (2, 1)
    yield "scope_over_chunks", "a scope left in the next chunk", scope_over_chunks(), (1, 2)
    yield "entered_with_space", "scope#enter of a name with a space", entering("a b").file(), (1, 2)
    yield "entered_with_brace", "scope#enter of a(b)", entering("a(b)").file(), none
    yield "any_empty", "an any that is the empty text", with_events(
        "wtf.trace#mark", ("m", EMPTY)).file(), none
    yield "ordinal_beyond", "an ordinal beyond the table", with_events(
        "wtf.trace#mark", ("m", 500)).file(), one
    yield "empty_entry", "an empty entry of the table", empty_entry(), one
    yield "out_of_order", "20 events in mixed order", out_of_order(), (1, 20)
    yield "latest_time", "the time FFFFFFFE", _at(0xFFFFFFFE), one
    yield "deep", "1500 scopes, one in the other", deep(), (1, 1500)
    yield "unbalanced", "a leave, then an enter", unbalanced(), (1, 2)
    yield "json_base64", "JSON, events in base64", json_form(None), one
    yield "json_keys_of_the_document", "the same with other keys", json_form(
        None, wtf_version=1, format_version=10), one
    yield "json_events", "JSON events, which the viewer ignores", json_form(
        {"type": "json_event_buffer", "events": []}), empty
    yield "json_garbage", "JSON that is none", b'{"wtfVersion": 1, "formatVersion": 10', none


def _chunks(trace):
    trace.end_chunk()
    return trace.chunks


def _at(us):
    trace = one_zone()
    trace.event("shop#weigh", us, 1)
    return trace.file()
