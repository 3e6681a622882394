#!/usr/bin/env python3
"""Small wtf-trace files, right and wrong, with what a viewer finds in them.

usage: make_wtf.py FOLDER              the samples, NAME.expected.json beside each, and accept.json
       make_wtf.py --variants FOLDER   the files that accept.json judges

The counts are those of the published viewer: definitions and zone events are no events, a scope
counts when it was left. They are counted while the file is written; nothing reads it back.
accept.json says of each variant whether that viewer loads it, and its zones and events then.
"""
import os
import sys

from files import write_bytes, write_json
from wtf_layout import HEADER, Binary, Legacy
from wtf_samples import scenario, tiny
from wtf_variants import variants


def make(folder):
    made = {"tiny": (tiny(), 10), "small.v10": (scenario(Binary()), 10),
            "small.legacy": (scenario(Legacy()), 3)}
    for name, (trace, version) in made.items():
        data = trace.file() if version == 10 else trace.data
        chunks = len(trace.chunks) + 1 if version == 10 else None
        write_bytes(os.path.join(folder, name + ".wtf-trace"), data)
        write_json(os.path.join(folder, name + ".expected.json"), trace.expected(
            name + ".wtf-trace", data, version, HEADER["timebase"], chunks))
    table = {}
    for name, what, _, found in variants():
        table[name] = {"result": "refused" if found is None else "loaded"}
        if found is not None:
            table[name].update(zones=found[0], events=found[1])
        table[name]["what"] = what
    write_json(os.path.join(folder, "accept.json"), table)


def main(arguments):
    if len(arguments) == 2 and arguments[0] == "--variants":
        for name, _, data, _ in variants():
            ending = "wtf-json" if name.startswith("json_") else "wtf-trace"
            write_bytes(os.path.join(arguments[1], f"{name}.{ending}"), data)
    elif len(arguments) == 1 and not arguments[0].startswith("-"):
        make(arguments[0])
    else:
        sys.stderr.write(__doc__)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
