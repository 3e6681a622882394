#!/usr/bin/env python3
"""Strict reader of ATF sessions, header versions 1 and 2, written from the specifications alone.

usage: check_atf.py [--json] SESSION...

SESSION is a folder with thread_N folders and, in most cases, manifest.json; or one thread_N folder.
Prints for each what is in it and what is wrong: text, or with --json one document per session.
Exit status: 0 all are whole or were never finalized, 1 something is damaged or refused, 2 usage.

As a module: read_index(), read_detail(), summary().
"""
import json
import os
import struct
import sys
import zlib

from checksums import crc32c

RECORD_TYPES = {1: 3, 2: 4}  # of a call, of a return
NO_DETAIL = {1: 0xFFFFFFFF, 2: 0xFFFFFFFFFFFFFFFF}


class Refused(Exception):
    """The file can't be read at all."""


def _contents(path):
    with open(path, "rb") as file:
        return file.read()


def _platform(data, magic):
    """version, arch, os, flags, thread id"""
    if len(data) < 64:
        raise Refused("shorter than a header")
    if data[:4] != magic:
        raise Refused("magic")
    endian, version, arch, system, flags, thread = struct.unpack_from("<BBBBII", data, 4)
    if endian != 1:
        raise Refused(f"endian {endian}")
    if version not in (1, 2):
        raise Refused(f"version {version}")
    return version, arch, system, flags, thread


def _footer_at(data, magic, claimed, first):
    """Where the footer begins: where the header says, or at the end of the file; None."""
    found = [at for at in (claimed, len(data) - 64)
             if first <= at <= len(data) - 64 and data[at:at + 4] == magic]
    for at in found:
        size_at = at + (32 if magic == b"2ITA" else 16)
        if struct.unpack_from("<Q", data, size_at)[0] == at - first:
            return at
    return found[0] if found else None


def _judge_checksum(version, stored, section):
    """"unchecked", "ok" with the algorithm, or "bad"."""
    if stored == 0:
        return "unchecked", None
    sums = {"crc32-ieee": zlib.crc32(section), "crc32c": crc32c(section)}
    for name in ("crc32-ieee", "crc32c") if version == 1 else ("crc32c",):
        if sums[name] == stored:
            return "ok", name
    return "bad", None


class _Index:
    def __init__(self, data):
        self.data = data
        self.version, self.arch, self.system, self.flags, self.thread = _platform(data, b"ATI2")
        self.clock = data[16]
        layout = "<III" if self.version == 1 else "<IQ"
        numbers = struct.unpack_from(layout, data, 20)
        self.reserved = numbers[0] if self.version == 1 else 0
        event_size, self.count = numbers[-2:]
        if event_size != 32:
            raise Refused(f"events of {event_size} bytes")
        self.first, self.footer_offset, self.start_ns, self.end_ns = struct.unpack_from(
            "<QQQQ", data, 32)
        if not 64 <= self.first <= len(data):
            raise Refused(f"events at {self.first}")
        self.footer_at = _footer_at(data, b"2ITA", self.footer_offset, self.first)
        self.end = len(data) if self.footer_at is None else self.footer_at
        self.events = [self.event(at) for at in range(self.first, self.end - 31, 32)]
        self.threads = {event[5] for event in self.events}

    def event(self, at):
        """time, function, kind, depth, detail record or None, thread"""
        if self.version == 1:
            ns, function, thread, kind, depth, link = struct.unpack_from("<QQIIII", self.data, at)
        else:
            ns, function, link, kind = struct.unpack_from("<QQQB", self.data, at)
            thread, depth = self.thread, None
        return ns, function, kind, depth, None if link == NO_DETAIL[self.version] else link, thread


def _check_index(index, out):
    section = index.data[index.first:index.end]
    out["trailing_bytes"] = len(section) % 32
    if index.footer_at is None:
        out.update(state="unfinalized", crc="none")
        return
    stored, count, first, last, size = struct.unpack_from("<IQQQQ", index.data,
                                                          index.footer_at + 4)
    if any(index.data[index.footer_at + 40:index.footer_at + 64]):
        out["warnings"].append("the footer's reserved bytes are not 0")
    if index.footer_at + 64 != len(index.data):
        out["warnings"].append("bytes behind the footer")
    stale = index.footer_offset != index.footer_at
    out["state"] = "stale-header" if stale else "finalized"
    out["crc"], out["crc_algorithm"] = _judge_checksum(index.version, stored, section)
    if out["crc"] == "bad":
        out["errors"].append("the checksum of the events does not fit")
    if index.version == 1 and out["crc_algorithm"] == "crc32c":
        out["warnings"].append("the checksum is CRC-32C in version 1")
    there = len(index.events)
    if count != there or size != len(section):
        out["errors"].append(f"the footer says {count} events in {size} bytes; there are {there} "
                             f"in {len(section)}")
    elif there and (first, last) != (index.events[0][0], index.events[-1][0]):
        out["errors"].append("the footer's times are not those of the first and last event")
    if not stale and (index.count, index.start_ns, index.end_ns) != (count, first, last):
        out["errors"].append("header and footer disagree")
    index.events = index.events[:count]


def _check_events(index, out):
    events = index.events
    times = [event[0] for event in events]
    kinds = [event[2] for event in events]
    unknown = sum(kind not in (1, 2, 3) for kind in kinds)
    back = sum(a > b for a, b in zip(times, times[1:]))
    out.update(events=len(events), calls=kinds.count(1), returns=kinds.count(2),
               exceptions=kinds.count(3), first_ts=times[0] if times else None,
               last_ts=times[-1] if times else None, min_ts=min(times, default=None),
               max_ts=max(times, default=None), backward_steps=back,
               functions=len({event[1] for event in events}))
    if index.version == 1:
        out["max_depth"] = max((event[3] for event in events), default=0)
    if unknown:
        out["errors"].append(f"{unknown} events of no known kind")
    if back:
        out["errors"].append(f"time goes back {back} times")
    if index.version == 1 and index.threads - {index.thread}:
        out["warnings"].append("events of another thread than the header's")


def read_index(path, out):
    """(version, thread id, [(ns, function, kind, depth, detail record or None)]), None where the
    file is refused; what was found is in `out`."""
    try:
        index = _Index(_contents(path))
    except Refused as why:
        out.update(state="rejected", error=str(why))
        return None
    out.update(version=index.version, thread_id=index.thread, arch=index.arch, os=index.system,
               clock_type=index.clock, has_detail_flag=index.flags & 1)
    _check_index(index, out)
    _check_events(index, out)
    return index.version, index.thread, [event[:5] for event in index.events]


def _records(data, version, first, end):
    """[(type, index event, thread, time, payload's size)] of whole records, and where they end."""
    records, at = [], first
    while at + 24 <= end:
        length, record_type, _ = struct.unpack_from("<IHH", data, at)
        if length < 24 or at + length > end:
            break
        if version == 1:
            event, thread = struct.unpack_from("<II", data, at + 8)
        else:
            (event,) = struct.unpack_from("<Q", data, at + 8)
            thread = None
        (ns,) = struct.unpack_from("<Q", data, at + 16)
        records.append((record_type, event, thread, ns, length - 24))
        at += length
    return records, at


def _check_detail_ends(data, version, facts, records, detail, out):
    """Header and footer against what is there."""
    first, count, size, seq_first, seq_last, footer_at, whole_end = facts
    end = len(data) if footer_at is None else footer_at
    if footer_at is None:
        detail.update(state="unfinalized", crc="none")
        return
    detail["state"] = "finalized"
    stored, footer_count, footer_size, start, last = struct.unpack_from("<IQQQQ", data,
                                                                        footer_at + 4)
    section = data[first:end]
    detail["crc"], detail["crc_algorithm"] = _judge_checksum(version, stored, section)
    if detail["crc"] == "bad":
        out["errors"].append("the checksum of the detail records does not fit")
    if whole_end != end:
        out["errors"].append(f"{end - whole_end} bytes behind the last whole detail record")
    if (footer_count, footer_size) != (len(records), end - first):
        out["errors"].append("the detail footer's count or size is not that of the section")
    elif records and (start, last) != (records[0][3], records[-1][3]):
        out["errors"].append("the detail footer's times are not those of the records")
    if (count, size) != (footer_count, footer_size):
        out["errors"].append("detail header and footer disagree")
    elif records and (seq_first, seq_last) != (records[0][1], records[-1][1]):
        out["errors"].append("the detail header's range is not that of the records")


def _check_links(events, records, thread, out):
    wrong = set()
    for seq, (record_type, n, record_thread, ns, _) in enumerate(records):
        if n >= len(events) or events[n][4] != seq:
            wrong.add("a detail record whose event does not link to it")
            continue
        if events[n][0] != ns:
            wrong.add("a detail record of another time than its event")
        if RECORD_TYPES.get(events[n][2], record_type) != record_type:
            wrong.add("a detail record of another type than its event")
        if record_thread not in (None, thread):
            wrong.add("a detail record of another thread")
    for n, event in enumerate(events):
        if event[4] is not None and event[4] < len(records) and records[event[4]][1] != n:
            wrong.add("an event whose detail record belongs to another")
    out["errors"] += sorted(wrong)
    beyond = sum(event[4] is not None and event[4] >= len(records) for event in events)
    if beyond:
        out["warnings"].append(f"{beyond} events link to detail records that are not there")


def read_detail(path, version, thread, events, links, out):
    """out["detail"]: what is in the detail file of these events, `links` of which have a record."""
    detail = out["detail"] = {"present": True}
    data = _contents(path)
    try:
        detail_version, _, _, _, detail_thread = _platform(data, b"ATD2")
        first, count, size, seq_first, seq_last = struct.unpack_from("<QQQQQ", data, 20)
        if not 64 <= first <= len(data):
            raise Refused(f"records at {first}")
    except Refused as why:
        detail.update(state="rejected", error=str(why))
        out["errors"].append(f"the detail file is refused: {why}")
        return
    if (detail_version, detail_thread) != (version, thread):
        out["errors"].append("the detail file is of another version or thread")
    footer_at = _footer_at(data, b"2DTA", first + size, first)
    records, whole_end = _records(data, detail_version, first,
                                  len(data) if footer_at is None else footer_at)
    facts = (first, count, size, seq_first, seq_last, footer_at, whole_end)
    _check_detail_ends(data, detail_version, facts, records, detail, out)
    types = {}
    for record in records:
        types[str(record[0])] = types.get(str(record[0]), 0) + 1
    end = len(data) if footer_at is None else footer_at
    detail.update(events=len(records), bytes=whole_end - first, types=types,
                  trailing_bytes=end - whole_end)
    _check_links(events, records, thread, out)
    if links > len(records) and detail["state"] == "finalized":
        out["errors"].append(f"{links} events have details, {len(records)} records are there")


def thread_summary(folder):
    out = {"dir": os.path.basename(folder), "errors": [], "warnings": []}
    path = os.path.join(folder, "index.atf")
    if not os.path.exists(path):
        out.update(state="rejected", error="no index.atf")
        return out
    read = read_index(path, out)
    if read is None:
        return out
    version, thread, events = read
    links = sum(event[4] is not None for event in events)
    detail = os.path.join(folder, "detail.atf")
    out["detail"] = {"present": False}
    if os.path.exists(detail):
        read_detail(detail, version, thread, events, links, out)
        links = min(links, out["detail"].get("events", 0))
        if out["state"] == "finalized" and not out["has_detail_flag"]:
            out["warnings"].append("details are there, the flag says none")
    elif out["has_detail_flag"]:
        out["warnings"].append("the flag says details, no file has them")
    out["links"] = links
    return out


def _manifest(path, threads, out):
    try:
        document = json.loads(_contents(path))
        listed = {int(thread["id"]): thread.get("has_detail") for thread in document["threads"]}
        for symbol in document.get("symbols", []):
            int(symbol["function_id"], 16)
    except (ValueError, KeyError, TypeError) as why:
        out["warnings"].append(f"manifest.json: {why!r}")
        return
    out["manifest"] = {"format_version": document.get("format_version"), "threads": len(listed),
                       "modules": len(document.get("modules", [])),
                       "symbols": len(document.get("symbols", []))}
    there = {int(thread["dir"].partition("_")[2]): thread for thread in threads}
    if set(listed) != set(there):
        out["warnings"].append("the threads of manifest.json are not those that are there")
    for n, thread in there.items():
        present = thread.get("detail", {}).get("present")
        if present is not None and listed.get(n) not in (None, present):
            out["warnings"].append(f"manifest.json is wrong about the details of thread {n}")


def _result(threads):
    readable = [thread for thread in threads if thread["state"] != "rejected"]
    if not readable:
        return "rejected"
    if len(readable) < len(threads):
        return "partial"
    if any(thread["errors"] for thread in threads):
        return "damaged"
    ends = [thread["state"] for thread in threads]
    ends += [thread["detail"].get("state", "finalized") for thread in threads]
    return "ok" if set(ends) == {"finalized"} else "recovered"


def summary(path):
    path = os.path.normpath(path)
    out = {"sample": os.path.basename(path), "format": "atf", "warnings": []}
    names = [name for name in os.listdir(path) if name.startswith("thread_")]
    names.sort(key=lambda name: int(name.partition("_")[2]))
    folders = [os.path.join(path, name) for name in names]
    if not folders and os.path.exists(os.path.join(path, "index.atf")):
        folders = [path]
    threads = out["threads"] = [thread_summary(folder) for folder in folders]
    out["manifest"] = None
    if os.path.exists(os.path.join(path, "manifest.json")):
        _manifest(os.path.join(path, "manifest.json"), threads, out)
    readable = [thread for thread in threads if thread["state"] != "rejected"]
    starts = [thread["min_ts"] for thread in readable if thread["min_ts"] is not None]
    ends = [thread["max_ts"] for thread in readable if thread["max_ts"] is not None]
    out.update(events=sum(thread["events"] for thread in readable),
               first_ts=min(starts, default=None), last_ts=max(ends, default=None),
               result=_result(threads))
    return out


def _text(path, found):
    lines = [f"{path}: {found['result']}, {found['events']} events"]
    lines += [f"  warning: {warning}" for warning in found["warnings"]]
    for thread in found["threads"]:
        lines.append(f"  {thread['dir']}: {thread['state']}, {thread.get('events', 0)} events, "
                     f"{thread.get('detail', {}).get('events', 0)} details")
        lines += [f"    error: {error}" for error in thread["errors"]]
        lines += [f"    warning: {warning}" for warning in thread["warnings"]]
    return "\n".join(lines)


def main(arguments):
    paths = [argument for argument in arguments if argument != "--json"]
    if not paths or any(path.startswith("-") for path in paths):
        sys.stderr.write(__doc__)
        return 2
    status = 0
    for path in paths:
        found = summary(path)
        print(json.dumps(found) if "--json" in arguments else _text(path, found))
        if found["result"] not in ("ok", "recovered"):
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
