#!/usr/bin/env python3
"""The committed goldens are what the generators write, and the readers beside them find in each
sample what its generator says. Neither has anything of the C++ code."""
import filecmp
import gzip
import json
import os
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import check_atf
import check_rtc
import make_dial9
import make_goldens
import make_wtf
import read_dial9
import read_wtf

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data")
MOST_BYTES = 400_000


def contents(path):
    with open(path, "rb") as file:
        return file.read()


def files_below(folder):
    return sorted(os.path.relpath(os.path.join(place, name), folder)
                  for place, _, names in os.walk(folder) for name in names)


def expected_of(kind):
    """(path of the sample, the document beside it)"""
    folder = os.path.join(DATA, kind)
    suffix = ".expected.json"
    for name in files_below(folder):
        if name.endswith(suffix):
            document = json.loads(contents(os.path.join(folder, name)))
            yield os.path.join(folder, document["sample"]), document


class Committed(unittest.TestCase):
    def test_is_what_the_generators_write(self):
        with tempfile.TemporaryDirectory() as folder:
            make_goldens.main([folder])
            made = files_below(folder)
            self.assertEqual(made, files_below(DATA), "run make_goldens.py")
            same, other, unread = filecmp.cmpfiles(folder, DATA, made, shallow=False)
            self.assertEqual((other, unread), ([], []), "run make_goldens.py")
            self.assertEqual(len(same), len(made))

    def test_is_small(self):
        sizes = [os.path.getsize(os.path.join(DATA, name)) for name in files_below(DATA)]
        self.assertLess(sum(sizes), MOST_BYTES)


class Readers(unittest.TestCase):
    maxDiff = 2000

    def assert_agrees(self, found, expected, place=""):
        """What both documents have; of sentences, how many there are."""
        if place.endswith((".errors", ".warnings")):
            self.assertEqual(len(found), len(expected), f"{place}: {found}")
        elif isinstance(expected, dict):
            for key in expected.keys() & found.keys() - {"sample", "problems", "error"}:
                self.assert_agrees(found[key], expected[key], f"{place}.{key}")
        elif isinstance(expected, list):
            self.assertEqual(len(found), len(expected), place)
            for n, (here, there) in enumerate(zip(found, expected)):
                self.assert_agrees(here, there, f"{place}[{n}]")
        else:
            self.assertEqual(found, expected, place)

    def test_atf(self):
        for path, expected in expected_of("atf"):
            with self.subTest(path):
                found = check_atf.summary(path)
                self.assert_agrees(found, expected)
                self.assertEqual([thread["state"] for thread in found["threads"]],
                                 [thread["state"] for thread in expected["threads"]])

    def test_rtc(self):
        for path, expected in expected_of("rtc"):
            with self.subTest(path):
                reader = check_rtc.Reader(contents(path))
                self.assertTrue(reader.read())
                found = reader.summary()
                places = [[one.partition(":")[0] for one in document.pop("first_problems")]
                          for document in (found, expected)]
                self.assertEqual(*places)
                self.assertEqual(found["problems"], expected["problems"])
                self.assert_agrees(found, expected)

    def test_wtf(self):
        for path, expected in expected_of("wtf"):
            with self.subTest(path):
                self.assert_agrees(read_wtf.load(path).summary(), expected)

    def test_wtf_variants(self):
        """This reader refuses cut arguments, which the viewer does not notice."""
        table = json.loads(contents(os.path.join(DATA, "wtf", "accept.json")))
        with tempfile.TemporaryDirectory() as folder:
            make_wtf.main(["--variants", folder])
            self.assertEqual(len(os.listdir(folder)), len(table))
            for name in table.keys() - {"cut_arguments"}:
                path = os.path.join(folder, name + ".wtf-trace")
                if not os.path.exists(path):
                    continue  # JSON
                with self.subTest(name):
                    try:
                        found = read_wtf.load(path).summary()
                    except read_wtf.Broken:
                        found = None
                    self.assertEqual(found is not None, table[name]["result"] == "loaded")
                    if found:
                        self.assertEqual((len(found["zones"]), found["events"]),
                                         (table[name]["zones"], table[name]["events"]))

    def check_vectors(self, folder):
        for name, vector in json.loads(contents(os.path.join(folder, "vectors.json"))).items():
            with self.subTest(name):
                data = contents(os.path.join(folder, "vectors", name + ".bin"))
                self.assertEqual(len(data), vector["bytes"])
                found = list(read_dial9.lines(data))
                golden = contents(os.path.join(folder, "golden", name + ".jsonl")).decode()
                self.assertTrue(found[:-1] == golden.split("\n")[:-2])
                end = json.loads(found[-1])
                self.assertEqual((end["k"], end.get("pos")),
                                 (vector["strict"]["result"], vector["strict"].get("at")))
                self.assertEqual(sum('"k":"event"' in line for line in found),
                                 vector["strict"]["events"])

    def test_dial9(self):
        for path, expected in expected_of("dial9"):
            with self.subTest(path):
                stored = contents(path)
                data = gzip.decompress(stored) if path.endswith(".gz") else stored
                self.assert_agrees(read_dial9.summary(stored, data), expected)
        self.check_vectors(os.path.join(DATA, "dial9"))

    def test_large_dial9_vectors(self):
        with tempfile.TemporaryDirectory() as folder:
            make_dial9.main(["--large", folder])
            self.check_vectors(folder)

    def test_random_dial9_streams_are_read_to_their_end(self):
        with tempfile.TemporaryDirectory() as folder:
            make_dial9.main(["--random", "50", "1", folder])
            for name in os.listdir(folder):
                last = list(read_dial9.lines(contents(os.path.join(folder, name))))[-1]
                self.assertEqual(last, '{"k":"end"}', name)


if __name__ == "__main__":
    unittest.main()
