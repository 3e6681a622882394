#!/usr/bin/env python3
"""Programs that no one prepared, bare and under `collectctl run --dynamic`: whether their output and exit
code are the same, how many of their functions are recorded, and whether calls have their returns.

    tests/bench/commands/foreign_programs.py [--check] [BIN]

Runs what is installed of a list of Debian's programs: C, C++ and Rust, interpreters and tools. BIN is the
directory of collectctl, build/release/bin by default. Prints a row a program and then the medians; with
--check it ends with 1 where an output or exit code differs. Coverage is that of the program's own file, by
`collectctl list --plan`: of its functions, and of those with all of their exits.
"""
import argparse
import collections
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
SECONDS = 300  # a program that takes longer hangs

# Name, language, arguments; {text}, {numbers} and {folder} are made below. What a program prints of
# times or addresses is left out.
PROGRAMS = [
    ("ls", "C", ["-lR", "--time-style=+", "{folder}"]),
    ("cat", "C", ["{text}"]),
    ("sort", "C", ["-n", "{numbers}"]),
    ("uniq", "C", ["-c", "{numbers}"]),
    ("wc", "C", ["{text}", "{numbers}"]),
    ("cut", "C", ["-c", "1-20", "{text}"]),
    ("sha256sum", "C", ["{text}"]),
    ("factor", "C", ["18446744073709551557", "1000000007000000063"]),
    ("expr", "C", ["12345", "*", "6789"]),
    ("grep", "C", ["-c", "-E", "[a-z]+ing", "{text}"]),
    ("sed", "C", ["-n", "s/the/THE/gp", "{text}"]),
    ("gawk", "C", ["{ n += length($0) } END { print n }", "{text}"]),
    ("mawk", "C", ["{ n += length($0) } END { print n }", "{text}"]),
    ("find", "C", ["{folder}", "-type", "f", "-size", "+1k"]),
    ("diff", "C", ["{text}", "{numbers}"]),
    ("tar", "C", ["--sort=name", "--mtime=@0", "--owner=0", "--group=0", "-cf", "-", "-C", "{folder}", "."]),
    ("gzip", "C", ["-9nc", "{text}"]),
    ("bzip2", "C", ["-9c", "{text}"]),
    ("xz", "C", ["-T1", "-6c", "{text}"]),
    ("zstd", "C", ["-q", "-T1", "-9", "-c", "{text}"]),
    ("bc", "C", ["{bc}"]),
    ("jq", "C", ["[.[] | .value * 2] | add", "{json}"]),
    ("file", "C", ["-b", "/bin/sh", "{text}"]),
    ("xmllint", "C", ["--format", "{xml}"]),
    ("openssl", "C", ["dgst", "-sha512", "{text}"]),
    ("git", "C", ["hash-object", "{text}", "{numbers}"]),
    ("bash", "C", ["-c", "for ((i = 0; i < 3000; i++)); do ((n += i * i)); done; echo $n"]),
    ("dash", "C", ["-c", "i=0; while [ $i -lt 3000 ]; do i=$((i + 1)); done; echo $i"]),
    ("perl", "C", ["-e", "my %h; $h{$_ % 997} += $_ for 1 .. 60000; print join(',', map { $h{$_} } sort keys %h), \"\\n\""]),
    ("lua5.4", "C", ["-e", "local t = {} for i = 1, 60000 do t[i] = (i * 7919) % 10007 end table.sort(t) print(t[1], t[60000])"]),
    ("python3.11", "C", ["-S", "-c", "print(sum(i * i % 7 for i in range(60000)), sorted('hello world'))"]),
    ("sqlite3", "C", [":memory:", "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 20000) SELECT sum(x * x % 97), count(*) FROM c;"]),
    ("readelf", "C", ["-sW", "/bin/sh"]),
    ("objdump", "C", ["-d", "--no-show-raw-insn", "/usr/bin/expr"]),
    ("ssh-keygen", "C", ["-l", "-f", "{key}"]),
    ("gdb", "C++", ["-nx", "-batch", "-ex", "print 6 * 7", "-ex", "info functions -n main"]),
    ("ninja", "C++", ["--version"]),
    ("cmake", "C++", ["-E", "capabilities"]),
    ("rg", "Rust", ["--sort", "path", "-c", "running|calls", "{folder}"]),
    ("fdfind", "Rust", ["--threads", "1", ".", "{folder}"]),
    ("batcat", "Rust", ["--plain", "--paging", "never", "{xml}"]),
]


def inputs(folder):
    """Files for them, the same each time."""
    folder.mkdir()
    text, numbers, state = [], [], 12345
    words = "the string is running over a long time line of calls and returns while recording ends early".split()
    for _ in range(4000):
        line = []
        for _ in range(12):
            state = (state * 1103515245 + 12345) % 2 ** 31
            line.append(words[state >> 16 & 15])
        text.append(" ".join(line))
        numbers.append(str(state % 100_000))
    made = {name: folder / name for name in ("text", "numbers", "json", "xml", "bc", "key")}
    made["text"].write_text("\n".join(text) + "\n")
    made["numbers"].write_text("\n".join(numbers) + "\n")
    made["json"].write_text(json.dumps([{"name": "n" + n, "value": int(n)} for n in numbers[:2000]]))
    made["xml"].write_text("<r>" + "".join(f"<a n='{n}'><b/></a>" for n in numbers[:1000]) + "</r>")
    made["bc"].write_text("scale=200\n4*a(1)\nquit\n")
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "x", "-f", made["key"]], check=False)
    return {**made, "folder": folder}


def ran(command, folder):
    done = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS,
                          env={**os.environ, "LC_ALL": "C.UTF-8", "HOME": str(folder), "BC_ARGS": ""}, check=False)
    return done.returncode, done.stdout


def json_of(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return json.loads(done.stdout) if done.stdout else {}


def try_program(collectctl, folder, name, arguments, files):
    path = shutil.which(name)
    arguments = [argument.format(**files) if argument.startswith("{") and "}" in argument and " " not in argument
                 else argument for argument in arguments]
    bare = ran([path, *arguments], folder)
    traces = folder / ("traces_" + name)
    recorded = ran([collectctl, "run", "-q", "--dynamic", "--no-follow", "-o", traces, "--", path, *arguments], folder)
    plan = json_of(collectctl, "list", "--plan", "--json", os.path.realpath(path))
    threads = json_of(collectctl, "inspect", "--json", traces).get("threads", [])
    shutil.rmtree(traces, ignore_errors=True)
    return {"name": name, "is_same": bare == recorded, "codes": (bare[0], recorded[0]), "plan": plan,
            "calls": sum(thread["calls"] for thread in threads),
            "ends": sum(thread["returns"] + thread["exceptions"] for thread in threads)}


def percent(part, whole):
    return 100 * part / whole if whole else float("nan")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="end with 1 where an output or exit code differs")
    parser.add_argument("bin", nargs="?", default=ROOT / "build/release/bin", type=pathlib.Path)
    options = parser.parse_args()
    collectctl = options.bin.resolve() / "collectctl"
    rows, left_out, reasons = [], [], collections.Counter()
    with tempfile.TemporaryDirectory(prefix="foreign_") as scratch:
        folder = pathlib.Path(scratch)
        files = inputs(folder / "inputs")
        print(f"{'program':12}{'language':10}{'output':10}{'functions':>10}{'recorded':>10}{'calls':>12}{'with end':>10}")
        for name, language, arguments in PROGRAMS:
            if shutil.which(name) is None:
                left_out.append(name)
                continue
            row = try_program(collectctl, folder, name, arguments, files)
            rows.append({**row, "language": language})
            plan = row["plan"]
            for reason in plan.get("reasons", []):
                reasons[reason["reason"]] += reason["functions"]
            said = "same" if row["is_same"] else f"{row['codes'][0]} / {row['codes'][1]}"
            print(f"{name:12}{language:10}{said:10}{plan.get('functions', 0):10,}"
                  f"{percent(plan.get('recorded', 0), plan.get('functions', 0)):9.1f} %{row['calls']:12,}"
                  f"{percent(row['ends'], row['calls']):8.1f} %", flush=True)
    for language in sorted({row["language"] for row in rows}):
        own = [percent(row["plan"]["recorded"], row["plan"]["functions"]) for row in rows
               if row["language"] == language and row["plan"].get("functions")]
        print(f"{language}: {len(own)} programs, functions recorded with all of their exits: median "
              f"{statistics.median(own):.1f} %, least {min(own):.1f} %")
    print("not recorded: " + ", ".join(f"{reason} ({count:,})" for reason, count in reasons.most_common()))
    if left_out:
        print("not installed: " + ", ".join(left_out))
    different = [row["name"] for row in rows if not row["is_same"]]
    print(f"{len(rows)} programs, {len(different)} with another output or exit code{': ' if different else ''}{', '.join(different)}")
    sys.exit(1 if different and options.check else 0)


if __name__ == "__main__":
    main()
