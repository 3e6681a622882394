#!/usr/bin/env python3
"""make_atf.py FOLDER: small ATF sessions of both header versions, right and wrong, each with what a
reader should find in it.

FOLDER gets v1/NAME and v2/NAME, session directories, and NAME.expected.json beside each. The
numbers in it are counted while the session is laid out; nothing reads it back. The cases are those
of the format's known damages: never finalized, cut, stale header, wrong counts, wrong checksums.
"""
import os
import struct
import sys
import zlib

from checksums import crc32c
from files import write_bytes, write_json

CALL, RETURN, EXCEPTION = 1, 2, 3
KINDS = {"C": CALL, "R": RETURN, "X": EXCEPTION, "?": 0}
ARM64, ANDROID, BOOTTIME = 2, 2, 3
MODULE = 0x5EED0001
NAMES = ["start", "step", "stop"]
NO_DETAIL = {1: 0xFFFFFFFF, 2: 0xFFFFFFFFFFFFFFFF}


class Event:
    def __init__(self, n, kind, time_ns, depth):
        self.n = n
        self.kind = kind
        self.time_ns = time_ns
        self.depth = depth
        self.function = MODULE << 32 | 1 + n * 2 % 3
        self.detail = None


class Thread:
    """One thread of a case: what its files say, and what is to be found in them."""

    def __init__(self, version, n, kinds="CCRCXRCCRR", details=(), payload="full"):
        self.version = version
        self.n = n
        self.events = []
        depth = 0
        for i, letter in enumerate(kinds):
            if letter in "RX":
                depth -= 1
            self.events.append(Event(i, KINDS[letter], 70_000 + 40 * n + 250 * i, depth))
            if letter == "C":
                depth += 1
        for seq, i in enumerate(details):
            self.events[i].detail = seq
        self.payload = payload
        # How it ends.
        self.footer = self.header = self.detail_footer = True
        self.checksum = "ok"
        self.claimed = None
        self.cut = 0
        self.detail_file = bool(details)
        self.flag = None
        self.damage = None
        self.errors = []
        self.warnings = []

    # ---- bytes

    def platform(self, magic, flags):
        return magic + struct.pack("<BBBBII", 1, self.version, ARM64, ANDROID, flags, self.n)

    def event_bytes(self, event):
        link = NO_DETAIL[self.version] if event.detail is None else event.detail
        if self.version == 1:
            return struct.pack("<QQIIII", event.time_ns, event.function, self.n, event.kind,
                               event.depth, link)
        return struct.pack("<QQQB7x", event.time_ns, event.function, link, event.kind)

    def sum_of(self, section):
        right = zlib.crc32(section) if self.version == 1 else crc32c(section)
        return {"ok": right, "zero": 0, "bad": right ^ 0x5A5A5A5A}[self.checksum]

    def has_flag(self):
        return self.header and (self.detail_file if self.flag is None else self.flag)

    def index_file(self):
        section = b"".join(self.event_bytes(event) for event in self.events)
        first = self.events[0].time_ns if self.events else 0
        last = self.events[-1].time_ns if self.events else 0
        count, footer_offset, times = len(self.events), 64 + len(section), (first, last)
        if not self.header:  # as it was created
            count, footer_offset, times = 0, 64, (0, 0)
        head = self.platform(b"ATI2", 1 if self.has_flag() else 0)
        head += struct.pack("<B3x", BOOTTIME)
        head += struct.pack("<III" if self.version == 1 else "<IQ",
                            *((0, 32, count) if self.version == 1 else (32, count)))
        head += struct.pack("<QQQQ", 64, footer_offset, *times)
        footer = b""
        if self.footer:
            claimed = len(self.events) if self.claimed is None else self.claimed
            footer = b"2ITA" + struct.pack("<IQQQQ24x", self.sum_of(section), claimed, first, last,
                                           len(section))
        whole = head + section + footer
        whole = whole[:len(whole) - self.cut]
        if self.damage:
            at, value = self.damage
            whole = whole[:at] + value + whole[at + len(value):]
        return whole

    def linked(self):
        return [event for event in self.events if event.detail is not None]

    def payload_bytes(self, event):
        if self.payload == "tiny":
            return b"tiny"
        stack = bytes((event.n * 16 + i) & 0xFF for i in range(12 + 4 * event.n))
        registers = [0x1000 * event.n + i for i in range(11)]  # x0 to x7, lr, fp, sp
        return struct.pack("<Q11QHH", event.function, *registers, len(stack), 0) + stack

    def record_bytes(self, event):
        payload = self.payload_bytes(event)
        record_type = 3 if event.kind == CALL else 4
        head = struct.pack("<IHH", 24 + len(payload), record_type, 0)
        head += struct.pack("<II" if self.version == 1 else "<Q",
                            *((event.n, self.n) if self.version == 1 else (event.n,)))
        return head + struct.pack("<Q", event.time_ns) + payload

    def detail_bytes(self):
        linked = self.linked()
        section = b"".join(self.record_bytes(event) for event in linked)
        facts = (len(linked), len(section), linked[0].n, linked[-1].n)
        head = self.platform(b"ATD2", 0)
        head += struct.pack("<IQQQQQ4x", 0, 64, *(facts if self.detail_footer else (0, 0, 0, 0)))
        footer = b""
        if self.detail_footer:
            footer = b"2DTA" + struct.pack("<IQQQQ24x", self.sum_of(section), len(linked),
                                           len(section), linked[0].time_ns, linked[-1].time_ns)
        whole = head + section + footer
        return whole[:len(whole) - self.cut]

    # ---- what is to be found

    def rejection(self):
        """Why no reader can take the file, or None."""
        return getattr(self, "refused", None)

    def found_events(self):
        kept = self.events[:-1] if self.cut else self.events
        return kept if self.claimed is None else kept[:self.claimed]

    def checksum_words(self, section_is_empty):
        algorithm = "crc32-ieee" if self.version == 1 else "crc32c"
        if section_is_empty or self.checksum == "zero":
            return {"crc": "unchecked", "crc_algorithm": None}
        if self.checksum == "bad":
            return {"crc": "bad", "crc_algorithm": None}
        return {"crc": "ok", "crc_algorithm": algorithm}

    def expected_detail(self):
        if not self.detail_file:
            return {"present": False}
        kept = self.linked()
        trailing = 0
        if self.cut:
            trailing = len(self.record_bytes(kept[-1])) - self.cut
            kept = kept[:-1]
        sizes = [len(self.record_bytes(event)) for event in kept]
        types = {}
        for event in kept:
            name = "3" if event.kind == CALL else "4"
            types[name] = types.get(name, 0) + 1
        out = {"present": True, "state": "finalized" if self.detail_footer else "unfinalized",
               "events": len(kept), "types": types, "bytes": sum(sizes),
               "trailing_bytes": trailing}
        out.update(self.checksum_words(False) if self.detail_footer else {"crc": "none"})
        return out

    def expected(self):
        out = {"dir": f"thread_{self.n}", "errors": self.errors, "warnings": self.warnings}
        if self.rejection():
            out.update(state="rejected", error=self.rejection())
            return out
        events = self.found_events()
        times = [event.time_ns for event in events]
        kinds = [event.kind for event in events]
        state = "finalized" if self.header and self.footer else (
            "stale-header" if self.footer else "unfinalized")
        out.update(version=self.version, thread_id=self.n, arch=ARM64, os=ANDROID,
                   clock_type=BOOTTIME, has_detail_flag=1 if self.has_flag() else 0, state=state)
        if self.footer:
            out.update(self.checksum_words(not self.events))
        else:
            out.update(trailing_bytes=(32 - self.cut) % 32 if self.cut else 0, crc="none")
        out.update(events=len(events), calls=kinds.count(CALL), returns=kinds.count(RETURN),
                   exceptions=kinds.count(EXCEPTION),
                   first_ts=times[0] if times else None, last_ts=times[-1] if times else None,
                   min_ts=min(times, default=None), max_ts=max(times, default=None),
                   backward_steps=sum(a > b for a, b in zip(times, times[1:])))
        if self.version == 1:
            out["max_depth"] = max((event.depth for event in events), default=0)
        out["functions"] = len({event.function for event in events})
        out["detail"] = self.expected_detail()
        out["links"] = sum(event.detail is not None for event in events) if self.detail_file else 0
        return out


DETAILS = (0, 2, 3, 9)


def two(version, **more):
    """Two threads; the first has details when they are asked for."""
    details = more.pop("details", ())
    return [Thread(version, 0, details=details, **more), Thread(version, 1, **more)]


def unfinalized(threads):
    for thread in threads:
        thread.header = thread.footer = thread.detail_footer = False
    return threads


def refused(threads, offset, value, why):
    for thread in threads:
        thread.damage = (offset, value)
        thread.refused = why
    return threads


def ok(version):
    return "ok", two(version, details=DETAILS)


def ok_crc0(version):
    threads = two(version, details=DETAILS)
    for thread in threads:
        thread.checksum = "zero"
    return "ok", threads


def bad_crc(version):
    threads = two(version, details=DETAILS)
    for thread in threads:
        thread.checksum = "bad"
        thread.errors = ["the checksum of the events does not fit"]
    threads[0].errors.append("the checksum of the detail records does not fit")
    return "damaged", threads


def nofooter(version):
    return "recovered", unfinalized(two(version, details=DETAILS))


def trunc_event(version):
    threads = unfinalized(two(version, details=DETAILS))
    for thread in threads:
        thread.cut = 11
    return "recovered", threads


def footer_but_stale_header(version):
    threads = two(version)
    for thread in threads:
        thread.header = False
    return "recovered", threads


def flag_without_detail_file(version):
    threads = two(version)
    for thread in threads:
        thread.flag = True
        thread.warnings = ["the flag says details, no file has them"]
    return "ok", threads


def bigendian(version):
    return "rejected", refused(two(version, kinds="CRCR"), 4, b"\x02", "endian 2")


def version3(version):
    return "rejected", refused(two(version, kinds="CRCR"), 5, b"\x03", "version 3")


def badmagic(version):
    return "rejected", refused(two(version, kinds="CRCR"), 0, b"ATX2", "magic")


def header_only(version):
    return "recovered", unfinalized(two(version, kinds=""))


def empty_finalized(version):
    return "ok", two(version, kinds="")


def wrong_count(version, claimed):
    threads = two(version, kinds="CRCR")
    for thread in threads:
        thread.checksum = "zero"
        thread.claimed = claimed
        thread.errors = ["the footer's count is not that of the section",
                         "header and footer disagree"]
    return "damaged", threads


def footer_count_too_big(version):
    return wrong_count(version, 1_000_000)


def footer_count_too_small(version):
    return wrong_count(version, 2)


def zero_length(version):
    threads = two(version, kinds="")
    for thread in threads:
        thread.index_file = lambda: b""
        thread.refused = "shorter than a header"
    return "rejected", threads


def one_thread_corrupt(version):
    threads = two(version, kinds="CRCR")
    refused(threads[1:], 0, b"ATX2", "magic")
    return "partial", threads


def detail_nofooter_only(version):
    threads = two(version, details=DETAILS)
    threads[0].detail_footer = False
    return "recovered", threads


def small_detail_nofooter(version):
    threads = [Thread(version, 0, "CRCRC", range(5), "tiny"), Thread(version, 1, "CRCRC")]
    return "recovered", unfinalized(threads)


def time_goes_back(version):
    threads = two(version)
    events = threads[0].events
    events[4].time_ns, events[5].time_ns = events[5].time_ns, events[4].time_ns
    threads[0].errors = ["time goes back once"]
    return "damaged", threads


def kind_zero(version):
    threads = two(version, kinds="C?CRR")
    for thread in threads:
        thread.errors = ["a record of kind 0"]
    return "damaged", threads


CASES = [ok, ok_crc0, bad_crc, nofooter, trunc_event, footer_but_stale_header,
         flag_without_detail_file, bigendian, version3, badmagic, header_only, empty_finalized,
         footer_count_too_big, footer_count_too_small, zero_length, one_thread_corrupt,
         detail_nofooter_only, small_detail_nofooter, time_goes_back, kind_zero]


def manifest(version, threads):
    times = [event.time_ns for thread in threads for event in thread.events]
    return {
        "threads": [{"id": thread.n, "has_detail": thread.detail_file} for thread in threads],
        "time_start_ns": min(times, default=0),
        "time_end_ns": max(times, default=0),
        "clock_type": BOOTTIME,
        "modules": [{"module_id": MODULE, "path": "<main>", "base_address": "0x200000000",
                     "size": 4096, "uuid": "01234567-89AB-CDEF-0123-456789ABCDEF"}],
        "symbols": [{"function_id": hex(MODULE << 32 | n), "module_id": MODULE, "symbol_index": n,
                     "name": name} for n, name in enumerate(NAMES, 1)],
        "format_version": "2.1" if version == 1 else "2.2",
    }


def make(folder):
    for version in (1, 2):
        for case in CASES:
            name = case.__name__
            result, threads = case(version)
            session = os.path.join(folder, f"v{version}", name)
            document = manifest(version, threads)
            write_json(os.path.join(session, "manifest.json"), document)
            for thread in threads:
                place = os.path.join(session, f"thread_{thread.n}")
                write_bytes(os.path.join(place, "index.atf"), thread.index_file())
                if thread.detail_file:
                    write_bytes(os.path.join(place, "detail.atf"), thread.detail_bytes())
            readable = [thread for thread in threads if not thread.rejection()]
            times = [event.time_ns for thread in readable for event in thread.found_events()]
            write_json(session + ".expected.json", {
                "sample": f"v{version}/{name}",
                "format": "atf",
                "warnings": [],
                "threads": [thread.expected() for thread in threads],
                "manifest": {"format_version": document["format_version"],
                             "threads": len(threads), "modules": 1, "symbols": len(NAMES)},
                "events": sum(len(thread.found_events()) for thread in readable),
                "first_ts": min(times, default=None),
                "last_ts": max(times, default=None),
                "result": result,
            })


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    make(sys.argv[1])
