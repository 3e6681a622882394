#!/usr/bin/python3
"""Plants mistakes into a copy of the sources, all at once; each is off until MUTANT_ID names it.

    plant.py COPY ROOM [--here] --count N --seed S --out mutants.json

COPY is a configured copy of the tree (its compile commands say how a source is parsed). Mistakes are
what people make: a comparison that is off by one or turned round, `and` for `or`, a condition turned
round, a call left out, a limit or a number off by one, a flag returned the wrong way. Where they
stand is drawn from all the places that the room has; the same seed draws the same ones.
"""

import argparse
import json
import os
import random
import re
import sys

from clang import cindex

SWAPS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "&&": "||", "||": "&&",
         "+": "-", "-": "+"}
ARITHMETIC = {cindex.TypeKind.BOOL, cindex.TypeKind.INT, cindex.TypeKind.UINT, cindex.TypeKind.LONG,
              cindex.TypeKind.ULONG, cindex.TypeKind.LONGLONG, cindex.TypeKind.ULONGLONG,
              cindex.TypeKind.SHORT, cindex.TypeKind.USHORT, cindex.TypeKind.UCHAR,
              cindex.TypeKind.SCHAR, cindex.TypeKind.CHAR_S, cindex.TypeKind.DOUBLE}
K = cindex.CursorKind
FUNCTIONS = {K.FUNCTION_DECL, K.CXX_METHOD, K.CONSTRUCTOR, K.DESTRUCTOR, K.FUNCTION_TEMPLATE,
             K.CONVERSION_FUNCTION}
# What a program says in a log or on a terminal is not what it does.
SPOKEN = re.compile(r"\b(spdlog|log_|logger|trace_log|\.reserve\(|std::move_only)|\bstatic_cast<void>")


def arguments_of(command):
    """The compile command's options that parsing needs."""
    words = command.get("arguments") or __import__("shlex").split(command["command"])
    kept, skip = [], False
    for word in words[1:]:
        if skip:
            skip = False
        elif word in ("-o", "-c", "-MF", "-MT", "-MQ"):
            skip = word != "-c"
        elif word.startswith(("-I", "-D", "-std", "-isystem", "-f", "-m")) or (
                kept and kept[-1] in ("-isystem", "-I")):
            kept.append(word)
        elif word == "-isystem":
            kept.append(word)
    return kept


class Room:
    """Collects the places of one room where a mistake can stand."""

    def __init__(self, root, room, here):
        self.root, self.prefix, self.here = root, os.path.join(root, room) + "/", here
        self.texts, self.found, self.seen = {}, [], set()

    def has(self, path):
        path = os.path.abspath(path)
        return path.startswith(self.prefix) and not (self.here and "/" in path[len(self.prefix):])

    def text(self, path):
        if path not in self.texts:
            with open(path, "rb") as source:
                self.texts[path] = source.read()
        return self.texts[path]

    def scan(self, path, arguments):
        unit = cindex.Index.create().parse(path, args=arguments)
        for cursor in unit.cursor.get_children():
            where = cursor.location.file
            if where and self.has(where.name):
                self.walk(cursor, None, False)

    def walk(self, cursor, function, constant):
        if cursor.kind in FUNCTIONS:
            if not cursor.is_definition():
                return
            function = cursor.spelling
            head = self.slice(cursor.extent).split("{")[0]
            constant = "constexpr" in head or "consteval" in head
        if cursor.kind == K.STATIC_ASSERT or cursor.kind == K.ENUM_DECL:
            return
        if cursor.kind == K.VAR_DECL and "constexpr" in self.slice(cursor.extent).split("=")[0]:
            return
        if function and not constant:
            self.candidates(cursor, function)
        for child in cursor.get_children():
            if cursor.kind == K.CASE_STMT and child.kind != K.COMPOUND_STMT and "Expr" in str(child.kind):
                continue
            self.walk(child, function, constant)

    def slice(self, extent):
        if not extent.start.file:
            return ""
        return self.text(os.path.abspath(extent.start.file.name))[
            extent.start.offset:extent.end.offset].decode("utf-8", "replace")

    def candidates(self, cursor, function):
        kind = cursor.kind
        if kind == K.BINARY_OPERATOR:
            self.binary(cursor, function)
        elif kind in (K.IF_STMT, K.WHILE_STMT):
            self.condition(cursor, function)
        elif kind == K.COMPOUND_STMT:
            for child in cursor.get_children():
                if child.kind in (K.CALL_EXPR, K.COMPOUND_ASSIGNMENT_OPERATOR, K.UNARY_OPERATOR) or (
                        child.kind == K.BINARY_OPERATOR) or child.kind == K.UNEXPOSED_EXPR:
                    self.left_out(child, function)
        elif kind == K.RETURN_STMT:
            for child in cursor.get_children():
                if child.type.get_canonical().kind == cindex.TypeKind.BOOL:
                    self.offer(child, function, "!({})", "turned round")
        elif kind == K.DECL_REF_EXPR and re.fullmatch(r"k[A-Z]\w*", cursor.spelling or ""):
            declared = cursor.referenced
            if declared is not None and declared.kind == K.VAR_DECL and (
                    cursor.type.get_canonical().kind in ARITHMETIC):
                self.offer(cursor, function, "({} + 1)", "off by one")
        elif kind == K.INTEGER_LITERAL:
            self.offer(cursor, function, "({} + 1)", "off by one")

    def binary(self, cursor, function):
        children = list(cursor.get_children())
        if len(children) != 2:
            return
        left, right = children
        path = os.path.abspath(cursor.extent.start.file.name)
        between = self.text(path)[left.extent.end.offset:right.extent.start.offset].decode(
            "utf-8", "replace").strip(" \n()")
        if between not in SWAPS:
            return
        if between in "+-" and (left.type.get_canonical().kind not in ARITHMETIC or
                                right.type.get_canonical().kind not in ARITHMETIC):
            return
        start, middle, end = (cursor.extent.start.offset, left.extent.end.offset,
                              cursor.extent.end.offset)
        whole = self.text(path)
        operator_at = whole.index(between.encode(), middle)
        changed = (whole[start:operator_at] + SWAPS[between].encode() +
                   whole[operator_at + len(between):end]).decode("utf-8", "replace")
        self.offer(cursor, function, changed.replace("{", "{{").replace("}", "}}"),
                   f"{between} is {SWAPS[between]}")

    def condition(self, cursor, function):
        children = list(cursor.get_children())
        if not children:
            return
        head = children[0]
        if head.kind in (K.DECL_STMT, K.VAR_DECL, K.BINARY_OPERATOR, K.CXX_BOOL_LITERAL_EXPR):
            return
        if "constexpr" in self.slice(cursor.extent).split("(")[0]:
            return
        if head.kind.is_expression():
            self.offer(head, function, "!({})", "turned round")

    def left_out(self, cursor, function):
        text = self.slice(cursor.extent)
        if text and not SPOKEN.search(text):
            self.offer(cursor, function, None, "left out")

    def offer(self, cursor, function, template, what):
        extent = cursor.extent
        if not extent.start.file or extent.start.file.name != extent.end.file.name:
            return
        path = os.path.abspath(extent.start.file.name)
        if not self.has(path):
            return
        start, end = extent.start.offset, extent.end.offset
        text = self.text(path)[start:end].decode("utf-8", "replace")
        if not text.strip() or "//" in text or "#" in text or "/*" in text:
            return
        # What a macro holds has the place of the whole macro, which may be a statement.
        if template is not None and re.match(r"[A-Z][A-Z0-9_]+\(", text):
            return
        key = (path, start, end, what)
        if key in self.seen:
            return
        self.seen.add(key)
        self.found.append({
            "path": os.path.relpath(path, self.root), "line": extent.start.line, "start": start,
            "end": end, "function": function, "what": what, "before": text,
            "after": None if template is None else template.format(text)})


def plant(room, chosen):
    """Writes the chosen mistakes into the copy, innermost text untouched by an outer one."""
    for path in sorted({mutant["path"] for mutant in chosen}):
        full = os.path.join(room.root, path)
        text = room.text(full)
        edits = []
        for mutant in chosen:
            if mutant["path"] != path:
                continue
            ask = f"::mutant::on({mutant['id']})"
            if mutant["after"] is None:
                edits.append((mutant["start"], mutant["start"], f"if ({ask}) {{}} else "))
            else:
                one = lambda code: " ".join(code.split())
                # What is asked for may be an optional, into which the turned answer would fit too.
                is_asked = "static_cast<bool>" if mutant["what"] == "turned round" else ""
                edits.append((mutant["start"], mutant["end"],
                              f"({ask} ? ({one(mutant['after'])}) : "
                              f"{is_asked}({one(mutant['before'])}))"
                              + "\n" * mutant["before"].count("\n")))
        # At the same offset, what is left out is before what is changed within it.
        for start, end, code in sorted(edits, key=lambda edit: (edit[0], -edit[1] + edit[0]),
                                       reverse=True):
            text = text[:start] + code.encode() + text[end:]
        with open(full, "wb") as source:
            source.write(b'#include "tests/mutation/mutant.h"\n' + text)


def choose(found, count, seed):
    """`count` of them without overlap, spread over the files rather than over the longest one."""
    random.Random(seed).shuffle(found)
    by_file = {}
    for mutant in found:
        by_file.setdefault(mutant["path"], []).append(mutant)
    files = sorted(by_file)
    random.Random(seed + 1).shuffle(files)
    chosen, taken = [], {}
    while len(chosen) < count and any(by_file.values()):
        for path in files:
            # A file gets its turn once for each 150 of its lines.
            for _ in range(1 + len(by_file[path]) // 60):
                while by_file[path]:
                    mutant = by_file[path].pop()
                    spans = taken.setdefault(path, [])
                    overlaps = any(mutant["start"] < end and start < mutant["end"]
                                   for start, end in spans)
                    if not overlaps:
                        spans.append((mutant["start"], mutant["end"]))
                        chosen.append(mutant)
                        break
            if len(chosen) >= count:
                break
    del chosen[count:]
    for number, mutant in enumerate(chosen, 1):
        mutant["id"] = number
    return chosen


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("copy")
    parser.add_argument("room")
    parser.add_argument("--here", action="store_true", help="without the folders below ROOM")
    parser.add_argument("--commands", required=True, help="compile_commands.json of the copy")
    parser.add_argument("--count", type=int, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--out", required=True)
    options = parser.parse_args()

    root = os.path.abspath(options.copy)
    room = Room(root, options.room, options.here)
    with open(options.commands) as commands:
        for command in json.load(commands):
            path = os.path.abspath(os.path.join(command["directory"], command["file"]))
            if room.has(path) and path.endswith(".cc"):
                room.scan(path, arguments_of(command))
    if not room.found:
        sys.exit(f"plant.py: nothing to mistake in {options.room}: is that a folder with sources?")
    places = len(room.found)
    chosen = choose(room.found, options.count, options.seed)
    plant(room, chosen)
    with open(options.out, "w") as out:
        json.dump(chosen, out, indent=1)
    print(f"{len(chosen)} mistakes planted of {places} places")


if __name__ == "__main__":
    main()
