#include "proto/conformance/agents/session_watch.h"

#include <fmt/core.h>

#include <algorithm>

#include "formats/core/bytes.h"
#include "formats/core/crc32.h"
#include "proto/wire/page_codec.h"

namespace collect::conformance {
namespace {

using wire::FrameType;

constexpr size_t kIndexBytes = 32;
constexpr size_t kDetailTime = 16;  // offsets within a record
constexpr size_t kKindV1 = 20, kKindV2 = 24;
constexpr size_t kMinDetailBytes = 24;
constexpr uint32_t kNoModule = 0xFFFFFFFF;  // code of no module
constexpr uint64_t kLastKind = 3;

std::string number(uint64_t value) {
  return std::to_string(value);
}

std::string name_of(const PageHeader& page) {
  return fmt::format("a page of stream {}{}", number(page.stream_id),
                     page.lane == collect::Lane::kIndex ? ", index lane" : ", detail lane");
}

}  // namespace

void SessionWatch::begin(const wire::Hello& hello, uint64_t features) {
  atf_version_ = hello.atf_version();
  features_ = features;
  recording_ = 0;
  has_ended_ = false;
  modules_.clear();
  for (auto& [id, stream] : streams_) stream.is_open = false;
}

template <class Message>
std::optional<Message> SessionWatch::message(const ReceivedFrame& frame) {
  auto parsed = frame.parsed<Message>();
  if (!parsed)
    faults_.add("whole-frames",
                fmt::format("the body of a {} is no message", type_text(frame.type)));
  return parsed;
}

void SessionWatch::on_frame(const ReceivedFrame& frame) {
  ++frames_;
  if (frame.type != FrameType::kRecordingStart && recording_ == 0 && is_known(frame.type)) {
    faults_.add("recording-first", type_text(frame.type) + " came before RecordingStart");
  }
  if (has_ended_ && frame.type != FrameType::kRecordingStart && is_known(frame.type)) {
    faults_.add("recording-end", type_text(frame.type) + " came after RecordingEnd");
  }
  switch (frame.type) {
    case FrameType::kRecordingStart:
      return on_start(frame);
    case FrameType::kModules:
      return on_modules(frame);
    case FrameType::kStreamOpen:
      return on_stream_open(frame);
    case FrameType::kPage:
      return on_page(frame);
    case FrameType::kStreamClose:
      return on_stream_close(frame);
    case FrameType::kStalls:
      return on_stalls(frame);
    case FrameType::kRecordingEnd:
      return on_end(frame);
    case FrameType::kDetailState:
      message<wire::DetailState>(frame);
      return;
    default:
      if (is_known(frame.type))
        faults_.add("frame-places", type_text(frame.type) + " came on data");
  }
}

void SessionWatch::on_start(const ReceivedFrame& frame) {
  const auto start = message<wire::RecordingStart>(frame);
  if (!start) return;
  if (start->recording() == 0) faults_.add("recording-first", "a recording has the number 0");
  if (start->atf_version() != atf_version_) {
    faults_.add("recording-first", fmt::format("its ATF version is {}, and that of the Hello {}",
                                               number(start->atf_version()), number(atf_version_)));
  }
  if (start->recording() != recording_) modules_.clear();
  recording_ = start->recording();
  has_ended_ = false;
}

void SessionWatch::on_modules(const ReceivedFrame& frame) {
  const auto modules = message<wire::Modules>(frame);
  if (!modules) return;
  if (modules->modules_size() > static_cast<int>(wire::kMaxModulesPerFrame)) {
    faults_.add("limits", number(static_cast<uint64_t>(modules->modules_size())) +
                              " modules came in one frame");
  }
  for (const wire::Module& module : modules->modules()) {
    modules_.insert(module.module_id());
    if (module.path().size() > 511 || module.build_id().size() > 64) {
      faults_.add("limits", "the path or build id of a module is too long");
    }
  }
}

void SessionWatch::on_stream_open(const ReceivedFrame& frame) {
  const auto open = message<wire::StreamOpen>(frame);
  if (!open) return;
  if (open->recording() != recording_) {
    faults_.add(
        "streams-first",
        fmt::format("stream {} belongs to recording {} within recording {}",
                    number(open->stream_id()), number(open->recording()), number(recording_)));
  }
  if (open->thread_name().size() > 31) faults_.add("limits", "the name of a thread is too long");
  const auto [known, is_new] = streams_.try_emplace(open->stream_id());
  if (!is_new && known->second.recording != open->recording()) {
    faults_.add("streams-first",
                fmt::format("stream id {} was used before", number(open->stream_id())));
  }
  known->second.recording = open->recording();
  known->second.is_open = true;
}

void SessionWatch::on_page(const ReceivedFrame& frame) {
  const PageHeader& page = frame.page;
  ++pages_;
  const auto known = streams_.try_emplace(page.stream_id).first;
  if (!known->second.is_open) {
    faults_.add("streams-first", name_of(page) + " came without its StreamOpen");
  }
  if (known->second.is_closed)
    faults_.add("stream-close", name_of(page) + " came after StreamClose");
  if ((page.flags & ~uint32_t{kPagePreRoll}) != 0 ||
      (page.lane == collect::Lane::kIndex && page.flags != 0)) {
    faults_.add("page-header", fmt::format("{} has flags {}", name_of(page), number(page.flags)));
  }
  Lane& lane = known->second.lanes[static_cast<size_t>(page.lane)];
  look_at_number(page, lane);
  if (page.codec == Codec::kRaw) return on_records(page, frame.page_bytes, lane);
  ++encoded_pages_;
  if (!wire::is_agreed(page.codec, features_)) {
    faults_.add("page-codecs",
                fmt::format("{} has codec {}, which was not agreed to", name_of(page),
                            number(static_cast<uint64_t>(page.codec))));
  }
  Octets records(page.raw_bytes);
  Octets scratch(page.raw_bytes);
  const auto error = wire::decode_page(page, frame.page_bytes, scratch, records);
  if (error == wire::PageCodecError::kNone) return on_records(page, records, lane);
  faults_.add("page-codecs",
              fmt::format("{}: {}", name_of(page), wire::page_codec_error_text(error)));
}

void SessionWatch::look_at_number(const PageHeader& page, Lane& lane) {
  const bool overlaps = lane.may_overlap && page.first_seq < lane.next;
  lane.may_overlap = false;
  if (page.first_seq < lane.next && !overlaps) {
    faults_.add("record-numbers",
                fmt::format("{} begins with record {}, and {} is next", name_of(page),
                            number(page.first_seq), number(lane.next)));
  } else if (page.first_seq > lane.next) {
    if ((page.lost_reasons & kLostOverwritten) == 0) {
      faults_.add("record-numbers",
                  fmt::format("{} begins with record {}, and {} is next; nothing says that records "
                              "were overwritten",
                              name_of(page), number(page.first_seq), number(lane.next)));
    }
    lane.has_jumped = true;
  }
  if (page.lost_total < lane.lost_total) {
    faults_.add("lost-totals", fmt::format("{} has lost_total {} after {}", name_of(page),
                                           number(page.lost_total), number(lane.lost_total)));
  }
  lane.lost_total = std::max(lane.lost_total, page.lost_total);
  lane.next = page.first_seq + page.record_count;
  records_ += page.record_count;
}

void SessionWatch::on_records(const PageHeader& page, Bytes records, Lane& lane) {
  std::vector<uint64_t> times;
  times.reserve(page.record_count);
  size_t at = 0;
  while (at + (page.lane == collect::Lane::kIndex ? kIndexBytes : kMinDetailBytes) <=
         records.size()) {
    const uint8_t* record = records.data() + at;
    if (page.lane == collect::Lane::kDetail) {
      const uint32_t length = load_le<uint32_t>(record);
      if (length < kMinDetailBytes || length > records.size() - at) break;
      look_at_repeat(page, page.first_seq + times.size(), records.subspan(at, length), lane);
      times.push_back(load_le<uint64_t>(record + kDetailTime));
      at += length;
      continue;
    }
    look_at_repeat(page, page.first_seq + times.size(), records.subspan(at, kIndexBytes), lane);
    times.push_back(load_le<uint64_t>(record));
    const uint32_t module = static_cast<uint32_t>(load_le<uint64_t>(record + 8) >> 32);
    if (module != kNoModule && !modules_.contains(module)) {
      faults_.add("modules-first",
                  fmt::format("{} has a function of module {}, which was not sent before",
                              name_of(page), number(module)));
    }
    const uint32_t kind = atf_version_ == 1 ? load_le<uint32_t>(record + kKindV1) : record[kKindV2];
    if (kind == 0 || kind > kLastKind) {
      faults_.add("whole-records",
                  fmt::format("{} has an event of kind {}", name_of(page), number(kind)));
    }
    at += kIndexBytes;
  }
  if (at != records.size() || times.size() != page.record_count) {
    faults_.add("whole-records", fmt::format("{} has {} whole records and says {}", name_of(page),
                                             number(times.size()), number(page.record_count)));
  }
  look_at_times(page, times, lane);
}

void SessionWatch::look_at_repeat(const PageHeader& page, uint64_t record_number, Bytes record,
                                  Lane& lane) {
  const uint32_t sum = crc32c(record);
  if (record_number < lane.known.size()) {
    if (lane.known[record_number] == sum) return;
    faults_.add("resume", fmt::format("{} has record {} again, with other bytes than before",
                                      name_of(page), number(record_number)));
  } else if (record_number == lane.known.size() && lane.known.size() < kKnownRecords) {
    lane.known.push_back(sum);
  }
}

void SessionWatch::look_at_times(const PageHeader& page, const std::vector<uint64_t>& times,
                                 Lane& lane) {
  const uint64_t first = times.empty() ? 0 : times.front();
  const uint64_t last = times.empty() ? 0 : times.back();
  if (page.first_ns != first || page.last_ns != last) {
    faults_.add("page-header", fmt::format("{} says times {} to {}, and its records have {} to {}",
                                           name_of(page), number(page.first_ns),
                                           number(page.last_ns), number(first), number(last)));
  }
  for (const uint64_t time : times) {
    if (time < lane.last_ns) {
      faults_.add("record-times", fmt::format("{} steps back from {} to {}", name_of(page),
                                              number(lane.last_ns), number(time)));
    }
    lane.last_ns = time;
  }
}

void SessionWatch::on_stream_close(const ReceivedFrame& frame) {
  const auto close = message<wire::StreamClose>(frame);
  if (!close) return;
  const std::string name = "StreamClose of stream " + number(close->stream_id());
  const auto known = streams_.find(close->stream_id());
  if (known == streams_.end() || !known->second.is_open) {
    faults_.add("stream-close", name + " came without its StreamOpen");
    return;
  }
  known->second.is_closed = true;
  const uint64_t counts[2] = {close->index_count(), close->detail_count()};
  const uint64_t lost[2] = {close->index_lost(), close->detail_lost()};
  for (size_t i = 0; i < 2; ++i) {
    const Lane& lane = known->second.lanes[i];
    if (counts[i] < lane.next || (counts[i] > lane.next && !lane.has_jumped)) {
      faults_.add("stream-close", fmt::format("{} counts {} records, and {} came", name,
                                              number(counts[i]), number(lane.next)));
    }
    if (lost[i] < lane.lost_total) {
      faults_.add("lost-totals", fmt::format("{} counts {} lost records, and pages {}", name,
                                             number(lost[i]), number(lane.lost_total)));
    }
  }
}

void SessionWatch::on_stalls(const ReceivedFrame& frame) {
  const auto stalls = message<wire::Stalls>(frame);
  if (!stalls) return;
  if (stalls->stalls_size() > static_cast<int>(wire::kMaxStallsPerFrame)) {
    faults_.add("limits", "more than 64 stalls came in one frame");
  }
  stalls_next_ = stalls->first_number() + static_cast<uint64_t>(stalls->stalls_size());
  for (const wire::Stall& stall : stalls->stalls()) {
    const std::string name = "a stall of stream " + number(stall.stream_id());
    if (stall.stream_id() != 0 && !streams_.contains(stall.stream_id())) {
      faults_.add("stalls", name + " came without its StreamOpen");
    }
    if (stall.last_ns() < stall.first_ns()) faults_.add("stalls", name + " ends before it begins");
  }
}

void SessionWatch::on_end(const ReceivedFrame& frame) {
  const auto end = message<wire::RecordingEnd>(frame);
  if (!end) return;
  has_ended_ = true;
  if (end->recording() != recording_) {
    faults_.add("recording-end", fmt::format("RecordingEnd names recording {} within recording {}",
                                             number(end->recording()), number(recording_)));
  }
  for (const auto& [id, stream] : streams_) {
    if (stream.recording == end->recording() && !stream.is_closed) {
      faults_.add("stream-close", "RecordingEnd came before StreamClose of stream " + number(id));
    }
  }
}

wire::Ack SessionWatch::ack() const {
  wire::Ack ack;
  for (const auto& [id, stream] : streams_) {
    wire::StreamPosition* position = ack.add_positions();
    position->set_stream_id(id);
    position->set_index_next(stream.lanes[0].next);
    position->set_detail_next(stream.lanes[1].next);
    position->set_closed(stream.is_closed);
  }
  ack.set_stalls_next(stalls_next_);
  return ack;
}

void SessionWatch::forget_beyond(const wire::Ack& kept) {
  for (auto& [id, stream] : streams_) {
    stream.is_closed = false;
    for (Lane& lane : stream.lanes) lane.next = lane.lost_total = lane.last_ns = 0;
  }
  for (const wire::StreamPosition& position : kept.positions()) {
    Stream& stream = streams_[position.stream_id()];
    stream.lanes[0].next = position.index_next();
    stream.lanes[1].next = position.detail_next();
    for (Lane& lane : stream.lanes) lane.may_overlap = true;
  }
}

}  // namespace collect::conformance
