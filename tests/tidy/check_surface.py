#!/usr/bin/env python3
"""Every flag, configuration key, environment variable, RPC field and manifest field is named by a
test that runs the program or reads what it wrote. The lists come from the option tables and schemas
themselves. Usage: check_surface.py [ROOT]
Being named is not yet being tested; but what no test names is certainly not."""

import os
import re
import sys

import tree

COMMAND_LINE = "daemon/ctl/"  # every source file below it that adds an option, in one of these ways
OPTION = (r"(?:add_option|add_flag|\badd|\badd_when_full"
          r"|\.(?:flag|option|number|any_number|duration|size|word|choice<\w+(?:::\w+)*>))")
CONFIG = "daemon/config.h"
DAEMON_FLAGS = "daemon/config.cc"
VARIABLES = "formats/core/text/environment_names.h"
CONTROL = "proto/control/"  # every .proto below it
MANIFEST = "storage/manifest/manifest.cc"
# Tests of the real daemon: a field of the control plane or of the manifest that none of them names
# is only tested within its room.
END_TO_END = "tests/e2e/"

# Fields that no test of the real daemon can bring about, or that one has under another name. Their
# rooms' tests set and read them.
ONLY_IN_ROOMS = {
    # What a list has beyond its limit, which is large: rooms' tests reach it.
    "detail_windows_left_out", "events_left_out", "function_filters_left_out",
    "input_missing_left_out", "markers_left_out", "missing_left_out", "symbols_left_out",
    # Of dial9 feeds: dial9_feed_test and session_passthrough_test.
    "refused_bytes",
    # Words that `collectctl devices` sends and shows: e2e_devices_test reads its text.
    "match", "servers",
    # Bytes of a google.rpc.Status that clients show encoded: collector_service_test decodes them.
    "domain", "metadata",
    # Only a slow lookup, a crash of the symbolizer, Mach-O, or a library that goes away.
    "late_ns", "symbols_tries", "uuid", "unloaded_ns",
    # Containers that somebody removed by hand: found_states.cc.
    "containers_removed",
}

# Tests that only read command lines, and never run what they say.
READERS_OF_COMMAND_LINES = {
    "tests/daemon/config_test.cc", "tests/daemon/ctl/command_line/usage_test.cc",
    "tests/formats/core/text/environment_names_test.cc",
}


class Tests:
    """The text of the tests, by what may count as naming something."""

    def __init__(self, root, paths):
        sources = [p for p in paths if p.startswith("tests/")
                   and p.endswith((".cc", ".h", ".c", ".py", ".sh", ".js"))
                   and not p.startswith("tests/tidy/")]
        running = [p for p in sources if p not in READERS_OF_COMMAND_LINES]
        self.count = len(sources)
        self.everything = "\n".join(tree.read(root, p) for p in sources)
        self.running = "\n".join(tree.read(root, p) for p in running)
        self.words = set(re.findall(r"[A-Za-z_][A-Za-z0-9_]*", self.everything))
        self.end_to_end = set(re.findall(
            r"[A-Za-z_][A-Za-z0-9_]*",
            "\n".join(tree.read(root, p) for p in sources if p.startswith(END_TO_END))))
        self.flags = self.named_flags(root, running)
        self.variables = set(re.findall(r"COLLECT_[A-Z0-9_]+", self.running))
        # A line of a configuration file within a string.
        self.toml_keys = set(re.findall(r"(?:\"|\\n)([a-z][a-z0-9_]*) = ", self.running))

    @staticmethod
    def named_flags(root, paths):
        """Those that stand alone in a string, and those of our own programs in scripts."""
        flags = set()
        for path in paths:
            text = tree.read(root, path)
            if path.endswith(".sh"):
                lines = [line for line in text.split("\n") if re.search("collect(ctl|ord)", line)]
                flags.update(re.findall(r"(?<![\w-])(--?[a-z][a-z0-9-]*)", "\n".join(lines)))
            else:
                flags.update(re.findall(r"[\"'](--?[a-z][a-z0-9-]*)[\"'= ]", text))
        return flags


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


def check_command_line(root, paths, tests):
    for path in paths:
        if not (path.startswith(COMMAND_LINE) and path.endswith(".cc")):
            continue
        text = tree.read(root, path)
        for match in re.finditer(
                OPTION + r"\(\s*(?:command, )?\"((?:-[A-Za-z],)?--[a-z-]+(?:,--[a-z-]+)*)\"",
                text):
            names = match.group(1).split(",")
            for name in names:
                if name not in tests.flags:
                    yield tree.Finding(path, line_of(text, match.start()),
                                       f"collectctl {name} is in no test",
                                       "write one in which it changes what the program does")


def check_config(root, tests):
    text = tree.read(root, CONFIG)
    for match in re.finditer(r"visit\(\s*\"([a-z_]+)\"", text):
        key = match.group(1)
        if "--" + key.replace("_", "-") not in tests.flags and key not in tests.toml_keys:
            yield tree.Finding(CONFIG, line_of(text, match.start()),
                               f"no test runs a daemon with {key}",
                               "write one in which its value changes what the daemon does")
    text = tree.read(root, DAEMON_FLAGS)
    for match in re.finditer(r"add_(?:option|flag)\(\"(?:-[a-z],)?(--[a-z-]+)\"", text):
        if match.group(1) not in tests.flags:
            yield tree.Finding(DAEMON_FLAGS, line_of(text, match.start()),
                               f"collectord {match.group(1)} is in no test", "write one")


def check_variables(root, paths, tests):
    text = tree.read(root, VARIABLES)
    listed = set(re.findall(r"\"(COLLECT_[A-Z0-9_]+)\"", text))
    for name in sorted(listed - tests.variables):
        yield tree.Finding(VARIABLES, 0, f"{name} is in no test",
                           "write one in which it changes what the program does")
    for path in paths:
        if not path.startswith(("agent/", "daemon/")) or not path.endswith((".cc", ".h", ".c")):
            continue
        source = tree.read(root, path)
        for match in re.finditer(r"\"(COLLECT_[A-Z0-9_]+)\"", source):
            if match.group(1) not in listed:
                yield tree.Finding(path, line_of(source, match.start()),
                                   f"{match.group(1)} is not in {VARIABLES}",
                                   "add it: what is not listed is called unknown")


def camel_case(name):
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


def check_fields(root, paths, tests):
    for path in paths:
        if not (path.startswith(CONTROL) and path.endswith(".proto")):
            continue
        text = tree.read(root, path)
        for match in re.finditer(
                r"^\s*(?:repeated |optional )?[\w.]+(?:<[^>]*>)? (\w+) = \d+(?: \[[^\]]*\])?;", text,
                flags=re.M):
            name = match.group(1)
            if name.isupper() or name.upper() == name:
                continue  # a value of an enum
            forms = {name, camel_case(name), "set_" + name, "add_" + name, "mutable_" + name}
            line = line_of(text, match.start(1))
            if not forms & tests.words:
                yield tree.Finding(path, line, f"{name} is in no test",
                                   "write one that sets or reads it")
            elif not forms & tests.end_to_end and name not in ONLY_IN_ROOMS:
                yield tree.Finding(path, line, f"{name} is in no test of the real daemon",
                                   "write one in which it has an effect, or say why not")


def check_manifest(root, tests):
    text = tree.read(root, MANIFEST)
    keys = {}
    for match in re.finditer(r"(?:\{\"([a-z_]+)\",|\[\"([a-z_]+)\"\] =)", text):
        keys.setdefault(match.group(1) or match.group(2), line_of(text, match.start()))
    for key, line in sorted(keys.items()):
        if key not in tests.words:
            yield tree.Finding(MANIFEST, line, f"the manifest's {key} is in no test",
                               "write one that reads it from a recorded session")
        elif key not in tests.end_to_end and key not in ONLY_IN_ROOMS:
            yield tree.Finding(MANIFEST, line, f"the manifest's {key} is in no test of the real daemon",
                               "write one that reads it from a recorded session, or say why not")
    if not keys:
        yield tree.Finding(MANIFEST, 0, "no keys were found", "teach check_surface.py the new form")


# Attacks are listed with the tests that try them: a row whose test is gone is a promise that nobody holds.
ATTACKS = "tests/e2e/REDTEAM.md"


def check_attacks(root, paths):
    """Each row of "Attacks" names tests that are there: `NAME`, perhaps with (`Suite.Case`, …) of it."""
    if ATTACKS not in paths:
        return
    sources = {os.path.basename(path).rsplit(".", 1)[0] for path in paths if path.startswith("tests/")}
    lists = "\n".join(tree.read(root, p) for p in paths
                      if p.startswith("tests/") and p.endswith("CMakeLists.txt"))
    targets = set(re.findall(r"(?:collect_test\(|NAME )([a-z0-9_]+)", lists))
    text = tree.read(root, ATTACKS)
    table = text[text.index("\n## Attacks\n"):text.index("\n## Limits\n")]
    first = line_of(text, text.index("\n## Attacks\n"))
    everything = "\n".join(tree.read(root, p) for p in paths if p.startswith("tests/") and p.endswith((".cc", ".py")))
    for offset, line in enumerate(table.split("\n")):
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not line.startswith("|") or len(cells) != 4 or cells[0] in ("From", "---"):
            continue
        names = re.findall(r"`([^`]+)`", cells[3])
        if not names:
            yield tree.Finding(ATTACKS, first + offset, "an attack without a test", "write one, or leave the row out")
        for name in names:
            suite, _, case = name.partition(".")
            if case:
                is_there = re.search(rf"\b{suite}\b", everything) and re.search(rf"\b{case}\b", everything)
            else:
                is_there = suite in sources or suite in targets or re.search(rf"class {suite}\b|TEST\({suite},", everything)
            if not is_there:
                yield tree.Finding(ATTACKS, first + offset, f"there is no test {name}", "name the one that tries it")


def main():
    root = tree.repository_root(sys.argv[1:])
    paths = tree.files(root)
    tests = Tests(root, paths)
    findings = [*check_command_line(root, paths, tests), *check_config(root, tests),
                *check_variables(root, paths, tests), *check_fields(root, paths, tests),
                *check_manifest(root, tests), *check_attacks(root, paths)]
    tree.finish("surface", findings, tests.count)


if __name__ == "__main__":
    main()
