#!/usr/bin/env python3
"""Names the tests that did not run, in whole or in part, and why; and those that took longest.

    skipped_tests.py GTEST_DIRECTORY CTEST_LOG OUTPUTS

GTEST_DIRECTORY holds what the GoogleTest programs wrote (GTEST_OUTPUT=xml:DIRECTORY/). CTest counts
a program as passed when all of its tests skipped themselves, so its own summary (CTEST_LOG) says
nothing of them. OUTPUTS is CTest's LastTest.log, with what Python's unittest says of its tests.
"""

import collections
import glob
import os
import re
import sys
import xml.etree.ElementTree

SLOWEST = 20


def skipped_cases(directory):
    """(reason, "program suite.case") of every GoogleTest test that skipped itself, and of every one
    that left out a part (tests/left_out.h)."""
    for path in sorted(glob.glob(os.path.join(directory, "*.xml"))):
        program = re.sub(r"(_\d+)?\.xml$", "", os.path.basename(path))
        try:
            cases = xml.etree.ElementTree.parse(path).iter("testcase")
        except xml.etree.ElementTree.ParseError:
            # A program that was killed left half a report; CTest says that it failed.
            continue
        for case in cases:
            name = f"{program} {case.get('classname')}.{case.get('name')}"
            for skipped in case.iter("skipped"):
                # "FILE:LINE\nthe reason"
                reason = re.sub(r"^\S+:\d+\s*", "", skipped.get("message", "").strip())
                yield " ".join(reason.split()) or "no reason given", name
            for said in case.iter("property"):
                if said.get("name") == "left_out":
                    yield "a part of it: " + said.get("value"), name


def skipped_unittests(outputs):
    """Skipped tests of Python's unittest, which names them with verbosity 2."""
    program = ""
    with open(outputs, errors="replace") as lines:
        for line in lines:
            if found := re.match(r"\d+/\d+ Testing: (\S+)", line):
                program = found.group(1)
            elif found := re.match(r"(\w+) \(.*\.\.\. skipped ['\"](.*)['\"]$", line):
                yield found.group(2), f"{program} {found.group(1)}"


def skipped_programs(log):
    with open(log, errors="replace") as lines:
        for line in lines:
            found = re.search(r"Test\s+#\d+: (\S+) \.*\*\*\*(Skipped|Not Run)", line)
            if found:
                yield "the whole test skipped itself or could not be started", found.group(1)


def durations(log):
    """(seconds, name) of every test that ran."""
    with open(log, errors="replace") as lines:
        for line in lines:
            if found := re.search(r"Test\s+#\d+: (\S+) .*\s(\d+\.\d+) sec", line):
                yield float(found.group(2)), found.group(1)


def main():
    reasons = collections.defaultdict(list)
    for reason, name in [*skipped_cases(sys.argv[1]), *skipped_programs(sys.argv[2]),
                         *skipped_unittests(sys.argv[3])]:
        reasons[reason].append(name)
    count = sum(len(names) for names in reasons.values())
    print(f"{count} tests did not run, or not all of them" + (":" if count else ""))
    for reason, names in sorted(reasons.items(), key=lambda entry: -len(entry[1])):
        print(f"  {len(names)} × {reason}")
        for name in names:
            print(f"      {name}")
    slowest = sorted(durations(sys.argv[2]), reverse=True)[:SLOWEST]
    print(f"the {len(slowest)} slowest, in seconds:")
    for seconds, name in slowest:
        print(f"  {seconds:7.1f}  {name}")


if __name__ == "__main__":
    main()
