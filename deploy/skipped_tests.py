#!/usr/bin/env python3
"""Names the tests that did not run, and why.

    skipped_tests.py GTEST_DIRECTORY CTEST_LOG

GTEST_DIRECTORY holds what the GoogleTest programs wrote (GTEST_OUTPUT=json:DIRECTORY/). CTest counts
a program as passed when all of its tests skipped themselves, so its own summary says nothing of them.
"""

import collections
import glob
import json
import os
import re
import sys


def skipped_cases(directory):
    """(reason, "program suite.case") of every GoogleTest test that skipped itself."""
    for path in sorted(glob.glob(os.path.join(directory, "*.json"))):
        program = re.sub(r"(_\d+)?\.json$", "", os.path.basename(path))
        with open(path) as report:
            try:
                suites = json.load(report).get("testsuites", [])
            except ValueError:
                # A program that was killed left half a report; CTest says that it failed.
                continue
        for suite in suites:
            for case in suite.get("testsuite", []):
                if case.get("result") != "SKIPPED":
                    continue
                said = " ".join(entry.get("message", "") for entry in case.get("skipped", []))
                # "FILE:LINE\nthe reason"
                reason = re.sub(r"^\S+:\d+\s*", "", said.strip()) or "no reason given"
                yield " ".join(reason.split()), f"{program} {suite['name']}.{case['name']}"


def skipped_programs(log):
    with open(log, errors="replace") as lines:
        for line in lines:
            found = re.search(r"Test\s+#\d+: (\S+) \.*\*\*\*(Skipped|Not Run)", line)
            if found:
                yield "the whole test skipped itself or could not be started", found.group(1)


def main():
    reasons = collections.defaultdict(list)
    for reason, name in [*skipped_cases(sys.argv[1]), *skipped_programs(sys.argv[2])]:
        reasons[reason].append(name)
    count = sum(len(names) for names in reasons.values())
    print(f"{count} tests did not run" + (":" if count else ""))
    for reason, names in sorted(reasons.items(), key=lambda entry: -len(entry[1])):
        print(f"  {len(names)} × {reason}")
        for name in names:
            print(f"      {name}")


if __name__ == "__main__":
    main()
