#!/usr/bin/env python3
"""An S3 server for tests, in memory: it verifies signatures and checksums, and breaks on request.
Usage: fake_s3.py BUCKET [--certificate PEM --key PEM]. Prints its port. Ends with its standard input.

Requests to /-/ are the test's own, in JSON:
  POST /-/set     {"faults": [{"at": N, "kind": …}], "clock_offset_s": 0, "ignore": ["range"], …}
  POST /-/clear   objects, uploads, faults, settings and the log go
  GET  /-/log     of each request [method, key, query, status], counted from 0 as "at" counts
  GET  /-/objects key -> {"bytes", "md5", "meta", "checksum", "type"}; GET /-/body/KEY
  GET  /-/regions of those whose signatures were right
  POST /-/damage  {"key", "offset"}: one byte of an object changes
  POST /-/put     {"key", "body"}: an object of this text, signed by no one
The setting "list" has lists of objects lie, as lying_list() can.
A fault may have "to", the last request it concerns, and "key", a part of those it concerns.
The kinds of faults stand at the functions below that bring them about."""

import base64
import datetime
import email.utils
import hashlib
import hmac
import json
import os
import re
import signal
import socket
import ssl
import struct
import sys
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from xml.sax.saxutils import escape

ACCESS, SECRET = "FAKEACCESSKEY", "fake/secret+key"
DEFAULTS = {"faults": [], "clock_offset_s": 0, "ignore": [], "min_part": 5 << 20, "most_keys": 1000,
            "accounts": {ACCESS: [SECRET, ""]}, "sts_seconds": 3600}
MAX_SKEW_S = 900


def crc32c_table():
    for byte in range(256):
        for _ in range(8):
            byte = (byte >> 1) ^ (0x82F63B78 if byte & 1 else 0)
        yield byte


TABLE = list(crc32c_table())


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = (crc >> 8) ^ TABLE[(crc ^ byte) & 255]
    return base64.b64encode(struct.pack(">I", crc ^ 0xFFFFFFFF)).decode()


class Refused(Exception):
    def __init__(self, status, code):
        super().__init__(code)
        self.status, self.code = status, code


class Store:
    """What the server holds. Guarded by `lock`."""

    def __init__(self):
        self.lock = threading.RLock()
        self.clear()

    def clear(self):
        self.objects, self.uploads, self.log, self.made, self.regions = {}, {}, [], 0, set()
        self.settings = json.loads(json.dumps(DEFAULTS))
        self.sts_accounts = {}

    def account(self, access):
        return self.settings["accounts"].get(access) or self.sts_accounts.get(access)


STORE = Store()


def etag_of(data):
    return hashlib.md5(data).hexdigest()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16  # head and body in one piece
    disable_nagle_algorithm = True
    bucket = ""

    def log_message(self, *_):
        pass

    def date_time_string(self, timestamp=None):
        return email.utils.formatdate(self.now(), usegmt=True)

    @staticmethod
    def now():
        return time.time() + STORE.settings["clock_offset_s"]

    # --- one request

    def do_any(self):
        split = urllib.parse.urlsplit(self.path)
        if split.path.startswith("/-/"):
            return self.control(split.path[3:])
        self.query = urllib.parse.parse_qsl(split.query, keep_blank_values=True)
        self.fields = dict(self.query)
        if self.command == "POST" and split.path == "/":
            return self.security_token_service()
        host = self.headers["Host"]
        path = urllib.parse.unquote(split.path)
        if host.startswith(self.bucket + "."):
            bucket, self.key = self.bucket, path[1:]
        else:
            bucket, _, self.key = path[1:].partition("/")
        with STORE.lock:
            number = len(STORE.log)
            STORE.log.append([self.command, self.key, split.query, 0])
            fault = next((f for f in STORE.settings["faults"] if f["at"] <= number <= f.get("to", f["at"])
                          and f.get("key", "") in self.key), None)
        self.number, self.fault = number, fault or {"kind": ""}
        return self.serve(split, bucket)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = do_any

    def serve(self, split, bucket):
        kind = self.fault["kind"]
        if kind == "kill_before":  # the client dies before anything is done
            os.kill(self.fault["pid"], signal.SIGKILL)
            return self.reset()
        if kind == "reset":  # in the middle of the body
            self.rfile.read(int(self.headers.get("Content-Length", 0)) // 2)
            return self.reset()
        if kind == "hang":  # no answer for as long as the client waits
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.connection.settimeout(60)
            try:
                self.connection.recv(1)
            except OSError:
                pass
            return self.reset()
        body = self.body(slow=kind == "slow")
        if kind == "status":  # {"status", "code"}: refused, nothing done
            return self.answer(self.fault["status"], error_xml(self.fault["code"]))
        if kind == "error_200":  # 200 and an error; nothing done
            return self.answer(200, b"  \n" + error_xml(self.fault.get("code", "InternalError")))
        if kind == "garbage":  # 200 and no XML
            return self.answer(200, b"<html><p>maintenance")
        try:
            self.verify(split, body)
            if bucket != self.bucket:
                raise Refused(404, "NoSuchBucket")
            with STORE.lock:
                status, answer, headers = self.operate(body)
        except Refused as refused:
            return self.answer(refused.status, error_xml(refused.code))
        if kind == "kill_after":  # done, and the client dies before it knows
            os.kill(self.fault["pid"], signal.SIGKILL)
            return self.reset()
        if kind == "lost_answer":  # done, and the connection breaks
            return self.reset()
        return self.answer(status, answer, headers)

    def body(self, slow):
        length = int(self.headers.get("Content-Length", 0))
        if not slow:
            return self.rfile.read(length)
        pieces = []
        for at in range(0, length, 8192):
            time.sleep(0.002)
            pieces.append(self.rfile.read(min(8192, length - at)))
        return b"".join(pieces)

    def answer(self, status, body=b"", headers=None):
        with STORE.lock:
            if hasattr(self, "number") and self.number < len(STORE.log):
                STORE.log[self.number][3] = status
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        if "Content-Length" not in (headers or {}):
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "HEAD":
            return
        if getattr(self, "fault", {}).get("kind") == "cut":  # half of the answer's body
            self.wfile.write(body[:len(body) // 2])
            return self.reset()
        self.wfile.write(body)

    def reset(self):
        self.wfile.flush()
        self.close_connection = True
        try:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
        except OSError:
            pass

    # --- who asks

    def verify(self, split, body):
        match = re.fullmatch(r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/s3/aws4_request,\s*"
                             r"SignedHeaders=([^,]+),\s*Signature=([0-9a-f]{64})",
                             self.headers.get("Authorization", ""))
        if not match:
            raise Refused(403, "AccessDenied")
        access, day, region, names, signature = match.groups()
        account = STORE.account(access)
        if not account:
            raise Refused(403, "ExpiredToken" if access.startswith("STS") else "InvalidAccessKeyId")
        secret, token = account
        if token == "expired" or self.headers.get("x-amz-security-token", "") != token:
            raise Refused(400, "ExpiredToken")
        at = self.headers["x-amz-date"]
        asked = datetime.datetime.strptime(at, "%Y%m%dT%H%M%SZ").replace(tzinfo=datetime.timezone.utc)
        if abs(asked.timestamp() - self.now()) > MAX_SKEW_S:
            raise Refused(403, "RequestTimeTooSkewed")
        must = {name.lower() for name in self.headers if name.lower().startswith("x-amz-")} | {"host"}
        if not must <= set(names.split(";")) or names.split(";") != sorted(names.split(";")):
            raise Refused(403, "AccessDenied")
        quote = lambda text: urllib.parse.quote(text, safe="-_.~")
        path = urllib.parse.quote(urllib.parse.unquote(split.path), safe="/-_.~")
        query = "&".join(f"{n}={v}" for n, v in sorted((quote(n), quote(v)) for n, v in self.query))
        lines = "".join(f"{n}:{' '.join(self.headers.get(n, '').split())}\n" for n in names.split(";"))
        content = self.headers["x-amz-content-sha256"]
        canonical = "\n".join([self.command, path, query, lines, names, content])
        scope = f"{day}/{region}/s3/aws4_request"
        text = f"AWS4-HMAC-SHA256\n{at}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
        key = ("AWS4" + secret).encode()
        for part in (day, region, "s3", "aws4_request"):
            key = hmac.new(key, part.encode(), hashlib.sha256).digest()
        if hmac.new(key, text.encode(), hashlib.sha256).hexdigest() != signature:
            raise Refused(403, "SignatureDoesNotMatch")
        STORE.regions.add(region)
        # Over TLS, which proves who the server is, a body need not be signed.
        if content == "UNSIGNED-PAYLOAD" and isinstance(self.connection, ssl.SSLSocket):
            return
        if content != hashlib.sha256(body).hexdigest():
            raise Refused(400, "XAmzContentSHA256Mismatch")

    # --- what is asked

    def heeded(self, name):
        return None if name in STORE.settings["ignore"] else self.headers.get(name)

    def check_body(self, body):
        wanted = self.heeded("content-md5")
        if wanted and wanted != base64.b64encode(hashlib.md5(body).digest()).decode():
            raise Refused(400, "BadDigest")
        wanted = self.heeded("x-amz-checksum-crc32c")
        if wanted and wanted != crc32c(body):
            raise Refused(400, "BadDigest")

    def operate(self, body):
        method, fields = self.command, self.fields
        if not self.key:
            return self.list_uploads() if "uploads" in fields else self.list_objects()
        if method == "PUT":
            return self.put_part(body) if "partNumber" in fields else self.put_object(body)
        if method == "POST":
            return self.create_upload() if "uploads" in fields else self.complete_upload(body)
        if method == "DELETE" and "uploadId" in fields:
            self.upload()
            del STORE.uploads[fields["uploadId"]]
            return 204, b"", {}
        if method == "DELETE":
            STORE.objects.pop(self.key, None)
            return 204, b"", {}
        return self.list_parts() if "uploadId" in fields else self.get_object()

    def put_object(self, body):
        self.check_body(body)
        if self.heeded("if-none-match") == "*" and self.key in STORE.objects:
            raise Refused(412, "PreconditionFailed")
        STORE.objects[self.key] = {
            "body": body, "etag": etag_of(body), "type": self.headers.get("content-type", ""),
            "meta": {n.lower(): v for n, v in self.headers.items() if n.lower().startswith("x-amz-meta-")}}
        return 200, b"", {"ETag": f'"{etag_of(body)}"'}

    def get_object(self):
        found = STORE.objects.get(self.key)
        if found is None:
            raise Refused(404, "NoSuchKey")
        headers = {"ETag": f'"{found["etag"]}"', "Content-Type": found["type"], **found["meta"]}
        data = found["body"]
        match = re.fullmatch(r"bytes=(\d+)-(\d*)", self.heeded("range") or "")
        if match:
            first = int(match[1])
            last = min(int(match[2] or len(data)), len(data) - 1)
            if first > last:
                raise Refused(416, "InvalidRange")
            headers["Content-Range"] = f"bytes {first}-{last}/{len(data)}"
            return 206, data[first:last + 1], headers
        headers["Content-Length"] = str(len(data))
        return 200, data, headers

    def lying_list(self, how):
        """A page that another one follows, for ever: of one key each."""
        token = int(self.fields.get("continuation-token", "0")[:9])
        following = (token + 1) % 5 if how == "circle" else token + 1
        prefix = self.fields.get("prefix", "")
        key = {"endless": f"{prefix}{token:09}", "again": prefix + "0", "long_key": prefix.ljust(1025, "x")}.get(how)
        entries = [("Contents", [("Key", urllib.parse.quote(key)), ("Size", 1), ("ETag", "e")])] if key else []
        entries += [("EncodingType", "url"), ("IsTruncated", "true"),
                    ("NextContinuationToken", f"{following:09}" + "x" * (9000 if how == "long_token" else 0))]
        return 200, xml("ListBucketResult", entries), {}

    def list_objects(self):
        fields = self.fields
        if "list" in STORE.settings:
            return self.lying_list(STORE.settings["list"])
        assert fields["list-type"] == "2"
        is_encoded = fields.get("encoding-type") == "url"  # engines of others do not ask for it
        show = urllib.parse.quote if is_encoded else str
        prefix = "" if "prefix" in STORE.settings["ignore"] else fields.get("prefix", "")
        keys = sorted(key for key in STORE.objects if key.startswith(prefix)
                      and key > urllib.parse.unquote(fields.get("continuation-token", "")))
        most = min(int(fields.get("max-keys", 1000)), STORE.settings["most_keys"])
        shown = keys[:most]
        more = len(keys) > len(shown)
        entries = [("Contents", [("Key", show(key)), ("Size", len(STORE.objects[key]["body"])),
                                 ("ETag", f'"{STORE.objects[key]["etag"]}"')]) for key in shown]
        entries += [("EncodingType", "url")] if is_encoded else []
        entries.append(("IsTruncated", "true" if more else "false"))
        if more:
            entries.append(("NextContinuationToken", urllib.parse.quote(shown[-1])))
        return 200, xml("ListBucketResult", entries), {}

    def create_upload(self):
        STORE.made += 1
        name = f"upload/{STORE.made}+="
        STORE.uploads[name] = {"key": self.key, "parts": {}, "type": self.headers.get("content-type", "")}
        return 200, xml("InitiateMultipartUploadResult", [("UploadId", name)]), {}

    def upload(self):
        found = STORE.uploads.get(self.fields["uploadId"])
        if found is None or found["key"] != self.key:
            raise Refused(404, "NoSuchUpload")
        return found

    def put_part(self, body):
        parts = self.upload()["parts"]
        self.check_body(body)
        parts[int(self.fields["partNumber"])] = body
        return 200, b"", {"ETag": f'"{etag_of(body)}"'}

    def complete_upload(self, body):
        upload = self.upload()
        named = re.findall(r"<PartNumber>(\d+)</PartNumber><ETag>&quot;(\w+)&quot;</ETag>"
                           r"<ChecksumCRC32C>([^<]+)</ChecksumCRC32C>", body.decode())
        parts = [upload["parts"].get(int(number)) for number, _, _ in named]
        if not named or any(p is None or etag_of(p) != etag for p, (_, etag, _) in zip(parts, named)):
            raise Refused(400, "InvalidPart")
        if any(len(part) < STORE.settings["min_part"] for part in parts[:-1]):
            raise Refused(400, "EntityTooSmall")
        whole = b"".join(parts)
        if self.headers.get("x-amz-checksum-crc32c") != crc32c(whole):
            raise Refused(400, "BadDigest")
        etag = hashlib.md5(b"".join(hashlib.md5(p).digest() for p in parts)).hexdigest() + f"-{len(parts)}"
        STORE.objects[self.key] = {"body": whole, "etag": etag, "type": upload["type"], "meta": {}}
        del STORE.uploads[self.fields["uploadId"]]
        return 200, xml("CompleteMultipartUploadResult", [("ETag", f'"{etag}"')]), {}

    def list_parts(self):
        parts = self.upload()["parts"]
        after = int(self.fields.get("part-number-marker", 0))
        numbers = [n for n in sorted(parts) if n > after]
        shown = numbers[:STORE.settings["most_keys"]]
        more = len(shown) < len(numbers)
        entries = [("Part", [("PartNumber", n), ("Size", len(parts[n])), ("ETag", f'"{etag_of(parts[n])}"')])
                   for n in shown]
        entries += [("IsTruncated", "true" if more else "false")]
        if more:
            entries.append(("NextPartNumberMarker", shown[-1]))
        return 200, xml("ListPartsResult", entries), {}

    def list_uploads(self):
        after = (self.fields.get("key-marker", ""), self.fields.get("upload-id-marker", ""))
        found = sorted((u["key"], name) for name, u in STORE.uploads.items()
                       if u["key"].startswith(self.fields.get("prefix", "")))
        found = [entry for entry in found if entry > after]
        shown = found[:STORE.settings["most_keys"]]
        more = len(shown) < len(found)
        entries = [("Upload", [("Key", key), ("UploadId", name)]) for key, name in shown]
        entries += [("IsTruncated", "true" if more else "false")]
        if more:
            entries += [("NextKeyMarker", shown[-1][0]), ("NextUploadIdMarker", shown[-1][1])]
        return 200, xml("ListMultipartUploadsResult", entries), {}

    def security_token_service(self):
        form = dict(urllib.parse.parse_qsl(self.body(slow=False).decode()))
        with STORE.lock:
            if form.get("Action") != "AssumeRoleWithWebIdentity" or form.get("Version") != "2011-06-15":
                return self.answer(400, error_xml("InvalidAction"))
            if form.get("WebIdentityToken") != "token of the pod" or not form.get("RoleArn") \
                    or not form.get("RoleSessionName"):
                return self.answer(400, b"<ErrorResponse>" + error_xml("InvalidIdentityToken") + b"</ErrorResponse>")
            STORE.made += 1
            access, token = f"STS{STORE.made}", f"token/{STORE.made}=="
            STORE.sts_accounts = {access: ["sts secret", token]}  # what was given before has expired
            ends = datetime.datetime.fromtimestamp(self.now() + STORE.settings["sts_seconds"], datetime.timezone.utc)
            keys = [("AccessKeyId", access), ("SecretAccessKey", "sts secret"), ("SessionToken", token),
                    ("Expiration", ends.strftime("%Y-%m-%dT%H:%M:%SZ"))]
        self.answer(200, xml("AssumeRoleWithWebIdentityResponse",
                             [("AssumeRoleWithWebIdentityResult", [("Credentials", keys)])]))

    # --- what the test asks

    def control(self, what):
        body = self.body(slow=False)
        with STORE.lock:
            if what == "clear":
                STORE.clear()
            elif what == "set":
                STORE.settings.update(json.loads(body))
                STORE.log.clear()
            elif what == "damage":
                wanted = json.loads(body)
                data = bytearray(STORE.objects[wanted["key"]]["body"])
                data[wanted["offset"]] ^= 1
                STORE.objects[wanted["key"]]["body"] = bytes(data)
            elif what == "put":
                wanted = json.loads(body)
                data = wanted["body"].encode()
                STORE.objects[wanted["key"]] = {"body": data, "etag": etag_of(data), "type": "", "meta": {}}
            elif what == "log":
                return self.answer(200, json.dumps(STORE.log).encode())
            elif what == "objects":
                return self.answer(200, json.dumps({key: {
                    "bytes": len(found["body"]), "md5": etag_of(found["body"]), "etag": found["etag"],
                    "meta": found["meta"], "type": found["type"]} for key, found in STORE.objects.items()}).encode())
            elif what == "regions":
                return self.answer(200, json.dumps(sorted(STORE.regions)).encode())
            elif what == "uploads":
                return self.answer(200, json.dumps({n: sorted(u["parts"]) for n, u in STORE.uploads.items()}).encode())
            elif what.startswith("body/"):
                return self.answer(200, STORE.objects[urllib.parse.unquote(what[5:])]["body"])
        self.answer(200)


def xml(root, entries):
    def text(pairs):
        return "".join(f"<{n}>{text(v) if isinstance(v, list) else escape(str(v))}</{n}>" for n, v in pairs)
    return (f'<?xml version="1.0" encoding="UTF-8"?>\n<{root} xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
            f"{text(entries)}</{root}>").encode()


def error_xml(code):
    return f"<Error><Code>{code}</Code><Message>fake</Message></Error>".encode()


class Server(ThreadingHTTPServer):
    def handle_error(self, request, client_address):
        """Clients that go away are what these tests are about."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


def main():
    Handler.bucket = sys.argv[1]
    server = Server(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    if "--certificate" in sys.argv:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(sys.argv[sys.argv.index("--certificate") + 1], sys.argv[sys.argv.index("--key") + 1])
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_address[1], flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
