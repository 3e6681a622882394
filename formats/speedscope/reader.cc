#include "formats/speedscope/reader.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/core/text/decimal.h"
#include "formats/core/text/json_text.h"
#include "formats/core/timeline/timeline_stack.h"

namespace collect::speedscope {
namespace {

constexpr std::string_view kNoFrame = "events of frames that the file does not have";
constexpr std::string_view kNoTime = "events without a time, samples without a weight";

struct Piece {
  std::string_view text;  // one value, as written
  uint64_t offset = 0;
};

// One profile, of which the members may come in any order.
struct Profile {
  std::string type, name, unit, start;
  Piece events, samples, weights;
};

std::optional<uint32_t> index_of(std::string_view text) {
  uint32_t index = 0;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, index);
  if (parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  return index;
}

class ProfileReader {
 public:
  ProfileReader(Bytes file, TimelineSink& sink) : text_(json_text_of(file)), sink_(sink) {}

  Status run();

 private:
  static JsonCursor cursor_over(const Piece& piece) {
    return JsonCursor(piece.text, piece.offset, kMaxReadDepth, kMaxReadTextBytes);
  }
  static bool take(JsonCursor& cursor, Piece& piece) {
    (void)cursor.peek();
    piece.offset = cursor.offset();
    return cursor.raw(piece.text);
  }

  Status read_document(JsonCursor& cursor);
  Status read_frames(JsonCursor& cursor);
  bool read_frame(JsonCursor& cursor);
  Status read_all(JsonCursor& cursor);
  Status read_profile(const Piece& piece);
  Status read_events(const Profile& profile, int digits);
  Status read_samples(const Profile& profile, int digits);
  bool read_stack(JsonCursor& cursor);
  int digits_of(const Profile& profile);
  Status stop(const JsonCursor& cursor);

  const std::string_view text_;
  TimelineSink& sink_;
  std::optional<std::vector<uint32_t>> frames_;  // as the sink numbers them
  uint32_t process_ = TimelineSink::kNone;
  uint32_t track_ = TimelineSink::kNone;  // of the profile
  std::vector<uint32_t> stack_;           // of the sample
  uint64_t profiles_ = 0;
};

// ---- the document

// Nothing follows the place where the cursor stopped.
Status ProfileReader::stop(const JsonCursor& cursor) {
  if (cursor.ok()) return {};
  const bool is_cut = cursor.offset() >= text_.size();
  std::string sentence = is_cut ? fmt::format("the file is cut off at {}", cursor.offset())
                                : fmt::format("at {}: {}", cursor.offset(), cursor.error());
  if (profiles_ == 0) return Error{is_cut ? Code::kTruncated : Code::kDamaged, std::move(sentence)};
  sink_.missing(is_cut ? sentence : sentence + "; what follows is not read");
  return {};
}

Status ProfileReader::run() {
  process_ = sink_.add_process(0);
  JsonCursor cursor(text_, 0, kMaxReadDepth, kMaxReadTextBytes);
  COLLECT_TRY(read_document(cursor));
  COLLECT_TRY(stop(cursor));
  if (profiles_ == 0) return Error{Code::kDamaged, "the file has no profile"};
  return {};
}

Status ProfileReader::read_document(JsonCursor& cursor) {
  if (!cursor.enter_object()) return {};
  std::string key, name;
  std::optional<Piece> profiles;  // that come before the frames
  while (cursor.next_member(key)) {
    if (key == "shared" && cursor.peek() == JsonKind::kObject) {
      COLLECT_TRY(read_frames(cursor));
    } else if (key == "profiles" && frames_ && cursor.peek() == JsonKind::kArray) {
      COLLECT_TRY(read_all(cursor));
    } else if (key == "profiles" && cursor.peek() == JsonKind::kArray) {
      if (!take(cursor, profiles.emplace())) return {};
    } else if (key == "name") {
      if (!read_json_text(cursor, name)) return {};
      sink_.name_process(process_, name);
    } else {
      cursor.skip();
    }
  }
  if (!profiles || !cursor.ok()) return {};
  if (!frames_) return Error{Code::kDamaged, "the file has no frames"};
  JsonCursor inner = cursor_over(*profiles);
  return read_all(inner);
}

Status ProfileReader::read_frames(JsonCursor& cursor) {
  std::string key;
  if (!cursor.enter_object()) return {};
  while (cursor.next_member(key)) {
    if (key != "frames" || cursor.peek() != JsonKind::kArray) {
      cursor.skip();
      continue;
    }
    frames_.emplace();
    if (!cursor.enter_array()) return {};
    while (cursor.next_element()) {
      if (frames_->size() == kMaxFrames) {
        return Error{Code::kLimit,
                     fmt::format("at {}: more than {} frames", cursor.offset(), kMaxFrames)};
      }
      if (!read_frame(cursor)) return {};
    }
  }
  return {};
}

bool ProfileReader::read_frame(JsonCursor& cursor) {
  std::string key, name, file, line;
  if (!cursor.enter_object()) return false;
  while (cursor.next_member(key)) {
    std::string* const text = key == "name" ? &name : key == "file" ? &file : &line;
    const bool is_read = text != &line || key == "line";
    if (is_read ? !read_json_text(cursor, *text) : !cursor.skip()) return false;
  }
  if (!cursor.ok()) return false;
  frames_->push_back(sink_.function(name, file, index_of(line).value_or(0)));
  return true;
}

Status ProfileReader::read_all(JsonCursor& cursor) {
  if (!cursor.enter_array()) return {};
  while (cursor.next_element()) {
    Piece profile;
    if (!take(cursor, profile)) return {};
    COLLECT_TRY(read_profile(profile));
    sink_.progress(cursor.offset());
  }
  return {};
}

// ---- profiles

Status ProfileReader::read_profile(const Piece& piece) {
  Profile profile;
  JsonCursor cursor = cursor_over(piece);
  std::string key;
  if (!cursor.enter_object()) return stop(cursor);
  while (cursor.next_member(key)) {
    bool ok = true;
    if (key == "type") {
      ok = read_json_text(cursor, profile.type);
    } else if (key == "name") {
      ok = read_json_text(cursor, profile.name);
    } else if (key == "unit") {
      ok = read_json_text(cursor, profile.unit);
    } else if (key == "startValue") {
      ok = read_json_text(cursor, profile.start);
    } else if (key == "events") {
      ok = take(cursor, profile.events);
    } else if (key == "samples") {
      ok = take(cursor, profile.samples);
    } else if (key == "weights") {
      ok = take(cursor, profile.weights);
    } else {
      ok = cursor.skip();
    }
    if (!ok) break;
  }
  if (!cursor.ok()) return stop(cursor);
  if (profile.type != "evented" && profile.type != "sampled") {
    sink_.leave_out("profiles that are neither evented nor sampled");
    return {};
  }
  ++profiles_;
  track_ = sink_.add_track();
  sink_.place_track(track_, process_, 0);
  sink_.name_track(track_, profile.name);
  const int digits = digits_of(profile);
  return profile.type == "evented" ? read_events(profile, digits) : read_samples(profile, digits);
}

int ProfileReader::digits_of(const Profile& profile) {
  if (profile.unit == "nanoseconds") return 0;
  if (profile.unit == "microseconds") return 3;
  if (profile.unit == "milliseconds") return 6;
  if (profile.unit == "seconds") return 9;
  sink_.remark(
      fmt::format("profile \"{}\" has the unit \"{}\", which is no time: one of it is "
                  "shown as a nanosecond",
                  profile.name, profile.unit));
  return 0;
}

Status ProfileReader::read_events(const Profile& profile, int digits) {
  JsonCursor cursor = cursor_over(profile.events);
  std::string key, type, frame, at;
  if (!cursor.enter_array()) return stop(cursor);
  while (cursor.next_element()) {
    type.clear(), frame.clear(), at.clear();
    if (!cursor.enter_object()) break;
    while (cursor.next_member(key)) {
      std::string* const text = key == "type" ? &type : key == "frame" ? &frame : &at;
      const bool is_read = text != &at || key == "at";
      if (is_read ? !read_json_text(cursor, *text) : !cursor.skip()) break;
    }
    if (!cursor.ok()) break;
    const auto index = index_of(frame);
    const auto ns = scaled_decimal(at, digits);
    if (!index || *index >= frames_->size()) {
      sink_.leave_out(kNoFrame);
    } else if (!ns) {
      sink_.leave_out(kNoTime);
    } else if (type == "O") {
      COLLECT_TRY(sink_.begin(track_, *ns, (*frames_)[*index]));
    } else if (type == "C") {
      COLLECT_TRY(sink_.end(track_, *ns));
    } else {
      sink_.leave_out("events that neither open nor close a frame");
    }
  }
  return stop(cursor);
}

// A stack, the outermost frame first.
bool ProfileReader::read_stack(JsonCursor& cursor) {
  stack_.clear();
  if (!cursor.enter_array()) return false;
  while (cursor.next_element()) {
    std::string_view number;
    if (!cursor.number(number)) return false;
    const auto index = index_of(number);
    if (!index || *index >= frames_->size()) {
      sink_.leave_out(kNoFrame);
    } else if (stack_.size() == kMaxStackFrames) {
      sink_.leave_out("frames of stacks deeper than is followed");
    } else {
      stack_.push_back((*frames_)[*index]);
    }
  }
  return cursor.ok();
}

// A sample holds until the next one. Calls that are in both continue.
Status ProfileReader::read_samples(const Profile& profile, int digits) {
  JsonCursor samples = cursor_over(profile.samples);
  JsonCursor weights = cursor_over(profile.weights);
  bool has_weights = weights.enter_array();
  if (!samples.enter_array()) return stop(samples);
  TimelineStack calls(sink_, track_, scaled_decimal(profile.start, digits).value_or(0));
  std::string text;
  while (samples.next_element()) {
    if (!read_stack(samples)) break;
    has_weights = has_weights && weights.next_element() && read_json_text(weights, text);
    const auto weight =
        has_weights ? scaled_decimal(text, digits) : std::optional<int64_t>(std::nullopt);
    if (!weight || *weight < 0) {
      sink_.leave_out(kNoTime);
      continue;
    }
    COLLECT_TRY(calls.last(stack_, static_cast<uint64_t>(*weight)));
  }
  COLLECT_TRY(calls.finish());
  return stop(samples);
}

bool is_profile(JsonCursor& cursor) {
  std::string key, type;
  if (!cursor.enter_array() || !cursor.next_element() || !cursor.enter_object()) return false;
  while (cursor.next_member(key)) {
    if (key == "type") return cursor.string(type) && (type == "evented" || type == "sampled");
    cursor.skip();
  }
  return false;
}

}  // namespace

bool looks_like_speedscope(Bytes file) {
  JsonCursor cursor(json_text_of(file.first(std::min(file.size(), kJsonSniffBytes))), 0,
                    kMaxReadDepth, kMaxReadTextBytes);
  if (cursor.peek() != JsonKind::kObject || !cursor.enter_object()) return false;
  std::string key, schema;
  while (cursor.next_member(key)) {
    if (key == "$schema") {
      return cursor.peek() == JsonKind::kString && cursor.string(schema) &&
             schema.find("speedscope") != std::string::npos;
    }
    if (key == "profiles") return is_profile(cursor);
    if (key == "shared") {
      return cursor.peek() == JsonKind::kObject && cursor.enter_object() &&
             cursor.next_member(key) && key == "frames";
    }
    cursor.skip();
  }
  return false;
}

Status read_profiles(Bytes file, TimelineSink& sink) {
  return ProfileReader(file, sink).run();
}

}  // namespace collect::speedscope
