#!/usr/bin/env python3
"""store_test.py BIN FAKE_S3: sessions to object storage and back: by hand with collectctl, and by collectord,
whose collect-store is killed, refused and kept waiting. The store is the server of fake_s3.py, which verifies
signatures and breaks on request."""

import contextlib
import filecmp
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.parse
import urllib.request

BIN, FAKE_S3 = map(os.path.abspath, sys.argv[1:3])
COLLECTCTL, COLLECTORD = os.path.join(BIN, "collectctl"), os.path.join(BIN, "collectord")
LOADER = os.path.join(BIN, "collect-load")
PROGRAM = os.path.join(BIN, "e2e", "moods")
SCRIPTED_SERVER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../daemon/warehouse/scripted_server.py")
PATIENCE = 120
STORE = "s3://traces"


class Server:
    """fake_s3.py, until its standard input ends."""

    def __init__(self):
        self.process = subprocess.Popen([sys.executable, "-B", FAKE_S3, "traces"], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.endpoint = f"http://127.0.0.1:{int(self.process.stdout.readline())}"

    def end(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(PATIENCE)

    def ask(self, method, what, body=None):
        request = urllib.request.Request(f"{self.endpoint}/-/{what}", method=method,
                                         data=None if body is None else json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return answer.read()

    def set(self, **settings):
        self.ask("POST", "set", settings)

    def keys(self):
        return json.loads(self.ask("GET", "objects")).keys()

    def regions(self):
        return json.loads(self.ask("GET", "regions"))

    def commits(self):
        return [key for key in self.keys() if key.endswith("/COMMIT")]


def environment(endpoint, **more):
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("COLLECT_", "AWS_"))}
    return {**clean, "AWS_ENDPOINT_URL": endpoint, "AWS_ACCESS_KEY_ID": "FAKEACCESSKEY",
            "AWS_SECRET_ACCESS_KEY": "fake/secret+key", "TZ": "UTC", **more}


def files_below(directory):
    return sorted(os.path.relpath(os.path.join(path, name), directory)
                  for path, _, names in os.walk(directory) for name in names)


class StoreTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="store_")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.server = Server()
        self.addCleanup(self.server.end)

    def at(self, name):
        return os.path.join(self.folder, name)

    def ctl(self, *arguments, code=0, program=COLLECTCTL, **more):
        done = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=PATIENCE, cwd=self.folder,
                              env=environment(self.server.endpoint, TMPDIR=self.folder, **more), check=False)
        self.assertEqual(done.returncode, code, f"{arguments}: {done.stdout[-500:]} {done.stderr[-500:]}")
        return done

    def record(self, *arguments):
        """The path of the new session."""
        done = self.ctl("run", "--json", *arguments, "--", PROGRAM, "200")
        return json.loads(done.stderr.strip().splitlines()[-1])["sessions"][0]["path"]

    def same(self, one, other):
        names = files_below(one)
        self.assertEqual(names, files_below(other))
        self.assertEqual(filecmp.cmpfiles(one, other, names, shallow=False)[0], names)

    def wait_for(self, what, is_so):
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            if found := is_so():
                return found
            time.sleep(0.05)
        return self.fail(what)


class ByHand(StoreTest):
    def test_there_and_back(self):
        sessions = [self.record("-o", "traces"), self.record("-o", "traces", "--detail", "on")]
        first = self.ctl("upload", "traces", "--store", STORE)
        self.assertEqual(len(first.stdout.splitlines()), 2, first.stdout)
        self.assertIn("sent as", first.stdout)
        self.assertEqual(self.ctl("upload", *sessions, "--store", STORE).stdout.count(", was there, "), 2)
        self.assertEqual(len(self.server.commits()), 2)

        listed = json.loads(self.ctl("sessions", "--store", STORE, "--json").stdout)["sessions"]
        here = json.loads(self.ctl("sessions", "traces", "--json").stdout)["sessions"]
        self.assertEqual({one["name"]: (one["events"], one["state"]) for one in listed},
                         {one["name"]: (one["events"], one["state"]) for one in here})
        table = self.ctl("sessions", "--store", STORE).stdout
        for one in listed:
            self.assertIn(one["path"], table)
        self.assertEqual(self.ctl("verify", STORE).stdout.count("ok: "), 2)

        self.ctl("download", STORE, "-o", "back")
        for session in sessions:
            self.same(session, self.at("back/" + os.path.relpath(session, self.at("traces"))))
        one = listed[0]
        self.ctl("download", one["path"], "-o", "one")
        self.same(self.at("traces/" + one["name"].removeprefix("sessions/")),
                  self.at("one/" + one["name"].removeprefix("sessions/")))
        # What is there and agrees is kept; what differs is not touched.
        self.ctl("download", STORE, "-o", "back")
        with open(self.at("back/" + one["name"].removeprefix("sessions/") + "/thread_0/index.atf"), "ab") as file:
            file.write(b"x")
        self.assertIn("is there, and differs", self.ctl("download", STORE, "-o", "back", code=1).stderr)
        self.assertEqual([name for name in os.listdir(self.folder) if name.startswith("collectctl_")], [])

    def tables(self):
        """Their names and bytes."""
        return {key.rpartition("/")[2]: self.server.ask("GET", "body/" + urllib.parse.quote(key))
                for key in self.server.keys() if "/tables/" in key}

    def test_tables_stand_beside_a_session(self):
        session = self.record("-o", "traces")
        self.ctl("convert", session, "--to", "parquet", "-o", "made")
        made = {one.name: one.read_bytes() for one in pathlib.Path(self.at("made")).iterdir()}
        self.ctl("upload", session, "--store", STORE)
        self.assertEqual(self.tables(), {})
        self.ctl("upload", session, "--store", STORE, "--tables", "functions")
        small = self.tables()
        self.assertEqual(set(made) - set(small), {"calls.parquet", "events.parquet"})
        self.ctl("upload", session, "--store", STORE, "--tables", "all")
        self.assertEqual(self.tables(), made)
        self.assertEqual({name: made[name] for name in small}, small)
        # They are no part of the session.
        self.assertEqual(self.ctl("verify", STORE).stdout.count("ok: "), 1)
        self.ctl("download", STORE, "-o", "back")
        self.same(session, self.at("back/" + os.path.relpath(session, self.at("traces"))))

    def test_parts_of_one_session_lie_side_by_side(self):
        session = self.record("-o", "a")
        # As another collector's part of the same recording would have been called.
        other = self.at("b/" + os.path.relpath(session, self.at("a")))
        subprocess.run(["mkdir", "-p", os.path.dirname(other)], check=True)
        subprocess.run(["cp", "-r", session, other], check=True)
        with open(os.path.join(other, "manifest.json"), encoding="utf-8") as file:
            manifest = json.load(file)
        manifest["collector"]["epoch"] += 1
        with open(os.path.join(other, "manifest.json"), "w", encoding="utf-8") as file:
            json.dump(manifest, file)
        self.ctl("upload", "a", "b", "--store", STORE)
        self.ctl("download", STORE, "-o", "back")
        found = json.loads(self.ctl("sessions", "back", "--json").stdout)["sessions"]
        self.assertEqual(len(found), 2)
        self.assertEqual(len({os.path.dirname(os.path.dirname(one["path"])) for one in found}), 2)
        merged = json.loads(self.ctl("merge", "back", "-o", "merged", "--json").stdout)["sessions"]
        self.assertEqual([(len(one["parts"]), one["missing"]) for one in merged], [(2, [])])

    def test_explains_refused_uploads_and_downloads(self):
        session = self.record("-o", "traces")
        self.assertIn("no session", self.ctl("sessions", "--store", STORE, code=2).stderr)
        self.assertIn("s3://BUCKET", self.ctl("upload", session, "--store", "traces", code=2).stderr)
        self.assertIn("whole bucket", self.ctl("upload", session, "--store", STORE + "/v1", code=2).stderr)
        self.assertIn("nosuchbucket", self.ctl("upload", session, "--store", "s3://others", code=1).stderr.lower())
        self.assertIn("-o names", self.ctl("download", STORE, code=2).stderr)
        wrong = self.ctl("upload", session, "--store", STORE, code=1, AWS_SECRET_ACCESS_KEY="wrong").stderr
        self.assertIn("403", wrong)
        self.assertIn("nowhere: ", self.ctl("upload", "nowhere", "--store", STORE, code=2).stderr)
        self.assertEqual(self.server.commits(), [])

        self.ctl("upload", session, "--store", STORE)
        body = next(key for key in self.server.keys() if key.endswith("index.atf.zst"))
        self.server.ask("POST", "damage", {"key": body, "offset": 30})
        checked = self.ctl("verify", STORE, code=1)
        self.assertNotIn("ok: ", checked.stdout)
        self.ctl("download", STORE, "-o", "back", code=1)
        self.assertEqual([name for name in files_below(self.at("back")) if name.endswith("manifest.json")], [])


class OfOthers(StoreTest):
    """A bucket that someone else writes to as well."""

    def setUp(self):
        super().setUp()
        self.sessions = [self.record("-o", "traces"), self.record("-o", "traces")]
        self.ctl("upload", "traces", "--store", STORE)
        self.first, self.second = sorted(self.server.commits())

    def put(self, key, body):
        self.server.ask("POST", "put", {"key": key, "body": body})

    def commit(self, key):
        return json.loads(self.server.ask("GET", "body/" + urllib.parse.quote(key)))

    def change(self, key, **changes):
        self.put(key, json.dumps({**self.commit(key), **changes}))

    def load(self, code):
        """Into a server that takes everything."""
        server = subprocess.Popen([sys.executable, "-B", SCRIPTED_SERVER, '[[200, ""]]'], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True)
        try:
            url = f"http://127.0.0.1:{int(server.stdout.readline())}"
            return self.ctl(STORE, "--server", url, "--json", code=code, program=LOADER)
        finally:
            server.stdin.close()
            server.stdout.close()
            server.wait(PATIENCE)

    def expect_others_handled(self, said):
        """The first part is named, and the second is listed, verified, downloaded, loaded."""
        intact = self.commit(self.second)["session"]
        prefix = self.first.removesuffix("COMMIT")
        listed = self.ctl("sessions", "--store", STORE, "--json", code=1)
        self.assertEqual([one["name"] for one in json.loads(listed.stdout)["sessions"]], ["sessions/" + intact])
        self.assertIn(said, listed.stderr)
        self.assertIn(prefix, listed.stderr)
        verified = self.ctl("verify", STORE, code=1)
        self.assertEqual(verified.stdout.count("ok: "), 1)
        self.assertIn(prefix, verified.stdout)
        for command in [["download", STORE, "-o", "deep/down/back"], ["verify", STORE]]:
            found = json.loads(self.ctl(*command, "--json", code=1).stdout)["sessions"]
            self.assertEqual(len(found), 2)
            self.assertEqual([one["url"] for one in found if "error" in one], [f"{STORE}/{prefix}"])
        self.assertIn(said, self.ctl("download", STORE, "-o", "deep/down/back", code=1).stderr)
        self.same(self.at("traces/" + intact), self.at("deep/down/back/" + intact))
        self.assertEqual(os.listdir(self.at("deep")), ["down"])
        self.assertEqual(os.listdir(self.at("deep/down")), ["back"])
        self.assertEqual(os.listdir(self.at("deep/down/back")), [intact.split("/")[0]])
        loaded = json.loads(self.load(code=1).stdout)["parts"]
        self.assertEqual(sorted(one["outcome"] for one in loaded), ["failed", "loaded"])

    def test_a_collectors_name_leads_nowhere_else(self):
        # Of one name, both would get directories that are named after their collectors.
        self.change(self.first, collector="../../x", session=self.commit(self.second)["session"])
        self.expect_others_handled("collector id '../../x'")

    def test_one_damaged_commit_hides_nothing(self):
        whole = json.dumps(self.commit(self.first))
        for body, said in [(whole[:100], "parse error"), ("", "COMMIT: "), (whole.replace("part 1", "part 2"), "part 2"),
                           ("[" * 100, "COMMIT: ")]:
            with self.subTest(body[:20]):
                subprocess.run(["rm", "-rf", self.at("deep")], check=True)
                self.put(self.first, body)
                self.expect_others_handled(said)

    def test_a_commit_of_another_part(self):
        self.put(self.first, json.dumps(self.commit(self.second)))
        self.expect_others_handled("is of another part")

    def test_keys_of_any_kind(self):
        commit = json.dumps(self.commit(self.second))
        odd = ["v1/../../../x/part=a-b/", "v1//etc/part=../", "v1/\x1b]0;t\x07\x1b[31m/part=a-b/", "v1/a\nb\0c/part=a-b/",
               "v1/\u202e\uffff/part=a-b/", "v1/" + "x" * 1000 + "/part=/"]
        for prefix in odd:
            self.put(prefix + "COMMIT", commit)
        for key in ["v2/x/part=a-b/COMMIT", "COMMIT", "v1/COMMIT", "v1/x/part=a-b"]:
            self.put(key, commit)  # no part at all
        done = self.ctl("download", STORE, "-o", "deep/back", code=1)
        self.assertEqual(done.stderr.count("is of another part"), len(odd), done.stderr)
        self.assertIsNone(re.search("[\x00-\x09\x0b-\x1f\u202e]", done.stdout + done.stderr))
        for key in [self.first, self.second]:
            name = self.commit(key)["session"]
            self.same(self.at("traces/" + name), self.at("deep/back/" + name))
        self.assertEqual(os.listdir(self.at("deep")), ["back"])
        self.assertEqual(len(os.listdir(self.at("deep/back"))), 2)

    def test_sizes_that_no_disk_has(self):
        files = self.commit(self.first)["files"]
        for file in files:
            file["bytes"] = 1 << 63
        self.change(self.first, files=files)
        self.assertIn("the disk has room for", self.ctl("download", STORE, "-o", "back", code=1).stderr)
        back = files_below(self.at("back"))
        self.assertEqual({name.split("/")[0] for name in back}, {self.commit(self.second)["session"].split("/")[0]})

    def test_lists_without_an_end(self):
        for how, said in [("circle", "comes back to an earlier page"), ("again", "out of order"),
                          ("empty", "empty pages"), ("long_token", "names its next page")]:
            self.server.set(list=how)
            for command in [["sessions", "--store", STORE], ["download", STORE, "-o", "back"], ["verify", STORE]]:
                self.assertIn(said, self.ctl(*command, code=2).stderr)


class ByCollector(StoreTest):
    def setUp(self):
        super().setUp()
        self.root = self.at("root")
        self.processes = []
        self.addCleanup(self.end_processes)

    def end_processes(self):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
                process.wait(PATIENCE)

    def start(self, *arguments, **more):
        read, write = os.pipe()
        log = open(self.at("log"), "a", encoding="utf-8")
        with contextlib.closing(log):
            process = subprocess.Popen(
                [COLLECTORD, "--root", self.root, "--ingest", "127.0.0.1:0", "--control", "127.0.0.1:0", "--adb", "off",
                 "--usbmux", "off", "--store", STORE, "--ready-fd", str(write), *arguments], pass_fds=[write],
                stdout=log, stderr=log, env=environment(self.server.endpoint, **more))
        self.processes.append(process)
        os.close(write)
        with os.fdopen(read) as ready:
            where = json.loads(ready.readline())
        self.control, self.metrics = where["control"], where.get("metrics")
        return process

    def record_here(self):
        return self.record("--control", self.control)

    def stats(self):
        return json.loads(self.ctl("collectors", "--json", "--control", self.control).stdout)["store"]

    def wait_for_commits(self, count):
        self.wait_for("not committed", lambda: len(self.server.commits()) == count)

    def store_programs(self, parent):
        done = subprocess.run(["ps", "-o", "pid=,comm=", "--ppid", str(parent)], capture_output=True, text=True, check=False)
        return [int(line.split()[0]) for line in done.stdout.splitlines() if "collect-store" in line]

    def test_commits_sealed_sessions(self):
        self.start("--metrics", "127.0.0.1:0")
        session = self.record_here()
        self.wait_for_commits(1)
        self.ctl("download", STORE, "-o", "back")
        self.same(session, self.at("back/" + os.path.relpath(session, self.root)))
        store = self.wait_for("not said", lambda: (one := self.stats())["sessions_committed"] == 1 and one)
        self.assertEqual((store["url"], store["sessions_pending"], store["bytes_pending"], store["sessions_removed"]),
                         (STORE, 0, 0, 0))
        size = sum(os.path.getsize(os.path.join(session, name)) for name in files_below(session))
        self.assertEqual(store["bytes_committed"], size)
        self.assertTrue(0 < store["bytes_sent"] < size, "what is sent is compressed")
        self.assertNotIn("problem", store)
        self.assertIn("1, ", self.ctl("collectors", "--control", self.control).stdout.split("sessions uploaded")[1])
        with urllib.request.urlopen(self.metrics, timeout=PATIENCE) as answer:
            metrics = answer.read().decode()
        self.assertIn("\ncollectord_store_committed_sessions_total 1\n", metrics)
        self.assertIn("\ncollectord_store_problem 0\n", metrics)

    def test_it_is_removed_when_it_is_there(self):
        self.start("--keep-local", "until_committed")
        session = self.record_here()
        self.wait_for("still there", lambda: not os.path.exists(session))
        self.wait_for("still listed", lambda: json.loads(
            self.ctl("sessions", "--json", "--control", self.control).stdout)["sessions"] == [])
        store = self.wait_for("not said", lambda: (one := self.stats())["sessions_removed"] == 1 and one)
        self.assertEqual(store["bytes_removed"], store["bytes_committed"])
        self.assertEqual(self.ctl("verify", STORE).stdout.count("ok: "), 1)
        # No one uploads it again, and another one comes beside it.
        self.record_here()
        self.wait_for_commits(2)

    def test_a_refusing_store_is_a_problem_and_loses_nothing(self):
        collector = self.start("--keep-local", "until_committed", AWS_SECRET_ACCESS_KEY="wrong")
        session = self.record_here()
        problem = self.wait_for("no problem", lambda: self.stats().get("problem"))
        self.assertIn("403", problem)
        store = self.stats()
        self.assertEqual(store["sessions_pending"], 1)
        self.assertGreater(store["bytes_pending"], 1000)
        self.assertGreater(store["runs_failed"], 0)
        # Of the session's name, whose seconds are local time; the test's is UTC.
        began = re.search(r"session_(\d{8})_(\d{6})", session)
        self.assertEqual(re.sub(r"[-:]", "", store["oldest_pending_time"])[:15], f"{began[1]}T{began[2]}")
        self.assertIn("T", store["problem_time"])
        self.assertTrue(os.path.exists(session))
        collector.send_signal(signal.SIGTERM)
        self.assertEqual(collector.wait(PATIENCE), 0)
        self.start("--keep-local", "until_committed")
        self.wait_for("still there", lambda: not os.path.exists(session))
        self.assertEqual(self.ctl("verify", STORE).stdout.count("ok: "), 1)

    def test_a_busy_store_is_tried_again(self):
        self.server.set(faults=[{"at": 0, "to": 5, "kind": "status", "status": 503, "code": "SlowDown"}])
        self.start()
        self.record_here()
        self.wait_for_commits(1)
        self.assertEqual(self.wait_for("no retries", lambda: self.stats()["retries"])[0]["status"], 503)

    def test_killed_programs(self):
        collector = self.start()
        first = self.wait_for("no program", lambda: self.store_programs(collector.pid))
        os.kill(first[0], signal.SIGKILL)
        self.record_here()
        self.wait_for_commits(1)
        second = self.store_programs(collector.pid)
        self.assertNotEqual(first, second)
        collector.kill()
        collector.wait(PATIENCE)
        self.wait_for("outlives its collector", lambda: not os.path.exists(f"/proc/{second[0]}"))

    def test_refuses_sessions_changed_after_the_commit(self):
        collector = self.start()
        session = self.record_here()
        self.wait_for_commits(1)
        collector.send_signal(signal.SIGTERM)
        self.assertEqual(collector.wait(PATIENCE), 0)
        with open(os.path.join(session, "manifest.json"), "a", encoding="utf-8") as file:
            file.write("\n")
        self.start("--keep-local", "until_committed")
        self.wait_for("not refused", lambda: self.stats()["sessions_refused"] == 1)
        self.assertTrue(os.path.exists(session))

    def test_another_place_and_pace(self):
        endpoint, self.server.endpoint = self.server.endpoint, "http://127.0.0.1:1"
        self.start("--store-endpoint", endpoint, "--store-region", "eu-south-7", "--store-bytes-per-s", "20000")
        self.server.endpoint = endpoint
        session = self.record_here()
        sealed = time.monotonic()
        self.wait_for_commits(1)
        sent = self.wait_for("not said", lambda: (one := self.stats())["sessions_committed"] == 1 and one)["bytes_sent"]
        self.assertGreater(sent, 40000, session)
        self.assertGreater(time.monotonic() - sealed, 1, "40,000 bytes at 20,000 a second")
        self.assertEqual(self.server.regions(), ["eu-south-7"])

    def test_tables(self):
        self.start("--store-tables", "functions", "--keep-local", "until_committed")
        session = self.record_here()
        self.wait_for("still there", lambda: not os.path.exists(session))
        self.assertEqual(sorted(key.rpartition("/")[2] for key in self.server.keys() if "/tables/" in key),
                         ["function_histograms.parquet", "function_seconds.parquet", "functions.parquet",
                          "sessions.parquet", "threads.parquet"])

    def test_settings(self):
        def refused(*arguments):
            done = subprocess.run([COLLECTORD, "--root", self.root, *arguments], capture_output=True, text=True,
                                  timeout=PATIENCE, env=environment(self.server.endpoint), check=False)
            self.assertEqual(done.returncode, 2, done.stderr)
            return done.stderr
        self.assertIn("s3://BUCKET", refused("--store", "traces"))
        self.assertIn("whole bucket", refused("--store", STORE + "/v1"))
        self.assertIn("until_committed", refused("--store", STORE, "--keep-local", "3 weeks"))
        self.assertIn("off, functions and all", refused("--store", STORE, "--store-tables", "some"))
        self.assertIn("needs a store", refused("--store-tables", "all"))
        self.assertIn("needs a store", refused("--keep-local", "until_committed"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
