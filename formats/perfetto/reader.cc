#include "formats/perfetto/reader.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "formats/core/encoding/inflate.h"
#include "formats/core/encoding/protobuf.h"
#include "formats/core/text/utf8_text.h"
#include "formats/perfetto/clock_times.h"
#include "formats/perfetto/layout.h"
#include "formats/perfetto/track_table.h"

namespace collect::perfetto {
namespace {

constexpr uint64_t kNsOfMicrosecond = 1000;
constexpr uint64_t kProgressPackets = 4096;
constexpr uint8_t kPacketTag = Trace::kPacket << 3 | 2;
// Fields of packets that are about the trace itself: nothing of them is left out.
constexpr auto kAboutTheTrace = std::to_array<uint32_t>({33, 35, 36, 45, 69, 89, 98, 87, 3});

std::string_view left_out_name(uint32_t field) {
  switch (field) {
    case 1:
      return "packets of kernel events (ftrace)";
    case 2:
    case 9:
    case 95:
      return "packets of processes and their figures";
    case 66:
    case 67:
      return "packets of samples";
    case TracePacket::kZstdCompressedPackets:
      return "packets compressed by zstd";
    default:
      return "packets of other data sources";
  }
}

struct Packet {
  std::optional<uint64_t> timestamp;
  uint32_t clock = 0;  // 0: the default
  uint32_t sequence = 0;
  uint64_t flags = 0;
  bool dropped = false;
  Bytes snapshot, defaults, interned, event, descriptor, thread, compressed;
  bool has_event = false, has_descriptor = false, has_thread = false, has_compressed = false;
  uint32_t other = 0;  // a field that none of these is
};

bool parse(Bytes message, Packet& packet) {
  ProtoFields fields(message);
  while (fields.next()) {
    switch (fields.field()) {
      case TracePacket::kTimestamp:
        packet.timestamp = fields.value();
        break;
      case TracePacket::kTimestampClockId:
        packet.clock = static_cast<uint32_t>(fields.value());
        break;
      case TracePacket::kTrustedPacketSequenceId:
        packet.sequence = static_cast<uint32_t>(fields.value());
        break;
      case TracePacket::kSequenceFlags:
        packet.flags = fields.value();
        break;
      case TracePacket::kPreviousPacketDropped:
        packet.dropped = fields.value() != 0;
        break;
      case TracePacket::kClockSnapshot:
        packet.snapshot = fields.bytes();
        break;
      case TracePacket::kTracePacketDefaults:
        packet.defaults = fields.bytes();
        break;
      case TracePacket::kInternedData:
        packet.interned = fields.bytes();
        break;
      case TracePacket::kTrackEvent:
        packet.event = fields.bytes();
        packet.has_event = true;
        break;
      case TracePacket::kTrackDescriptor:
        packet.descriptor = fields.bytes();
        packet.has_descriptor = true;
        break;
      case TracePacket::kThreadDescriptor:
        packet.thread = fields.bytes();
        packet.has_thread = true;
        break;
      case TracePacket::kCompressedPackets:
        packet.compressed = fields.bytes();
        packet.has_compressed = true;
        break;
      default:
        packet.other = fields.field();
        break;
    }
  }
  return fields.ok();
}

struct SourceLine {
  std::string file;
  uint32_t line = 0;
};

// What packets of one sequence rely on.
struct Sequence {
  bool has_state = false;
  uint32_t default_clock = kClockBoottime;
  std::optional<uint64_t> default_track;
  std::unordered_map<uint64_t, std::string> names;   // by iid
  std::unordered_map<uint64_t, uint32_t> functions;  // of these names, without a source
  std::unordered_map<uint64_t, SourceLine> sources;
};

struct Event {
  uint64_t type = 0;
  std::optional<uint64_t> track;
  uint64_t name_iid = 0;
  std::string_view name;
  uint64_t source_iid = 0;
  Bytes source, legacy;
  uint64_t annotations = 0, flows = 0;
};

bool parse(Bytes message, Event& event) {
  ProtoFields fields(message);
  while (fields.next()) {
    switch (fields.field()) {
      case TrackEvent::kType:
        event.type = fields.value();
        break;
      case TrackEvent::kTrackUuid:
        event.track = fields.value();
        break;
      case TrackEvent::kNameIid:
        event.name_iid = fields.value();
        break;
      case TrackEvent::kName:
        event.name = fields.text();
        break;
      case TrackEvent::kSourceLocationIid:
        event.source_iid = fields.value();
        break;
      case TrackEvent::kSourceLocation:
        event.source = fields.bytes();
        break;
      case TrackEvent::kLegacyEvent:
        event.legacy = fields.bytes();
        break;
      case TrackEvent::kDebugAnnotations:
        ++event.annotations;
        break;
      case TrackEvent::kFlowIds:
      case TrackEvent::kTerminatingFlowIds:
        ++event.flows;
        break;
      default:
        break;
    }
  }
  return fields.ok();
}

class PacketReader {
 public:
  PacketReader(Bytes file, TimelineSink& sink) : file_(file), sink_(sink), tracks_(sink) {}

  Status run();

 private:
  enum class Nesting : uint8_t { kFile, kRun };

  Status read_all(Bytes packets, Nesting nesting);
  Status take(Bytes message, Nesting nesting);
  Status take_run(Bytes compressed, Nesting nesting);
  Status take_event(const Packet& packet, Sequence& sequence, std::optional<int64_t> ns);
  Status take_legacy(const Event& event, uint32_t track, int64_t ns, uint32_t function);
  Sequence* sequence_of(uint32_t id);
  void take_state(const Packet& packet, Sequence& sequence);
  void take_defaults(Bytes message, Sequence& sequence);
  void take_interned(Bytes message, Sequence& sequence);
  bool has_room(size_t bytes);
  void forget(Sequence& sequence);
  std::string_view name_of(const Event& event, const Sequence& sequence) const;
  uint32_t function_of(const Event& event, Sequence& sequence);
  void bad(bool ok) { bad_messages_ += ok ? 0 : 1; }
  void say_counts();

  const Bytes file_;
  TimelineSink& sink_;
  TrackTable tracks_;
  ClockTimes clocks_;
  std::unordered_map<uint32_t, Sequence> sequences_;
  size_t interned_ = 0, interned_bytes_ = 0;
  uint64_t at_ = 0;  // of the packet, in the file
  uint64_t packets_ = 0, bad_messages_ = 0, stateless_ = 0;
  std::optional<uint64_t> first_bad_;
};

// ---- the file

Status PacketReader::run() {
  COLLECT_TRY(read_all(file_, Nesting::kFile));
  tracks_.finish();
  say_counts();
  return {};
}

void PacketReader::say_counts() {
  if (bad_messages_ != 0) {
    sink_.missing(
        fmt::format("at {}: the first of {} messages that are none", *first_bad_, bad_messages_));
  }
  if (stateless_ != 0) {
    sink_.missing(fmt::format("{} packets whose names and defaults are in packets that were lost",
                              stateless_));
  }
  if (clocks_.has_guessed()) {
    sink_.remark("times of a clock without a snapshot are taken as those of the trace");
  }
}

// Packets one behind another; of a run, which is in memory, the offset is that of the run.
Status PacketReader::read_all(Bytes packets, Nesting nesting) {
  ProtoFields fields(packets);
  while (fields.next()) {
    if (nesting == Nesting::kFile) at_ = fields.offset();
    if (fields.field() != Trace::kPacket || fields.wire() != ProtoWire::kBytes) {
      sink_.leave_out("fields beside the packets");
      continue;
    }
    const uint64_t bad_before = bad_messages_;
    COLLECT_TRY(take(fields.bytes(), nesting));
    if (bad_messages_ != bad_before && !first_bad_) first_bad_ = at_;
    if (++packets_ % kProgressPackets == 0) sink_.progress(at_);
  }
  if (fields.ok()) return {};
  if (nesting == Nesting::kRun) {
    bad(false);
    return {};
  }
  const bool is_cut = packets[fields.offset()] == kPacketTag;
  std::string sentence = is_cut ? fmt::format("at {}: the last packet is cut off", fields.offset())
                                : fmt::format("at {}: no packet", fields.offset());
  if (packets_ == 0) return Error{is_cut ? Code::kTruncated : Code::kDamaged, std::move(sentence)};
  sink_.missing(is_cut ? sentence : sentence + "; what follows is not read");
  return {};
}

Status PacketReader::take_run(Bytes compressed, Nesting nesting) {
  if (nesting == Nesting::kRun) {
    sink_.leave_out("compressed packets within compressed packets");
    return {};
  }
  const auto run = inflate_piece(compressed, kMaxUnpackedRunBytes);
  if (run.ok()) return read_all(*run, Nesting::kRun);
  sink_.missing(fmt::format("at {}: compressed packets: {}", at_, run.error().message));
  return {};
}

Status PacketReader::take(Bytes message, Nesting nesting) {
  Packet packet;
  if (!parse(message, packet)) {
    bad(false);
    return {};
  }
  if (packet.has_compressed) return take_run(packet.compressed, nesting);
  Sequence* const sequence = sequence_of(packet.sequence);
  if (sequence == nullptr) {
    sink_.leave_out("packets of sequences past the number that is followed");
    return {};
  }
  take_state(packet, *sequence);
  std::optional<int64_t> ns;
  if (packet.timestamp) {
    const uint32_t clock = packet.clock != 0 ? packet.clock : sequence->default_clock;
    ns = clocks_.time_of(packet.sequence, clock, *packet.timestamp);
  }
  if (packet.has_descriptor) bad(tracks_.describe(packet.descriptor));
  if (packet.has_thread) bad(tracks_.describe_thread(packet.sequence, packet.thread));
  if (packet.has_event) return take_event(packet, *sequence, ns);
  const bool is_known = packet.has_descriptor || packet.has_thread || packet.other == 0;
  const bool is_about =
      std::find(kAboutTheTrace.begin(), kAboutTheTrace.end(), packet.other) != kAboutTheTrace.end();
  if (!is_known && !is_about) sink_.leave_out(left_out_name(packet.other));
  return {};
}

// ---- the state of a sequence

Sequence* PacketReader::sequence_of(uint32_t id) {
  const auto known = sequences_.find(id);
  if (known != sequences_.end()) return &known->second;
  return sequences_.size() == kMaxSequences ? nullptr : &sequences_[id];
}

void PacketReader::forget(Sequence& sequence) {
  interned_ -= sequence.names.size() + sequence.sources.size();
  for (const auto& [iid, name] : sequence.names) interned_bytes_ -= name.size();
  for (const auto& [iid, source] : sequence.sources) interned_bytes_ -= source.file.size();
  sequence = {};
}

void PacketReader::take_state(const Packet& packet, Sequence& sequence) {
  if (packet.dropped) sequence.has_state = false;
  if ((packet.flags & kIncrementalStateCleared) != 0) {
    forget(sequence);
    sequence.has_state = true;
  }
  if (!packet.defaults.empty()) take_defaults(packet.defaults, sequence);
  if (!packet.snapshot.empty() && !clocks_.take_snapshot(packet.sequence, packet.snapshot)) {
    sink_.leave_out("clock snapshots without a clock that is known");
  }
  if (!packet.interned.empty()) take_interned(packet.interned, sequence);
}

void PacketReader::take_defaults(Bytes message, Sequence& sequence) {
  ProtoFields fields(message);
  while (fields.next()) {
    if (fields.field() == TracePacketDefaults::kTimestampClockId) {
      sequence.default_clock = static_cast<uint32_t>(fields.value());
    } else if (fields.field() == TracePacketDefaults::kTrackEventDefaults) {
      ProtoFields event(fields.bytes());
      while (event.next()) {
        if (event.field() == TrackEventDefaults::kTrackUuid) sequence.default_track = event.value();
      }
      bad(event.ok());
    }
  }
  bad(fields.ok());
}

bool PacketReader::has_room(size_t bytes) {
  if (interned_ >= kMaxInternedNames || bytes > kMaxInternedBytes - interned_bytes_) {
    sink_.leave_out("names past the number that is kept");
    return false;
  }
  ++interned_;
  interned_bytes_ += bytes;
  return true;
}

void PacketReader::take_interned(Bytes message, Sequence& sequence) {
  ProtoFields fields(message);
  while (fields.next()) {
    const bool is_name = fields.field() == InternedData::kEventNames;
    if (!is_name && fields.field() != InternedData::kSourceLocations) continue;
    static_assert(InternedName::kIid == SourceLocation::kIid);
    static_assert(InternedName::kName == SourceLocation::kFileName);
    uint64_t iid = 0, line = 0;
    std::string_view text;
    ProtoFields entry(fields.bytes());
    while (entry.next()) {
      if (entry.field() == InternedName::kIid) iid = entry.value();
      if (entry.field() == InternedName::kName) text = utf8_prefix(entry.text(), kMaxTextBytes);
      if (entry.field() == SourceLocation::kLineNumber) line = entry.value();
    }
    bad(entry.ok());
    const bool is_there = is_name ? sequence.names.contains(iid) : sequence.sources.contains(iid);
    if (!entry.ok() || is_there || !has_room(text.size())) continue;
    if (is_name) {
      sequence.names.emplace(iid, text);
    } else {
      sequence.sources.emplace(iid, SourceLine{std::string(text), static_cast<uint32_t>(line)});
    }
  }
  bad(fields.ok());
}

// ---- events

std::string_view PacketReader::name_of(const Event& event, const Sequence& sequence) const {
  if (event.name_iid == 0) return event.name;
  const auto known = sequence.names.find(event.name_iid);
  return known == sequence.names.end() ? std::string_view() : known->second;
}

uint32_t PacketReader::function_of(const Event& event, Sequence& sequence) {
  const std::string_view name = name_of(event, sequence);
  if (event.source_iid != 0) {
    const auto known = sequence.sources.find(event.source_iid);
    if (known != sequence.sources.end()) {
      return sink_.function(name, known->second.file, known->second.line);
    }
  }
  if (!event.source.empty()) {
    std::string_view file;
    uint64_t line = 0;
    ProtoFields fields(event.source);
    while (fields.next()) {
      if (fields.field() == SourceLocation::kFileName) file = fields.text();
      if (fields.field() == SourceLocation::kLineNumber) line = fields.value();
    }
    bad(fields.ok());
    return sink_.function(name, file, static_cast<uint32_t>(line));
  }
  if (event.name_iid == 0 || name.empty()) return sink_.function(name);
  const auto [known, fresh] = sequence.functions.try_emplace(event.name_iid, 0);
  if (fresh) known->second = sink_.function(name);
  return known->second;
}

Status PacketReader::take_event(const Packet& packet, Sequence& sequence,
                                std::optional<int64_t> ns) {
  if ((packet.flags & kNeedsIncrementalState) != 0 && !sequence.has_state) {
    ++stateless_;
    return {};
  }
  Event event;
  if (!parse(packet.event, event)) {
    bad(false);
    return {};
  }
  if (!ns) {
    sink_.leave_out("events without a time, or on a clock without a snapshot");
    return {};
  }
  if (event.annotations != 0) sink_.leave_out("annotations of events", event.annotations);
  if (event.flows != 0) sink_.leave_out("flows", event.flows);
  if (!event.track) event.track = sequence.default_track;
  const TrackTable::Key key =
      event.track ? TrackTable::Key{0, *event.track} : TrackTable::Key{packet.sequence, 0};
  switch (event.type) {
    case static_cast<uint64_t>(EventType::kSliceBegin):
      return sink_.begin(tracks_.number_of(key), *ns, function_of(event, sequence));
    case static_cast<uint64_t>(EventType::kSliceEnd):
      return sink_.end(tracks_.number_of(key), *ns);
    case static_cast<uint64_t>(EventType::kInstant):
      return sink_.marker(*ns, name_of(event, sequence));
    case static_cast<uint64_t>(EventType::kCounter):
      sink_.leave_out("values of counters");
      return {};
    default:
      break;
  }
  return take_legacy(event, tracks_.number_of(key), *ns, function_of(event, sequence));
}

// As Chrome wrote its own events before they had a type.
Status PacketReader::take_legacy(const Event& event, uint32_t track, int64_t ns,
                                 uint32_t function) {
  uint64_t phase = 0, duration_us = 0;
  ProtoFields fields(event.legacy);
  while (fields.next()) {
    if (fields.field() == LegacyEvent::kPhase) phase = fields.value();
    if (fields.field() == LegacyEvent::kDurationUs) duration_us = fields.value();
  }
  bad(fields.ok());
  if (phase == 'B') return sink_.begin(track, ns, function);
  if (phase == 'E') return sink_.end(track, ns);
  if (phase == 'X') return sink_.call(track, ns, duration_us * kNsOfMicrosecond, function);
  sink_.leave_out("events of no type, or of an older one");
  return {};
}

}  // namespace

bool looks_like_perfetto(Bytes file) {
  constexpr auto kFields =
      std::to_array<uint32_t>({1,  2,  3,  6,  8,  9,  10, 11, 12, 13, 33, 35, 36,
                               42, 43, 44, 45, 50, 58, 59, 60, 69, 87, 89, 133});
  if (file.empty() || file[0] != kPacketTag) return false;
  ProtoFields fields(file);
  if (!fields.next() || fields.bytes().empty()) return false;
  ProtoFields packet(fields.bytes());
  bool is_known = false;
  while (packet.next()) {
    is_known |= std::find(kFields.begin(), kFields.end(), packet.field()) != kFields.end();
  }
  return packet.ok() && is_known;
}

Status read_packets(Bytes file, TimelineSink& sink) {
  return PacketReader(file, sink).run();
}

}  // namespace collect::perfetto
