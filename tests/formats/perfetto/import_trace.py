#!/usr/bin/env python3
"""A trace through protoc and by the rules of Perfetto's importer, as JSON: for tests.
Usage: import_trace.py FILE

The importer's rules, from trace processor's sources: what a sequence has interned and its defaults
are gone when flag 1 comes, and unknown after a dropped packet until then; a packet with flag 2
without that state is dropped; clocks 64 to 127 belong to a sequence and need a snapshot; events are
sorted by time, equal ones as they came; slices nest on each track, at most 512 deep; an end without
a begin is only counted; a begin without an end lasts to the end."""

import json
import os
import sys
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))
import protoc_text  # noqa: E402

MAX_DEPTH = 512
MAX_COMPRESSED = 512 * 1024
BOOTTIME = 6


def varint(data, at):
    value, shift = 0, 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def packets(data):
    """The bytes of each packet of a Trace."""
    at = 0
    while at < len(data):
        if data[at] != 0x0A:
            raise ValueError(f"byte {at} begins no packet")
        length, at = varint(data, at + 1)
        if at + length > len(data):
            raise ValueError("the last packet is cut off")
        yield data[at:at + length]
        at += length


def decompressed(data):
    """The trace with the packets that were compressed in their places, and how many runs it had."""
    plain, runs = bytearray(), 0
    for packet in packets(data):
        if packet[:2] != b"\x92\x03":  # field 50, bytes
            plain += b"\x0a" + encoded(len(packet)) + packet
            continue
        length, at = varint(packet, 2)
        if at + length != len(packet) or length >= MAX_COMPRESSED:
            raise ValueError("a run that the importer does not take")
        unpacked = zlib.decompress(packet[at:])
        if len(unpacked) > 2 * 1024 * 1024:
            raise ValueError("a run is large when it is unpacked")
        plain += unpacked
        runs += 1
    return bytes(plain), runs


def encoded(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def decode(data):
    here = os.path.dirname(os.path.abspath(__file__))
    return protoc_text.decode(data, os.path.join(here, "trace.proto"),
                              "perfetto.protos.Trace").get("packet", [])


one = protoc_text.one


class Sequence:
    def __init__(self):
        self.is_valid = False
        self.names, self.notes, self.sources = {}, {}, {}
        self.clocks = {}
        self.defaults = {}
        self.has_begun = False


class Importer:
    def __init__(self):
        self.sequences = {}
        self.tracks = {}
        self.events = []
        self.processes, self.threads = {}, {}
        self.counts = {"losses": 0, "dropped": 0, "lone_ends": 0, "too_deep": 0}

    def add(self, packet):
        sequence_id = one(packet, "trusted_packet_sequence_id", 0)
        if sequence_id == 0:
            raise ValueError("a packet of no sequence")
        sequence = self.sequences.setdefault(sequence_id, Sequence())
        if one(packet, "first_packet_on_sequence"):
            if sequence.has_begun:
                raise ValueError("a sequence begins twice")
            sequence.has_begun = True
        if one(packet, "previous_packet_dropped"):
            self.counts["losses"] += 1
            sequence.is_valid = False
        flags = one(packet, "sequence_flags", 0)
        if flags & 1:
            sequence.is_valid = True
            sequence.names, sequence.notes, sequence.sources = {}, {}, {}
            sequence.defaults = {}
        if "trace_packet_defaults" in packet:
            sequence.defaults = packet["trace_packet_defaults"][0]
        data = one(packet, "interned_data", {})
        for kind, names in (("event_names", sequence.names),
                            ("debug_annotation_names", sequence.notes)):
            for entry in data.get(kind, []):
                iid = one(entry, "iid")
                if iid in names:
                    raise ValueError("a name is interned twice")
                names[iid] = one(entry, "name")
        for entry in data.get("source_locations", []):
            if one(entry, "iid") in sequence.sources:
                raise ValueError("a source location is interned twice")
            sequence.sources[one(entry, "iid")] = (one(entry, "function_name"), "{}:{}".format(
                one(entry, "file_name"), one(entry, "line_number", 0)))
        if "clock_snapshot" in packet:
            for clock in packet["clock_snapshot"][0]["clocks"]:
                if one(clock, "clock_id") >= 64:
                    sequence.clocks[one(clock, "clock_id")] = [
                        one(clock, "timestamp"), one(clock, "is_incremental", False)]
        if flags & 2 and not sequence.is_valid:
            self.counts["dropped"] += 1
            return
        self.add_data(packet, sequence)

    def time_of(self, packet, sequence):
        clock = one(packet, "timestamp_clock_id",
                    one(sequence.defaults, "timestamp_clock_id", BOOTTIME))
        if clock == BOOTTIME:
            return one(packet, "timestamp")
        state = sequence.clocks[clock]
        if not state[1]:
            raise ValueError("only incremental clocks are expected")
        state[0] += one(packet, "timestamp")
        return state[0]

    def add_data(self, packet, sequence):
        if "track_descriptor" in packet:
            self.describe(packet["track_descriptor"][0])
            self.time_of(packet, sequence)
        if "track_event" not in packet:
            return
        event = packet["track_event"][0]
        time = self.time_of(packet, sequence)
        defaults = one(sequence.defaults, "track_event_defaults", {})
        track = one(event, "track_uuid", one(defaults, "track_uuid"))
        if track not in self.tracks:
            raise ValueError("an event on a track that is not described")
        name = one(event, "name")
        if "name_iid" in event:
            name = sequence.names[one(event, "name_iid")]
        notes = {}
        if "source_location_iid" in event:
            function, notes["source"] = sequence.sources[one(event, "source_location_iid")]
            if function != name:
                raise ValueError("a source location of another function")
        for note in event.get("debug_annotations", []):
            key = one(note, "name") or sequence.notes[one(note, "name_iid")]
            notes[key] = next(values[0] for field, values in note.items()
                              if field.endswith("_value"))
        self.events.append((time, track, one(event, "type"), name, notes,
                            one(event, "counter_value")))

    def describe(self, track):
        uuid = one(track, "uuid")
        if uuid in self.tracks or not uuid:
            raise ValueError("a track is described twice, or has no uuid")
        name = one(track, "name", "")
        parent = one(track, "parent_uuid")
        if parent is not None:
            self.tracks[parent]
        if "process" in track:
            process = track["process"][0]
            if one(process, "pid") in self.processes:
                raise ValueError("two processes with one pid")
            self.processes[one(process, "pid")] = name = one(process, "process_name", "")
        if "thread" in track:
            thread = track["thread"][0]
            self.processes[one(thread, "pid")]
            if one(thread, "tid") in self.threads:
                raise ValueError("two threads with one tid")
            self.threads[one(thread, "tid")] = name = one(thread, "thread_name", "")
            name = f"{name}/{one(thread, 'tid')}"
        if parent is not None:
            name = self.tracks[parent]["name"] + "/" + name
        self.tracks[uuid] = {"name": name, "slices": [], "instants": [], "counts": []}
        if "counter" in track:
            self.tracks[uuid]["unit"] = one(track["counter"][0], "unit_name", "")

    def result(self):
        self.events.sort(key=lambda event: event[0])
        stacks = {}
        for time, track, kind, name, notes, count in self.events:
            stack = stacks.setdefault(track, [])
            into = self.tracks[track]
            if kind == "TYPE_SLICE_BEGIN":
                if len(stack) >= MAX_DEPTH:
                    self.counts["too_deep"] += 1
                    continue
                piece = {"depth": len(stack), "ts": time, "dur": None, "name": name}
                if notes:
                    piece["args"] = notes
                stack.append(piece)
                into["slices"].append(piece)
            elif kind == "TYPE_SLICE_END":
                if not stack:
                    self.counts["lone_ends"] += 1
                    continue
                piece = stack.pop()
                piece["dur"] = time - piece["ts"]
                if notes:
                    piece.setdefault("args", {}).update(notes)
            elif kind == "TYPE_INSTANT":
                into["instants"].append([time, name])
            elif kind == "TYPE_COUNTER":
                if "unit" not in into:
                    raise ValueError("a count on a track that is no counter")
                into["counts"].append([time, count])
            else:
                raise ValueError(f"an event of type {kind}")
        tracks = {}
        for track in self.tracks.values():
            kept = {key: value for key, value in track.items() if key != "name" and value}
            if track["name"] in tracks:
                raise ValueError("two tracks of one name in one place")
            tracks[track["name"]] = kept
        return {"processes": self.processes, "tracks": tracks, **self.counts}


def main():
    with open(sys.argv[1], "rb") as file:
        plain, runs = decompressed(file.read())
    importer = Importer()
    for packet in decode(plain):
        importer.add(packet)
    json.dump({"runs": runs, "bytes": len(plain), **importer.result()}, sys.stdout)


if __name__ == "__main__":
    main()
