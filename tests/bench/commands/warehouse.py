#!/usr/bin/env python3
"""How long the questions of deploy/clickhouse/questions.sql take on many events.

    tests/bench/commands/warehouse.py [--events N] [BIN]

BIN holds collectctl and json_iso_codes, build/release/bin by default. One recording is loaded by
`collect-load --events load` into Debian's clickhouse-server, and its tables move to the newest
engine (npm chdb, NODE_PATH). There the session is copied under other names until there are N events
(10^9 by default); then each question is asked three times, and the median is printed.
"""
import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests/e2e/sessions"))
from clickhouse_server import PASSWORD, USER, NewEngine, OldServer, statements

DEPLOY = ROOT / "deploy/clickhouse"
TABLES = ("parts", "part_threads", "part_ranges", "part_modules", "part_gaps", "functions", "part_function_seconds",
          "events")
BEGIN = ("CREATE DATABASE IF NOT EXISTS collect", "USE collect", "SET allow_suspicious_low_cardinality_types = 1")
# One line of JSON for each statement: its seconds, and its rows or what failed.
SCRIPT = """const { Session } = require('chdb');
const session = new Session(process.argv[1]);
for (const sql of JSON.parse(require('fs').readFileSync(0, 'utf8'))) {
  const begin = process.hrtime.bigint();
  let answer;
  try { answer = {rows: session.query(sql, 'TabSeparated')}; } catch (error) { answer = {error: String(error.message)}; }
  answer.seconds = Number(process.hrtime.bigint() - begin) / 1e9;
  require('fs').writeSync(1, '\\n@' + JSON.stringify(answer) + '\\n');
}
process.exit(0);
"""


class Engine:
    def __init__(self, folder):
        self.folder = folder

    def ask(self, sqls):
        """[(seconds, text)] of each statement."""
        sqls = [*BEGIN, *sqls]
        done = subprocess.run(["node", "-e", SCRIPT, os.path.join(self.folder, "chdb")], input=json.dumps(sqls),
                              capture_output=True, text=True, check=False)
        answers = [json.loads(line[1:]) for line in done.stdout.split("\n") if line.startswith("@")]
        for sql, answer in zip(sqls, answers):
            if "error" in answer:
                sys.exit(f"{sql}: {answer['error']}")
        if len(answers) != len(sqls):
            sys.exit(f"the engine ended: {done.returncode} {done.stderr[-2000:]}")
        return [(answer["seconds"], answer["rows"]) for answer in answers[len(BEGIN):]]


def load_recording(bin, folder, server):
    """Records, loads, and writes each table to FOLDER/TABLE.rows."""
    environment = {**os.environ, "CLICKHOUSE_USER": USER, "CLICKHOUSE_PASSWORD": PASSWORD, "TMPDIR": folder}
    traces = os.path.join(folder, "traces")
    for command in (["run", "--quiet", "-o", traces, "--", str(bin / "json_iso_codes"), "1", "1"],
                    ["load", "--server", server.url, "--database", "collect", "--events", "load", traces]):
        done = subprocess.run([str(bin / "collectctl"), *command], env=environment, capture_output=True, text=True,
                              check=False)
        if done.returncode != 0:
            sys.exit(f"collectctl {command[0]}: {done.stderr}")
    for table in TABLES:
        request = urllib.request.Request(f"{server.url}/?database=collect",
                                         data=f"SELECT * FROM {table} FORMAT RowBinary".encode(),
                                         headers={"X-ClickHouse-User": USER, "X-ClickHouse-Key": PASSWORD})
        with urllib.request.urlopen(request) as answer, open(os.path.join(folder, table + ".rows"), "wb") as out:
            while chunk := answer.read(1 << 20):
                out.write(chunk)


def questions():
    """[(the comment before it, the statement)]"""
    found = []
    for block in (DEPLOY / "questions.sql").read_text(encoding="utf-8").split("\n\n")[1:]:
        lines = block.strip().splitlines()
        comment = [line for line in lines if line.startswith("-- ")]
        found.append((" ".join(line[3:] for line in comment), "\n".join(lines[len(comment):]).rstrip(";")))
    return found


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("bin", nargs="?", type=pathlib.Path, default=ROOT / "build/release/bin")
    arguments.add_argument("--events", type=float, default=1e9)
    options = arguments.parse_args()
    if not OldServer.is_there() or not NewEngine.is_there():
        sys.exit("needs clickhouse-server (apt) and chdb (npm, NODE_PATH)")
    with tempfile.TemporaryDirectory(prefix="warehouse_") as folder:
        server = OldServer(os.path.join(folder, "server"))
        try:
            server.make_tables(str(DEPLOY), "collect")
            load_recording(options.bin, folder, server)
        finally:
            server.close()
        engine = Engine(folder)
        make = [statement for name in ("schema.sql", "views.sql") for statement in statements(str(DEPLOY / name))]
        engine.ask(make)
        columns = engine.ask([f"DESCRIBE TABLE {table}" for table in TABLES])
        for table, (_, text) in zip(TABLES, columns):
            structure = ", ".join(" ".join(line.split("\t")[:2]) for line in text.splitlines())
            path = os.path.join(folder, table + ".rows")
            quoted = structure.replace("'", "\\'")
            seconds, _ = engine.ask([f"INSERT INTO {table} SELECT * FROM file('{path}', 'RowBinary', '{quoted}')"])[0]
            os.remove(path)
            print(f"moved {table}: {seconds:.1f} s", flush=True)
        base = engine.ask(["SELECT argMax(session, events) FROM parts"])[0][1].strip()
        events = int(engine.ask([f"SELECT count() FROM events FINAL WHERE session = '{base}'"])[0][1])
        copies = max(0, round(options.events / events) - 1)
        spent = 0.0
        for copy in range(1, copies + 1):
            renamed = f"concat('{base}', '-', '{copy}') AS session"
            sqls = []
            for table in TABLES:
                if table == "functions":
                    continue
                load = "" if table == "events" else f", load + {copy} AS load"
                sqls.append(f"INSERT INTO {table} SELECT * REPLACE({renamed}{load}) FROM "
                            f"(SELECT * FROM {table} WHERE session = '{base}')")
            answers = engine.ask(sqls)
            spent += answers[-1][0]
            if copy % 8 == 0:
                print(f"{copy} of {copies} copies", flush=True)
        answers = engine.ask(["SELECT count() FROM events", "SELECT count() FROM function_seconds",
                              "SELECT sum(data_compressed_bytes) FROM system.parts WHERE active AND table = 'events'"])
        rows, seconds_rows, on_disk = (int(answer[1]) for answer in answers)
        print(f"{rows:,} rows of events ({events:,} recorded, copied under {copies + 1} names; {spent:.0f} s for the"
              f" inserts), {on_disk / rows:.3f} bytes a row; {seconds_rows:,} function seconds\n")
        print("| Question | Seconds | Rows of the answer |\n|---|---|---|")
        for what, sql in questions():
            asked = [engine.ask([sql])[0] for _ in range(3)]
            print(f"| {what} | {statistics.median(one[0] for one in asked):.2f} | {len(asked[0][1].splitlines())} |",
                  flush=True)


if __name__ == "__main__":
    main()
