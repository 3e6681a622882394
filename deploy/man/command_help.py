"""What a program says about itself in --help, read back: the one source of manual pages and shell
completion. A line of help that does not fit the shape is an error, so that nothing is left out
silently."""

import re
import subprocess
from dataclasses import dataclass, field


@dataclass
class Option:
    names: list  # ["-o", "--output"]
    value: str  # "FILE"; empty for a flag without a value
    choices: list
    default: str
    many: bool
    required: bool
    text: str


@dataclass
class Positional:
    name: str
    many: bool
    required: bool
    text: str


@dataclass
class Command:
    name: str  # "collectctl detail start"
    summary: str
    positionals: list = field(default_factory=list)
    groups: list = field(default_factory=list)  # (title, [Option])
    subcommands: list = field(default_factory=list)  # [Command]
    footer: list = field(default_factory=list)  # lines

    def options(self):
        return [option for _, options in self.groups for option in options]

    def leaves(self):
        """The commands that do something, in the order of --help."""
        if not self.subcommands:
            return [self]
        return [leaf for command in self.subcommands for leaf in command.leaves()]


def printed(*argv):
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout


def listed_commands(text):
    """In any group: a name, and behind two spaces or more what it does."""
    return re.findall(r"(?m)^  ([a-z][a-z-]*) {2,}\S", text)


def entries(lines, column):
    """(left, text) of each two-column entry. A left side that is too long has its text below."""
    found = []
    for number, line in enumerate(lines):
        if line.startswith(" " * column) and found:
            found[-1][1] = (found[-1][1] + " " + line.strip()).strip()
        elif re.match(r"  \S", line):
            below = lines[number + 1] if number + 1 < len(lines) else ""
            # A left side that reaches the text's column has its text below; a text there may continue
            # below as well.
            has_text = line[column - 2:column] == "  " and len(line) > column
            is_whole = len(line) <= column or (not has_text and below.startswith(" " * column))
            found.append([line.strip(), ""] if is_whole else
                         [line[:column].strip(), line[column:].strip()])
        else:
            raise ValueError(f"no entry of a help text: {line!r}")
    return found


def shape(left):
    """Takes the marks off an entry: (rest, choices, default, many, required)."""
    required = left.endswith(" REQUIRED")
    left = left.removesuffix(" REQUIRED")
    many = " ..." in left
    left = left.replace(" ...", "")
    left, _, default = left.partition("=")
    choices = []
    match = re.search(r":\{([^}]*)\}$", left)
    if match:
        choices, left = match[1].split(","), left[:match.start()]
    return left, choices, default, many, required


def option_of(left, text):
    left, *relations = re.split(r" (Needs|Excludes): ", left)
    head, choices, default, many, required = shape(left)
    names, _, value = head.partition(" ")
    if "|" in value:
        choices, value = value.split("|"), "VALUE"
    for relation, others in zip(relations[::2], relations[1::2]):
        text += f" ({'needs' if relation == 'Needs' else 'not with'} {others.replace(' ', ', ')})"
    return Option(names.split(","), value.strip(), choices, default, many, required, text)


def positional_of(left, text):
    head, _, _, many, required = shape(left)
    return Positional(head.split(" ")[0], many, required, text)


def parse(name, text, read_subcommand):
    lines = text.rstrip("\n").split("\n")
    usage = next(i for i, line in enumerate(lines) if line.startswith("Usage: "))
    command = Command(name, " ".join(lines[:usage]).strip())
    flag = next(line for line in lines if line.startswith("  -h,--help"))
    column = len(flag) - len(flag.removeprefix("  -h,--help").lstrip())
    sections, footer, at = [], [], usage + 1
    while at < len(lines):
        line = lines[at]
        at += 1
        # A section is a title over entries; what a footer has in that shape are its examples.
        if re.match(r"[A-Z][^.:]*:$", line) and line != "Examples:":
            body = []
            while at < len(lines) and lines[at].startswith("  "):
                body.append(lines[at])
                at += 1
            sections.append((line[:-1], body))
        elif line.strip():
            footer = lines[at - 1:]
            break
    for title, body in sections:
        if title == "Positionals":
            command.positionals = [positional_of(*entry) for entry in entries(body, column)]
        elif re.match(r"  [a-z]", body[0]):  # a group of subcommands
            command.subcommands += [read_subcommand(left.strip()) for left, _ in entries(body, column)]
        else:
            command.groups.append((title, [option_of(*entry) for entry in entries(body, column)]))
    command.footer = footer
    return command


def read_command(program, *path):
    """The command and everything below it, asked from the program itself."""
    name = " ".join((program.rsplit("/", 1)[-1],) + path)
    text = printed(program, *path, "--help")
    if re.search(r"(?m)^Usage: ", text):
        return parse(name, text, lambda word: read_command(program, *path, word))
    # A list of commands; the options of all of them are a topic of their own.
    command = parse(name, printed(program, "help", "options"), None)
    command.subcommands = [read_command(program, word) for word in listed_commands(text)]
    return command
