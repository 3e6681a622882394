// The fields of Perfetto's trace that we write or read, by message (protos/perfetto/trace).
// FORMAT.md says what is in each.
#pragma once

#include <cstddef>
#include <cstdint>

namespace collect::perfetto {

// Messages: `Message::kField`.
struct Trace {
  static constexpr uint32_t kPacket = 1;
};
struct TracePacket {
  static constexpr uint32_t kClockSnapshot = 6;
  static constexpr uint32_t kTimestamp = 8;
  static constexpr uint32_t kTrustedPacketSequenceId = 10;
  static constexpr uint32_t kTrackEvent = 11;
  static constexpr uint32_t kInternedData = 12;
  static constexpr uint32_t kSequenceFlags = 13;
  static constexpr uint32_t kPreviousPacketDropped = 42;
  static constexpr uint32_t kThreadDescriptor = 44;  // of the sequence, in older files
  static constexpr uint32_t kCompressedPackets = 50;
  static constexpr uint32_t kTimestampClockId = 58;
  static constexpr uint32_t kTracePacketDefaults = 59;
  static constexpr uint32_t kTrackDescriptor = 60;
  static constexpr uint32_t kFirstPacketOnSequence = 87;
  static constexpr uint32_t kZstdCompressedPackets = 133;
};
struct TracePacketDefaults {
  static constexpr uint32_t kTrackEventDefaults = 11;
  static constexpr uint32_t kTimestampClockId = 58;
};
struct TrackEventDefaults {
  static constexpr uint32_t kTrackUuid = 11;
};
struct ClockSnapshot {
  static constexpr uint32_t kClocks = 1;
  static constexpr uint32_t kPrimaryTraceClock = 2;
};
struct Clock {
  static constexpr uint32_t kClockId = 1;
  static constexpr uint32_t kTimestamp = 2;
  static constexpr uint32_t kIsIncremental = 3;
  static constexpr uint32_t kUnitMultiplierNs = 4;
};
struct TrackDescriptor {
  static constexpr uint32_t kUuid = 1;
  static constexpr uint32_t kName = 2;
  static constexpr uint32_t kProcess = 3;
  static constexpr uint32_t kThread = 4;
  static constexpr uint32_t kParentUuid = 5;
  static constexpr uint32_t kCounter = 8;
};
struct ProcessDescriptor {
  static constexpr uint32_t kPid = 1;
  static constexpr uint32_t kCmdline = 2;
  static constexpr uint32_t kProcessName = 6;
};
struct ThreadDescriptor {
  static constexpr uint32_t kPid = 1;
  static constexpr uint32_t kTid = 2;
  static constexpr uint32_t kThreadName = 5;
};
struct CounterDescriptor {
  static constexpr uint32_t kUnitName = 6;
};
struct TrackEvent {
  static constexpr uint32_t kDebugAnnotations = 4;
  static constexpr uint32_t kLegacyEvent = 6;
  static constexpr uint32_t kType = 9;
  static constexpr uint32_t kNameIid = 10;
  static constexpr uint32_t kTrackUuid = 11;
  static constexpr uint32_t kName = 23;
  static constexpr uint32_t kCounterValue = 30;
  static constexpr uint32_t kSourceLocation = 33;
  static constexpr uint32_t kSourceLocationIid = 34;
  static constexpr uint32_t kFlowIds = 47;
  static constexpr uint32_t kTerminatingFlowIds = 48;
};
struct LegacyEvent {
  static constexpr uint32_t kPhase = 2;
  static constexpr uint32_t kDurationUs = 3;
};
struct InternedData {
  static constexpr uint32_t kEventNames = 2;
  static constexpr uint32_t kDebugAnnotationNames = 3;
  static constexpr uint32_t kSourceLocations = 4;
};
struct SourceLocation {
  static constexpr uint32_t kIid = 1;
  static constexpr uint32_t kFileName = 2;
  static constexpr uint32_t kFunctionName = 3;
  static constexpr uint32_t kLineNumber = 4;
};
struct InternedName {
  static constexpr uint32_t kIid = 1;
  static constexpr uint32_t kName = 2;
};
struct DebugAnnotation {
  static constexpr uint32_t kNameIid = 1;
  static constexpr uint32_t kBoolValue = 2;
  static constexpr uint32_t kUintValue = 3;
  static constexpr uint32_t kStringValue = 6;
  static constexpr uint32_t kPointerValue = 7;
  static constexpr uint32_t kName = 10;
};

enum class EventType : uint8_t { kSliceBegin = 1, kSliceEnd = 2, kInstant = 3, kCounter = 4 };

inline constexpr uint32_t kIncrementalStateCleared = 1;  // SequenceFlags
inline constexpr uint32_t kNeedsIncrementalState = 2;
inline constexpr uint32_t kClockBoottime = 6;     // BuiltinClock, the importer's own time line
inline constexpr uint32_t kClockOfSequence = 64;  // 64 to 127: each sequence has its own

// The importer drops a slice that begins within so many others of its track, and lets its end close
// another one.
inline constexpr size_t kMaxDepth = 512;
// The importer takes compressed packets below 512 KB.
inline constexpr size_t kMaxRunBytes = 256 << 10;
inline constexpr size_t kMaxTextBytes = 16 << 10;  // of a name or text; the rest is cut
inline constexpr size_t kMaxAnnotations = 64;      // of one event; the rest is left out

}  // namespace collect::perfetto
