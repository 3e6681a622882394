#include "formats/rtc/check.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

namespace collect::rtc {
namespace {

class Collector final : public ReaderObserver {
 public:
  // `caller` gets every call too; may be null.
  Collector(Summary& summary, ReaderObserver* caller)
      : summary_(summary), caller_(caller != nullptr ? *caller : ignored_) {}

  void unit_ended(const UnitInfo& unit) override {
    summary_.units.push_back(unit);
    caller_.unit_ended(unit);
  }
  void skipped(uint64_t from, uint64_t to) override {
    summary_.resyncs.push_back(to);
    summary_.skipped_bytes += to - from;
    caller_.skipped(from, to);
  }
  void object_dropped(const StreamInfo& info, uint64_t offset) override {
    ++of(info).incomplete;
    caller_.object_dropped(info, offset);
  }

  void take(const Object& object) {
    StreamSummary& stream = of(*object.stream);
    ++summary_.objects;
    ++stream.objects;
    stream.bytes += object.size;
    if (object.possibly_incomplete) ++stream.possibly_incomplete;
    if (!object.time_ns) {
      ++stream.without_time;
      return;
    }
    widen(stream.first_time_ns, stream.last_time_ns, *object.time_ns);
    widen(summary_.first_time_ns, summary_.last_time_ns, *object.time_ns);
  }

 private:
  static void widen(std::optional<int64_t>& first, std::optional<int64_t>& last, int64_t time) {
    first = first ? std::min(*first, time) : time;
    last = last ? std::max(*last, time) : time;
  }

  // By name, as the streams of two recordings in one file are the same ones to their reader.
  StreamSummary& of(const StreamInfo& info) {
    const auto known = places_.find(info.id);
    if (known != places_.end() && summary_.streams[known->second].info.name == info.name) {
      return summary_.streams[known->second];
    }
    const auto [by_name, is_new] = by_name_.try_emplace(info.label(), summary_.streams.size());
    if (is_new) summary_.streams.emplace_back();
    places_[info.id] = by_name->second;
    StreamSummary& stream = summary_.streams[by_name->second];
    if (is_new) stream.info = info;
    return stream;
  }

  Summary& summary_;
  ReaderObserver ignored_;
  ReaderObserver& caller_;
  std::map<std::string, size_t> by_name_;
  std::unordered_map<uint64_t, size_t> places_;
};

}  // namespace

uint64_t Summary::units_with(CrcState state) const {
  return static_cast<uint64_t>(
      std::ranges::count_if(units, [&](const UnitInfo& unit) { return unit.crc == state; }));
}

Result<Summary> check_file(Bytes file, const ReaderOptions& options) {
  Summary summary;
  summary.bytes = file.size();
  Collector collector(summary, options.observer);
  ReaderOptions observed = options;
  observed.observer = &collector;
  observed.exact_index_targets = true;
  auto reader = Reader::open(file, observed);
  if (!reader) return reader.error();
  summary.geometry = reader->geometry();
  summary.head_bytes = reader->head_bytes();
  Object object;
  while (reader->next(object)) collector.take(object);
  summary.special = reader->special();
  summary.endian = reader->endian();
  summary.tail_bytes = reader->tail_bytes();
  summary.frames = reader->frames();
  summary.findings = reader->findings();
  return summary;
}

}  // namespace collect::rtc
