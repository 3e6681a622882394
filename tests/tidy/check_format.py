#!/usr/bin/env python3
"""Sources are formatted as .clang-format says. Usage: check_format.py [--fix] [ROOT]
Ends with 77, which CTest shows as skipped, where clang-format 19 is not installed: other versions
format differently."""

import os
import shutil
import subprocess
import sys

import tree


def main():
    arguments = [a for a in sys.argv[1:] if a != "--fix"]
    fix = "--fix" in sys.argv[1:]
    root = tree.repository_root(arguments)
    program = shutil.which("clang-format-19")
    if program is None:
        print("format: skipped, clang-format-19 is not installed (apt-get install clang-format-19)")
        sys.exit(77)
    sources = [p for p in tree.files(root) if p.endswith((".h", ".cc", ".c"))]
    findings = []
    for path in sources:
        full = os.path.join(root, path)
        if fix:
            subprocess.run([program, "-i", full], check=True)
            continue
        outcome = subprocess.run([program, "--dry-run", "-Werror", full], capture_output=True,
                                 text=True)
        if outcome.returncode != 0:
            first = next((line for line in outcome.stderr.split("\n") if "error:" in line), "")
            place = first.split(": ")[0].replace(full + ":", "").split(":")[0]
            findings.append(tree.Finding(path, place, "is not formatted",
                                         f"run clang-format-19 -i {path}"))
    tree.finish("format", findings, len(sources))


if __name__ == "__main__":
    main()
