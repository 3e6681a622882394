"""One function for each shell: the completion of a program as text. `commands` are all of its
commands, itself first; kind_of(command, word, choices) says what represents a value."""

import os

# Where the collector is: asking it for names takes what is on the line.
COLLECTOR_FLAGS = ["--control", "--tls-ca", "--tls-certificate", "--tls-key", "--tls-name",
                   "--token-file"]


def bash(program, commands, kind_of):
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "completion.bash"),
              encoding="utf-8") as file:
        text = file.read()
    flags, values, subcommands, places = [], [], [], []
    for command in commands:
        names = [name for option in command.options() for name in option.names]
        flags.append(f'    "{command.name}") echo "{" ".join(names)}" ;;')
        for option in command.options():
            if option.value:
                patterns = " | ".join(f'"{command.name} {name}"' for name in option.names)
                values.append(
                    f'    {patterns}) echo "{kind_of(command, option.value, option.choices)}" ;;')
        if command.subcommands:
            words = " ".join(below.name.split(" ")[-1] for below in command.subcommands)
            subcommands.append(f'    "{command.name}") echo "{words}" ;;')
        for number, positional in enumerate(command.positionals, 1):
            pattern = f'"{command.name} "*' if positional.many else f'"{command.name} {number}"'
            places.append(f'    {pattern}) echo "{kind_of(command, positional.name, [])}" ;;')
    return (text.replace("@PROGRAM@", program.name).replace("@NAME@", program.name)
            .replace("@FLAGS@", "\n".join(flags)).replace("@VALUES@", "\n".join(values))
            .replace("@SUBCOMMANDS@", "\n".join(subcommands) or "    *) ;;")
            .replace("@PLACES@", "\n".join(places) or "    *) ;;")
            .replace("@COLLECTOR_FLAGS_EQUALS@", " | ".join(f"{f}=*" for f in COLLECTOR_FLAGS))
            .replace("@COLLECTOR_FLAGS@", " | ".join(COLLECTOR_FLAGS)))


def quoted(text):
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def fish_values(name, kind):
    """The options of `complete` for values of this kind."""
    ask = f"(__{name}_ask sessions)", f"(__{name}_ask agents)"
    if kind.startswith("words "):
        return f"-x -a {quoted(kind[6:])}"
    return {"files": "-r -F", "directories": "-x -a '(__fish_complete_directories)'",
            "sessions": f"-x -a '{ask[0]}'", "agents": f"-x -a '{ask[1]}'",
            "targets": f"-x -a '{ask[0]} {ask[1]}'",
            "program": "-x -a '(__fish_complete_subcommand)'"}.get(kind, "-x")


def fish(program, commands, kind_of):
    name = program.name
    lines = [
        f"# fish completion for {name}, made out of its --help.",
        f"complete -c {name} -f",
        "",
        "# The names that a running collector has; nothing where none answers in time.",
        f"function __{name}_ask",
        "    set -l line (commandline -opc)",
        "    set -l collector",
        "    for i in (seq 2 (count $line))",
        f"        if contains -- $line[$i] {' '.join(COLLECTOR_FLAGS)}",
        "            set -a collector $line[$i] $line[(math $i + 1)]",
        "        end",
        "    end",
        "    timeout 1 $line[1] $collector --json $argv[1] 2>/dev/null |",
        "        string match -ar '\"name\":\"'$argv[1]'/[A-Za-z0-9_./-]*' | string replace -r '^[^/]*/' ''",
        "end",
        "",
    ]
    for command in commands:
        path = command.name.split(" ")[1:]
        below = [each.name.split(" ")[-1] for each in command.subcommands]
        # The word of each level is there, and none of those below.
        seen = [f"__fish_seen_subcommand_from {word}" for word in path]
        if below:
            seen.append(f"not __fish_seen_subcommand_from {' '.join(below)}")
        if not path and not below:
            seen = ["true"]
        where = f"-n {quoted('; and '.join(seen))}"
        for each in command.subcommands:
            lines.append(f"complete -c {name} {where} -a {each.name.split(' ')[-1]} "
                         f"-d {quoted(each.summary)}")
        for option in command.options():
            names = " ".join(f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}"
                             for flag in option.names)
            value = fish_values(name, kind_of(command, option.value, option.choices)) + " " \
                if option.value else ""
            lines.append(f"complete -c {name} {where} {names} {value}-d {quoted(option.text)}")
        for positional in command.positionals:
            kind = kind_of(command, positional.name, [])
            if kind != "nothing":
                value = fish_values(name, kind).replace("-x ", "").replace("-r ", "")
                lines.append(f"complete -c {name} {where} {value}")
    return "\n".join(lines) + "\n"


def zsh_text(text):
    for character in "\\[]:":
        text = text.replace(character, "\\" + character)
    return text.replace("'", "'\\''")


def zsh_action(name, kind):
    if kind.startswith("words "):
        return f"({kind[6:]})"
    return {"files": "_files", "directories": "_directories", "sessions": f"_{name}_ask sessions",
            "agents": f"_{name}_ask agents", "targets": f"_{name}_ask sessions agents",
            "program": "_normal"}.get(kind, "")


def zsh_specs(name, command, kind_of):
    specs = []
    for option in command.options():
        value = ""
        if option.value:
            kind = kind_of(command, option.value, option.choices)
            value = f":{option.value.lower()}:{zsh_action(name, kind)}"
        # A long name takes its value behind a blank or an equals sign.
        for flag in option.names:
            ending = "=" if option.value and flag.startswith("--") else ""
            many = "*" if option.many else ""
            specs.append(f"'{many}{flag}{ending}[{zsh_text(option.text)}]{value}'")
    for positional in command.positionals:
        kind = kind_of(command, positional.name, [])
        many = "*:" if positional.many else ":"
        if kind == "program":
            many = "*::"
        specs.append(f"'{many}{positional.name.lower()}:{zsh_action(name, kind)}'")
    return specs


def zsh_function(name, command, kind_of):
    function = "_" + command.name.replace(" ", "_")
    specs = " \\\n    ".join(zsh_specs(name, command, kind_of))
    if not command.subcommands:
        return [f"{function}() {{", f"  _arguments -s \\\n    {specs}", "}", ""]
    words = [each.name.split(" ")[-1] for each in command.subcommands]
    lines = [f"{function}() {{", "  local line state", "  local -a commands=("]
    lines += [f"    '{word}:{zsh_text(each.summary)}'"
              for word, each in zip(words, command.subcommands)]
    lines += ["  )", f"  _arguments -C -s \\\n    {specs} \\\n    ': :->command' '*:: :->arguments'",
              "  case $state in", "    command) _describe command commands ;;",
              "    arguments)", "      case $line[1] in"]
    lines += [f"        {word}) {function}_{word} ;;" for word in words]
    return lines + ["      esac ;;", "  esac", "}", ""]


def zsh(program, commands, kind_of):
    name = program.name
    lines = [f"#compdef {name}", f"# zsh completion for {name}, made out of its --help.", "",
             "# The names that a running collector has; nothing where none answers in time.",
             f"_{name}_ask() {{", "  local what", "  local -a names collector", "  local i",
             "  for ((i = 2; i < CURRENT; i++)); do",
             f"    case $words[i] in {'|'.join(COLLECTOR_FLAGS)}) "
             "collector+=($words[i] $words[i+1]) ;; esac", "  done",
             "  for what; do",
             f"    names+=(${{(f)\"$(timeout 1 {name} $collector --json $what 2>/dev/null |",
             "      grep -o \"\\\"name\\\":\\\"$what/[A-Za-z0-9_./-]*\" | cut -d / -f 2-)\"})", "  done",
             "  compadd -a names", "}", ""]
    for command in commands:
        lines += zsh_function(name, command, kind_of)
    return "\n".join(lines) + f'_{name} "$@"\n'
