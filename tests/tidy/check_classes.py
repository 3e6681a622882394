#!/usr/bin/env python3
"""Classes stay small: counted are the lines of a class's declaration and of all its members, in
whatever files they stand. A class that grows past the limit is split along a second idea, not over
files. What belongs to no class counts for its file.
Usage: check_classes.py [ROOT] [--list]"""

import os
import re
import sys

import tree

CLASS_LINES = 600
FREE_LINES = 400  # of a file
DECLARED = re.compile(r"^(?:class|struct)\s+(?:alignas\([^)]*\)\s+)?(\w+)(?:\s+final)?\s*(?::[^;]*)?\{",
                      re.M)
MEMBER = re.compile(r"(?:^|[\s*&>(])(\w+)::(?:~?\w+|operator[^(\s]*)\s*\(")


def blocks(code):
    """(first line, last line, text up to the opening brace) of each block that begins in column 0."""
    lines = code.split("\n")
    at = 0
    while at < len(lines):
        line = lines[at]
        begins = line and not line[0].isspace() and line[0] not in "}#/"
        if not begins or line.startswith(("namespace", "using", "extern")):
            at += 1
            continue
        first, head = at, line
        while at < len(lines) - 1 and not re.search(r"[{;]\s*$|\{.*\}$", lines[at]):
            at += 1
            head += "\n" + lines[at]
        if lines[at].rstrip().endswith("{"):
            while at < len(lines) - 1 and not lines[at].startswith("}"):
                at += 1
        yield first, at, head
        at += 1


def lines_of_classes(root, paths):
    """{(folder, class): lines}, and of each file how many lines belong to none."""
    counted, free = {}, {}
    for path in paths:
        if not path.endswith((".h", ".cc")) or path.startswith("tests/"):
            continue
        code = tree.without_comments_and_strings(tree.read(root, path))
        free[path] = code.count("\n")
        for first, last, head in blocks(code):
            declared = DECLARED.match(head)
            member = MEMBER.search(head.split("{")[0])
            name = declared.group(1) if declared else member.group(1) if member else None
            if name is None:
                continue
            key = (os.path.dirname(path), name)
            counted[key] = counted.get(key, 0) + last - first + 1
            free[path] -= last - first + 1
    return counted, free


def main():
    arguments = [argument for argument in sys.argv[1:] if argument != "--list"]
    root = tree.repository_root(arguments)
    counted, free = lines_of_classes(root, tree.files(root))
    if "--list" in sys.argv:
        for (folder, name), lines in sorted(counted.items(), key=lambda item: -item[1])[:30]:
            print(f"{lines:5} {folder} {name}")
        return
    findings = [tree.Finding(path, 0, f"{lines} lines that belong to no class, limit {FREE_LINES}",
                             "find the second file in it")
                for path, lines in sorted(free.items()) if lines > FREE_LINES]
    for (folder, name), lines in sorted(counted.items()):
        if lines > CLASS_LINES:
            findings.append(tree.Finding(folder, 0, f"class {name} has {lines} lines, limit "
                                         f"{CLASS_LINES}", "find the second class in it"))
    tree.finish("classes", findings, len(free))


if __name__ == "__main__":
    main()
