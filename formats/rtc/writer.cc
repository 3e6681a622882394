#include "formats/rtc/writer.h"

#include <algorithm>
#include <utility>

#include "formats/core/leb128.h"
#include "formats/rtc/meta.h"

namespace collect::rtc {
namespace {

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
      room_(options.geometry),
      buffer_(std::make_unique_for_overwrite<uint8_t[]>(kWriteBufferBytes)) {}

Result<Writer> Writer::create(ByteSink& sink, const WriterOptions& options) {
  COLLECT_TRY(check_geometry(options.geometry));
  return Writer(sink, options);
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
  if (streams_.size() >= kMaxStreams) return UnitRoom::full(info, options_.geometry);
  COLLECT_TRY(room_.add(info, json->size()));

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
  room_.remove(stream->info, stream->json.size());
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
  if (!started_) return kMarkerBytes + room_.head_bytes() + 2 * kLeb128MaxBytes;
  return position() + 2 * kLeb128MaxBytes + room_.section_head_bytes();
}

}  // namespace collect::rtc
