#!/usr/bin/env python3
"""warehouse_test.py BIN LIB DEPLOY: `collect-load` and `collectctl query --server` with real recordings, against
Debian's clickhouse-server 18.16 over HTTP; files in place, from a bucket, by the newest engine (npm chdb,
NODE_PATH). DEPLOY is deploy/clickhouse. Skipped (77) without the server."""

import http.server
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import unittest
import urllib.error
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "live"))
from collector import Collector, clean_environment, eventually
from clickhouse_server import PASSWORD, USER, NewEngine, OldServer, statements

BIN, LIB, DEPLOY = map(os.path.abspath, sys.argv[1:4])
COLLECTCTL = os.path.join(BIN, "collectctl")
LOADER = os.path.join(BIN, "collect-load")
FAKE_S3 = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "daemon", "upload", "fake_s3.py")
PATIENCE = 240
LOGIN = {"CLICKHOUSE_USER": USER, "CLICKHOUSE_PASSWORD": PASSWORD}
BUCKET_LOGIN = {"AWS_ACCESS_KEY_ID": "FAKEACCESSKEY", "AWS_SECRET_ACCESS_KEY": "fake/secret+key"}

CALLS = ("SELECT f.name, sum(s.calls), sum(s.total_ns), sum(s.self_ns), max(s.longest_ns) FROM function_seconds AS s "
         "ANY LEFT JOIN (SELECT * FROM functions FINAL) AS f USING (function) GROUP BY f.name")
EVENTS = ("SELECT stream, count(), uniqExact(seq), min(seq), max(seq), sum(time_ns), sum(toUInt64(function)), sum(kind) "
          "FROM {table} GROUP BY stream ORDER BY stream")


SCRATCH = tempfile.TemporaryDirectory(prefix="warehouse_")  # also of what is killed
LOGIN["TMPDIR"] = SCRATCH.name


def ctl(*arguments, program=COLLECTCTL, **environment):
    return subprocess.run([program, *arguments], capture_output=True, text=True, timeout=PATIENCE, check=False,
                          env=clean_environment(**{**LOGIN, **environment}))


def report_of(path):
    done = ctl("report", "--json", path)
    assert done.returncode == 0, done.stderr
    return {one["name"]: [one["calls"], one["total_ns"], one["self_ns"]] for one in json.loads(done.stdout)["functions"]}


def manifest_of(path):
    with open(os.path.join(path, "manifest.json"), encoding="utf-8") as file:
        return json.load(file)


class KillingProxy(http.server.ThreadingHTTPServer):
    """Hands requests on to the server, and kills the client at the `at`th: `before` it is handed on, or behind."""

    def __init__(self, url, at, before):
        self.url, self.at, self.before, self.seen = url, at, before, 0
        self.client = None  # a process
        super().__init__(("127.0.0.1", 0), Forwarder)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def kill(self):
        eventually(lambda: self.client, "the test knows the client")
        os.killpg(self.client.pid, signal.SIGKILL)

    def handle_error(self, request, client_address):
        """The client has gone."""


class Forwarder(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        number, self.server.seen = self.server.seen, self.server.seen + 1
        if number == self.server.at and self.server.before:
            return self.server.kill()
        headers = {name: value for name, value in self.headers.items() if name.lower() not in ("host", "content-length")}
        request = urllib.request.Request(self.server.url + self.path, data=body, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                status, text = answer.status, answer.read()
        except urllib.error.HTTPError as error:
            status, text = error.code, error.read()
        if number == self.server.at:
            return self.server.kill()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)
        return None

    def log_message(self, *_):
        pass


class DeafeningProxy:
    """Between an agent and its collector. Once it is asked to, the agent hears nothing more: it does not know what is
    stored, and gives it to the next collector again."""

    def __init__(self, address):
        host, port = address.rsplit(":", 1)
        self.upstream, self.is_deaf, self.sockets = (host, int(port)), False, []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                agent, _ = self.listener.accept()
                collector = socket.create_connection(self.upstream)
            except OSError:
                return
            self.sockets += [agent, collector]
            threading.Thread(target=self.pump, args=(agent, collector, False), daemon=True).start()
            threading.Thread(target=self.pump, args=(collector, agent, True), daemon=True).start()

    def pump(self, source, target, is_to_agent):
        try:
            while data := source.recv(1 << 16):
                if not (is_to_agent and self.is_deaf):
                    target.sendall(data)
        except OSError:
            pass

    def close(self):
        for one in (self.listener, *self.sockets):
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            one.close()


class Bucket:
    """The fake S3 server, with sessions that were uploaded."""

    def __init__(self):
        self.process = subprocess.Popen([sys.executable, "-B", FAKE_S3, "traces"], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.endpoint = "http://127.0.0.1:" + self.process.stdout.readline().strip()
        self.environment = {"AWS_ENDPOINT_URL_S3": self.endpoint, **BUCKET_LOGIN}

    def upload(self, path):
        collector = manifest_of(path)["collector"]
        done = subprocess.run([os.path.join(BIN, "upload_once"), self.endpoint, path, collector["id"], str(collector["epoch"])],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE, check=False)
        assert done.returncode == 0, done.stderr

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()


class WarehouseTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.addClassCleanup(SCRATCH.cleanup)
        cls.folder = SCRATCH.name
        cls.server = OldServer(os.path.join(cls.folder, "server"))
        cls.addClassCleanup(cls.server.close)
        root = os.path.join(cls.folder, "whole")
        done = ctl("run", "-q", "-o", root, "--", os.path.join(BIN, "e2e", "moods"), "1500")
        assert done.returncode == 0, done.stderr
        cls.whole = cls.sessions_below(root)[0]
        cls.parts, cls.merged = cls.record_two_parts()

    @classmethod
    def sessions_below(cls, root):
        return sorted(os.path.join(where) for where, _, files in os.walk(root) if "manifest.json" in files)

    @classmethod
    def record_two_parts(cls):
        """A process that goes from one collector, which is killed, to another, and has not heard of the last things that
        the first one stored: the parts overlap."""
        folders = [os.path.join(cls.folder, name) for name in ("first", "second")]
        for folder in folders:
            os.mkdir(folder)
        options = ("--heartbeat-ms", "200", "--resume-ms", "1000")
        first, second = (Collector(BIN, LIB, folder, options=options) for folder in folders)
        cls.addClassCleanup(second.close)
        proxy = DeafeningProxy(first.address["ingest"])
        both = proxy.address + "," + second.address["ingest"]
        progress = os.path.join(cls.folder, "progress")
        program = subprocess.Popen([os.path.join(BIN, "e2e", "chaos"), progress, "2"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   env=clean_environment(LD_PRELOAD=os.path.join(LIB, "libcollect_agent.so"), COLLECT_CONNECT=both))
        cls.addClassCleanup(program.kill)
        cls.addClassCleanup(first.process.kill)
        heard = first.wait_for(program.pid, lambda s: s["events"] > 100_000)["events"]
        proxy.is_deaf = True
        first.wait_for(program.pid, lambda s: s["events"] > heard + 1000)
        first.process.send_signal(signal.SIGKILL)
        first.process.wait()
        proxy.close()
        second.wait_for(program.pid, lambda s: s["events"] > 100_000)
        program.send_signal(signal.SIGTERM)
        program.wait(PATIENCE)
        second.seal(program)
        # What the first one held is sealed when it comes back: its agent does not.
        again = os.path.join(cls.folder, "again")
        os.mkdir(again)
        os.rename(os.path.join(folders[0], "root"), os.path.join(again, "kept"))
        recovered = ctl("recover", cls.sessions_below(os.path.join(again, "kept"))[0])
        assert recovered.returncode in (0, 1), recovered.stderr
        parts = [cls.sessions_below(os.path.join(again, "kept"))[0], cls.sessions_below(second.root)[0]]
        merged = os.path.join(cls.folder, "merged")
        done = ctl("merge", "--json", "-o", merged, *parts)
        assert done.returncode == 0, done.stdout + done.stderr
        cls.repeated = json.loads(done.stdout)["sessions"][0]["repeated_events"]
        return parts, cls.sessions_below(merged)[0]

    def setUp(self):
        self.database = self.id().rsplit(".", 1)[1]
        self.server.make_tables(DEPLOY, self.database)

    def load(self, *arguments, code=0, url=None, **environment):
        done = ctl("--json", "--server", url or self.server.url, "--database", self.database, *arguments, program=LOADER, **environment)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return json.loads(done.stdout)["parts"]

    def query(self, sql):
        return self.server.query(sql, self.database)

    def calls(self):
        return {row[0]: [int(value) for value in row[1:4]] for row in self.query(CALLS)}

    def events(self, table="events FINAL"):
        return [[int(value) for value in row] for row in self.query(EVENTS.format(table=table))]

    def assert_events_of(self, path, events):
        """As many of each thread as it has, under the agent's own numbers from 0 on."""
        threads = {thread["stream_id"]: thread["events"] for thread in manifest_of(path)["threads"]}
        self.assertEqual({row[0]: row[1] for row in events}, threads)
        for _, count, distinct, first, last, *_ in events:
            self.assertEqual((distinct, first, last), (count, 0, count - 1))

    def test_a_session_is_there_once_however_often_it_is_loaded(self):
        self.assertEqual(self.load("--events", "load", self.whole)[0]["outcome"], "loaded")
        self.assertEqual(self.calls(), report_of(self.whole))
        self.assert_events_of(self.whole, self.events())
        events = self.events()
        self.assertEqual(self.load("--events", "load", self.whole)[0]["outcome"], "present")
        self.assertEqual(self.load("--events", "load", "--again", self.whole)[0]["outcome"], "loaded")
        self.assertEqual((self.calls(), self.events()), (report_of(self.whole), events))
        session = self.query("SELECT process, state, parts, events, lost_events FROM sessions")
        total = str(manifest_of(self.whole)["totals"]["events"])
        self.assertEqual(session, [["moods", "complete", "1", total, "0"]])

    def test_a_killed_load_counts_nothing_and_continues(self):
        for before in (True, False):
            for at in range(100):
                database = f"{self.database}_{at}_{before}"
                self.server.make_tables(DEPLOY, database)
                proxy = KillingProxy(self.server.url, at, before)
                command = [LOADER, "--server", "http://127.0.0.1:%d" % proxy.server_address[1], "--database",
                           database, "--events", "load", self.whole]
                proxy.client = subprocess.Popen(command, env=clean_environment(**LOGIN), stdout=subprocess.DEVNULL,
                                                stderr=subprocess.DEVNULL, start_new_session=True)
                code = proxy.client.wait(PATIENCE)
                proxy.shutdown()
                proxy.server_close()
                self.database = database
                if code == 0:
                    self.assertEqual(at, proxy.seen, "every request had its turn")
                    self.assertGreater(at, 5)
                    break
                rows = self.query("SELECT count() FROM parts")
                counted = {tuple(map(int, row[1:4])) for row in self.query(CALLS)}
                if rows == [["0"]]:
                    self.assertEqual(counted, set(), f"killed at request {at}: nothing counts")
                self.load("--events", "load", self.whole)
                self.assertEqual(self.calls(), report_of(self.whole))
                self.assert_events_of(self.whole, self.events())
            self.database = self.id().rsplit(".", 1)[1]

    def test_parts_in_any_order_give_the_same(self):
        self.assertGreater(self.repeated, 0, "the parts overlap")
        seen = []
        for order, (one, other) in enumerate((self.parts, self.parts[::-1])):
            database = f"{self.database}_{order}"
            self.server.make_tables(DEPLOY, database)
            self.database = database
            self.load("--events", "load", one)
            alone = self.load("--events", "load", other, code=1)
            self.assertIn("count twice", alone[0]["remark"])
            self.assert_events_of(self.merged, self.events())
            both = self.load("--events", "load", one, other)
            self.assertEqual([part["outcome"] for part in both], ["present", "present", "loaded"])
            self.assertEqual(self.calls(), report_of(self.merged))
            self.assert_events_of(self.merged, self.events())
            self.assertEqual(self.query("SELECT parts, events FROM sessions"),
                             [["1", str(manifest_of(self.merged)["totals"]["events"])]])
            # One of them again changes nothing, and is no reason to warn.
            self.assertEqual([part["outcome"] for part in self.load("--events", "load", one)], ["present"])
            self.assertEqual(self.calls(), report_of(self.merged))
            seen.append(self.events())
        self.assertEqual(seen[0], seen[1])

    def test_questions_are_answered(self):
        self.load("--events", "load", self.whole, *self.parts)
        for question in statements(os.path.join(DEPLOY, "questions.sql")):
            done = ctl("query", "--server", self.server.url, "--database", self.database, question)
            self.assertEqual(done.returncode, 0, question + done.stderr)
        for form, answer in (("csv", '"1","a"\n1,"b"\n'), ("json", '{"1":1,"a":"b"}\n')):
            done = ctl("query", "--database", self.database, "--format", form, "SELECT 1, 'b' AS a",
                       COLLECT_CLICKHOUSE=self.server.url)
            self.assertEqual((done.returncode, done.stdout), (0, answer), done.stderr)

    def test_functions_are_those_of_the_build(self):
        self.load(self.whole)
        rows = self.query("SELECT function, build_id, offset, reinterpretAsUInt64(substring(toString(SHA256(build_id)), 1, 8)) + "
                          "offset, name FROM functions FINAL")
        modules = {module["build_id"] for module in manifest_of(self.whole)["modules"]}
        symbols = {int(one["function_id"], 16): one["name"] for one in manifest_of(self.whole)["symbols"]}
        self.assertTrue(rows)
        for function, build, offset, computed, name in rows:
            self.assertEqual(function, computed)
            self.assertIn(build, modules)
            if name in symbols.values():
                self.assertIn(int(offset), [number & 0xFFFFFFFF for number, one in symbols.items() if one == name])

    def test_errors_are_the_servers_own_words(self):
        wrong = ctl("--server", self.server.url, self.whole, CLICKHOUSE_PASSWORD="no", program=LOADER)
        self.assertEqual(wrong.returncode, 2)
        self.assertIn("Wrong password", wrong.stderr)
        lost = ctl("--server", self.server.url, "--database", "nowhere", self.whole, program=LOADER)
        self.assertEqual(lost.returncode, 2)
        self.assertIn("schema.sql", lost.stderr)
        bad = ctl("query", "--server", self.server.url, "--database", self.database, "SELEKT 1")
        self.assertEqual(bad.returncode, 2)
        self.assertIn("Syntax error", bad.stderr)
        for url in ("ftp://x", "http://me:you@host", "http://host/path", "host"):
            self.assertEqual(ctl("query", "--server", url, "SELECT 1").returncode, 2, url)
        none = ctl(self.whole, program=LOADER)
        self.assertEqual(none.returncode, 2)
        self.assertIn("COLLECT_CLICKHOUSE", none.stderr)
        nothing = ctl("--json", "--server", self.server.url, self.whole, os.path.join(self.folder, "nowhere"), program=LOADER)
        self.assertEqual((nothing.returncode, json.loads(nothing.stdout)["error"]["code"]), (2, "not_found"), nothing.stderr)

    def test_a_bucket_is_loaded_with_all_parts_of_a_session(self):
        bucket = Bucket()
        self.addCleanup(bucket.close)
        for path in (self.whole, *self.parts):
            bucket.upload(path)
        loaded = self.load("--events", "load", "s3://traces", **bucket.environment)
        self.assertEqual([part["outcome"] for part in loaded], ["loaded"] * 4)
        expected = {}
        for path in (self.whole, self.merged):
            for name, numbers in report_of(path).items():
                expected[name] = [a + b for a, b in zip(numbers, expected.get(name, [0, 0, 0]))]
        self.assertEqual(self.calls(), expected)
        # By COMMIT it is known that nothing is to be done; from the disk they are the same parts.
        again = self.load("--events", "load", "s3://traces/v1/", **bucket.environment)
        self.assertEqual([part["outcome"] for part in again], ["present"] * 3)
        disk = self.load("--events", "load", self.whole, *self.parts)
        self.assertEqual([part["outcome"] for part in disk], ["present"] * 4)
        self.assertEqual(self.calls(), expected)
        # One part of two brings the other one too.
        place = next(part["place"] for part in loaded if part["part"].startswith(manifest_of(self.parts[0])["collector"]["id"]))
        database = self.database + "_one"
        self.server.make_tables(DEPLOY, database)
        self.database = database
        self.assertEqual(len(self.load("--events", "load", place, **bucket.environment)), 3)
        self.assertEqual(self.calls(), report_of(self.merged))

    @unittest.skipUnless(NewEngine.is_there(), "no node or no chdb (NODE_PATH)")
    def test_events_are_the_same_in_place(self):
        bucket = Bucket()
        self.addCleanup(bucket.close)
        for path in (self.whole, *self.parts):
            bucket.upload(path)
        self.load("--events", "load", "s3://traces", **bucket.environment)
        engine = NewEngine(os.path.join(self.folder, "engine"))
        made = [f"CREATE NAMED COLLECTION collect_bucket AS url = '{bucket.endpoint}/traces/', "
                f"access_key_id = '{BUCKET_LOGIN['AWS_ACCESS_KEY_ID']}', secret_access_key = '{BUCKET_LOGIN['AWS_SECRET_ACCESS_KEY']}'"]
        for name in ("schema.sql", "views.sql", "in_place.sql"):
            made += statements(os.path.join(DEPLOY, name))
        # The catalogue, as the old server got it over HTTP.
        for table in ("parts", "part_threads", "part_ranges", "part_modules", "part_gaps", "functions", "part_function_seconds"):
            rows = self.query(f"SELECT * FROM {table} FORMAT Values")
            if rows:
                made.append(f"INSERT INTO {table} VALUES " + "\n".join("\t".join(row) for row in rows))
        engine.run(made)
        for path in (self.whole, self.merged):
            manifest = manifest_of(path)
            session = "%s-%d" % (manifest["process"]["process_id"], manifest["process"]["recording"])
            in_place, = engine.run([EVENTS.format(table=f"events_in_place(session = '{session}')")])
            there = self.query(EVENTS.format(table="events FINAL").replace("FINAL", f"FINAL WHERE session = '{session}'"))
            self.assertEqual(in_place, there)
            self.assert_events_of(path, [[int(value) for value in row] for row in in_place])
        calls = {row[0]: row[1:] for row in engine.run([CALLS])[0]}
        self.assertEqual(calls, {row[0]: row[1:] for row in self.query(CALLS)})
        engine.run(statements(os.path.join(DEPLOY, "questions.sql")))


if __name__ == "__main__":
    if not OldServer.is_there():
        print("skipped: no clickhouse-server")
        sys.exit(77)
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]], verbosity=2)
