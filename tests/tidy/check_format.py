#!/usr/bin/env python3
"""Sources are formatted as .clang-format says. Usage: check_format.py [--fix] [ROOT]
Ends with 77, which CTest shows as skipped, where clang-format 19 is not installed: other versions
format differently."""

import os
import re
import shutil
import subprocess
import sys

import tree

FILES_A_RUN = 100


def main():
    arguments = [a for a in sys.argv[1:] if a != "--fix"]
    fix = "--fix" in sys.argv[1:]
    root = tree.repository_root(arguments)
    program = shutil.which("clang-format-19")
    if program is None:
        print("format: skipped, clang-format-19 is not installed (apt-get install clang-format-19)")
        sys.exit(77)
    sources = [p for p in tree.files(root) if p.endswith((".h", ".cc", ".c"))]
    findings = {}
    # Many files for one start of the program, which takes longer than most files do.
    for first in range(0, len(sources), FILES_A_RUN):
        batch = [os.path.join(root, path) for path in sources[first:first + FILES_A_RUN]]
        if fix:
            subprocess.run([program, "-i", *batch], check=True)
            continue
        outcome = subprocess.run([program, "--dry-run", "-Werror", *batch], capture_output=True,
                                 text=True)
        for full, line in re.findall(r"^(.+?):(\d+):\d+: error: ", outcome.stderr, re.MULTILINE):
            path = os.path.relpath(full, root)
            findings.setdefault(path, tree.Finding(path, line, "is not formatted",
                                                   f"run clang-format-19 -i {path}"))
        if outcome.returncode != 0 and not findings:
            sys.exit(f"clang-format-19 failed: {outcome.stderr}")
    findings = list(findings.values())
    tree.finish("format", findings, len(sources))


if __name__ == "__main__":
    main()
