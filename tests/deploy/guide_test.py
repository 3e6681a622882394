#!/usr/bin/env python3
"""The user's guide says what the programs do: its reference pages are those that --help gives, its
examples have commands and flags that exist, and the messages that it explains are in the sources.
Usage: guide_test.py SOURCE_DIR BUILD_DIR"""

import os
import re
import sys
import unittest

SOURCE, BUILD = sys.argv[1], sys.argv[2]
sys.argv = sys.argv[:1]
GUIDE = os.path.join(SOURCE, "deploy/guide")
sys.path[:0] = [GUIDE, os.path.join(SOURCE, "deploy/man")]
sys.dont_write_bytecode = True

import command_help  # noqa: E402
import make_reference  # noqa: E402

COLLECTORD = os.path.join(BUILD, "bin/collectord")
COLLECTCTL = os.path.join(BUILD, "bin/collectctl")
SAMPLE = os.path.join(SOURCE, "deploy/collectord.toml")
REMEDY = "cmake --build build/release --target committed-texts"
GENERATED = ("collectctl.md", "collectord.md")
MESSAGE_SOURCES = ("agent", "daemon", "formats", "storage")
SHORTEST_PART = 6  # of a message, between two "…": less says nothing


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def documents():
    return [name for name in sorted(os.listdir(GUIDE)) if name.endswith(".md")]


def program_texts():
    """What string literals of the programs say: neighbours joined, line ends as single spaces."""
    texts = []
    for folder in MESSAGE_SOURCES:
        for where, _, names in os.walk(os.path.join(SOURCE, folder)):
            texts += [read(os.path.join(where, name)) for name in names
                      if name.endswith((".cc", ".h"))]
    joined = re.sub(r'"\s*\n\s*"', "", "\n".join(texts))
    return re.sub(r"(\\n|\s)+", " ", joined.replace('\\"', '"'))


def explained_messages(text):
    """The first cell of each row, in tables whose first column is "Message"."""
    in_table = False
    for line in text.split("\n"):
        if line.startswith("| Message |"):
            in_table = True
        elif not line.startswith("|"):
            in_table = False
        elif in_table and not line.startswith("|---"):
            yield re.match(r"\| `(.*?)` \|", line)[1]


def examples(text):
    """Command lines of indented blocks: continued lines joined, comments taken off."""
    text = re.sub(r"\\\n\s*", " ", text)
    for line in re.findall(r"^    (.*)$", text, re.M):
        yield re.sub(r"\s+#.*$", "", line)


class Reference(unittest.TestCase):
    def test_the_pages_are_what_the_programs_say(self):
        for name, text in make_reference.pages(COLLECTORD, COLLECTCTL, SAMPLE).items():
            self.assertEqual(read(os.path.join(GUIDE, name)), text,
                             f"deploy/guide/{name} is out of date; write it again: {REMEDY}")

    def test_the_index_names_every_document(self):
        index = read(os.path.join(GUIDE, "README.md"))
        for name in documents():
            if name != "README.md":
                self.assertIn(f"]({name})", index)


class Examples(unittest.TestCase):
    def test_commands_and_flags_exist(self):
        commands = {command.name: command for command in
                    command_help.read_command(COLLECTCTL).leaves()}
        everywhere = {name for option in command_help.read_command(COLLECTCTL).options()
                      for name in option.names}
        seen = 0
        for name in documents():
            if name in GENERATED:
                continue
            for line in examples(read(os.path.join(GUIDE, name))):
                match = re.search(r"(?:^|\s)(collectctl\b.*)$", line)
                if not match:
                    continue
                seen += 1
                self.check(match[1], commands, everywhere, name)
        self.assertGreater(seen, 40)

    def check(self, line, commands, everywhere, document):
        ours = line.split(" -- ")[0].split(" | ")[0]
        words = [word for word in ours.split() if not word.startswith("-")]
        found = [name for name in commands
                 if " ".join(words[:3]).startswith(name + " ") or name == " ".join(words[:3])
                 or " ".join(words[:1] + words[2:4]).startswith(name)]
        self.assertTrue(found, f"{document}: no command in: {line}")
        command = commands[max(found, key=len)]
        known = everywhere | {name for option in command.options() for name in option.names}
        flags = {word.split("=")[0] for word in ours.split() if word.startswith("-")}
        self.assertEqual(flags - known, set(), f"{document}: {line}")


class Messages(unittest.TestCase):
    def test_explained_messages_are_printed_by_the_programs(self):
        texts = program_texts()
        messages = list(explained_messages(read(os.path.join(GUIDE, "troubleshooting.md"))))
        self.assertGreater(len(messages), 50)
        for message in messages:
            parts = [part.strip() for part in message.split("…")]
            parts = [part for part in parts if len(part) >= SHORTEST_PART]
            self.assertTrue(parts, message)
            for part in parts:
                self.assertIn(part, texts, f"no program says this: {message}")


if __name__ == "__main__":
    unittest.main(verbosity=2)
