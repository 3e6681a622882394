#!/usr/bin/env python3
"""Records agents that are idle for some seconds, and saves their files.

    deploy/python/make-stubs.sh "$PWD/stubs"
    PYTHONPATH=stubs deploy/python/record.py --process 'render*' --seconds 5 captures
"""

import argparse
import pathlib
import sys
import time

import grpc
from collect.control.v1 import agents_pb2, control_pb2, control_pb2_grpc, sessions_pb2
from google.protobuf.duration_pb2 import Duration
from google.rpc import error_details_pb2, status_pb2

SEALED = (sessions_pb2.SESSION_STATE_COMPLETE, sessions_pb2.SESSION_STATE_RECOVERED,
          sessions_pb2.SESSION_STATE_FAILED)


def reason_of(error):
    """The word for programs in the details of a failed call."""
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            for detail in status_pb2.Status.FromString(value).details:
                info = error_details_pb2.ErrorInfo()
                if detail.Unpack(info):
                    return info.reason
    return error.code().name


def start(stub, arguments):
    """The sessions that were started."""
    target = agents_pb2.Selector(process_name=arguments.process)
    request = control_pb2.StartSessionRequest(
        target=target, duration=Duration(seconds=arguments.seconds))
    sessions = []
    for outcome in stub.StartSession(request).outcomes:
        if outcome.HasField("error"):
            print(f"{outcome.agent}: {outcome.error.message}", file=sys.stderr)
        else:
            print(f"{outcome.agent} records into {outcome.session.name}")
            sessions.append(outcome.session.name)
    return sessions


def wait_until_sealed(stub, name):
    """The session with its functions' names, which are looked up once it is sealed."""
    for session in stub.WatchSession(sessions_pb2.WatchSessionRequest(name=name)):
        if session.state not in SEALED:
            print(f"{name}: {session.events} events", file=sys.stderr)
    while session.symbols == sessions_pb2.SYMBOLS_STATE_PENDING:
        time.sleep(0.1)
        session = stub.GetSession(sessions_pb2.GetSessionRequest(name=name))
    return session


def files_of(stub, name):
    request = sessions_pb2.ListFilesRequest(name=name)
    while True:
        page = stub.ListFiles(request)
        yield from page.files
        if not page.next_page_token:
            return
        request.page_token = page.next_page_token


def save(stub, name, path, directory):
    """One file; paths are those of the list, within the session."""
    to = directory / name.removeprefix("sessions/") / path
    to.parent.mkdir(parents=True, exist_ok=True)
    with to.open("wb") as file:
        for chunk in stub.DownloadFile(sessions_pb2.DownloadFileRequest(name=name, path=path)):
            if not chunk.HasField("end"):
                file.write(chunk.data)
            elif file.tell() != chunk.end.size_bytes:
                raise IOError(f"{to}: {file.tell()} bytes of {chunk.end.size_bytes} came")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("directory", type=pathlib.Path, help="where the files go")
    parser.add_argument("--control", default="localhost:7711", help="address of the collector")
    parser.add_argument("--process", default="", help="name of the process, with * and ?")
    parser.add_argument("--seconds", type=int, default=5, help="how long to record")
    arguments = parser.parse_args()
    stub = control_pb2_grpc.CollectorStub(grpc.insecure_channel(arguments.control))
    try:
        for name in start(stub, arguments):
            session = wait_until_sealed(stub, name)
            for file in files_of(stub, name):
                save(stub, name, file.path, arguments.directory)
            state = sessions_pb2.SessionState.Name(session.state)
            print(f"{name}: {state.removeprefix('SESSION_STATE_').lower()}, "
                  f"{session.events} events, {session.lost_events} lost")
    except grpc.RpcError as error:
        print(f"record.py: {error.details()} ({reason_of(error)})", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
