#include "formats/perfetto/writer.h"

#include <algorithm>

#include "formats/core/encoding/deflate.h"
#include "formats/core/text/utf8_text.h"

namespace collect::perfetto {
namespace {

// A packet of one call takes at most: 8 fields of a tag of two bytes and a varint, and lengths.
constexpr size_t kShortPacketBytes = 64;
constexpr uint8_t kTagTimestamp = proto_tag(TracePacket::kTimestamp, ProtoWire::kVarint);
constexpr uint8_t kTagSequence =
    proto_tag(TracePacket::kTrustedPacketSequenceId, ProtoWire::kVarint);
constexpr uint8_t kTagFlags = proto_tag(TracePacket::kSequenceFlags, ProtoWire::kVarint);
constexpr uint8_t kTagTrackEvent = proto_tag(TracePacket::kTrackEvent, ProtoWire::kBytes);
constexpr uint8_t kTagType = proto_tag(TrackEvent::kType, ProtoWire::kVarint);
constexpr uint8_t kTagNameIid = proto_tag(TrackEvent::kNameIid, ProtoWire::kVarint);
constexpr uint32_t kTagSource = proto_tag(TrackEvent::kSourceLocationIid, ProtoWire::kVarint);
constexpr uint8_t kTagPacket = proto_tag(Trace::kPacket, ProtoWire::kBytes);

}  // namespace

// ---- packets

// Where a packet ends.
void Writer::pass_on() {
  if (run_.size() < kMaxRunBytes) return;
  if (status_.ok()) status_ = out_.write(run_);
  run_.clear();
}

Status Writer::finish() {
  if (status_.ok() && !run_.empty()) status_ = out_.write(run_);
  run_.clear();
  return status_;
}

// A packet of the sequence that has no state: it has its own time and track.
void Writer::put_absolute(uint64_t ns) {
  proto_.varint(TracePacket::kTimestamp, ns);
  proto_.varint(TracePacket::kTimestampClockId, kClockBoottime);
  proto_.varint(TracePacket::kTrustedPacketSequenceId, kGlobalSequence);
}

// Valid until the next call.
std::string_view Writer::clean(std::string_view text) {
  text = utf8_prefix(text, kMaxTextBytes);
  if (is_utf8(text)) return text;
  text_.clear();
  append_utf8(text, text_);
  return text_;
}

// ---- tracks

void Writer::add_process(const ProcessTrack& process, uint64_t start_ns) {
  const size_t packet = proto_.begin(Trace::kPacket);
  put_absolute(start_ns);
  const size_t track = proto_.begin(TracePacket::kTrackDescriptor);
  proto_.varint(TrackDescriptor::kUuid, process.uuid);
  const size_t inner = proto_.begin(TrackDescriptor::kProcess);
  proto_.signed_varint(ProcessDescriptor::kPid, process.pid);
  for (const std::string& word : process.command_line) {
    proto_.text(ProcessDescriptor::kCmdline, clean(word));
  }
  proto_.text(ProcessDescriptor::kProcessName, clean(process.name));
  proto_.end(inner);
  proto_.end(track);
  proto_.end(packet);
  pass_on();
}

void Writer::add_track(const PlainTrack& track, uint64_t start_ns) {
  put_track(track, start_ns, false);
}

void Writer::add_counter(const PlainTrack& track, uint64_t start_ns) {
  put_track(track, start_ns, true);
}

void Writer::put_track(const PlainTrack& plain, uint64_t start_ns, bool is_counter) {
  const size_t packet = proto_.begin(Trace::kPacket);
  put_absolute(start_ns);
  const size_t track = proto_.begin(TracePacket::kTrackDescriptor);
  proto_.varint(TrackDescriptor::kUuid, plain.uuid);
  proto_.varint(TrackDescriptor::kParentUuid, plain.parent_uuid);
  proto_.text(TrackDescriptor::kName, clean(plain.name));
  if (is_counter) {
    const size_t counter = proto_.begin(TrackDescriptor::kCounter);
    proto_.text(CounterDescriptor::kUnitName, clean(plain.unit));
    proto_.end(counter);
  }
  proto_.end(track);
  proto_.end(packet);
  pass_on();
}

// ---- on plain tracks

void Writer::put_plain(uint64_t track, uint64_t ns, EventType type, std::string_view name,
                       const EventNotes& notes) {
  const size_t packet = proto_.begin(Trace::kPacket);
  put_absolute(ns);
  const size_t event = proto_.begin(TracePacket::kTrackEvent);
  proto_.varint(TrackEvent::kType, static_cast<uint64_t>(type));
  proto_.varint(TrackEvent::kTrackUuid, track);
  if (!name.empty()) proto_.text(TrackEvent::kName, clean(name));
  for (size_t i = 0; i < std::min(notes.size(), kMaxAnnotations); ++i) {
    const EventNote& note = notes[i];
    const size_t inner = proto_.begin(TrackEvent::kDebugAnnotations);
    proto_.text(DebugAnnotation::kName, clean(note.name));
    put_value(note);
    proto_.end(inner);
  }
  proto_.end(event);
  proto_.end(packet);
  pass_on();
}

void Writer::put_value(const EventNote& note) {
  switch (note.kind) {
    case EventNote::Kind::kFlag:
      proto_.varint(DebugAnnotation::kBoolValue, note.value != 0 ? 1 : 0);
      break;
    case EventNote::Kind::kNumber:
      proto_.varint(DebugAnnotation::kUintValue, note.value);
      break;
    case EventNote::Kind::kAddress:
      proto_.varint(DebugAnnotation::kPointerValue, note.value);
      break;
    case EventNote::Kind::kText:
      proto_.text(DebugAnnotation::kStringValue, clean(note.text));
      break;
  }
}

void Writer::slice(uint64_t track, uint64_t first_ns, uint64_t last_ns, std::string_view name,
                   const EventNotes& notes) {
  put_plain(track, first_ns, EventType::kSliceBegin, name, notes);
  put_plain(track, std::max(first_ns, last_ns), EventType::kSliceEnd, {}, {});
}

void Writer::instant(uint64_t track, uint64_t ns, std::string_view name, const EventNotes& notes) {
  put_plain(track, ns, EventType::kInstant, name, notes);
}

void Writer::count(uint64_t track, uint64_t ns, uint64_t value) {
  const size_t packet = proto_.begin(Trace::kPacket);
  put_absolute(ns);
  const size_t event = proto_.begin(TracePacket::kTrackEvent);
  proto_.varint(TrackEvent::kType, static_cast<uint64_t>(EventType::kCounter));
  proto_.varint(TrackEvent::kTrackUuid, track);
  proto_.varint(TrackEvent::kCounterValue, value);
  proto_.end(event);
  proto_.end(packet);
  pass_on();
}

// ---- threads

void Writer::begin_thread(const ThreadTrack& thread, uint64_t start_ns) {
  sequence_ = next_sequence_++;
  track_ = thread.uuid;
  depth_ = 0;
  too_deep_ = 0;
  const size_t packet = proto_.begin(Trace::kPacket);
  put_absolute(start_ns);
  const size_t track = proto_.begin(TracePacket::kTrackDescriptor);
  proto_.varint(TrackDescriptor::kUuid, thread.uuid);
  const size_t inner = proto_.begin(TrackDescriptor::kThread);
  proto_.signed_varint(ThreadDescriptor::kPid, thread.pid);
  proto_.signed_varint(ThreadDescriptor::kTid, thread.tid);
  if (!thread.name.empty()) {
    proto_.text(ThreadDescriptor::kThreadName, clean(thread.name));
  }
  proto_.end(inner);
  proto_.end(track);
  proto_.end(packet);
  pass_on();
  put_state(true, start_ns);
}

// The state that all later packets of the sequence lean on: its clock, and whose track it is.
void Writer::put_state(bool is_first, uint64_t ns) {
  ++generation_;
  next_iid_ = 1;
  note_names_.clear();
  last_ns_ = ns;
  const size_t packet = proto_.begin(Trace::kPacket);
  proto_.varint(TracePacket::kTrustedPacketSequenceId, sequence_);
  proto_.varint(TracePacket::kSequenceFlags, kIncrementalStateCleared);
  if (is_first) {
    proto_.varint(TracePacket::kFirstPacketOnSequence, 1);
  } else {
    proto_.varint(TracePacket::kPreviousPacketDropped, 1);
  }
  const size_t defaults = proto_.begin(TracePacket::kTracePacketDefaults);
  proto_.varint(TracePacketDefaults::kTimestampClockId, kClockOfSequence);
  const size_t event = proto_.begin(TracePacketDefaults::kTrackEventDefaults);
  proto_.varint(TrackEventDefaults::kTrackUuid, track_);
  proto_.end(event);
  proto_.end(defaults);
  const size_t snapshot = proto_.begin(TracePacket::kClockSnapshot);
  for (const uint32_t id : {kClockBoottime, kClockOfSequence}) {
    const size_t clock = proto_.begin(ClockSnapshot::kClocks);
    proto_.varint(Clock::kClockId, id);
    proto_.varint(Clock::kTimestamp, ns);
    if (id == kClockOfSequence) proto_.varint(Clock::kIsIncremental, 1);
    proto_.end(clock);
  }
  proto_.end(snapshot);
  proto_.end(packet);
  pass_on();
}

uint64_t Writer::step_to(uint64_t ns) {
  if (ns < last_ns_) {
    ++moved_;
    return 0;
  }
  const uint64_t step = ns - last_ns_;
  last_ns_ = ns;
  return step;
}

// A call or its end without anything else: nearly all packets.
void Writer::put_short(uint64_t ns, EventType type, Interned function) {
  const uint64_t step = step_to(ns);
  const size_t at = run_.size();
  run_.resize(at + kShortPacketBytes);
  uint8_t* const packet = run_.data() + at;
  uint8_t* to = packet + 2;  // behind tag and length, which is below 128
  *to++ = kTagTimestamp;
  to += write_uleb128(to, step);
  *to++ = kTagSequence;
  to += write_uleb128(to, sequence_);
  *to++ = kTagFlags;
  *to++ = kNeedsIncrementalState;
  *to++ = kTagTrackEvent;
  uint8_t* const event = to++;
  *to++ = kTagType;
  *to++ = static_cast<uint8_t>(type);
  if (function.iid != 0) {
    *to++ = kTagNameIid;
    to += write_uleb128(to, function.iid);
  }
  if (function.has_source) {
    to += write_uleb128(to, kTagSource);
    to += write_uleb128(to, function.iid);
  }
  *event = static_cast<uint8_t>(to - event - 1);
  packet[0] = kTagPacket;
  packet[1] = static_cast<uint8_t>(to - packet - 2);
  run_.resize(at + static_cast<size_t>(to - packet));
  pass_on();
}

void Writer::put_new(uint64_t ns, uint32_t function, const FunctionText& text,
                     const EventNotes* notes) {
  if (function >= names_.size()) names_.resize(function + 1);
  names_[function] = {generation_, next_iid_++, !text.file.empty()};
  put_event(ns, EventType::kSliceBegin, names_[function], &text, notes);
}

void Writer::put_event(uint64_t ns, EventType type, Interned function, const FunctionText* new_text,
                       const EventNotes* notes) {
  const size_t packet = proto_.begin(Trace::kPacket);
  proto_.varint(TracePacket::kTimestamp, step_to(ns));
  proto_.varint(TracePacket::kTrustedPacketSequenceId, sequence_);
  proto_.varint(TracePacket::kSequenceFlags, kNeedsIncrementalState);
  const size_t event = proto_.begin(TracePacket::kTrackEvent);
  proto_.varint(TrackEvent::kType, static_cast<uint64_t>(type));
  if (function.iid != 0) proto_.varint(TrackEvent::kNameIid, function.iid);
  const size_t known_names = note_names_.size();
  if (notes != nullptr) put_notes(*notes);
  if (function.has_source) proto_.varint(TrackEvent::kSourceLocationIid, function.iid);
  proto_.end(event);
  if (new_text != nullptr || note_names_.size() != known_names) {
    const size_t data = proto_.begin(TracePacket::kInternedData);
    if (new_text != nullptr) {
      put_interned(InternedData::kEventNames, function.iid, new_text->name);
      if (function.has_source) put_source(function.iid, *new_text);
    }
    for (size_t i = known_names; i < note_names_.size(); ++i) {
      put_interned(InternedData::kDebugAnnotationNames, static_cast<uint32_t>(i + 1),
                   note_names_[i]);
    }
    proto_.end(data);
  }
  proto_.end(packet);
  pass_on();
}

void Writer::put_interned(uint32_t field, uint32_t iid, std::string_view name) {
  const size_t entry = proto_.begin(field);
  proto_.varint(InternedName::kIid, iid);
  proto_.text(InternedName::kName, clean(name));
  proto_.end(entry);
}

void Writer::put_source(uint32_t iid, const FunctionText& text) {
  const size_t entry = proto_.begin(InternedData::kSourceLocations);
  proto_.varint(SourceLocation::kIid, iid);
  proto_.text(SourceLocation::kFileName, clean(text.file));
  proto_.text(SourceLocation::kFunctionName, clean(text.name));
  if (text.line != 0) proto_.varint(SourceLocation::kLineNumber, text.line);
  proto_.end(entry);
}

void Writer::put_notes(const EventNotes& notes) {
  for (size_t i = 0; i < std::min(notes.size(), kMaxAnnotations); ++i) {
    const EventNote& note = notes[i];
    auto known = std::find(note_names_.begin(), note_names_.end(), note.name);
    const size_t inner = proto_.begin(TrackEvent::kDebugAnnotations);
    if (known == note_names_.end() && note_names_.size() == kMaxAnnotations) {
      proto_.text(DebugAnnotation::kName, clean(note.name));
    } else {
      if (known == note_names_.end()) {
        known = note_names_.emplace(known, note.name);
      }
      proto_.varint(DebugAnnotation::kNameIid,
                    static_cast<uint64_t>(known - note_names_.begin()) + 1);
    }
    put_value(note);
    proto_.end(inner);
  }
}

void Writer::end_call(uint64_t ns, const EventNotes* notes) {
  if (too_deep_ != 0) {
    --too_deep_;
    return;
  }
  if (depth_ == 0) return;
  --depth_;
  if (notes == nullptr || notes->empty()) {
    put_short(ns, EventType::kSliceEnd, {});
  } else {
    put_event(ns, EventType::kSliceEnd, {}, nullptr, notes);
  }
}

void Writer::lose(uint64_t first_ns, uint64_t last_ns) {
  too_deep_ = 0;
  while (depth_ != 0) end_call(first_ns);
  put_state(false, std::max({first_ns, last_ns, last_ns_}));
}

void Writer::end_thread() {
  depth_ = 0;
}

void append_compressed_run(ZlibPieces& pieces, std::vector<uint8_t>& to, Bytes run) {
  ProtoWriter proto(to);
  const size_t packet = proto.begin(Trace::kPacket);
  const size_t inner = proto.begin(TracePacket::kCompressedPackets);
  pieces.append(to, run);
  proto.end(inner);
  proto.end(packet);
}

}  // namespace collect::perfetto
