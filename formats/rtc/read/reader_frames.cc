// Frames and objects: the part of a reader that every byte passes.
#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "formats/core/encoding/leb128.h"
#include "formats/rtc/read/reader_impl.h"

namespace collect::rtc {
namespace {

// The common case of one byte, without a call.
inline Leb128<uint64_t> read_int(Bytes bytes) {
  if (!bytes.empty() && bytes[0] < 0x80) return {bytes[0], 1, false};
  if (bytes.size() >= 2 && bytes[1] < 0x80) {
    return {uint64_t{bytes[0] & 0x7FU} | uint64_t{bytes[1]} << 7, 2, false};
  }
  return read_uleb128(bytes);
}

bool is_marker_payload(const uint8_t* payload) {
  return payload[0] == kMarkerFill && std::memcmp(payload, payload + 1, kMaxPayloadBytes - 1) == 0;
}

}  // namespace

Reader::Impl::Parsed Reader::Impl::bad(Rule rule, std::string sentence) {
  bad_rule_ = rule;
  bad_sentence_ = std::move(sentence);
  return Parsed::kBad;
}

Reader::Impl::Parsed Reader::Impl::parse(uint64_t at, Header& header) {
  const Bytes left = file_.subspan(at);
  const auto word = read_int(left);
  if (!word) {
    return word.truncated ? Parsed::kEnds : bad(Rule::kFrame, "an id of more than 64 bits");
  }
  header.id = word.value >> 1;
  header.more = (word.value & 1) != 0;
  header.head_bytes = word.size;
  header.stream = nullptr;
  int fixed = -1;
  if (header.id >= kFirstStreamId) {
    header.stream = table_.find(header.id);
    if (header.stream == nullptr) {
      return bad(table_.empty() ? Rule::kMetaMissing : Rule::kUnknownStream,
                 fmt::format("unknown stream id {}", header.id));
    }
    fixed = header.stream->torn_rest != 0 ? header.stream->torn_rest : header.stream->fixed_length;
  } else if (header.id == kNulId) {
    fixed = 0;
  } else if (header.id == kMarkerId) {
    fixed = static_cast<int>(kMaxPayloadBytes);
  } else if (header.id >= kPlatformId) {
    if (header.id == kPlatformId) detect_special(at + word.size);
    if (special_ == SpecialFrames::kFixed) fixed = 4;
  }
  if (fixed >= 0) {
    header.payload_bytes = static_cast<size_t>(fixed);
  } else {
    const auto length = read_int(left.subspan(word.size));
    if (!length) {
      return length.truncated ? Parsed::kEnds : bad(Rule::kFrame, "a length of more than 64 bits");
    }
    if (length.value > kMaxPayloadBytes) {
      return bad(Rule::kFrame, fmt::format("payload of {} bytes", length.value));
    }
    header.payload_bytes = length.value;
    header.head_bytes += length.size;
  }
  if (header.head_bytes + header.payload_bytes > left.size()) return Parsed::kEnds;
  if (header.id == kMarkerId && !is_marker_payload(left.data() + header.head_bytes)) {
    return bad(Rule::kMarkerPayload, "bad Marker payload");
  }
  return Parsed::kFrame;
}

// Called for a frame that ends behind the place where a Marker or an index should begin.
bool Reader::Impl::crosses_grid(uint64_t at, uint64_t id, uint64_t end) {
  if (unit_end_ < end) {
    if (at < unit_end_ && is_marker(file_, unit_end_)) {
      bad(Rule::kMarkerOverrun, fmt::format("a frame reaches over the Marker at {}", unit_end_));
      return true;
    }
    unit_end_ = kNowhere;
  }
  while (next_minor_ < end) {
    const uint64_t place = next_minor_;
    if (at < place) {
      if (options_.repair_torn_frames && is_minor_index(file_, place, marker_ + kMarkerBytes)) {
        bad(Rule::kMinorOverrun, fmt::format("a frame reaches over the index at {}", place));
        return true;
      }
      findings_.add_lazily(Severity::kWarning, Rule::kMinorOverrun, at, [&] {
        return fmt::format("a frame reaches over the place of an index at {}", place);
      });
    } else if (id != kMinorIndexId && id != kMarkerId) {
      findings_.add_lazily(Severity::kWarning, Rule::kMinorMissing, at,
                           [] { return std::string("no index where the grid wants one"); });
    }
    set_minor(place + geometry_.minor_bytes);
  }
  set_boundary();
  return false;
}

void Reader::Impl::set_boundary() {
  // With repair on, also the place of the Crc is one that no frame reaches over.
  const uint64_t crc_bytes = special_ == SpecialFrames::kFixed ? 5 : 6;
  const bool before_crc = options_.repair_torn_frames && unit_end_ != kNowhere;
  boundary_ = std::min(before_crc ? unit_end_ - crc_bytes : unit_end_, next_minor_);
}

// A frame of a fixed length that continues behind the index or the Crc which is in its middle.
// Leaves in `header` what is before.
bool Reader::Impl::is_torn(uint64_t at, Header& header) {
  if (!options_.repair_torn_frames || header.stream == nullptr || !header.more) return false;
  if (header.stream->fixed_length <= 0) return false;
  const uint64_t begin = at + header.head_bytes;
  const uint64_t place = boundary_;
  if (begin > place || begin + header.payload_bytes <= place) return false;
  const bool is_index =
      place == next_minor_ && is_minor_index(file_, place, marker_ + kMarkerBytes);
  const bool is_crc = place != next_minor_ && file_[place] == kCrcId << 1 &&
                      (place + kCrcPayloadBytes >= file_.size() || is_marker(file_, unit_end_));
  if (!is_index && !is_crc) return false;
  findings_.add_lazily(Severity::kWarning, Rule::kTornFrame, at, [&] {
    return fmt::format("{}: a frame is torn at {}", header.stream->info.label(), place);
  });
  header.stream->torn_rest = static_cast<int>(begin + header.payload_bytes - place);
  header.payload_bytes = place - begin;
  return true;
}

Reader::Impl::Step Reader::Impl::step(Frame& frame, Object& object) {
  Header header;
  for (;;) {
    if (pos_ >= file_.size()) {
      end_of_file(0);
      return Step::kEnd;
    }
    const uint64_t at = pos_;
    Parsed parsed = parse(at, header);
    uint64_t end = at + header.head_bytes + header.payload_bytes;
    if (parsed == Parsed::kFrame) {
      if (header.stream != nullptr) header.stream->torn_rest = 0;
      if (end > boundary_) {
        if (is_torn(at, header)) {
          end = boundary_;
        } else if (crosses_grid(at, header.id, end)) {
          parsed = Parsed::kBad;
        }
      }
    }
    if (parsed == Parsed::kEnds) {
      end_of_file(file_.size() - at);
      return Step::kEnd;
    }
    if (parsed == Parsed::kBad) {
      findings_.add(Severity::kError, bad_rule_, at, bad_sentence_);
      if (!resync(at)) return Step::kEnd;
      continue;
    }
    ++frames_;
    pos_ = end;
    if (options_.exact_index_targets) starts_.add(at);
    const Bytes payload = file_.subspan(at + header.head_bytes, header.payload_bytes);
    frame.offset = at;
    frame.id = header.id;
    frame.more = header.more;
    frame.payload = payload;
    if (header.stream == nullptr) {
      frame.stream = nullptr;
      on_special(at, header, payload);
      return Step::kFrame;
    }
    frame.stream = &header.stream->info;
    const bool completed = take(at, header, payload, object);
    frame.object_offset = header.stream->offset;
    return completed ? Step::kObject : Step::kFrame;
  }
}

// Whether the frame completed an object.
bool Reader::Impl::take(uint64_t at, const Header& header, Bytes payload, Object& object) {
  StreamState& stream = *header.stream;
  if (after_crc_) {
    after_crc_ = false;
    findings_.add_lazily(Severity::kWarning, Rule::kAfterCrc, at,
                         [] { return std::string("frames behind the Crc of the Unit"); });
  }
  if (!stream.open) {
    begin_object(stream, at);
    if (!header.more) {
      stream.frames = 1;
      stream.size = payload.size();
      single_[0] = payload;
      give(stream, object);
      object.fragments_ = std::span<const Bytes>(single_, payload.empty() ? 0u : 1u);
      if (stream.own_clock != nullptr) tick(stream, at, object);
      return true;
    }
    stream.open = true;
    stream.place = open_.size();
    open_.push_back(&stream);
  }
  add_fragment(stream, payload, at);
  if (header.more) return false;
  if (stream.discarding) {
    close(stream);
    return false;
  }
  give(stream, object);
  completed_.swap(stream.fragments);
  open_fragments_ -= completed_.size();
  close(stream);
  object.fragments_ = completed_;
  if (stream.own_clock != nullptr) tick(stream, at, object);
  return true;
}

void Reader::Impl::begin_object(StreamState& stream, uint64_t at) {
  stream.offset = at;
  stream.frames = 0;
  stream.size = 0;
  stream.discarding = false;
  stream.possibly_incomplete = stream.epoch != epoch_ && !clean_;
  stream.epoch = epoch_;
  stream.time_ns.reset();
  stream.time_uncertain = false;
  if (stream.clock != nullptr && stream.clock->ns) {
    stream.time_ns = stream.clock->ns;
    stream.time_uncertain = stream.clock->epoch != epoch_;
  }
}

void Reader::Impl::add_fragment(StreamState& stream, Bytes payload, uint64_t at) {
  ++stream.frames;
  stream.size += payload.size();
  if (payload.empty() || stream.discarding) return;
  if (stream.size > options_.max_object_bytes || open_fragments_ >= options_.max_open_fragments) {
    findings_.add(Severity::kError, Rule::kObjectLimit, at,
                  stream.info.label() + ": an object beyond the limits is left out");
    if (options_.observer != nullptr) options_.observer->object_dropped(stream.info, stream.offset);
    open_fragments_ -= stream.fragments.size();
    stream.fragments = {};
    stream.discarding = true;
    return;
  }
  stream.fragments.push_back(payload);
  ++open_fragments_;
}

void Reader::Impl::give(const StreamState& stream, Object& object) const {
  object.offset = stream.offset;
  object.stream = &stream.info;
  object.time_ns = stream.time_ns;
  object.frames = stream.frames;
  object.size = stream.size;
  object.possibly_incomplete = stream.possibly_incomplete;
  object.time_uncertain = stream.time_uncertain;
  object.gathered_ = const_cast<std::vector<uint8_t>*>(&gathered_);
}

// A clock's new value; a delta is fixed to what its base shows now.
void Reader::Impl::tick(StreamState& stream, uint64_t at, Object& object) {
  ClockState& clock = *stream.own_clock;
  const std::optional<int64_t> before = clock.ns;
  clock.exact.reset();
  clock.ns.reset();
  clock.epoch = epoch_;
  const Bytes payload = object.payload();
  auto value = decode_clock(stream.info, payload, endian_);
  if (!value) {
    findings_.add_lazily(Severity::kWarning, Rule::kClockValue, at,
                         [&] { return value.error().message; });
  } else if (clock.base == nullptr) {
    clock.exact = *value;
  } else if (clock.base->exact) {
    clock.exact = clock.base->exact->plus(*value);
    if (clock.base->epoch != epoch_) clock.epoch = clock.base->epoch;
  }
  if (clock.exact) clock.ns = clock.exact->nanoseconds();
  if (before && clock.ns && *clock.ns < *before) {
    findings_.add_lazily(Severity::kWarning, Rule::kClockBackwards, at, [&] {
      return fmt::format("{} steps back by {} ns", stream.info.label(), *before - *clock.ns);
    });
  }
  object.time_ns = clock.ns;
  object.time_uncertain = clock.ns && clock.epoch != epoch_;
}

void Reader::Impl::close(StreamState& stream) {
  stream.open = false;
  stream.fragments.clear();
  open_.back()->place = stream.place;
  open_[stream.place] = open_.back();
  open_.pop_back();
}

void Reader::Impl::drop_open_objects(const char* why) {
  while (!open_.empty()) {
    StreamState& stream = *open_.back();
    stream.torn_rest = 0;
    if (!stream.discarding) {
      findings_.add_lazily(Severity::kWarning, Rule::kObjectDropped, stream.offset, [&] {
        return fmt::format("{}: an object is incomplete: {}", stream.info.label(), why);
      });
      if (options_.observer != nullptr) {
        options_.observer->object_dropped(stream.info, stream.offset);
      }
    }
    open_fragments_ -= stream.fragments.size();
    close(stream);
  }
  for (StreamState& special : specials_) {
    special.open = false;
    special.fragments.clear();
  }
}

void Reader::Impl::end_of_file(uint64_t tail) {
  pos_ = file_.size();
  if (finished_) return;
  finished_ = true;
  tail_ = tail;
  if (tail != 0) {
    findings_.add(Severity::kWarning, Rule::kTail, file_.size() - tail,
                  fmt::format("{} bytes of an unfinished frame at the end", tail));
  }
  drop_open_objects("the file ends");
  if (in_unit_) end_unit(true);
}

bool Reader::Impl::next(Object& object) {
  if (held_) {
    object = *held_;
    held_.reset();
    return true;
  }
  Frame frame;
  for (;;) {
    const Step step_taken = step(frame, object);
    if (step_taken == Step::kObject) return true;
    if (step_taken == Step::kEnd) return false;
  }
}

}  // namespace collect::rtc
