#include "formats/rtc/writer.h"

#include <algorithm>
#include <utility>

#include "formats/core/leb128.h"
#include "formats/rtc/meta.h"

namespace collect::rtc {
namespace {

// What a Unit must have left for data in its roomiest minor unit.
constexpr size_t kMinDataRoom = 64;
// Lost at the end of a minor unit, where the next frame's header does not fit.
constexpr size_t kMaxSlack = kMaxClockBytes + 2 * kLeb128MaxBytes;
constexpr size_t kSpecialEntries = 5;  // of an Index: Index, index, Meta, platform and Crc
constexpr size_t kFrameHeadBytes = 3;  // of the special ones: id and up to two bytes of length

size_t frames_bytes(size_t payload) {
  return payload + (payload / kMaxPayloadBytes + 1) * kFrameHeadBytes;
}

// The most that a stream's entry takes in an Index.
size_t entry_bytes(uint64_t id, const Geometry& geometry) {
  return uleb128_size(id << 1) + uleb128_size(2 * geometry.unit_bytes);
}

// The most that one value of a clock takes as a frame.
size_t tick_bytes(const StreamInfo& clock, uint64_t id) {
  const size_t varying =
      clock.format.kind == FormatKind::kLeb128 ? kLeb128MaxBytes : kMaxClockBytes;
  return uleb128_size(id << 1) + 1 + clock.format.value_bytes().value_or(varying);
}

Error invalid(std::string sentence) {
  return {Code::kInvalidArgument, std::move(sentence)};
}

// What a description says by itself.
Status check_description(const StreamInfo& info) {
  const std::string label = info.name.empty() ? "a stream without a name" : info.name;
  if (info.length && *info.length > kMaxPayloadBytes) {
    return invalid(label + ": a length of " + std::to_string(*info.length) +
                   " is beyond a frame's payload");
  }
  const auto size = info.format.value_bytes();
  if (info.is_clock && (info.name.empty() || !info.format.is_number())) {
    return invalid(label + ": a clock needs a name and a format that is a number");
  }
  if (info.is_clock && info.length && (!size || *info.length != *size)) {
    return invalid(label + ": the length is not that of " + info.format.text);
  }
  if (info.is_clock && !info.clock.empty()) {
    return invalid(label + ": a clock cannot have the time of another");
  }
  if (!info.delta.empty() && !info.is_clock) {
    return invalid(label + ": only a clock is a delta on another");
  }
  return {};
}

}  // namespace

Writer::Writer(ByteSink& sink, const WriterOptions& options)
    : sink_(&sink),
      options_(options),
      buffer_(std::make_unique_for_overwrite<uint8_t[]>(kWriteBufferBytes)) {}

Result<Writer> Writer::create(ByteSink& sink, const WriterOptions& options) {
  COLLECT_TRY(check_geometry(options.geometry));
  Writer writer(sink, options);
  writer.entry_bytes_ = kSpecialEntries * entry_bytes(kCrcId, options.geometry);
  writer.meta_bytes_ = 2 + kLeb128MaxBytes;  // "[", the next free id, "]"
  return writer;
}

const StreamInfo* Writer::stream(uint64_t id) const {
  const Stream* found = const_cast<Writer*>(this)->find(id);
  return found == nullptr ? nullptr : &found->info;
}

Writer::Stream* Writer::find(uint64_t id) {
  const uint64_t place = id - kFirstStreamId;
  return place < streams_.size() && streams_[place].open ? &streams_[place] : nullptr;
}

Writer::Stream* Writer::find_named(const std::string& name) {
  const auto found = named_.find(name);
  return found == named_.end() ? nullptr : find(found->second);
}

Status Writer::check_references(const StreamInfo& info) {
  if (!info.name.empty() && find_named(info.name) != nullptr) {
    return Error{Code::kAlreadyExists, "there is a stream \"" + info.name + "\" already"};
  }
  for (const std::string* name : {&info.clock, &info.delta}) {
    if (name->empty()) continue;
    const Stream* clock = find_named(*name);
    if (clock == nullptr || !clock->info.is_clock) {
      return Error{Code::kNotFound, info.name + ": there is no clock \"" + *name + "\""};
    }
  }
  if (!info.stream.empty() && find_named(info.stream) == nullptr) {
    return Error{Code::kNotFound, info.name + ": there is no stream \"" + info.stream + "\""};
  }
  return {};
}

// Whether Index, Meta and clocks still leave room, with this stream added: for data in every Unit,
// for an index in every unit, and for the largest frame that must not be split in one of them.
Status Writer::check_room(const StreamInfo& info, const std::string& json) {
  const uint64_t id = next_id_;
  const uint64_t unit = options_.geometry.unit_bytes;
  const uint64_t minor = options_.geometry.minor_bytes;
  const size_t entries = entry_bytes_ + entry_bytes(id, options_.geometry);
  const size_t meta = meta_bytes_ + json.size() + 1;
  size_t clocks = clock_bytes_;
  size_t largest = std::max(largest_whole_frame_, kMinDataRoom);
  if (info.length) largest = std::max(largest, *info.length + uleb128_size(id << 1));
  if (info.is_clock) {
    clocks += tick_bytes(info, id);
    largest = std::max(largest, tick_bytes(info, id));
  }
  const Error full{Code::kLimit, "Index, Meta and clocks with \"" + info.name +
                                     "\" leave no room for data in a Unit of " +
                                     std::to_string(unit) + " bytes with units of " +
                                     std::to_string(minor)};
  if (meta > kMaxMetaBytes || entries > kMaxIndexBytes || streams_.size() >= kMaxStreams)
    return full;
  const uint64_t index = frames_bytes(entries + kLeb128MaxBytes);
  const uint64_t last_short = kMarkerBytes + kLeb128MaxBytes;  // the Marker, and the Crc at the end
  const auto room_of = [&](uint64_t section, uint64_t taken) -> uint64_t {
    const bool last = section + 1 == unit / minor;
    const uint64_t bytes = minor - (last ? last_short : 0);
    return bytes > taken + kMaxSlack ? bytes - taken - kMaxSlack : 0;
  };
  // Fill the sections with Meta, then clocks, and see what is left in the roomiest.
  uint64_t left = frames_bytes(meta) + kFrameHeadBytes + 2 * kMaxSlack + clocks;
  bool data_fits = false;
  for (uint64_t section = 0; section < unit / minor && !data_fits; ++section) {
    const uint64_t taken = section == 0 ? index : index + clocks;
    uint64_t room = room_of(section, taken);
    if (room == 0 && section + 1 < unit / minor) return full;
    const uint64_t used = std::min(left, room);
    left -= used;
    room -= used;
    data_fits = left == 0 && room >= largest;
  }
  if (!data_fits || (unit > minor && room_of(unit / minor - 1, index + clocks) == 0)) return full;
  entry_bytes_ = entries;
  meta_bytes_ = meta;
  clock_bytes_ = clocks;
  largest_whole_frame_ = largest;
  return {};
}

Result<uint64_t> Writer::open_stream(StreamInfo info) {
  if (failure_) return *failure_;
  if (finished_) return invalid("the file is finished");
  COLLECT_TRY(check_description(info));
  COLLECT_TRY(check_references(info));
  const int length = info.length ? static_cast<int>(*info.length) : -1;
  while (id_may_forge_marker(next_id_, length)) ++next_id_;
  info.id = next_id_;
  auto json = stream_json(info);
  if (!json) return json.error();
  COLLECT_TRY(check_room(info, *json));

  const uint64_t id = next_id_++;
  streams_.resize(id - kFirstStreamId + 1);
  Stream& stream = streams_.back();
  stream.open = true;
  stream.fixed_length = length;
  stream.json = std::move(*json);
  stream.info = std::move(info);
  if (!stream.info.name.empty()) named_[stream.info.name] = id;
  if (stream.info.is_clock) clocks_.push_back(id);
  if (!stream.info.delta.empty()) stream.base_id = find_named(stream.info.delta)->info.id;
  meta_changed_ = true;
  if (started_) COLLECT_TRY(announce(stream));
  return id;
}

Status Writer::close_stream(uint64_t id) {
  if (failure_) return *failure_;
  Stream* stream = find(id);
  if (stream == nullptr) return Error{Code::kNotFound, "no stream " + std::to_string(id)};
  if (stream->unfinished) return invalid(stream->info.label() + ": an object is unfinished");
  for (const Stream& other : streams_) {
    const StreamInfo& info = other.info;
    if (!other.open || stream->info.name.empty()) continue;
    if (info.clock == stream->info.name || info.delta == stream->info.name ||
        info.stream == stream->info.name) {
      return invalid(info.label() + " refers to " + stream->info.name);
    }
  }
  stream->open = false;
  named_.erase(stream->info.name);
  std::erase(clocks_, id);
  meta_bytes_ -= stream->json.size() + 1;
  entry_bytes_ -= entry_bytes(id, options_.geometry);
  if (stream->info.is_clock) clock_bytes_ -= tick_bytes(stream->info, id);
  meta_changed_ = true;
  return {};
}

Status Writer::write(uint64_t id, Bytes object, bool more) {
  if (failure_) return *failure_;
  if (finished_) return invalid("the file is finished");
  Stream* stream = find(id);
  if (stream == nullptr) return Error{Code::kNotFound, "no stream " + std::to_string(id)};
  if (stream->info.is_clock) {
    if (more) return invalid(stream->info.label() + ": a clock's value is one write");
    return write_clock(*stream, object);
  }
  const int length = stream->fixed_length;
  if (length >= 0 &&
      (length == 0 ? !object.empty()
                   : object.empty() || object.size() % static_cast<size_t>(length))) {
    return invalid(stream->info.label() + ": " + std::to_string(object.size()) +
                   " bytes are no multiple of its length");
  }
  if (!started_) COLLECT_TRY(start());
  stream->unfinished = more;
  if (put_at_once(*stream, object, more)) return {};
  uint64_t* seen = &stream->seen;
  if (length < 0) return write_splittable(id, object, more, seen);
  if (length == 0) return write_whole(id, object, more, false, seen);
  while (!object.empty()) {
    const Bytes frame = object.first(static_cast<size_t>(length));
    object = object.subspan(frame.size());
    COLLECT_TRY(write_whole(id, frame, more || !object.empty(), false, seen));
    seen = nullptr;
  }
  return {};
}

Status Writer::flush() {
  if (failure_) return *failure_;
  if (finished_) return {};
  if (!started_) COLLECT_TRY(start());
  return drain();
}

Status Writer::finish() {
  if (failure_) return *failure_;
  if (finished_) return invalid("the file is finished already");
  if (!started_) COLLECT_TRY(start());
  const uint64_t crc_bytes = options_.special == SpecialFrames::kFixed ? 5 : 6;
  // Behind the padding and the index that this may take, so that both are covered.
  while (section_end_ < unit_end_ && section_room() < crc_bytes) COLLECT_TRY(next_section());
  COLLECT_TRY(close_unit());
  COLLECT_TRY(drain());
  finished_ = true;
  return {};
}

uint64_t Writer::position_after_finish() const {
  if (finished_) return position();
  if (!started_) {
    return kMarkerBytes + frames_bytes(entry_bytes_ + kLeb128MaxBytes) + frames_bytes(meta_bytes_) +
           clock_bytes_ + 2 * kLeb128MaxBytes;
  }
  const uint64_t crc_bytes = kLeb128MaxBytes;
  return position() + 2 * crc_bytes + frames_bytes(entry_bytes_ + kLeb128MaxBytes) + clock_bytes_;
}

}  // namespace collect::rtc
