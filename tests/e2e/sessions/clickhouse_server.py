"""ClickHouse for tests: Debian's server 18.16, which speaks HTTP, and the newest engine as the npm package
chdb, which is a library without a server."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

PATIENCE = 60
USER, PASSWORD = "loader", "it's a secret"

CONFIG = """<yandex>
<logger><level>warning</level><log>{folder}/log</log><errorlog>{folder}/errors</errorlog></logger>
<listen_host>127.0.0.1</listen_host><http_port>{http}</http_port><tcp_port>{tcp}</tcp_port>
<path>{folder}/data/</path><tmp_path>{folder}/tmp/</tmp_path><users_config>{folder}/users.xml</users_config>
<default_profile>default</default_profile><default_database>default</default_database>
<mark_cache_size>100000000</mark_cache_size><timezone>UTC</timezone></yandex>
"""
USERS = """<yandex>
<profiles><default><allow_experimental_low_cardinality_type>1</allow_experimental_low_cardinality_type></default></profiles>
<users><{user}><password>{password}</password><networks><ip>127.0.0.1</ip></networks>
<profile>default</profile><quota>default</quota></{user}></users><quotas><default></default></quotas></yandex>
"""


def statements(path):
    """Of a file of deploy/clickhouse, without comments."""
    with open(path, encoding="utf-8") as file:
        text = re.sub(r"--[^\n]*", "", file.read())
    return [statement.strip() for statement in text.split(";") if statement.strip()]


def for_old_server(statement):
    """18.16 knows neither codecs nor TTL, and wants the parentheses of an engine. All else is as it is."""
    statement = re.sub(r"\s+CODEC\((?:[^()]|\([^()]*\))*\)", "", statement)
    statement = re.sub(r"\nTTL [^\n]*", "", statement)
    return re.sub(r"ENGINE = ReplacingMergeTree(?!\()", "ENGINE = ReplacingMergeTree()", statement)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class OldServer:
    """Debian's clickhouse-server, started by the user of the test, in `folder`."""

    @staticmethod
    def is_there():
        return shutil.which("clickhouse-server") is not None

    def __init__(self, folder):
        self.folder = folder
        for name in ("data", "tmp"):
            os.makedirs(os.path.join(folder, name))
        self.port = free_port()
        self._write("config.xml", CONFIG.format(folder=folder, http=self.port, tcp=free_port()))
        self._write("users.xml", USERS.format(user=USER, password=PASSWORD.replace("'", "&apos;")))
        with open(os.path.join(folder, "output"), "w", encoding="utf-8") as output:
            self.process = subprocess.Popen(["clickhouse-server", f"--config-file={folder}/config.xml"],
                                            stdout=output, stderr=output, cwd=folder)
        self.url = f"http://127.0.0.1:{self.port}"
        end = time.monotonic() + PATIENCE
        while True:
            try:
                with urllib.request.urlopen(self.url + "/ping", timeout=5):
                    return
            except OSError:
                if self.process.poll() is not None or time.monotonic() > end:
                    self.close()
                    raise AssertionError("clickhouse-server does not start: " + self._read("errors")) from None
                time.sleep(0.1)

    def _write(self, name, text):
        with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
            file.write(text)

    def _read(self, name):
        try:
            with open(os.path.join(self.folder, name), encoding="utf-8", errors="replace") as file:
                return file.read()[-2000:]
        except OSError:
            return ""

    def close(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def query(self, sql, database="default"):
        """Rows of texts."""
        url = self.url + "/?" + urllib.parse.urlencode({"database": database})
        request = urllib.request.Request(url, data=sql.encode(),
                                         headers={"X-ClickHouse-User": USER, "X-ClickHouse-Key": PASSWORD})
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                return [line.split("\t") for line in answer.read().decode().splitlines()]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{sql}: {error.read().decode()}") from None

    def make_tables(self, deploy, database):
        self.query(f"CREATE DATABASE {database}")
        for name in ("schema.sql", "views.sql"):
            for statement in statements(os.path.join(deploy, name)):
                if not statement.startswith("SET "):  # in the profile above
                    self.query(for_old_server(statement), database)


class NewEngine:
    """chdb in a process of node for each call; its tables stay in `folder`."""

    SCRIPT = """const { Session } = require('chdb');
const session = new Session(process.argv[1]);
const answers = JSON.parse(require('fs').readFileSync(0, 'utf8')).map(sql => {
  try { return session.query(sql, 'TabSeparated'); } catch (error) { return {error: String(error.message)}; }
});
console.log('\\n' + JSON.stringify(answers));
process.exit(0);
"""

    @staticmethod
    def is_there():
        return shutil.which("node") is not None and subprocess.run(
            ["node", "-e", "require.resolve('chdb')"], capture_output=True, check=False).returncode == 0

    def __init__(self, folder):
        self.folder = folder
        os.makedirs(folder, exist_ok=True)

    def run(self, sqls):
        """An answer of each: rows of texts."""
        done = subprocess.run(["node", "-e", self.SCRIPT, os.path.join(self.folder, "data")], input=json.dumps(sqls),
                              capture_output=True, text=True, timeout=300, cwd=self.folder, check=False)
        if done.returncode != 0:
            raise AssertionError(done.stdout[-2000:] + done.stderr[-2000:])
        answers = json.loads(done.stdout.rstrip("\n").rsplit("\n", 1)[1])
        for sql, answer in zip(sqls, answers):
            if isinstance(answer, dict):
                raise AssertionError(f"{sql}: {answer['error']}")
        return [[line.split("\t") for line in answer.splitlines()] for answer in answers]
