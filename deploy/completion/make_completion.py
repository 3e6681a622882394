#!/usr/bin/env python3
"""Completion for bash, fish and zsh out of what programs say in --help.
Usage: make_completion.py OUTPUT_DIRECTORY PROGRAM..."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "man"))

import command_help  # noqa: E402
import shells  # noqa: E402

# What the word in --help that represents a value is completed to. A word that is not here is
# completed to nothing, and tests/deploy says so.
KINDS = {
    "FILE": "files", "DIRECTORY": "directories", "PATH": "files", "INPUT": "files",
    "SESSION": "sessions", "AGENT": "agents", "TARGET": "targets", "PROGRAM": "program",
    "ADDRESS": "nothing", "URL": "nothing", "BYTES": "nothing", "DURATION": "nothing", "FILTER": "nothing",
    "FUNCTION": "nothing", "MB": "nothing", "MS": "nothing", "N": "nothing", "NAME": "nothing",
    "NS": "nothing", "TIME": "nothing", "KIND": "nothing", "SECONDS": "nothing", "TEXT": "nothing", "THREAD": "nothing", "TID": "nothing",
    "UINT": "nothing", "PACKAGE": "nothing", "ACTIVITY": "nothing", "SERIAL": "nothing",
    "UDID": "nothing", "BUNDLE": "nothing", "PORT": "nothing", "PATTERN": "nothing", "RATE": "nothing", "SQL": "nothing",
}
# Words with another meaning in one command: (command, word).
EXCEPTIONS = {
    ("collectctl download", "FILE"): "nothing",  # of the session, not of this machine
    ("collectctl stop", "SESSION"): "targets",
    ("collectctl attach", "TARGET"): "nothing",  # a process or an address
    ("collectctl list", "TARGET"): "files",
    ("collectctl sessions", "FILTER"): "directories",
}


def kind_of(command, word, choices):
    if choices:
        return "words " + " ".join(choices)
    return EXCEPTIONS.get((command.name, word), KINDS.get(word, "nothing"))


def every_command(command):
    yield command
    for below in command.subcommands:
        yield from every_command(below)


def unknown_words(command):
    """Words for values that KINDS does not have, with the command that says them."""
    found = []
    for each in every_command(command):
        words = [(option.value, option.choices) for option in each.options() if option.value]
        words += [(positional.name, []) for positional in each.positionals]
        found += [f"{each.name}: {word}" for word, choices in words
                  if not choices and word not in KINDS]
    return found


def main():
    output, programs = sys.argv[1], sys.argv[2:]
    for program in programs:
        command = command_help.read_command(program)
        for shell, write, name in (("bash", shells.bash, command.name),
                                   ("fish", shells.fish, command.name + ".fish"),
                                   ("zsh", shells.zsh, "_" + command.name)):
            os.makedirs(os.path.join(output, shell), exist_ok=True)
            with open(os.path.join(output, shell, name), "w", encoding="utf-8") as file:
                file.write(write(command, list(every_command(command)), kind_of))


if __name__ == "__main__":
    main()
