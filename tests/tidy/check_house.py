#!/usr/bin/env python3
"""House rules that a program can see: sizes, words, calls, names, documents.
Usage: check_house.py [ROOT]"""

import collections
import os
import re
import sys

import tree

CODE_LINES = 400
TEST_LINES = 600
# Files of a folder, not counting those below it. Growing is a sign that it is about two things.
FOLDER_FILES = 30
DATA_FOLDERS = re.compile(r"tests/golden/data/|tests/fuzz/corpus$|.*/expected$")
# Path -> why it may be longer. Growing is a sign to find the second room, not to add a line here.
LONG_FILES = {
    # One file, to be copied into a program: checksums, proofs, messages and the agent.
    "proto/wire/example/agent.c"}

# Spelled in pieces, so that this file passes its own check.
BANNED_WORDS = ["TO" + "DO", "FIX" + "ME", "X" + "XX", "HA" + "CK"]
BANNED_CALLS = {
    "sprintf": "snprintf knows its buffer",
    "vsprintf": "vsnprintf knows its buffer",
    "strcpy": "copy a counted range",
    "strcat": "append to a counted range",
    "gets": "read a counted range",
    "system": "posix_spawn a program with its arguments",
    "tmpnam": "mkstemp makes the file with the name",
    "alloca": "the stack of a host thread is not ours",
    "rand": "take randomness as a parameter",
}
# Where threads are started, so that nothing thrown leaves one and a machine without further ones
# is an error. Tests, the agent and the example of the wire have their own.
THREADS = ["formats/core/threads.h", "formats/core/threads.cc"]
THREAD_ROOMS = ("daemon/", "storage/", "formats/")
THREAD_STARTS = re.compile(
    r"std::thread\b(?!::)|std::async\b|asio::thread_pool|\bpthread_create\s*\("
    r"|std::jthread\s*\w*\s*[({]|<std::jthread>\w*\s*\(")
VAGUE_NAMES = re.compile(r"(^|_)(utils?|helpers?|managers?|common|misc)(_|\.|$)")

INCLUDE = re.compile(r'\s*#\s*include\s*"((?:agent|daemon|formats|proto|storage|tests)/[^"]+)"')

# Folder with code in it -> its document. That of formats/NAME is formats/NAME/FORMAT.md.
DOCUMENTS = {
    "formats/calls": "formats/calls/CALLS.md", "formats/core": "formats/core/TEXT.md",
    "proto/wire": "proto/wire/WIRE.md", "agent": "agent/AGENT.md",
    "storage": "storage/STORAGE.md", "daemon": "daemon/DAEMON.md",
    "daemon/attach": "daemon/attach/ATTACH.md", "daemon/control": "daemon/control/CONTROL.md",
    "daemon/upload": "daemon/upload/UPLOAD.md", "daemon/warehouse": "daemon/warehouse/WAREHOUSE.md",
    "daemon/web": "daemon/web/WEB.md", "daemon/ctl": "daemon/ctl/CTL.md", "daemon/symbolize": "daemon/symbolize/SYMBOLIZE.md",
}
TOP_LEVEL = {
    "daemon", "agent", "proto", "storage", "formats", "deploy", "tests", "cmake", ".ci",
    "CMakeLists.txt", "CMakePresets.json", "README.md", "STYLE.md", "LICENSE",
    "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", ".editorconfig", ".clang-tidy",
}
PUBLIC_HEADER = "agent/include/collect/agent.h"


def check_size(path, text):
    is_counted_by_class = path.endswith((".h", ".cc")) and not path.startswith("tests/")
    if is_counted_by_class or not path.endswith((".h", ".cc", ".c", ".S", ".py", ".sh")):
        return
    limit = TEST_LINES if path.startswith("tests/") else CODE_LINES
    lines = text.count("\n")
    if lines > limit and path not in LONG_FILES:
        yield tree.Finding(path, 0, f"{lines} lines, limit {limit}", "find the second file in it")


def check_words(path, text):
    for number, line in enumerate(text.split("\n"), 1):
        for word in BANNED_WORDS:
            if re.search(rf"\b{word}\b", line):
                yield tree.Finding(path, number, f"contains {word}",
                                   "do it now, or leave it out and write down the limit")


def check_source(path, text):
    if not path.endswith((".h", ".cc", ".c")):
        return
    code = tree.without_comments_and_strings(text)
    for number, line in enumerate(code.split("\n"), 1):
        for call, remedy in BANNED_CALLS.items():
            if re.search(rf"(?<![\w.>]){call}\s*\(", line):
                yield tree.Finding(path, number, f"calls {call}", remedy)
        if (path.startswith(THREAD_ROOMS) and path not in THREADS and THREAD_STARTS.search(line)):
            yield tree.Finding(path, number, "starts a thread itself",
                               "start_thread, Workers or TaskThreads of formats/core")
        if re.match(r"\s*using\s+namespace\s+std\s*;", line):
            yield tree.Finding(path, number, "opens namespace std", "name what you use")
    if path.endswith(".h") and "#pragma once" not in text and path != PUBLIC_HEADER:
        yield tree.Finding(path, 0, "has no #pragma once", "add it after the opening comment")
    if len(text) > 1 and not text.endswith("\n"):
        yield tree.Finding(path, 0, "does not end with a newline", "add it")


# Headers under the names that other systems give them.
FOREIGN_NAMES = "tests/agent/cross/declarations/"


def check_name(path):
    leaf = os.path.basename(path)
    if path.startswith(FOREIGN_NAMES):
        return
    if path.endswith((".h", ".cc", ".c", ".py")) and not re.fullmatch(r"[a-z0-9_]+\.[a-z]+", leaf):
        yield tree.Finding(path, 0, "is not named in snake_case", "rename it")
    if VAGUE_NAMES.search(leaf):
        yield tree.Finding(path, 0, "has a name that says nothing", "name what it does")


def check_public_header(root):
    text = tree.read(root, PUBLIC_HEADER)
    for name in re.findall(r"#\s*include\s*[<\"]([^>\"]+)", text):
        if name not in ("stdint.h", "stddef.h"):
            yield tree.Finding(PUBLIC_HEADER, 0, f"includes {name}",
                               "the C ABI needs <stdint.h> and <stddef.h> alone")


def documents(paths):
    """Of the folders that have code: folder -> document."""
    with_code = {os.path.dirname(p) for p in paths if p.endswith((".h", ".cc"))}
    formats = {"/".join(f.split("/")[:2]) for f in with_code if f.startswith("formats/")}
    all_documents = {folder: folder + "/FORMAT.md" for folder in formats} | DOCUMENTS
    return {folder: document for folder, document in sorted(all_documents.items())
            if any(f == folder or f.startswith(folder + "/") for f in with_code)}


def check_documents(root, paths):
    contributing = tree.read(root, "CONTRIBUTING.md") if "CONTRIBUTING.md" in paths else None
    for folder, document in documents(paths).items():
        if document not in paths:
            yield tree.Finding(folder, 0, "has no document", f"write {document}")
            continue
        if contributing is not None and f"]({document})" not in contributing:
            yield tree.Finding("CONTRIBUTING.md", 0, f"does not link {document}",
                               'add it to "Where things are"')
        headings = re.findall(r"^#+\s+(.*)$", tree.read(root, document), flags=re.M)
        for wanted in ("Limits", "Known issues"):
            if wanted not in headings:
                yield tree.Finding(document, 0, f"has no section {wanted}",
                                   "every room's document ends with Limits and Known issues")
        if "Known issues" in headings and headings[-1] != "Known issues":
            yield tree.Finding(document, 0, f"ends with {headings[-1]}",
                               "the last section is Known issues")


def check_top_level(root, paths):
    for name in sorted({p.split("/")[0] for p in paths} - TOP_LEVEL):
        if not name.startswith("."):
            yield tree.Finding(name, 0, "is not a folder or file of the house",
                               "move it into the room that it belongs to")
    readme = tree.read(root, "README.md") if "README.md" in paths else ""
    for command in ("bash deploy/quickstart.sh", "bash deploy/test.sh"):
        if command not in readme:
            yield tree.Finding("README.md", 0, f"does not show `{command}`", "show both commands")


FUZZ = "tests/fuzz/"


def check_corpora(root, paths):
    """A corpus is that of a fuzz target, which its archive is named for."""
    targets = {os.path.basename(p) for p in paths if p.startswith(FUZZ)}
    corpora = {p.split("/")[3].split(".")[0] for p in paths if p.startswith(FUZZ + "corpus/")}
    for name in sorted(corpora):
        if f"{name}.cc" not in targets:
            yield tree.Finding(f"{FUZZ}corpus/{name}", 0, "belongs to no fuzz target",
                               "move its files to the corpus of the target that reads them")


def check_folders(paths):
    files = collections.Counter(os.path.dirname(path) for path in paths)
    for folder, count in sorted(files.items()):
        if count > FOLDER_FILES and not DATA_FOLDERS.match(folder):
            yield tree.Finding(folder, 0, f"has {count} files, limit {FOLDER_FILES}",
                               "find the second folder in it")


def check_includes(path, text, known):
    """Also in files that no build on this machine compiles. Generated headers are not in the tree."""
    if not path.endswith((".h", ".cc", ".c")):
        return
    for number, line in enumerate(text.split("\n"), 1):
        match = INCLUDE.match(line)
        if not match or match.group(1).endswith((".pb.h", ".nanopb.h")):
            continue
        if match.group(1) not in known and match.group(1) + ".in" not in known:
            yield tree.Finding(path, number, f"includes {match.group(1)}, which is not there",
                               "correct the path")


def check_links(root, path, text, paths):
    """Relative links in documents lead somewhere."""
    if not path.endswith(".md"):
        return
    for number, line in enumerate(text.split("\n"), 1):
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", line):
            if "://" in target or target.startswith("mailto:"):
                continue
            there = os.path.normpath(os.path.join(os.path.dirname(path), target))
            if not os.path.exists(os.path.join(root, there)):
                yield tree.Finding(path, number, f"links {target}, which is not there",
                                   "correct the link")


def main():
    root = tree.repository_root(sys.argv[1:])
    paths = tree.files(root)
    known = set(paths)
    findings, looked_at = [], 0
    for path in paths:
        findings += check_name(path)
        if not (tree.is_code(path) or path.endswith((".md", ".txt", ".cmake"))):
            continue
        looked_at += 1
        text = tree.read(root, path)
        for check in (check_size, check_words, check_source):
            findings += check(path, text)
        findings += check_links(root, path, text, paths)
        findings += check_includes(path, text, known)
    if PUBLIC_HEADER in paths:
        findings += check_public_header(root)
    findings += check_documents(root, paths)
    findings += check_top_level(root, paths)
    findings += check_corpora(root, paths)
    findings += check_folders(paths)
    tree.finish("house", findings, looked_at)


if __name__ == "__main__":
    main()
