#include "formats/perfetto/track_table.h"

#include "formats/core/encoding/protobuf.h"
#include "formats/core/text/utf8_text.h"
#include "formats/perfetto/layout.h"
#include "formats/perfetto/reader.h"

namespace collect::perfetto {

TrackTable::Track* TrackTable::track_of(Key key) {
  const auto known = tracks_.find(key);
  if (known != tracks_.end()) return &known->second;
  if (tracks_.size() == kMaxTrackDescriptors) return nullptr;
  return &tracks_[key];
}

void TrackTable::keep(std::string& to, std::string_view text) {
  text = utf8_prefix(text, kMaxTextBytes);
  if (text.empty() || text.size() > kMaxDescriptorBytes - name_bytes_) return;
  name_bytes_ += text.size();
  name_bytes_ -= to.size();
  to = text;
}

bool TrackTable::take_thread(Bytes message, Track& track) {
  ProtoFields fields(message);
  while (fields.next()) {
    if (fields.field() == ThreadDescriptor::kPid) {
      track.pid = static_cast<uint32_t>(fields.value());
      track.has_pid = true;
    } else if (fields.field() == ThreadDescriptor::kTid) {
      track.tid = static_cast<uint32_t>(fields.value());
    } else if (fields.field() == ThreadDescriptor::kThreadName) {
      keep(track.name, fields.text());
    }
  }
  return fields.ok();
}

bool TrackTable::take_process(Bytes message, Track& track) {
  std::string_view name, command;
  ProtoFields fields(message);
  while (fields.next()) {
    if (fields.field() == ProcessDescriptor::kPid) {
      track.pid = static_cast<uint32_t>(fields.value());
      track.has_pid = true;
    } else if (fields.field() == ProcessDescriptor::kCmdline && command.empty()) {
      command = fields.text();
    } else if (fields.field() == ProcessDescriptor::kProcessName) {
      name = fields.text();
    }
  }
  if (name.empty()) name = command;
  if (!track.has_pid || name.empty()) return fields.ok();
  keep(process_names_[track.pid], name);
  keep(track.name, name);
  return fields.ok();
}

bool TrackTable::describe(Bytes message) {
  ProtoFields fields(message);
  Key key;
  while (fields.next()) {
    if (fields.field() == TrackDescriptor::kUuid) key.uuid = fields.value();
  }
  if (!fields.ok()) return false;
  Track* const track = track_of(key);
  if (track == nullptr) {
    sink_.leave_out("tracks past the number that is followed");
    return true;
  }
  bool ok = true;
  for (ProtoFields again(message); again.next();) {
    if (again.field() == TrackDescriptor::kParentUuid) {
      track->parent = again.value();
      track->has_parent = true;
    } else if (again.field() == TrackDescriptor::kName) {
      keep(track->name, again.text());
    } else if (again.field() == TrackDescriptor::kThread) {
      ok = take_thread(again.bytes(), *track) && ok;
    } else if (again.field() == TrackDescriptor::kProcess) {
      ok = take_process(again.bytes(), *track) && ok;
    }
  }
  return ok;
}

bool TrackTable::describe_thread(uint32_t sequence, Bytes message) {
  Track* const track = track_of({sequence, 0});
  return track == nullptr || take_thread(message, *track);
}

uint32_t TrackTable::number_of(Key key) {
  Track* const track = track_of(key);
  if (track == nullptr) return TimelineSink::kNone;
  if (!track->is_numbered) track->number = sink_.add_track();
  track->is_numbered = true;
  return track->number;
}

uint32_t TrackTable::process_of(uint32_t pid) {
  const auto known = processes_.find(pid);
  if (known != processes_.end()) return known->second;
  const uint32_t number = sink_.add_process(pid);
  processes_.emplace(pid, number);
  const auto name = process_names_.find(pid);
  if (name != process_names_.end()) sink_.name_process(number, name->second);
  return number;
}

// The track itself, or the nearest above it that says of which process it is.
const TrackTable::Track* TrackTable::with_pid(const Track& track) const {
  const Track* at = &track;
  for (size_t i = 0; i < kMaxTrackParents && !at->has_pid && at->has_parent; ++i) {
    const auto parent = tracks_.find({0, at->parent});
    if (parent == tracks_.end()) return nullptr;
    at = &parent->second;
  }
  return at->has_pid ? at : nullptr;
}

void TrackTable::finish() {
  for (const auto& [key, track] : tracks_) {
    if (!track.is_numbered || track.number == TimelineSink::kNone) continue;
    const Track* const owner = with_pid(track);
    if (owner != nullptr) sink_.place_track(track.number, process_of(owner->pid), track.tid);
    sink_.name_track(track.number, track.name);
  }
}

}  // namespace collect::perfetto
