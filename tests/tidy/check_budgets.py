#!/usr/bin/env python3
"""What is to become less: words that STYLE.md replaces, long functions, long names of tests. Each has a
budget in budgets.txt. More than that is a finding, and less is one too: the budget falls with it.
Usage: check_budgets.py [ROOT] [--list NAME]"""

import os
import re
import sys

import tree

BUDGETS = "tests/tidy/budgets.txt"
# STYLE.md shows them, the second is the table itself, the rest is not ours to word. Committed texts
# repeat what the code says.
COMMITTED = "/expected/"
NOT_COUNTED = ("STYLE.md", "tests/tidy/", "tests/golden/data/", "tests/fuzz/corpus/")
TEXTS = (".h", ".cc", ".c", ".S", ".md", ".py", ".sh", ".proto", ".js", ".html", ".toml", ".txt")
WORDS = {
    "nobody": "write \"no one\", or \"no\" and the noun", "somebody": "name who it is",
    "whoever": "name who it is", "whatever": "write \"any\" and the noun",
    "told": "write informed, reported, printed, logged or sent", "stands": "write \"is\"",
    "lies": "write \"is\"", "anew": "write \"again\"", "goes on": "write \"continues\"",
}
FUNCTION_LINES = 70
NAME_WORDS = 9
CODE = (".h", ".cc", ".c")
NOT_A_FUNCTION = re.compile(
    r"(namespace|class|struct|enum|union|extern|if|for|while|switch|do|else|try|catch|return|using"
    r"|template\s*<.*>\s*(class|struct))\b")
LAMBDA = re.compile(r"\[[^\]]*\]\s*(\(|\{|mutable)")
TEST_NAME = re.compile(r"^\s*(?:TYPED_)?TEST(?:_F|_P)?\(\s*\w+,\s*(\w+)\)", re.M)


# A sentence in pieces is not found by who searches for it.
IN_PIECES = re.compile(r'"\s*\+\s*std::to_string\(|std::to_string\([^;"]*\)\s*\+\s*"')

REMEDIES = {**WORDS, "in_pieces": "write one literal of fmt::format"}


def head_of(lines, at):
    """The line on which the statement before the brace in line `at` begins, and its text."""
    first, head = at, lines[at]
    while first > 0 and not re.search(r"[;{}]\s*$|^\s*$|^\s*(public|private|protected):",
                                      lines[first - 1]):
        first -= 1
        head = lines[first] + " " + head
    return first, head.strip()


def long_functions(path, text):
    """(line, what) of each function and member function that is longer than the limit."""
    lines = tree.without_comments_and_strings(text).split("\n")
    for at, line in enumerate(lines):
        opened = re.match(r"^(| {2})(?! )(?:\S.*)?\{\s*$", line)
        if not opened:
            continue
        first, head = head_of(lines, at)
        if NOT_A_FUNCTION.match(head) or "(" not in head or re.search(r"=\s*\{?\s*$", head):
            continue
        if opened.group(1) and LAMBDA.search(head):
            continue
        last = at + 1
        while last < len(lines) - 1 and not lines[last].startswith(opened.group(1) + "}"):
            last += 1
        if last - first + 1 > FUNCTION_LINES:
            yield first + 1, f"{last - first + 1} lines: {head[:60]}"


def found(root, paths):
    """{name of a budget: [(path, line, what)]}"""
    all_found = {name: [] for name in [*WORDS, "test_words", "functions", "test_functions", "in_pieces"]}
    for path in paths:
        if path.startswith(NOT_COUNTED) or COMMITTED in path or not path.endswith(TEXTS):
            continue
        text = tree.read(root, path)
        for number, line in enumerate(text.split("\n"), 1):
            for word in WORDS:
                if re.search(rf"\b{word}\b", line, re.I):
                    all_found[word].append((path, number, line.strip()))
        if not path.endswith(CODE):
            continue
        is_test = path.startswith("tests/")
        all_found["test_functions" if is_test else "functions"] += [
            (path, number, what) for number, what in long_functions(path, text)]
        all_found["in_pieces"] += [] if is_test else [
            (path, text.count("\n", 0, match.start()) + 1, match.group()) for match in IN_PIECES.finditer(text)]
        for match in TEST_NAME.finditer(text if is_test else ""):
            name = match.group(1).removeprefix("DISABLED_")  # what GoogleTest asks for
            if len(re.findall(r"[A-Z][a-z]*|\d+", name)) > NAME_WORDS:
                line = text.count("\n", 0, match.start(1)) + 1
                all_found["test_words"].append((path, line, match.group(1)))
    return all_found


def named_with_article(root, paths):
    for path in paths:
        if path.startswith("tests/") and path.endswith(".cc"):
            for match in TEST_NAME.finditer(tree.read(root, path)):
                if re.match(r"(A|An|The)[A-Z]", match.group(1)):
                    yield tree.Finding(path, 0, f"test {match.group(1)} begins with an article",
                                       "leave the article out")


def main():
    arguments = sys.argv[1:]
    listed = None
    if "--list" in arguments:
        at = arguments.index("--list")
        listed = arguments[at + 1]
        arguments = arguments[:at] + arguments[at + 2:]
    root = tree.repository_root(arguments)
    paths = tree.files(root)
    all_found = found(root, paths)
    if listed:
        for path, line, what in all_found[listed]:
            print(f"{path}:{line}: {what}")
        return
    budgets = {}
    if os.path.exists(os.path.join(root, BUDGETS)):
        for line in tree.read(root, BUDGETS).split("\n"):
            if line and not line.startswith("#"):
                name, number = line.rsplit(" ", 1)
                budgets[name] = int(number)
    findings = list(named_with_article(root, paths))
    for name, places in all_found.items():
        budget = budgets.get(name, 0)
        remedy = REMEDIES.get(name, "make it shorter")
        if len(places) > budget:
            findings.append(tree.Finding(
                BUDGETS, 0, f"{name}: {len(places)}, budget {budget}",
                f"{remedy}; check_budgets.py --list '{name}' shows where"))
        elif len(places) < budget:
            findings.append(tree.Finding(BUDGETS, 0, f"{name}: {len(places)}, budget {budget}",
                                         f"lower the budget to {len(places)}"))
    tree.finish("budgets", findings, len(paths))


if __name__ == "__main__":
    main()
