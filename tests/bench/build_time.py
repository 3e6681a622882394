#!/usr/bin/env python3
"""Where a build's time went: seconds of its steps by room, from Ninja's log. Steps that ran beside others
count whole, so the sum is about the CPU time of a build with as many jobs as processors.
Usage: build_time.py BUILD-FOLDER [ROOMS]"""

import os
import re
import sys


def room_of(output):
    """daemon/ctl of daemon/ctl/CMakeFiles/collectctl.dir/main.cc.o; the rest is linking and generating."""
    match = re.match(r"(.*?)/?CMakeFiles/([^/]+)\.dir/.*\.(?:o|gch)$", output)
    if not match:
        return "linked, generated"
    return match.group(1) or "precompiled headers, Asio"


def seconds_of(log):
    """{room: [seconds, steps]} of the newest entry of each output."""
    newest = {}
    with open(log, encoding="utf-8") as file:
        for line in file:
            if not line.startswith("#"):
                start, end, _, output, _ = line.rstrip("\n").split("\t")
                newest[output] = (int(end) - int(start)) / 1000
    rooms = {}
    for output, seconds in newest.items():
        entry = rooms.setdefault(room_of(output), [0, 0])
        entry[0] += seconds
        entry[1] += 1
    return rooms


def main():
    if not 2 <= len(sys.argv) <= 3:
        sys.exit(__doc__)
    rooms = seconds_of(os.path.join(sys.argv[1], ".ninja_log"))
    shown = int(sys.argv[2]) if len(sys.argv) == 3 else 20
    rows = sorted(rooms.items(), key=lambda item: -item[1][0])
    for room, (seconds, steps) in rows[:shown]:
        print(f"{seconds:7.1f} s {steps:5} steps  {room}")
    rest = rows[shown:]
    if rest:
        print(f"{sum(e[0] for _, e in rest):7.1f} s {sum(e[1] for _, e in rest):5} steps  {len(rest)} more rooms")
    print(f"{sum(e[0] for e in rooms.values()):7.1f} s {sum(e[1] for e in rooms.values()):5} steps  together")


if __name__ == "__main__":
    main()
