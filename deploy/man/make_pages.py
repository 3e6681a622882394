#!/usr/bin/env python3
"""Manual pages: the text of NAME.SECTION.in around what the programs say in --help and the sample
configuration says of its keys, gzipped as they are installed.
Usage: make_pages.py COLLECTORD COLLECTCTL VERSION SAMPLE_CONFIG OUTPUT_DIRECTORY"""

import gzip
import os
import re
import sys

import command_help

COLLECTOR_GROUP = "Where the collector is"  # said once, not with every command


def escape(text):
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq")
    text = text.replace("`", "\\(ga").replace("^", "\\(ha").replace("~", "\\(ti")
    text = "".join(c if ord(c) < 128 else f"\\[u{ord(c):04X}]" for c in text)
    return "\\&" + text if text.startswith(".") else text


def head_of(option):
    value = option.value
    if option.choices:
        value = "|".join(option.choices)
    names = ", ".join(f"\\fB{escape(name)}\\fR" for name in option.names)
    if value:
        shown = f"\\fB{escape(value)}\\fR" if option.choices else f"\\fI{escape(value)}\\fR"
        names += f" {shown}" + (" ..." if option.many else "")
    return names


def options_roff(options):
    lines = []
    for option in options:
        text = option.text
        if option.default:
            text += f" (default {option.default})"
        if option.required:
            text += " (required)"
        lines += [".TP", head_of(option), escape(text[:1].upper() + text[1:]) + "."]
    return lines


def footer_roff(footer):
    """Paragraphs are filled; examples keep their lines."""
    lines = []
    for paragraph in "\n".join(footer).strip("\n").split("\n\n"):
        rows = paragraph.split("\n")
        if not paragraph.strip():
            continue
        examples = [i for i, row in enumerate(rows) if row.startswith(("  ", "Example"))]
        first = examples[0] if examples else len(rows)
        if first:
            lines += [".PP"] + [escape(row.strip()) for row in rows[:first]]
        if examples:
            lines += [".PP", ".nf"] + [escape(row) for row in rows[first:]] + [".fi"]
    return lines


def synopsis(command):
    words = [command.name, "[OPTIONS]"]
    for positional in command.positionals:
        name = positional.name + ("..." if positional.many else "")
        words.append(name if positional.required else f"[{name}]")
    return " ".join(words)


def command_roff(command):
    lines = [f".SS {escape(synopsis(command))}", escape(command.summary) + "."]
    for positional in command.positionals:
        text = positional.text[:1].upper() + positional.text[1:]
        lines += [".TP", f"\\fI{escape(positional.name)}\\fR", escape(text) + "."]
    own = [option for title, options in command.groups if title != COLLECTOR_GROUP
           for option in options if option.names != ["-h", "--help"]]
    lines += options_roff(own) + footer_roff(command.footer)
    return lines


def sample_keys(text):
    """(section, prose, [(key, default)]) of each block of the sample configuration."""
    blocks, section = [], ""
    for block in text.split("\n\n"):
        rows = block.strip("\n").split("\n")
        title = re.fullmatch(r"# ---- (.*)", rows[0])
        if title:
            section = title[1]
            continue
        keys = [re.fullmatch(r"#(\w+) = (.*)", row) for row in rows]
        prose = " ".join(row[2:] for row in rows if row.startswith("# "))
        blocks.append((section, prose, [(match[1], match[2]) for match in keys if match]))
    return blocks


def keys_roff(text):
    lines, shown = [], None
    for section, prose, keys in sample_keys(text):
        if not keys:
            continue
        if section != shown:
            lines.append(f".SS {escape(section)}")
            shown = section
        heads = [f"\\fB{escape(key)}\\fR = {escape(default)}" for key, default in keys]
        for number, head in enumerate(heads):
            lines += [".TP" if number == 0 else ".TQ", head]
        lines.append(escape(prose))
    return lines


def make(template, values):
    with open(template, encoding="utf-8") as file:
        text = file.read()
    for name, value in values.items():
        text = text.replace(f"@{name}@", value if isinstance(value, str) else "\n".join(value))
    left = re.search(r"@[A-Z_]+@", text)
    if left:
        raise SystemExit(f"{template}: nothing is known of {left[0]}")
    return text


def main():
    daemon, client, version, sample, output = sys.argv[1:]
    collectord = command_help.read_command(daemon)
    collectctl = command_help.read_command(client)
    with open(sample, encoding="utf-8") as file:
        sample_text = file.read()
    commands = [line for command in collectctl.leaves() for line in command_roff(command)]
    values = {
        "VERSION": version,
        "DAEMON_OPTIONS": options_roff(collectord.options()),
        "CLIENT_OPTIONS": options_roff(collectctl.options()),
        "COMMANDS": commands,
        "CLIENT_FOOTER": footer_roff(collectctl.footer),
        "KEYS": keys_roff(sample_text),
    }
    here = os.path.dirname(os.path.abspath(__file__))
    os.makedirs(output, exist_ok=True)
    for name in sorted(os.listdir(here)):
        if not name.endswith(".in"):
            continue
        page = make(os.path.join(here, name), values).encode()
        target = os.path.join(output, name.removesuffix(".in") + ".gz")
        with open(target, "wb") as file:
            file.write(gzip.compress(page, compresslevel=9, mtime=0))


if __name__ == "__main__":
    main()
