#!/usr/bin/env python3
"""foreign_readers_test.py COLLECTCTL: what `convert` and `recover` make of damaged captures, as readers
see it that have nothing of our code, event by event.

Such a reader reads the damaged capture; what it finds is what every conversion has to hold. The
captures are those of tests/golden, and those of the reference pack where it is there.
"""
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

COLLECTCTL = sys.argv[1]
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../..")
PACK = os.environ.get("COLLECT_REFERENCE", os.path.join(ROOT, "../shared/reference"))
CALL, RETURN, EXCEPTION = 1, 2, 3

# The viewer's library builds no scopes below.
VIEWER_DEPTH = 1024
VIEWER = os.path.join(PACK, "tools/wtf_oracle.js")

sys.dont_write_bytecode = True
GOLDEN = os.path.join(ROOT, "tests/golden")
sys.path.insert(0, GOLDEN)
import check_atf
import check_rtc
import read_dial9
import read_wtf

# The comparison with the viewer's library needs the pack's reader, which prints as that one does.
sys.path.insert(0, os.path.join(PACK, "tools"))
with contextlib.suppress(ImportError):
    import wtf_dump

FOLDERS = [folder for folder in (os.path.join(GOLDEN, "data"), os.path.join(PACK, "data"))
           if os.path.isdir(folder)]


def samples(path):
    """The files at this place of the folders that have them."""
    return [os.path.join(folder, path) for folder in FOLDERS
            if os.path.exists(os.path.join(folder, path))]


def run(*arguments):
    ran = subprocess.run([COLLECTCTL, *arguments], capture_output=True, text=True, timeout=60,
                         stdin=subprocess.DEVNULL)
    return ran.returncode, ran.stdout, ran.stderr


def sessions_of(place):
    return sorted(folder for folder, folders, _ in os.walk(place)
                  if any(name.startswith("thread_") for name in folders))


def names_of(session):
    with contextlib.suppress(OSError, ValueError, KeyError):
        with open(os.path.join(session, "manifest.json")) as manifest:
            return {int(symbol["function_id"], 16): symbol["name"]
                    for symbol in json.load(manifest).get("symbols", [])}
    return {}


def atf_events(session):
    """{n: [(ns, kind, function id)]} of the threads that the checker reads, in the order of time;
    what is of no known kind is no event."""
    threads = {}
    for name in sorted(os.listdir(session)):
        if not name.startswith("thread_"):
            continue
        out = {"errors": [], "warnings": []}
        try:
            read = check_atf.read_index(os.path.join(session, name, "index.atf"), out)
        except OSError:
            read = None
        if read is not None:
            events = [(ns, kind, function) for ns, function, kind, _, _ in read[2]]
            known = [event for event in events if event[1] in (CALL, RETURN, EXCEPTION)]
            threads[int(name[len("thread_"):])] = sorted(known, key=lambda event: event[0])
    return threads


def raw_times(session):
    """{n: [ns]} as they stand in the files."""
    threads = {}
    for n in atf_events(session):
        read = check_atf.read_index(os.path.join(session, f"thread_{n}", "index.atf"),
                                    {"errors": [], "warnings": []})
        threads[n] = [event[0] for event in read[2]]
    return threads


def linked_details(session):
    """{n: [(ns, function) of the events that link to a detail record]}"""
    linked = {}
    for name in sorted(os.listdir(session)):
        detail = os.path.join(session, name, "detail.atf")
        if not os.path.exists(detail):
            continue
        out = {"errors": [], "warnings": []}
        read = check_atf.read_index(os.path.join(session, name, "index.atf"), out)
        if read is None:
            continue
        version, tid, events = read
        check_atf.read_detail(detail, version, tid, events,
                              sum(event[4] is not None for event in events), out)
        count = out["detail"].get("events", 0)
        linked[int(name[len("thread_"):])] = [
            (ns, function) for ns, function, _, _, seq in events if seq is not None and seq < count]
    return {n: found for n, found in linked.items() if found}


def dial9_events(path):
    """{thread: [(ns, kind, function id)]}, {thread: details}, whether it was read to its end."""
    with open(path, "rb") as file:
        decoder = read_dial9.Decoder(file.read())
    kinds = {"Call": CALL, "Return": RETURN, "Exception": EXCEPTION}
    threads, details, whole = {}, {}, True
    try:
        for frame in decoder.frames():
            if frame["k"] != "event":
                continue
            if frame["name"] in kinds:
                thread, function = (int(value) for value in frame["v"][:2])
                threads.setdefault(thread, []).append(
                    (int(frame["ts"]), kinds[frame["name"]], function))
            elif frame["name"] == "Detail":
                details[int(frame["v"][0])] = details.get(int(frame["v"][0]), 0) + 1
    except read_dial9.Stop:
        whole = False
    return threads, details, whole


def wtf_events(path):
    """[[(us, kind, function's name)]] of the zones that have any: leaves behind an unwind, and those
    at the end, close calls that did not return."""
    zones = []
    for zone in read_wtf.load(path).zones:
        events, unwinding, stack = [], 0, []
        for us, kind, arguments in zone["raw"]:
            name = kind["name"]
            if name == "collect#return":
                events.append((us, RETURN, arguments["function"]))
            elif name == "collect#exception":
                events.append((us, EXCEPTION, arguments["function"]))
            elif name == "collect#unwind":
                unwinding += arguments["calls"]
            elif name == "wtf.scope#leave":
                function = stack.pop()
                if unwinding:
                    unwinding -= 1
                else:
                    events.append((us, RETURN, function))
            elif kind["cls"] == 1:
                stack.append(name)
                events.append((us, CALL, name))
        if events:
            zones.append(events)
    return zones


def first_difference(found, expected, place=""):
    """Where two nests of lists and dictionaries differ first: a diff of all would take minutes."""
    if type(found) is type(expected) and isinstance(found, (list, dict)):
        keys = range(max(len(found), len(expected))) if isinstance(found, list) else sorted(
            found.keys() | expected.keys())
        for key in keys:
            try:
                here, there = found[key], expected[key]
            except (IndexError, KeyError):
                return f"{place}[{key}] is there once only; {len(found)}, expected {len(expected)}"
            if here != there:
                return first_difference(here, there, f"{place}[{key}]")
    return f"{place} is {found!r:.300}, expected {expected!r:.300}"


class Damaged(unittest.TestCase):
    def assert_same(self, found, expected):
        if found != expected:
            self.fail(first_difference(found, expected))

    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def place(self, name):
        return os.path.join(self.folder, name)

    def convert(self, source, target, *more):
        """Where the result is; None where nothing could be made. What is missing is said and is
        exit code 1, nothing else is."""
        ending = "wtf-trace" if target == "wtf" else target
        place = self.place(f"{len(os.listdir(self.folder))}.{ending}")
        code, _, said = run("convert", source, "--to", target, "-o", place, *more)
        if code == 2:
            self.assertIn("nothing was made", said)
            return None, said
        self.assertEqual("missing from the input" in said, code == 1, said)
        return place, said


def atf_samples():
    for folder in FOLDERS:
        for group in ("", "v1", "v2"):
            for name in sorted(os.listdir(os.path.join(folder, "atf", group))):
                path = os.path.join(folder, "atf", group, name)
                if os.path.isdir(path) and name not in ("v1", "v2"):
                    yield path, path


def each_session(check):
    """A test of one sample, as a test of all of them."""
    def test(self):
        for name, path in atf_samples():
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                self.folder = folder
                check(self, path, atf_events(path))
    return test


class DamagedSessions(Damaged):
    def check_health(self, session, path):
        """Whether a session that was made says that something is missing is what the checker says
        of its origin. Events that were put in order are no loss."""
        code, _, said = run("verify", session)
        origin = check_atf.summary(path)
        in_order = all(events == sorted(events) for events in raw_times(session).values())
        damage = [error for thread in origin["threads"] for error in thread["errors"]
                  if not (in_order and error.startswith("time goes back"))]
        whole = origin["result"] in ("ok", "damaged") and not damage and origin["manifest"]
        self.assertEqual(code, 0 if whole else 1, said)

    def check_viewer(self, path):
        """The published viewer's library finds the same as the pack's reader."""
        if not self.viewer_is_there:
            return
        read = wtf_dump.plain(wtf_dump.load(path).finish())
        deepest = max((event["d"] for zone in read["zones"] for event in zone["events"]), default=0)
        if deepest >= VIEWER_DEPTH:
            return
        seen = subprocess.run(["node", VIEWER, path, "--events"], capture_output=True, check=True,
                              timeout=60)
        self.assert_same(self.zones(json.loads(seen.stdout)), self.zones(read))

    @staticmethod
    def zones(read):
        zones = [{key: zone[key] for key in ("name", "type", "location", "events")}
                 for zone in wtf_dump.norm(read)["zones"]]
        for event in (event for zone in zones for event in zone["events"]):
            # A scope that was left at 0 looks to the library like one that never was.
            if event.get("end") == 0:
                del event["end"]
        return zones

    @classmethod
    def setUpClass(cls):
        sample = os.path.join(GOLDEN, "data/wtf/tiny.wtf-trace")
        cls.viewer_is_there = (
            shutil.which("node") is not None and os.path.exists(VIEWER) and subprocess.run(
                ["node", VIEWER, sample], capture_output=True, timeout=60).returncode == 0)

    def test_viewer_is_there(self):
        if not self.viewer_is_there:
            self.skipTest("node, the package tracing-framework or the reference pack is not there")

    @each_session
    def test_sessions_of_either_version(self, path, expected):
        for version in ("1", "2"):
            place, said = self.convert(path, "atf", "--atf-version", version)
            if place is None:
                self.assertEqual(expected, {}, said)
                continue
            (session,) = sessions_of(place)
            self.assert_same(atf_events(session), expected)
            self.assert_same(linked_details(session), linked_details(path))
            self.check_health(session, path)

    @each_session
    def test_containers_and_back(self, path, expected):
        place, said = self.convert(path, "rtc")
        if place is None:
            self.assertEqual(expected, {}, said)
            return
        with open(place, "rb") as file:
            reader = check_rtc.Reader(file.read())
        self.assertTrue(reader.read())
        self.assertEqual(reader.problems, [])
        self.assertEqual({unit["crc"] for unit in reader.units}, {"ieee"})
        back, _ = self.convert(place, "atf")
        (session,) = sessions_of(back)
        self.assert_same(atf_events(session), expected)
        self.assert_same(linked_details(session), linked_details(path))
        self.check_health(session, path)

    @each_session
    def test_dial9_streams_and_back(self, path, expected):
        place, said = self.convert(path, "dial9")
        if place is None:
            self.assertEqual(expected, {}, said)
            return
        threads, details, whole = dial9_events(place)
        self.assertTrue(whole)
        self.assert_same(threads, {n: events for n, events in expected.items() if events})
        self.assertEqual(details, {n: len(linked) for n, linked in linked_details(path).items()})
        back, _ = self.convert(place, "atf")
        (session,) = sessions_of(back)
        self.assert_same(atf_events(session), expected)
        self.check_health(session, path)

    @each_session
    def test_wtf_traces_and_back(self, path, expected):
        place, said = self.convert(path, "wtf")
        if place is None:
            self.assertEqual(expected, {}, said)
            return
        names = names_of(path)
        first = min((events[0][0] for events in expected.values() if events), default=0)
        in_us = [[(ns // 1000 - first // 1000, kind, names.get(function))
                  for ns, kind, function in events]
                 for _, events in sorted(expected.items()) if events]
        found = wtf_events(place)
        if not names:
            # The file has the functions' numbers as names.
            found = [[(us, kind, None) for us, kind, _ in events] for events in found]
        self.assert_same(found, in_us)
        self.check_viewer(place)
        back, _ = self.convert(place, "atf")
        (session,) = sessions_of(back)
        self.assertEqual([len(events) for _, events in sorted(atf_events(session).items())],
                         [len(events) for _, events in sorted(expected.items())])
        self.check_health(session, path)

    @each_session
    def test_recovered_in_place(self, path, expected):
        place = self.place("session")
        shutil.copytree(path, place)
        code, _, said = run("recover", place)
        self.assert_same(atf_events(place), expected)
        if code == 0:
            self.assertTrue(all(thread["state"] == "finalized"
                                for thread in check_atf.summary(place)["threads"]), said)


class DamagedContainers(Damaged):
    @staticmethod
    def objects(path):
        with open(path, "rb") as file:
            reader = check_rtc.Reader(file.read())
        if not reader.read():
            return None, reader
        # A clock is said again where a Unit begins; what it says is the time of the others.
        return [(one.name, one.payload, one.time_ns) for one in reader.objects
                if not one.is_clock], reader

    def test_every_object_is_in_the_copy(self):
        sources = [os.path.join(folder, "rtc", name) for folder in FOLDERS
                   for name in sorted(os.listdir(os.path.join(folder, "rtc")))
                   if name.endswith(".rtc")]
        for source in sources:
            for command in ("convert", "recover"):
                with self.subTest(source, command=command), tempfile.TemporaryDirectory() as place:
                    copy = os.path.join(place, "copy.rtc")
                    more = ("--to", "rtc") if command == "convert" else ()
                    code, _, said = run(command, source, "-o", copy, *more)
                    found, before = self.objects(source)
                    if code == 2:
                        self.assertFalse(found, said)
                        continue
                    copied, after = self.objects(copy)
                    self.assertEqual(after.problems, [])
                    self.assert_same(copied, found)
                    broken = before.problems or before.incomplete or before.tail or before.head
                    self.assertEqual(code, 1 if broken else 0, said)


class CutFiles(Damaged):
    """Of files that are cut anywhere, everything that an independent reader finds."""

    def cuts(self, *places):
        paths = [path for place in places for path in samples(place)]
        self.assertTrue(paths)
        for path in paths:
            yield from self.cuts_of(path)

    def cuts_of(self, path):
        with open(path, "rb") as file:
            whole = file.read()
        for part in range(1, 12):
            at = len(whole) * part // 12
            with self.subTest(os.path.basename(path), at=at), tempfile.TemporaryDirectory() as folder:
                self.folder = folder
                cut = self.place("cut" + os.path.splitext(path)[1])
                with open(cut, "wb") as file:
                    file.write(whole[:at])
                yield cut

    @staticmethod
    def dial9_frames(path):
        with open(path, "rb") as file:
            decoder = read_dial9.Decoder(file.read())
        frames = []
        try:
            for frame in decoder.frames():
                # Where it ends is the file's, not the frame's.
                frames.append({key: value for key, value in frame.items() if key != "end"})
        except read_dial9.Stop:
            return frames, False
        return frames, True

    def test_dial9(self):
        for cut in self.cuts("dial9/service.bin", "dial9/demo-2026-04-15-65026ee.bin"):
            frames, whole = self.dial9_frames(cut)
            for command, more in (("convert", ("--to", "dial9")), ("recover", ())):
                copy = self.place(command)
                code, _, said = run(command, cut, "-o", copy, *more)
                self.assertNotEqual(code, 2, said)
                copied, end = self.dial9_frames(copy)
                self.assertTrue(end)
                self.assert_same(copied, frames)
                self.assertEqual(code, 0 if whole else 1, said)

    def test_wtf(self):
        for cut in self.cuts("wtf/small.v10.wtf-trace", "wtf/cpp_stream.wtf-trace"):
            found = [zone["raw"] for zone in self.whole_chunks(cut).zones]
            for command, more in (("convert", ("--to", "wtf")), ("recover", ())):
                copy = self.place(command + ".wtf-trace")
                code, _, said = run(command, cut, "-o", copy, *more)
                if code == 2:
                    self.assertFalse(any(found), said)
                    continue
                self.assertEqual(code, 1, said)
                copied = [zone["raw"] for zone in read_wtf.load(copy).zones]
                self.assert_same([events[:len(before)] for events, before in zip(copied, found)],
                                 found)

    @staticmethod
    def whole_chunks(path):
        """What the reader finds in front of the chunk that the cut is in."""
        with open(path, "rb") as file:
            cut = file.read()
        at = end = 12
        while at + 12 <= len(cut):
            at += int.from_bytes(cut[at + 8:at + 12], "little")
            if at > len(cut):
                break
            end = at
        trace = read_wtf.Trace()
        return trace.read(cut[:end]) if end > 12 else trace


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
