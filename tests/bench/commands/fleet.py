#!/usr/bin/env python3
"""What a session costs in each form, what an upload costs, and what it does to ingest.

    tests/bench/commands/fleet.py [--rounds N] [--megabytes N] [--no-ingest] [BIN]

BIN holds collectctl and collect-store, build/release/bin by default. Unprepared programs of the
machine are recorded with `run --dynamic`: lua5.4, perl and SQLite as far as they are there. For
each: bytes an event as files, as objects, and as tables of Parquet; and MB of files that
collect-store uploads in a second of its CPU, with and without tables. Then bench_ingest with and
without an upload beside it, in turn, over and over as collectord runs it (nice 10), and the ratio
of the medians. The store is the server of the tests, which verifies signatures and runs beside.
"""
import argparse
import contextlib
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
LUA = """local t = {} for i = 1, 20000 do t[#t + 1] = tostring(i):rep(2):sub(2, 5) end
table.sort(t) print(#table.concat(t))"""
PERL = """my %h; for my $i (1 .. 40000) { my $s = 'k' . ($i * 7919 % 10007); $h{$s} .= sprintf('%x', $i); }
print join(',', map { length $h{$_} } sort keys %h);"""
SQL = """create table t(a integer primary key, b text); with recursive n(i) as (select 1 union all select i + 1
from n where i < 15000) insert into t select i, hex(i * 7919 % 10007) from n; create index x on t(b);
select count(*), max(b) from t where b > '3' group by a % 7;"""
# Which modules of them are recorded, and their words.
PROGRAMS = (["", "lua5.4", "-e", LUA], ["", "perl", "-e", PERL],
            ["=libsqlite3.so*", "sqlite3", ":memory:", SQL])


class Store:
    """The server of the tests, until its standard input ends."""

    def __init__(self):
        server = ROOT / "tests/daemon/upload/fake_s3.py"
        self.process = subprocess.Popen([sys.executable, "-B", server, "traces"], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.environment = {**os.environ, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{int(self.process.stdout.readline())}",
                            "AWS_ACCESS_KEY_ID": "FAKEACCESSKEY", "AWS_SECRET_ACCESS_KEY": "fake/secret+key"}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()


def cpu_of(command, **more):
    """Seconds of the command's CPU time, and what it printed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, text=True, check=True, **more)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout


def recorded(collectctl, modules, words, folder):
    done = subprocess.run([collectctl, "run", "--json", "--dynamic" + modules, "-o", folder, "--", *words],
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=True)
    session = json.loads(done.stderr.strip().splitlines()[-1])["sessions"][0]
    return pathlib.Path(session["path"]), session["events"]


def uploaded(collectctl, session, rounds, *wanted):
    """Bytes sent, and the median of CPU seconds."""
    took, sent = [], 0
    for _ in range(rounds):
        with Store() as store:
            cpu, out = cpu_of([collectctl, "upload", session, "--store", "s3://traces", "--json", *wanted],
                              env=store.environment)
        took.append(cpu)
        sent = json.loads(out)["sessions"][0]["sent_bytes"]
    return sent, statistics.median(took)


def measure_forms(collectctl, modules, words, rounds, folder):
    session, events = recorded(collectctl, modules, words, folder / words[0])
    tables = folder / (words[0] + "_tables")
    table_cpu, _ = cpu_of([collectctl, "convert", session, "--to", "parquet", "-o", tables],
                          stderr=subprocess.DEVNULL)
    size = sum(path.stat().st_size for path in session.rglob("*") if path.is_file())
    sent, plain = uploaded(collectctl, session, rounds)
    _, with_tables = uploaded(collectctl, session, rounds, "--tables", "functions")
    rows, calls = ((tables / name).stat().st_size for name in ("events.parquet", "calls.parquet"))
    print(f"{words[0]:10}{events / 1e6:9.1f}{size / events:9.2f}{sent / events:9.2f}{rows / events:9.2f}"
          f"{2 * calls / events:9.2f}{size / 1e6 / plain:9.0f}{size / 1e6 / with_tables:9.0f}"
          f"{events / 1e6 / table_cpu:9.1f}", flush=True)
    return session


def ingest(bench, megabytes, folder):
    """GB a second and CPU seconds a GB of collectord, of all numbers of streams together."""
    _, out = cpu_of([bench, megabytes, 1, folder])
    line = r"^  collectord, as agents send{} +([\d.]+) "
    rate = statistics.mean(map(float, re.findall(line.format(", until sealed"), out, re.M)))
    return rate, statistics.mean(map(float, re.findall(line.format(""), out, re.M)))


def measure_effect(binaries, session, rounds, megabytes, folder):
    bench = binaries / "bench" / "bench_ingest"
    times = ([], [])
    for _ in range(rounds):
        for beside, kept in enumerate(times):
            with contextlib.ExitStack() as stack:
                if beside:
                    store = stack.enter_context(Store())
                    # To a new bucket each time: what is there is not sent again.
                    again = subprocess.Popen(
                        ["sh", "-c", 'i=0; while i=$((i + 1)); do nice -n 10 "$0" upload "$1" --store "s3://traces$i"; done',
                         binaries / "collectctl", session], env=store.environment,
                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
                    stack.callback(again.wait)
                    stack.callback(os.killpg, again.pid, signal.SIGTERM)
                kept.append(ingest(bench, megabytes, folder))
    alone, beside = ([statistics.median(column) for column in zip(*kept)] for kept in times)
    print(f"ingest     {alone[0]:.2f} GB/s and {alone[1]:.2f} CPU-s/GB alone, {beside[0]:.2f} and "
          f"{beside[1]:.2f} beside an upload: {beside[0] / alone[0]:.2f} and {beside[1] / alone[1]:.2f} x")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--megabytes", type=int, default=400, help="of bench_ingest")
    parser.add_argument("--no-ingest", action="store_true", help="no bench_ingest beside an upload")
    parser.add_argument("binaries", nargs="?", metavar="BIN", type=pathlib.Path, default=ROOT / "build/release/bin")
    given = parser.parse_args()
    binaries = given.binaries.resolve()
    print(f"{'program':10}{'M events':>9}{'B/event:':>9}{'sent':>9}{'events':>9}{'calls':>9}"
          f"{'MB/CPU-s':>9}{'+tables':>9}{'convert':>9}")
    print(f"{'':19}{'files':>9}{'':>9}{'.parquet':>9}{'.parquet':>9}{'':18}{'M ev/CPU-s':>11}")
    with tempfile.TemporaryDirectory(dir=binaries) as name:
        folder = pathlib.Path(name)
        sessions = [measure_forms(binaries / "collectctl", modules, words, given.rounds, folder)
                    for modules, *words in PROGRAMS if shutil.which(words[0])]
        if sessions and not given.no_ingest:
            measure_effect(binaries, sessions[0], given.rounds, given.megabytes, folder)


main()
