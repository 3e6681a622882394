#!/usr/bin/env python3
"""Runs tests/bench/run.sh and writes its lines into BENCHMARKS.md, section "Last run".

    tests/bench/benchmarks.py [--brief] [--programs DIRECTORY] [--from FILE] [DOCUMENT]

DIRECTORY holds the benchmarks, build/release/bin/bench by default. --from takes the output of an
earlier run.sh instead of running it. --brief proves that everything runs, and leaves the document
alone. DOCUMENT is BENCHMARKS.md beside this program by default.
"""
import argparse
import datetime
import pathlib
import re
import subprocess
import sys

import machine

HERE = pathlib.Path(__file__).resolve().parent
BEGIN, END = "<!-- begin: written by benchmarks.py -->", "<!-- end: written by benchmarks.py -->"
# That Google Benchmark colours its lines with.
COLOUR = re.compile(r"\x1b\[[\d;]*m")


def sections(output):
    """(title, lines) of each part that begins with "== title"."""
    found = []
    for line in output.split("\n"):
        if line.startswith("== "):
            found.append((line[3:], []))
        elif found and line.strip():
            found[-1][1].append(line.rstrip())
    return found


def markdown(output):
    """Each part as it was printed, below its title."""
    lines = []
    for title, body in sections(COLOUR.sub("", output)):
        lines += ["", f"### {title[:1].upper()}{title[1:]}", "", "```"] + body + ["```"]
    return "\n".join(lines)


def head(today, version, where, costs):
    return f"`tests/bench/run.sh`, {today}, version {version}, on {where}; there {costs}."


def version():
    described = subprocess.run(["git", "-C", HERE, "describe", "--always", "--dirty"], text=True,
                               capture_output=True, check=False)
    return described.stdout.strip() or "unknown"


def replaced(document, text):
    before, found, rest = document.partition(BEGIN + "\n")
    _, found_end, after = rest.partition(END)
    if not found or not found_end:
        raise SystemExit(f"the document has no lines {BEGIN} and {END}")
    return f"{before}{BEGIN}\n{text}\n{END}{after}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--brief", action="store_true", help="prove that everything runs")
    parser.add_argument("--programs", metavar="DIRECTORY", help="where the benchmarks are")
    parser.add_argument("--from", dest="source", metavar="FILE", help="output of an earlier run.sh")
    parser.add_argument("document", nargs="?", type=pathlib.Path, default=HERE / "BENCHMARKS.md")
    given = parser.parse_args()
    if given.source:
        output = pathlib.Path(given.source).read_text(encoding="utf-8")
    else:
        command = ["bash", HERE / "run.sh"] + (["--brief"] if given.brief else [])
        ran = subprocess.run(command + ([given.programs] if given.programs else []), text=True,
                             stdout=subprocess.PIPE, check=False)
        if ran.returncode != 0:
            sys.exit(f"run.sh ended with exit code {ran.returncode}")
        output = ran.stdout
    if given.brief:
        print(output, end="")
        return
    today = datetime.date.today().isoformat()
    text = head(today, version(), machine.processors(), machine.costs()) + "\n" + markdown(output)
    document = given.document.read_text(encoding="utf-8")
    given.document.write_text(replaced(document, text), encoding="utf-8")


if __name__ == "__main__":
    main()
