#!/usr/bin/env python3
"""A PostgreSQL server on loopback in a folder of its own, as a user without rights. Says a line when
it is there, "PORT PASSFILE", or why it is not; then carries out a command a line and answers each with
a JSON list of lines: crash, start, freeze, thaw, sql STATEMENT. Ends with its standard input.
Usage: postgres_server.py"""

import glob
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

NOBODY = 65534
USER, DATABASE = "collect", "fleet"


def newest_programs():
    found = glob.glob("/usr/lib/postgresql/*/bin/postgres")
    return os.path.dirname(max(found, key=lambda path: int(path.split("/")[4]))) if found else None


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    def __init__(self, programs, folder):
        self.programs, self.folder, self.process = programs, folder, None
        self.port = free_port()
        self.passfile = os.path.join(folder, "pgpass")
        with open(os.open(self.passfile, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
            file.write("127.0.0.1:*:*:" + USER + ":not a secret\n")
        # The server refuses to run as root.
        self.who = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.getuid() == 0 else {}
        self.data = os.path.join(folder, "data")
        os.mkdir(self.data, 0o700)
        if self.who:
            os.chmod(folder, 0o711)
            os.chown(self.data, NOBODY, NOBODY)
        self.log = open(os.path.join(folder, "log"), "w")
        password = os.path.join(folder, "password")
        with open(password, "w") as file:
            file.write("not a secret\n")
        self.run("initdb", "-D", self.data, "-U", USER, "--pwfile", password, "-A", "scram-sha-256",
                 "-E", "UTF8", "--locale", "C", "--no-sync")
        self.start()
        self.sql("CREATE DATABASE " + DATABASE, "postgres")

    def run(self, program, *arguments):
        subprocess.run([os.path.join(self.programs, program), *arguments], check=True, cwd="/",
                       stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, **self.who)

    def start(self):
        # No file of a socket.
        self.process = subprocess.Popen(
            [os.path.join(self.programs, "postgres"), "-D", self.data, "-p", str(self.port),
             "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=", "-c", "fsync=off",
             "-c", "max_connections=40", "-c", "shared_buffers=16MB"],
            cwd="/", stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, **self.who)
        for _ in range(300):
            ready = subprocess.run([os.path.join(self.programs, "pg_isready"), "-q", "-t", "1", "-h",
                                    "127.0.0.1", "-p", str(self.port)], check=False).returncode
            if ready == 0:
                return
            if self.process.poll() is not None:
                break
            try:
                self.process.wait(0.1)
            except subprocess.TimeoutExpired:
                pass
        with open(self.log.name) as file:
            sys.exit("postgres did not start:\n" + file.read()[-2000:])

    # Every connection is cut, as by a crash; the log is replayed by the next start.
    def crash(self):
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait(30)

    # To the server and to the process of each connection, which has a group of its own.
    def signal_all(self, number):
        children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(self.process.pid)],
                                  capture_output=True, text=True, check=False).stdout.split()
        for pid in [self.process.pid, *map(int, children)]:
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass  # it has just ended

    # Nobody answers, and nobody says so.
    def freeze(self):
        self.signal_all(signal.SIGSTOP)

    def thaw(self):
        self.signal_all(signal.SIGCONT)

    def sql(self, statement, database=DATABASE):
        return subprocess.run(
            [os.path.join(self.programs, "psql"), "-XAtq", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1",
             "-p", str(self.port), "-U", USER, "-d", database, "-c", statement],
            check=True, capture_output=True, text=True,
            env={**os.environ, "PGPASSFILE": self.passfile}).stdout.splitlines()

    def end(self):
        if self.process is not None and self.process.poll() is None:
            self.signal_all(signal.SIGKILL)
            self.process.wait()


def main():
    programs = newest_programs()
    if programs is None:
        print("PostgreSQL is not here: apt install postgresql", flush=True)
        sys.stdin.read()
        return
    folder = tempfile.mkdtemp(prefix="collect_postgres_")
    server = None
    try:
        server = Server(programs, folder)
        print(server.port, server.passfile, flush=True)
        for line in sys.stdin:
            command, _, rest = line.rstrip("\n").partition(" ")
            try:
                answer = server.sql(rest) if command == "sql" else getattr(server, command)() or []
            except subprocess.CalledProcessError as error:
                answer = ["failed: " + error.stderr.strip()]
            print(json.dumps(answer), flush=True)
    finally:
        if server is not None:
            server.end()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
