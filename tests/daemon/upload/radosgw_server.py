#!/usr/bin/env python3
"""radosgw of Debian with a monitor and a store in memory, for one test. Run as root:
    apt install --no-install-recommends radosgw ceph-mon ceph-osd
Usage: radosgw_server.py BUCKET ACCESS SECRET. Prints its port, or why it cannot run and ends with 77.
Ends with its standard input."""

import hashlib
import hmac
import http.client
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import uuid

PROGRAMS = ["ceph-mon", "ceph-osd", "radosgw", "radosgw-admin", "monmaptool", "ceph"]
START_S = 90
CONFIGURATION = """[global]
fsid = {fsid}
mon host = [v1:127.0.0.1:{mon}]
ms bind msgr2 = false
auth cluster required = none
auth service required = none
auth client required = none
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 4
mon allow pool size one = true
mon data avail warn = 1
mon data avail crit = 0
osd crush chooseleaf type = 0
osd objectstore = memstore
memstore device bytes = 3221225472
osd pool default pg autoscale mode = off
mon data = {root}/mon
osd data = {root}/osd
run dir = {root}/run
admin socket = {root}/run/$name.asok
log file = {root}/$name.log
pid file =
rgw data = {root}/rgw
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Cluster:
    def __init__(self, root, access, secret):
        self.root, self.running = root, []
        self.fsid, self.port = str(uuid.uuid4()), free_port()
        self.configuration = os.path.join(root, "ceph.conf")
        self.mon = free_port()
        self.access, self.secret = access, secret

    def begin(self):
        root, mon = self.root, self.mon
        for folder in ("mon", "osd", "run", "rgw"):
            os.mkdir(os.path.join(root, folder))
        with open(self.configuration, "w", encoding="utf-8") as file:
            file.write(CONFIGURATION.format(fsid=self.fsid, mon=mon, root=root))
        monmap = os.path.join(root, "monmap")
        self.run("monmaptool", "--create", "--addv", "a", f"[v1:127.0.0.1:{mon}]", "--fsid", self.fsid, monmap)
        self.run("ceph-mon", "-i", "a", "--mkfs", "--monmap", monmap)
        self.start("ceph-mon", "-i", "a", "-f")
        self.run("ceph-osd", "-i", "0", "--mkfs")
        with open(os.path.join(root, "osd", "fsid"), encoding="utf-8") as file:
            self.run("ceph", "--connect-timeout", "30", "osd", "new", file.read().strip())
        self.start("ceph-osd", "-i", "0", "-f")
        self.start("radosgw", "-n", "client.rgw.a", f"--rgw-frontends=beast endpoint=127.0.0.1:{self.port}", "-f")
        self.wait_until_it_answers()
        self.run("radosgw-admin", "user", "create", "--uid=lab", "--display-name=lab",
                 f"--access-key={self.access}", f"--secret={self.secret}")

    def words(self, program, arguments):
        return [program, "-c", self.configuration, *arguments] if program != "monmaptool" else [program, *arguments]

    def run(self, program, *arguments):
        ran = subprocess.run(self.words(program, arguments), capture_output=True, text=True, timeout=START_S)
        if ran.returncode != 0:
            raise RuntimeError(f"{program}: {ran.stdout[-500:]}{ran.stderr[-1500:]}")

    def start(self, program, *arguments):
        with open(os.path.join(self.root, program + ".out"), "wb") as out:
            self.running.append(subprocess.Popen(self.words(program, arguments), stdout=out, stderr=out,
                                                 stdin=subprocess.DEVNULL))

    def wait_until_it_answers(self):
        until = time.monotonic() + START_S
        while time.monotonic() < until:
            ended = [process for process in self.running if process.poll() is not None]
            for process in ended:
                # Now and then the store asks the monitor before it knows the cluster's id.
                words = self.words_of(process.args[0])
                if "wrong fsid" not in words:
                    raise RuntimeError(f"{process.args[0]} has ended: {words}")
                self.running.remove(process)
                self.start(process.args[0], *process.args[3:])
            try:
                connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
                connection.request("GET", "/")
                if connection.getresponse().status == 200:
                    return
            except OSError:
                pass
            time.sleep(0.2)
        raise RuntimeError(f"radosgw does not answer after {START_S} s")

    def words_of(self, program):
        with open(os.path.join(self.root, program + ".out"), encoding="utf-8", errors="replace") as file:
            return " ".join(file.read()[-1500:].split())

    def end(self):
        for process in self.running:
            process.kill()
            process.wait()


def make_bucket(port, bucket, access, secret):
    at = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    empty = hashlib.sha256(b"").hexdigest()
    host = f"127.0.0.1:{port}"
    names = "host;x-amz-content-sha256;x-amz-date"
    canonical = f"PUT\n/{bucket}\n\nhost:{host}\nx-amz-content-sha256:{empty}\nx-amz-date:{at}\n\n{names}\n{empty}"
    scope = f"{at[:8]}/default/s3/aws4_request"
    text = f"AWS4-HMAC-SHA256\n{at}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
    key = ("AWS4" + secret).encode()
    for part in (at[:8], "default", "s3", "aws4_request"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    signature = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("PUT", f"/{bucket}", headers={
        "x-amz-date": at, "x-amz-content-sha256": empty,
        "Authorization": f"AWS4-HMAC-SHA256 Credential={access}/{scope},SignedHeaders={names},Signature={signature}"})
    status = connection.getresponse().status
    if status != 200:
        raise RuntimeError(f"the bucket could not be made: {status}")


def main():
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    if missing or os.geteuid() != 0:
        print(f"radosgw is not here: needs root and {', '.join(missing) or 'nothing else'}", flush=True)
        return 77
    bucket, access, secret = sys.argv[1:4]
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as root:
        cluster = Cluster(root, access, secret)
        try:
            cluster.begin()
            make_bucket(cluster.port, bucket, access, secret)
            print(cluster.port, flush=True)
            sys.stdin.read()
        except RuntimeError as error:
            print(f"radosgw did not start: {error}", flush=True)
            return 1
        finally:
            cluster.end()
    return 0


if __name__ == "__main__":
    sys.exit(main())
