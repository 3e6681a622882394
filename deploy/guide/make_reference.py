#!/usr/bin/env python3
"""Writes the reference pages of the user's guide, collectctl.md and collectord.md, from what the
programs print for --help and from the sample configuration. Run it after a change of an option, and
commit the pages; a test compares them with the programs.
Usage: make_reference.py COLLECTORD COLLECTCTL SAMPLE_CONFIG [OUTPUT_DIRECTORY]"""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "man"))
sys.dont_write_bytecode = True

import command_help  # noqa: E402
import make_pages  # noqa: E402

GENERATED = "<!-- Written by make_reference.py from --help. Do not edit. -->"


def cell(text):
    return text.replace("|", "\\|")


def sentence(text):
    return cell(text[:1].upper() + text[1:])


def option_row(option):
    names = ", ".join(f"`{name}`" for name in option.names)
    if option.choices:
        names += " " + cell("|".join(option.choices))
    elif option.value:
        names += " " + cell(option.value)
    text = sentence(option.text)
    if option.default:
        text += f" (default: `{cell(option.default)}`)"
    if option.required:
        text += " (required)"
    return f"| {names} | {text} |"


def option_table(options):
    if not options:
        return []
    return ["| Option | Meaning |", "|---|---|"] + [option_row(option) for option in options] + [""]


def positional_table(positionals):
    if not positionals:
        return []
    rows = [f"| {cell(p.name)}{' …' if p.many else ''} | {sentence(p.text)} |" for p in positionals]
    return ["| Argument | Meaning |", "|---|---|"] + rows + [""]


def footer_lines(footer):
    """The footer of --help keeps its lines: it holds examples."""
    text = "\n".join(footer).strip("\n")
    return ["```", text, "```", ""] if text else []


def own_options(command):
    return [option for title, options in command.groups if title != make_pages.COLLECTOR_GROUP
            for option in options if option.names != ["-h", "--help"]]


def client_page(client):
    lines = [GENERATED, "", "# collectctl", "",
             "Every command with its options. The options that say where the collector is are the "
             "same for", "all commands that talk to one, and are listed once.", "", "## Commands", "",
             "| Command | What it does |", "|---|---|"]
    leaves = client.leaves()
    for command in leaves:
        anchor = command.name.replace(" ", "-")
        lines.append(f"| [`{command.name}`](#{anchor}) | {sentence(command.summary)} |")
    lines += ["", "## Options of all commands", ""] + option_table(client.options())
    for command in leaves:
        lines += [f"## {command.name}", "",
                  f"    {make_pages.synopsis(command)}", "", command.summary + ".", ""]
        lines += positional_table(command.positionals) + option_table(own_options(command))
        lines += footer_lines(command.footer)
    lines += ["## Exit codes, environment and examples", ""] + footer_lines(client.footer)
    return "\n".join(lines).rstrip("\n") + "\n"


def daemon_page(daemon, sample):
    lines = [GENERATED, "", "# collectord", "", "## Options", ""] + option_table(daemon.options())
    lines += ["## collectord.toml", "",
              "Each key is also an option, with `-` for `_`. Each is shown with its default.", ""]
    shown = None
    for section, prose, keys in make_pages.sample_keys(sample):
        if not keys:
            continue
        if section != shown:
            if shown is not None:
                lines.append("")
            lines += [f"### {section}", "", "| Key | Meaning |", "|---|---|"]
            shown = section
        heads = "<br>".join(f"`{key} = {default}`" for key, default in keys)
        lines.append(f"| {cell(heads)} | {cell(prose)} |")
    return "\n".join(lines) + "\n"


def pages(collectord, collectctl, sample_path):
    with open(sample_path, encoding="utf-8") as file:
        sample = file.read()
    return {"collectctl.md": client_page(command_help.read_command(collectctl)),
            "collectord.md": daemon_page(command_help.read_command(collectord), sample)}


def main():
    collectord, collectctl, sample = sys.argv[1:4]
    output = sys.argv[4] if len(sys.argv) > 4 else HERE
    for name, text in pages(collectord, collectctl, sample).items():
        with open(os.path.join(output, name), "w", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    main()
