// An ATF session as a dial9 stream: one sub-stream, which any dial9 reader can read, and which
// holds all that a session can be built from again. Both converters go by this table; a reader goes
// by the names of types and fields, so both may grow.
//
// clang-format off
// | id  | type                 | its time        | fields |
// |-----|----------------------|-----------------|--------|
// | 256 | SegmentMetadataEvent | session's start | entries: StringMap, with kSessionKey; how the process ended |
// | 257 | ClockSyncEvent       | session's start | realtime_ns |
// | 258 | ModuleInfo           | when loaded     | module, path, build_id, base_address, size, unloaded_ns |
// | 259 | ThreadInfo           | thread's start  | thread (N of thread_N), thread_id, name, end_ns (0: not known) |
// | 260 | FunctionInfo         | its first event | function, name, is_symbol, file (empty: not known), line |
// | 261 | Call                 | the event's     | thread, function |
// | 262 | Return               | the event's     | thread, function |
// | 263 | Exception            | the event's     | thread, function |
// | 264 | Detail               | the record's    | thread, kind (DetailType), flags, payload |
// | 265 | Gap                  | as its neighbour | thread, lane (0 index, 1 detail), lost, reasons, first_ns, last_ns |
// | 266 | Marker               | the marker's    | text |
// | 267 | DetailWindow         | when it began   | mode, end_ns, pre_roll_from_ns, pre_roll_records, reason |
// | 268 | CollectorClock       | collector's     | offset_ns, uncertainty_ns, drift_ppb |
// | 269 | Note                 | session's start | at_unix_ns, text |
// clang-format on
//
// Numbers are Varint, texts String, names and files of functions pooled, payloads Bytes. A reader
// does without end_ns, file and line: earlier streams lack them. Calls of all threads are in the
// order of time. A FunctionInfo is before the first event of its function; is_symbol is false where
// the name was made from the module and the offset. A Detail is directly behind its event, a Gap
// before the first event (or Detail) behind the loss. The first two types are those of dial9's own
// recorder, so that its viewers show what they can; ids below 256 are its own.
#pragma once

#include <string_view>

#include "formats/dial9/schema.h"

namespace collect::convert::dial9_session {

// The entry of SegmentMetadataEvent that says that the rest of the sub-stream is as above; "1".
inline constexpr std::string_view kSessionKey = "collectord.session";
// And a number from 1 on: what the session was made from lacked.
inline constexpr std::string_view kMissingKey = "missing ";

// As the manifest's process.end has it.
inline constexpr std::string_view kProcessEnd = "process_end";
inline constexpr std::string_view kExitCode = "exit_code";
inline constexpr std::string_view kSignal = "signal";
inline constexpr std::string_view kCoreDumped = "core_dumped";

inline constexpr const char* kEndNs = "end_ns";
inline constexpr const char* kFile = "file";
inline constexpr const char* kLine = "line";

inline constexpr std::string_view kMetadata = "SegmentMetadataEvent";
inline constexpr std::string_view kClockSync = "ClockSyncEvent";
inline constexpr std::string_view kModule = "ModuleInfo";
inline constexpr std::string_view kThread = "ThreadInfo";
inline constexpr std::string_view kFunction = "FunctionInfo";
inline constexpr std::string_view kCall = "Call";
inline constexpr std::string_view kReturn = "Return";
inline constexpr std::string_view kException = "Exception";
inline constexpr std::string_view kDetail = "Detail";
inline constexpr std::string_view kGap = "Gap";
inline constexpr std::string_view kMarker = "Marker";
inline constexpr std::string_view kDetailWindow = "DetailWindow";
inline constexpr std::string_view kCollectorClock = "CollectorClock";
inline constexpr std::string_view kNote = "Note";

}  // namespace collect::convert::dial9_session
