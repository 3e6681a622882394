#!/usr/bin/env python3
"""The rules of the API improvement proposals (AIP) that the control plane keeps, and how it keeps them.
Usage: api_rules_test.py PROTO_ROOT"""

import pathlib
import re
import sys
import unittest

# What a line of a .proto says. The files are ours and plain: one declaration a line.
MESSAGE = re.compile(r"^( *)(message|enum) (\w+) \{(\})?")
FIELD = re.compile(r"^ *(repeated |optional )?([\w.]+) (\w+) = (\d+);")
METHOD = re.compile(r"^  rpc (\w+)\((\w+)\) returns \((stream )?(\w+)\);")


def read(root):
    """{message: {field: (repeated, type, number)}}, {method: (request, stream, response)}"""
    messages, methods = {}, {}
    for path in sorted((root / "collect/control/v1").glob("*.proto")):
        open_ones = []
        for line in path.read_text().split("\n"):
            if found := MESSAGE.match(line):
                if found[2] == "message":
                    messages[found[3]] = {}
                if not found[4]:
                    open_ones.append((found[2], found[3]))
            elif line.strip() == "}" and open_ones:
                open_ones.pop()
            elif found := METHOD.match(line):
                methods[found[1]] = (found[2], bool(found[3]), found[4])
            elif (found := FIELD.match(line)) and open_ones and open_ones[-1][0] == "message":
                messages[open_ones[-1][1]][found[3]] = (
                    (found[1] or "").strip(), found[2], int(found[4]))
    return messages, methods


class ApiRules(unittest.TestCase):
    def fields(self):
        for message, fields in MESSAGES.items():
            for name, field in fields.items():
                yield f"{message}.{name}", name, field

    def test_something_was_read(self):
        self.assertGreater(len(MESSAGES), 60)
        self.assertGreater(len(METHODS), 20)
        self.assertEqual(MESSAGES["Agent"]["name"], ("", "string", 1))

    def test_requests_and_names(self):  # AIP-130, AIP-190
        for method, (request, _, _) in METHODS.items():
            self.assertEqual(request, method + "Request")

    def test_get_answers_with_the_resource(self):  # AIP-131
        for resource in ("Agent", "Device", "Session"):
            self.assertEqual(METHODS["Get" + resource][2], resource)
            self.assertEqual(list(MESSAGES[f"Get{resource}Request"]), ["name"])
            self.assertEqual(MESSAGES[resource]["name"], ("", "string", 1))

    def test_lists_have_pages(self):  # AIP-132, AIP-158; there are few devices
        for method, (request, _, response) in METHODS.items():
            if not method.startswith("List") or method == "ListDevices":
                continue
            self.assertEqual(MESSAGES[request]["page_size"][1], "int32", method)
            self.assertEqual(MESSAGES[request]["page_token"][1], "string", method)
            self.assertEqual(MESSAGES[response]["next_page_token"][1], "string", method)
            repeated = [name for name, field in MESSAGES[response].items() if field[0] == "repeated"]
            self.assertEqual(len(repeated), 1, method)

    def test_times(self):  # AIP-142; clocks of devices are counts of nanoseconds
        for where, name, (_, kind, _) in self.fields():
            self.assertFalse(name.endswith(("_at", "_at_ns")), where)
            if kind == "google.protobuf.Timestamp":
                self.assertTrue(name.endswith("_time"), where)
            if name.endswith("_time"):
                self.assertEqual(kind, "google.protobuf.Timestamp", where)
            if name.endswith("_ns"):
                self.assertIn(kind, ("uint64", "fixed64"), where)

    def test_quantities_have_units(self):  # AIP-141
        for where, name, (_, kind, _) in self.fields():
            self.assertNotIn(name, ("bytes", "size", "seconds", "interval_ms"), where)
            if name.endswith("_bytes") and kind != "bytes":
                self.assertEqual(kind, "uint64", where)

    def test_outcomes_say_what_failed(self):  # AIP-193, AIP-234
        outcomes = [name for name in MESSAGES if name.endswith("Outcome")]
        self.assertGreater(len(outcomes), 4)
        for name in outcomes:
            self.assertEqual(MESSAGES[name]["error"][1], "google.rpc.Status", name)
            self.assertEqual(MESSAGES[name]["agent"], ("", "string", 1), name)
        for message, fields in MESSAGES.items():
            self.assertNotIn("ok", fields, message)

    def test_one_selector(self):
        for message, fields in MESSAGES.items():
            if "target" in fields:
                self.assertEqual(fields["target"], ("", "Selector", 1), message)
            self.assertNotIn("filter", fields, f"{message}: a filter is an expression (AIP-160)")

    def test_numbers_have_no_holes(self):  # 1.0 begins without a past
        for message, fields in MESSAGES.items():
            numbers = [number for _, _, number in fields.values()]
            self.assertEqual(numbers, list(range(1, len(numbers) + 1)), message)

    def test_words(self):  # AIP-140
        for where, name, _ in self.fields():
            self.assertRegex(name, r"^[a-z][a-z0-9]*(_[a-z0-9]+)*$", where)


if __name__ == "__main__":
    MESSAGES, METHODS = read(pathlib.Path(sys.argv.pop(1)))
    unittest.main()
