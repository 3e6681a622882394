#!/usr/bin/env python3
"""Manual pages, from what the programs print for --help and the sample configuration has of its keys:
NAME.SECTION.in with the gaps filled, a page for each command of collectctl and one for each further
program. Gzipped as they are installed, in OUTPUT_DIRECTORY/manSECTION.
Usage: make_pages.py COLLECTORD COLLECTCTL VERSION SAMPLE_CONFIG OUTPUT_DIRECTORY PROGRAM..."""

import gzip
import os
import re
import shutil
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


def page_name(command):
    return command.name.replace(" ", "-")


def command_list(commands):
    lines = []
    for command in commands:
        lines += [".TP", f".BR {escape(page_name(command))} (1)", escape(command.summary) + "."]
    return lines


def command_page(command, version):
    """A page of its own for a command or a program."""
    lines = [f'.TH {escape(page_name(command).upper())} 1 "" "collectord {version}" "User Commands"',
             ".SH NAME", f"{escape(page_name(command))} \\- {escape(command.summary)}",
             ".SH SYNOPSIS", escape(synopsis(command)), ".SH DESCRIPTION", escape(command.summary) + "."]
    for positional in command.positionals:
        text = positional.text[:1].upper() + positional.text[1:]
        lines += [".TP", f"\\fI{escape(positional.name)}\\fR", escape(text) + "."]
    lines += [".SH OPTIONS"] + options_roff(
        [option for title, options in command.groups if title != COLLECTOR_GROUP
         for option in options])
    is_of_collectctl = " " in command.name
    if len(command.groups) > 1:
        lines += [".PP", "The options that say where the collector is are those of",
                  ".BR collectctl (1)."]
    if any(command.footer):
        lines += [".SH NOTES"] + footer_roff(command.footer)
    other = "collectctl (1)" if is_of_collectctl else "collectord (8)"
    return "\n".join(lines + [".SH SEE ALSO", f".BR {other}"]) + "\n"


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


def write_page(output, name, text):
    folder = os.path.join(output, "man" + name[-1])
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, name + ".gz"), "wb") as file:
        file.write(gzip.compress(text.encode(), compresslevel=9, mtime=0))


def main():
    daemon, client, version, sample, output, *programs = sys.argv[1:]
    collectord = command_help.read_command(daemon)
    collectctl = command_help.read_command(client)
    with open(sample, encoding="utf-8") as file:
        sample_text = file.read()
    values = {
        "VERSION": version,
        "DAEMON_OPTIONS": options_roff(collectord.options()),
        "CLIENT_OPTIONS": options_roff(collectctl.options()),
        "COMMANDS": command_list(collectctl.leaves()),
        "CLIENT_FOOTER": footer_roff(collectctl.footer),
        "KEYS": keys_roff(sample_text),
    }
    here = os.path.dirname(os.path.abspath(__file__))
    shutil.rmtree(output, ignore_errors=True)
    for name in sorted(os.listdir(here)):
        if name.endswith(".in"):
            write_page(output, name.removesuffix(".in"), make(os.path.join(here, name), values))
    for command in collectctl.leaves() + [command_help.read_command(path) for path in programs]:
        write_page(output, page_name(command) + ".1", command_page(command, version))


if __name__ == "__main__":
    main()
