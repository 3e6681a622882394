#!/usr/bin/env python3
"""Who may include and link whom. A room that is missing in the table below may not exist.
Usage: check_layers.py [ROOT]"""

import posixpath
import re
import sys

import tree

# The folders of collectctl that work on files alone: no collector, no gRPC; CTL.md has the map. Each
# may include those before it.
CTL = "daemon/ctl/"
CTL_FILES = [CTL + "terminal", CTL + "captures", CTL + "check", CTL + "dump", CTL + "report",
             CTL + "convert"]
FILES = ["formats", "storage", "daemon/symbolize", "daemon/patch"]
OFFLINE = FILES + CTL_FILES
# And those that talk to a collector, and to the adb server as the daemon does.
ONLINE = OFFLINE + ["proto/control", "daemon/principal", "daemon/machine", "daemon/runtime",
                    "daemon/collector/agents/session_message.h"]
# Whoever records: it loads agents, and asks phones.
RECORD = ONLINE + ["daemon/ctl/control", "daemon/ctl/look", "daemon/inject", "daemon/attach"]

INGEST = ["proto/wire", "storage", "formats/core", "formats/dial9", "formats/atf/layout.h",
          "daemon/machine", "daemon/principal"]
MANIFEST = ["storage/fs", "storage/model", "storage/manifest"]
CAPTURES = MANIFEST + ["storage/container", "storage/thread", "storage/read", "storage/session",
                       "storage/rebuild", "storage/packed"]

# Room -> rooms it may include, besides itself. A single header may stand for a room.
ROOMS = {
    "formats/core": [],
    "formats/atf": ["formats/core"],
    # Of any format it needs the kinds of events alone.
    "formats/calls": ["formats/core", "formats/atf/layout.h"],
    "formats/rtc": ["formats/core"],
    "formats/wtf": ["formats/core"],
    "formats/dial9": ["formats/core"],
    # Traces of other programs, which are read, too; and what is written only.
    "formats/perfetto": ["formats/core"],
    "formats/chrome": ["formats/core"],
    "formats/speedscope": ["formats/core"],
    "formats/folded": ["formats/core"],
    "formats/pprof": ["formats/core"],
    "formats/parquet": ["formats/core"],
    "formats/html": ["formats/core"],
    # Written by the planner, read by the agent.
    "formats/patch": ["formats/core"],
    "proto/wire": ["formats/core", "proto/wire/page_codec.h"],
    # It knows the protocol, and neither end of it.
    "proto/conformance": ["proto/wire", "formats/core"],
    "proto/control": [],
    "agent": ["proto/wire", "formats/core", "formats/patch", "formats/atf/layout.h"],
    # Floor upon floor; STORAGE.md "Folders". Containers hold pages as they come over the wire.
    "storage/fs": ["formats"],
    "storage/model": ["formats", "storage/fs"],
    "storage/manifest": ["formats", "storage/fs", "storage/model"],
    "storage/container": ["formats", "proto/wire/page_codec.h"] + MANIFEST,
    "storage/thread": ["formats"] + MANIFEST,
    # Captures of every format, opened for reading.
    "storage/read": ["formats", "storage/container"] + MANIFEST,
    # Sessions without their thread files.
    "storage/packed": ["formats", "storage/container", "storage/rebuild"] + MANIFEST,
    "storage/session": ["formats", "storage/container", "storage/thread"] + MANIFEST,
    "storage/rebuild": ["formats", "storage/container", "storage/session"] + MANIFEST,
    # And made into each other.
    "storage/convert": ["formats"] + CAPTURES,
    # What of a capture is meant, and sessions in the formats of viewers.
    "storage/select": ["formats", "storage/convert"] + CAPTURES,
    "storage/export": ["formats", "storage/convert", "storage/select"] + CAPTURES,
    "storage": ["formats", "proto/wire/page_codec.h"],
    # Agent and daemon ask the kernel alike who is at the other end.
    "daemon/principal": ["formats/core", "agent/transport/sock_diag.h"],
    # What the system allows and says of the processes of this machine.
    "daemon/machine": ["formats/core"],
    # Which collectors of a user run, and what that user recorded last.
    "daemon/runtime": ["formats/core", "storage"],
    "daemon/ingest/link": INGEST,
    # What an agent's clock says in this machine's time.
    "daemon/ingest/clock": INGEST + ["daemon/ingest/link"],
    "daemon/ingest/session": INGEST + ["daemon/ingest/link"],
    "daemon/ingest/lane": INGEST + ["daemon/ingest/link", "daemon/ingest/clock",
                                    "daemon/ingest/session"],
    "daemon/ingest/peer": INGEST + ["daemon/ingest/link", "daemon/ingest/clock",
                                    "daemon/ingest/session", "daemon/ingest/lane"],
    "daemon/ingest": INGEST + ["daemon/ingest/link", "daemon/ingest/clock", "daemon/ingest/session",
                               "daemon/ingest/lane", "daemon/ingest/peer"],
    "daemon/attach": ["formats/core"],
    # Names for sessions that are sealed. The CLI does the same to sessions of other machines.
    "daemon/symbolize": ["formats/core", "storage"],
    # Plans, made by a child as symbolize makes names.
    "daemon/patch": ["formats/core", "formats/patch", "daemon/symbolize"],
    # Into processes that run. It reads their memory and knows nothing of plans.
    "daemon/inject": ["formats/core", "formats/patch", "daemon/machine"],
    "daemon/control": ["proto/control", "formats/core", "daemon/principal", "storage/fs/descriptor.h"],
    "daemon/metrics": ["proto/control", "formats/core", "daemon/control/collector_api.h"],
    # To object storage, and back from there.
    "daemon/upload": ["formats/core", "storage"],
    # Captures as rows of a ClickHouse server, by the walk of the exporters. It prints as collectctl.
    "daemon/warehouse": ["formats", "storage", "daemon/upload", "daemon/ctl/terminal"],
    # The live page: it asks the collector what the control plane asks, and starts a program for
    # each page as symbolize does for each lookup.
    "daemon/web": ["proto/control", "formats/core", "formats/html", "daemon/principal",
                   "daemon/symbolize", "daemon/control", "storage/fs/rooted_directory.h"],
    # Its programs are those of collectord and collectctl: what works on files.
    "daemon/ctl/terminal": ["formats/core"],
    "daemon/ctl/captures": FILES + CTL_FILES[:1],
    "daemon/ctl/check": FILES + CTL_FILES[:2],
    "daemon/ctl/dump": FILES + CTL_FILES[:3],
    "daemon/ctl/report": FILES + CTL_FILES[:3],
    "daemon/ctl/convert": FILES + CTL_FILES[:2],
    "daemon/ctl/tui": OFFLINE,
    # What collectord asks collect-page and collect-calls for.
    "daemon/ctl/follow": OFFLINE + ["proto/control", "daemon/control/call_feed.h"],
    "daemon/ctl/programs": OFFLINE + ["daemon/ctl/follow", "daemon/ctl/tui", "proto/control", "daemon/machine",
                                      "daemon/control/call_feed.h",
                                      "daemon/web/limits.h", "daemon/web/page_request.h",
                                      "daemon/ctl/store", "daemon/upload/store_request.h"],
    "daemon/ctl/control": ONLINE + ["daemon/ctl/control/grpc"],
    "daemon/ctl/control/grpc": ["daemon/ctl/control", "daemon/machine", "formats/core"],
    "daemon/ctl/look": ONLINE + ["daemon/ctl/control", "daemon/web"],
    "daemon/ctl/record": RECORD,
    "daemon/ctl/doctor": RECORD + ["daemon/ctl/record"],
    # Both: files here, and the store.
    "daemon/ctl/store": ONLINE + ["daemon/ctl/control", "daemon/upload"],
    # Main, and the commands.
    "daemon/ctl": RECORD + ["daemon/ctl/record", "daemon/ctl/doctor",
                            "daemon/upload/store_request.h", "daemon/warehouse/load_arguments.h"],
    # Where the rooms meet. The CLI is its own program.
    "daemon/collector": ["formats", "proto", "storage", "daemon/ingest", "daemon/attach",
                         "daemon/control", "daemon/inject", "daemon/patch",
                         "daemon/principal", "daemon/symbolize", "daemon/web/page_request.h",
                         "daemon/upload/store_request.h",
                         "daemon/upload/upload_status.h"],
    # main and the configuration.
    "daemon": ["formats", "proto", "storage", "daemon/collector", "daemon/ingest", "daemon/attach",
               "daemon/control", "daemon/inject", "daemon/metrics",
               "daemon/machine", "daemon/patch", "daemon/principal", "daemon/runtime",
               "daemon/symbolize", "daemon/web", "daemon/upload/store_request.h"],
}
TOP_LEVEL = ["daemon", "agent", "proto", "storage", "formats"]

# What comes from outside the project, and the rooms that must not know it. "not ROOM": this one may.
NO_GRPC = ["formats", "agent", "storage", "daemon/ingest", "daemon/attach", "daemon/ctl",
           "not daemon/ctl/control/grpc"]
SOCKETS = r"(sys/socket|sys/un|netinet/.*|arpa/.*|netdb|sys/epoll|asio)(\.h)?(/.*)?(\.hpp)?"
OUTSIDE = [
    (SOCKETS, ["formats", "proto", "storage"], "bytes never meet sockets"),
    (r"grpcpp/.*|grpc/.*", NO_GRPC, "gRPC belongs to the control plane"),
    (r"google/protobuf/.*", ["formats", "agent", "storage", "daemon/attach"],
     "only the daemon's ends of the two protocols speak libprotobuf"),
    (r"openssl/.*", ["formats", "proto", "storage"], "bytes never meet sockets"),
    (r"(fstream|filesystem|fcntl\.h|sys/mman\.h|sys/stat\.h|unistd\.h)", ["formats/core", "proto"],
     "codecs know bytes, not files"),
]

# Target -> room, for link lines; collect_NAME is formats/NAME where that is a room. Everything not
# listed and not collect_* comes from outside.
TARGETS = {
    "collect_page_codec": "proto/wire/page_codec.h",
    "collect_wire": "proto/wire", "collect_wire_messages": "proto/wire",
    "collect_control_api": "proto/control", "collect_control_stubs": "proto/control",
    "collect_reflection_stubs": "proto/control",
    "collect_agent": "agent", "collect_agent_static": "agent", "collect_agent_objects": "agent",
    "collect_machine": "daemon/machine", "collect_principal": "daemon/principal", "collect_runtime": "daemon/runtime",
    "collect_storage": "storage", "collect_read": "storage/read",
    "collect_convert": "storage/convert", "collect_export": "storage/export",
    "collect_ingest": "daemon/ingest",
    "collect_symbolize": "daemon/symbolize", "collect_symbolize_lookup": "daemon/symbolize",
    "collect_patch_format": "formats/patch", "collect_patch": "daemon/patch", "collect_patch_answer": "daemon/patch",
    "collect_patch_planner": "daemon/patch", "collect_inject": "daemon/inject",
    "collect-planner": "daemon/patch",
    "collect_symbolize_confine": "daemon/symbolize",
    "collect_symbolize_protocol": "daemon/symbolize", "collect-symbolizer": "daemon/symbolize",
    "collect_device_servers": "daemon/attach", "collect_attach": "daemon/attach",
    "collect_control": "daemon/control",
    "collect_metrics": "daemon/metrics", "collect_upload": "daemon/upload",
    "collect_store_request": "daemon/upload/store_request.h",
    "collect_ctl_store": "daemon/ctl/store", "collect-store": "daemon/ctl/programs",
    "collect_warehouse": "daemon/warehouse", "collect-load": "daemon/warehouse",
    "collect_http": "daemon/web", "collect_web": "daemon/web", "collect_live": "daemon/web",
    "collect_page_request": "daemon/web/page_request.h", "collect-page": "daemon/ctl/programs",
    "collect_call_feed": "daemon/control/call_feed.h", "collect-calls": "daemon/ctl/programs",
    "collect_ctl_follow": "daemon/ctl/follow", "collect_ctl_terminal": "daemon/ctl/terminal",
    "collect_ctl_tui": "daemon/ctl/tui", "collect-tui": "daemon/ctl/programs",
    "collect_session_message": "daemon/collector/agents/session_message.h",
    "collect_daemon": "daemon", "collectord": "daemon",
    "collect_ctl_offline": "daemon/ctl/convert", "collect_ctl_online": "daemon/ctl/control",
    "collect_ctl_connection": "daemon/ctl/control", "collect_ctl_grpc": "daemon/ctl/control/grpc",
    "collect_ctl_pages": "daemon/ctl/look", "collect_ctl_record": "daemon/ctl/doctor",
    "collect_conformance": "proto/conformance", "collect-conformance": "proto/conformance",
    "collectctl": "daemon/ctl",
}
OUTSIDE_TARGETS = [
    (r"gRPC::.*|grpc.*", NO_GRPC),
    (r"protobuf::.*", ["formats", "agent", "storage", "daemon/attach"]),
]


# Programs of their own, which use the protocol from outside. They know sockets and files.
PROGRAMS = ("proto/wire/example/", "proto/conformance/")


def room_of(path):
    """The room a file lies in: the longest room name that is a folder of its path."""
    folder = posixpath.dirname(path)
    while folder:
        if folder in ROOMS:
            return folder
        folder = posixpath.dirname(folder)
    return None


def room_of_target(target):
    format_room = "formats/" + target.removeprefix("collect_")
    return TARGETS.get(target) or (format_room if format_room in ROOMS else None)


def within(path, scope):
    return path == scope or path.startswith(scope + "/")


def is_barred(room, rooms):
    return any(within(room, barred) for barred in rooms) and f"not {room}" not in rooms


def may_use(room, path, target_room):
    if target_room == room or (target_room not in ROOMS and room_of(target_room) == room):
        return True
    return any(within(path, scope) or within(target_room, scope) for scope in ROOMS[room])


def check_includes(root, path, room):
    text = tree.read(root, path)
    for number, line in enumerate(text.split("\n"), 1):
        match = re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line)
        if not match:
            continue
        name = match.group(2)
        # The agent's public header is included as its users do it.
        if name == "collect/agent.h":
            name = "agent/include/collect/agent.h"
        # So are the control plane's messages.
        if name.startswith("collect/control/"):
            name = "proto/control/" + name
        top = name.split("/")[0]
        if top in TOP_LEVEL and "/" in name:
            target_room = room_of(name)
            if target_room is None:
                yield tree.Finding(path, number, f"includes {name}, which lies in no known room",
                                   "add the room to ROOMS in tests/tidy/check_layers.py")
            elif not may_use(room, name, target_room):
                allowed = ", ".join(ROOMS[room]) or "no other room"
                yield tree.Finding(path, number, f"{room} must not include {name}",
                                   f"it may include {allowed}: hand the data over as plain values")
            continue
        if name.startswith("tests/"):
            yield tree.Finding(path, number, f"includes {name}", "tests depend on code, never back")
        for pattern, rooms, why in OUTSIDE:
            if path.startswith(PROGRAMS):
                continue
            if re.fullmatch(pattern, name) and is_barred(room, rooms):
                yield tree.Finding(path, number, f"{room} must not include <{name}>", why)
        if room == "agent" and name.endswith("wire.pb.h") and "/" in name:
            yield tree.Finding(path, number, "the agent includes libprotobuf's wire.pb.h",
                               "use the nanopb one")


def check_links(root, path):
    text = re.sub(r"#[^\n]*", "", tree.read(root, path))
    folder = posixpath.dirname(path)
    for match in re.finditer(r"target_link_libraries\s*\(\s*(\S+)([^)]*)\)", text):
        number = text.count("\n", 0, match.start()) + 1
        target = match.group(1)
        room = room_of_target(target) or room_of(folder + "/x")
        if room not in ROOMS and room is not None:  # a header that stands for one
            room = room_of(room)
        if room is None:
            continue
        for library in match.group(2).split():
            linked = room_of_target(library)
            # A folder may link the library that it is a part of: its includes are checked.
            if linked and not may_use(room, linked, linked) and not within(room, linked) and not (
                    room == "agent" and linked == "formats/atf"):
                yield tree.Finding(path, number, f"{target} ({room}) must not link {library}",
                                   f"it may link {', '.join(ROOMS[room]) or 'no other room'}")
            if library.startswith("collect_") and not linked and not within(
                    room, room_of(folder + "/x")):
                yield tree.Finding(path, number, f"{target} links {library}, a target of no room",
                                   "add it to TARGETS in tests/tidy/check_layers.py")
            for pattern, rooms in OUTSIDE_TARGETS:
                if re.fullmatch(pattern, library) and is_barred(room, rooms):
                    yield tree.Finding(path, number, f"{target} ({room}) must not link {library}",
                                       "move what needs it to a room that may")


def main():
    root = tree.repository_root(sys.argv[1:])
    findings, looked_at = [], 0
    for path in tree.files(root):
        if path.split("/")[0] not in TOP_LEVEL:
            continue
        if path.endswith((".h", ".cc", ".c", ".S")):
            looked_at += 1
            room = room_of(path)
            if room is None:
                findings.append(tree.Finding(path, 0, "lies in no known room",
                                             "move it, or add the room to check_layers.py"))
            else:
                findings += check_includes(root, path, room)
        elif path.endswith("CMakeLists.txt"):
            looked_at += 1
            findings += check_links(root, path)
    tree.finish("layers", findings, looked_at)


if __name__ == "__main__":
    main()
