#!/usr/bin/env python3
"""Draws a room by its #includes: its folders, or its units where it has none, on floors, the lowest
first. A unit is a header with its source. An arrow is "includes"; back arrows are those within a circle.
Usage: include_graph.py ROOM… [--moves FILE] [--arrows]
  --moves FILE  as if files were moved: lines "UNIT FOLDER", both below the room
  --arrows      what includes what, too"""

import argparse
import os
import re
import sys

import tree

SOURCES = (".h", ".cc", ".c")
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.M)


def unit_of(path):
    return os.path.splitext(path)[0]


class Graph:
    """Nodes of a room and what each of them includes of the others."""

    def __init__(self, root, room, paths, moves):
        self.units, self.files, self.arrows = {}, {}, {}
        own = [p for p in paths if p.startswith(room + "/") and p.endswith(SOURCES)]
        for path in own:
            self._place(room, path, moves)
        for path in own:
            start = self.units[unit_of(path)]
            self.arrows.setdefault(start, set())
            for name in INCLUDE.findall(tree.read(root, path)):
                end = self.units.get(unit_of(name))
                if end is not None and end != start:
                    self.arrows[start].add(end)

    def _place(self, room, path, moves):
        unit = unit_of(path)
        below = unit[len(room) + 1:]
        below = f"{moves[below]}/{os.path.basename(below)}" if below in moves else below
        node = below.split("/")[0]
        self.units[unit] = node
        self.files[node] = self.files.get(node, 0) + 1

    def circles(self):
        """{node: number of its circle}: nodes that reach each other have the same (Tarjan)."""
        index, low, stack, circle = {}, {}, [], {}

        def visit(node):
            index[node] = low[node] = len(index)
            stack.append(node)
            for end in sorted(self.arrows[node]):
                if end not in index:
                    visit(end)
                    low[node] = min(low[node], low[end])
                elif end not in circle:
                    low[node] = min(low[node], index[end])
            if low[node] == index[node]:
                while True:
                    member = stack.pop()
                    circle[member] = index[node]
                    if member == node:
                        break

        for node in sorted(self.arrows):
            if node not in index:
                visit(node)
        return circle

    def floors(self):
        """([nodes of each floor], back arrows)"""
        circle = self.circles()
        back = {(start, end) for start, ends in self.arrows.items() for end in ends
                if circle[start] == circle[end]}
        floor = {}

        def of(number):
            if number not in floor:
                floor[number] = 0
                floor[number] = 1 + max(
                    (of(circle[end]) for node, n in circle.items() if n == number
                     for end in self.arrows[node] if circle[end] != number), default=-1)
            return floor[number]

        floors = {}
        for node in sorted(self.arrows):
            floors.setdefault(of(circle[node]), []).append(node)
        return [floors[n] for n in sorted(floors)], back


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("rooms", nargs="+")
    parser.add_argument("--moves")
    parser.add_argument("--arrows", action="store_true")
    parser.add_argument("--root", default=tree.repository_root([]))
    arguments = parser.parse_args()
    moves = {}
    if arguments.moves:
        with open(arguments.moves, encoding="utf-8") as file:
            for line in file:
                words = line.split()
                if words:
                    moves[words[0]] = words[1]
    paths = tree.files(arguments.root)
    sys.setrecursionlimit(10000)
    for room in arguments.rooms:
        graph = Graph(arguments.root, room, paths, moves)
        floors, back = graph.floors()
        print(f"{room}: {sum(graph.files.values())} files, {len(graph.files)} nodes, "
              f"{len(floors)} floors, {sum(map(len, graph.arrows.values()))} arrows, {len(back)} back")
        for number, nodes in enumerate(floors):
            print(f"  {number}: " + " ".join(f"{n}({graph.files[n]})" for n in nodes))
        for start, end in sorted(back):
            print(f"  back: {start} -> {end}")
        if arguments.arrows:
            for start, ends in sorted(graph.arrows.items()):
                print(f"  {start} -> {' '.join(sorted(ends))}")


if __name__ == "__main__":
    main()
