"""The checkout as the tidy checks see it: its files, and how a finding is printed."""

import os
import re
import subprocess
import sys

SKIPPED_DIRECTORIES = {".git", "build", ".cache", "node_modules", "__pycache__"}
CODE_SUFFIXES = (".h", ".cc", ".c", ".S", ".py", ".sh", ".proto")


class Finding:
    """One line on the terminal: where, what, and what to do about it."""

    def __init__(self, path, line, what, remedy):
        self.path, self.line, self.what, self.remedy = path, line, what, remedy

    def __str__(self):
        place = f"{self.path}:{self.line}" if self.line else self.path
        return f"{place}: {self.what}; {self.remedy}"


def repository_root(arguments):
    """The tree to check: the first argument, or the checkout that this script lies in."""
    if arguments:
        return os.path.abspath(arguments[0])
    return os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def files(root):
    """Paths relative to `root`, sorted. Git's list where there is one, with what is not committed
    yet but not what is ignored; otherwise everything but build and tool folders."""
    listed = None
    if os.path.isdir(os.path.join(root, ".git")):
        try:
            listed = subprocess.run(
                ["git", "-C", root, "ls-files", "--cached", "--others", "--exclude-standard"],
                capture_output=True, text=True, check=True).stdout.split("\n")
        except (OSError, subprocess.CalledProcessError):
            listed = None
    if listed is None:
        listed = []
        for folder, names, leaves in os.walk(root):
            names[:] = [name for name in names if name not in SKIPPED_DIRECTORIES]
            listed += [os.path.relpath(os.path.join(folder, leaf), root) for leaf in leaves]
    return sorted(p for p in set(listed) if p and os.path.isfile(os.path.join(root, p)))


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
        return file.read()


def is_code(path):
    return path.endswith(CODE_SUFFIXES) or os.path.basename(path) == "CMakeLists.txt"


def without_comments_and_strings(text):
    """C and C++ source with comments and literals blanked, line for line."""

    def blank(match):
        return re.sub(r"[^\n]", " ", match.group(0))

    pattern = r"//[^\n]*|/\*.*?\*/|R\"\((?:.|\n)*?\)\"|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])+'"
    return re.sub(pattern, blank, text, flags=re.S)


def finish(name, findings, looked_at):
    """Prints the findings and ends with 1 when there are any. Looking at nothing is a finding too:
    a check that lost its input must not pass."""
    if not looked_at:
        print(f"{name}: found nothing to check; is this the root of the checkout?")
        sys.exit(1)
    for finding in findings:
        print(finding)
    print(f"{name}: {looked_at} files, {len(findings)} findings")
    sys.exit(1 if findings else 0)
