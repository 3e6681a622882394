#include "formats/chrome/reader.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "formats/core/text/decimal.h"
#include "formats/core/text/json_text.h"
#include "formats/core/text/utf8_text.h"

namespace collect::chrome {
namespace {

constexpr int kDigitsOfMicroseconds = 3;
constexpr uint64_t kProgressEvents = 4096;

constexpr std::string_view kNoTime = "events without a time or a duration";

// What a session has no place for, by phase.
std::string_view left_out_name(std::string_view phase) {
  if (phase.size() != 1) return "events of an unknown phase";
  switch (phase[0]) {
    case 'b':
    case 'e':
    case 'n':
    case 'S':
    case 'T':
    case 'p':
    case 'F':
      return "asynchronous events (b, e, n, S, T, p, F)";
    case 's':
    case 't':
    case 'f':
      return "flow events (s, t, f)";
    case 'C':
      return "counter events (C)";
    case 'P':
      return "samples (P)";
    case 'N':
    case 'O':
    case 'D':
      return "object events (N, O, D)";
    case 'v':
    case 'V':
      return "memory dumps (v, V)";
    case 'R':
      return "mark events (R)";
    case 'c':
      return "clock synchronization events (c)";
    case '(':
    case ')':
      return "context events";
    default:
      return "events of an unknown phase";
  }
}

struct Event {
  std::string phase, name, pid, tid, scope, time, duration;
  std::string_view arguments;  // as written
  uint64_t arguments_offset = 0;

  void clear() {
    for (std::string* text : {&phase, &name, &pid, &tid, &scope, &time, &duration}) text->clear();
    arguments = {};
  }
};

uint32_t number_of(std::string_view text) {
  uint32_t number = 0;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number);
  return parsed.ec == std::errc() && parsed.ptr == end ? number : 0;
}

class EventReader {
 public:
  EventReader(Bytes file, TimelineSink& sink)
      : text_(json_text_of(file)),
        sink_(sink),
        cursor_(text_, 0, kMaxReadDepth, kMaxReadTextBytes) {}

  Status run();

 private:
  Status read_array();
  bool read_event();
  Status take();
  Status take_slice();
  Status take_instant(int64_t ns);
  void take_name();
  uint32_t process();
  uint32_t track();
  Status finish();
  // An element is expected and the bracket is there, behind a comma too many.
  bool at_bracket() {
    (void)cursor_.peek();
    return cursor_.ok() && cursor_.offset() < text_.size() && text_[cursor_.offset()] == ']';
  }

  const std::string_view text_;
  TimelineSink& sink_;
  JsonCursor cursor_;
  Event event_;
  bool is_array_ = false;      // the file is the array
  bool within_event_ = false;  // an event was begun, and is not read to its end
  bool ended_ = false;         // by a comma too many
  uint64_t events_ = 0;
  std::unordered_map<std::string, uint32_t> processes_;
  std::unordered_map<std::string, uint32_t> tracks_;  // by pid and tid
  std::string key_;
};

// ---- the file

Status EventReader::run() {
  if (cursor_.peek() == JsonKind::kArray) {
    is_array_ = true;
    COLLECT_TRY(read_array());
    return finish();
  }
  std::string key;
  if (cursor_.enter_object()) {
    while (!ended_ && cursor_.next_member(key)) {
      if (key == "traceEvents" && cursor_.peek() == JsonKind::kArray) {
        COLLECT_TRY(read_array());
      } else {
        cursor_.skip();
      }
    }
  }
  return finish();
}

Status EventReader::read_array() {
  if (!cursor_.enter_array()) return {};
  while (cursor_.next_element()) {
    if (at_bracket()) {
      ended_ = true;
      return {};
    }
    within_event_ = cursor_.peek() != JsonKind::kEnd;
    if (cursor_.peek() != JsonKind::kObject) {
      if (!cursor_.skip()) return {};
      sink_.leave_out("elements that are no events");
    } else {
      if (!read_event()) return {};
      COLLECT_TRY(take());
    }
    within_event_ = false;
    if (++events_ % kProgressEvents == 0) sink_.progress(cursor_.offset());
  }
  return {};
}

Status EventReader::finish() {
  if (cursor_.ok()) return {};
  const bool is_cut = cursor_.offset() >= text_.size();
  // The end of the array is optional where it is the whole file.
  if (is_cut && is_array_ && events_ != 0 && !within_event_) return {};
  std::string sentence = is_cut ? fmt::format("the file is cut off at {}", cursor_.offset())
                                : fmt::format("at {}: {}", cursor_.offset(), cursor_.error());
  if (events_ == 0) return Error{is_cut ? Code::kTruncated : Code::kDamaged, std::move(sentence)};
  sink_.missing(is_cut ? sentence : sentence + "; what follows is not read");
  return {};
}

bool EventReader::read_event() {
  event_.clear();
  if (!cursor_.enter_object()) return false;
  std::string& key = key_;
  while (cursor_.next_member(key)) {
    bool ok = true;
    if (key == "ph") {
      ok = read_json_text(cursor_, event_.phase);
    } else if (key == "name") {
      ok = read_json_text(cursor_, event_.name);
    } else if (key == "pid") {
      ok = read_json_text(cursor_, event_.pid);
    } else if (key == "tid") {
      ok = read_json_text(cursor_, event_.tid);
    } else if (key == "ts") {
      ok = read_json_text(cursor_, event_.time);
    } else if (key == "dur") {
      ok = read_json_text(cursor_, event_.duration);
    } else if (key == "s") {
      ok = read_json_text(cursor_, event_.scope);
    } else if (key == "args") {
      (void)cursor_.peek();
      event_.arguments_offset = cursor_.offset();
      ok = cursor_.raw(event_.arguments);
    } else {
      ok = cursor_.skip();
    }
    if (!ok) return false;
  }
  for (std::string* id : {&event_.pid, &event_.tid}) id->assign(utf8_prefix(*id, kMaxIdBytes));
  return cursor_.ok();
}

// ---- events

Status EventReader::take() {
  const std::string_view phase = event_.phase;
  if (phase == "M") {
    take_name();
    return {};
  }
  if (phase != "B" && phase != "E" && phase != "X" && phase != "i" && phase != "I") {
    sink_.leave_out(left_out_name(phase));
    return {};
  }
  if (event_.arguments.find(':') != std::string_view::npos) {
    sink_.leave_out("arguments of events");
  }
  return take_slice();
}

Status EventReader::take_slice() {
  const auto ns = scaled_decimal(event_.time, kDigitsOfMicroseconds);
  if (!ns) {
    sink_.leave_out(kNoTime);
    return {};
  }
  switch (event_.phase[0]) {
    case 'B':
      return sink_.begin(track(), *ns, sink_.function(event_.name));
    case 'E':
      return sink_.end(track(), *ns);
    case 'X':
      break;
    default:
      return take_instant(*ns);
  }
  const auto duration = scaled_decimal(event_.duration, kDigitsOfMicroseconds);
  if (!duration || *duration < 0) {
    sink_.leave_out(kNoTime);
    return {};
  }
  return sink_.call(track(), *ns, static_cast<uint64_t>(*duration), sink_.function(event_.name));
}

// Of the whole trace or of a process, it is a marker of the session.
Status EventReader::take_instant(int64_t ns) {
  if (event_.scope == "g" || event_.scope == "p") return sink_.marker(ns, event_.name);
  sink_.leave_out("instants of a thread");
  return {};
}

void EventReader::take_name() {
  const bool of_process = event_.name == "process_name";
  if (!of_process && event_.name != "thread_name") {
    sink_.leave_out("metadata other than names");
    return;
  }
  JsonCursor arguments(event_.arguments, event_.arguments_offset, kMaxReadDepth, kMaxReadTextBytes);
  std::string key, name;
  if (!arguments.enter_object()) return;
  while (arguments.next_member(key)) {
    if (key == "name" ? !read_json_text(arguments, name) : !arguments.skip()) return;
  }
  if (of_process) {
    sink_.name_process(process(), name);
  } else {
    sink_.name_track(track(), name);
  }
}

// ---- processes and threads

uint32_t EventReader::process() {
  if (const auto known = processes_.find(event_.pid); known != processes_.end()) {
    return known->second;
  }
  const uint32_t number = sink_.add_process(number_of(event_.pid));
  if (number == TimelineSink::kNone) return number;
  processes_.emplace(event_.pid, number);
  if (number_of(event_.pid) == 0) sink_.name_process(number, event_.pid);
  return number;
}

uint32_t EventReader::track() {
  key_.assign(event_.pid).append(1, '\0').append(event_.tid);
  if (const auto known = tracks_.find(key_); known != tracks_.end()) return known->second;
  const uint32_t number = sink_.add_track();
  if (number == TimelineSink::kNone) return number;
  tracks_.emplace(key_, number);
  sink_.place_track(number, process(), number_of(event_.tid));
  if (number_of(event_.tid) == 0) sink_.name_track(number, event_.tid);
  return number;
}

}  // namespace

bool looks_like_chrome(Bytes file) {
  JsonCursor cursor(json_text_of(file.first(std::min(file.size(), kJsonSniffBytes))), 0,
                    kMaxReadDepth, kMaxReadTextBytes);
  std::string key;
  if (cursor.peek() == JsonKind::kArray) {
    if (!cursor.enter_array() || !cursor.next_element() || !cursor.enter_object()) return false;
    while (cursor.next_member(key)) {
      if (key == "ph") return true;
      cursor.skip();
    }
    return false;
  }
  if (cursor.peek() != JsonKind::kObject || !cursor.enter_object()) return false;
  while (cursor.next_member(key)) {
    if (key == "traceEvents") return true;
    cursor.skip();
  }
  return false;
}

Status read_events(Bytes file, TimelineSink& sink) {
  return EventReader(file, sink).run();
}

}  // namespace collect::chrome
