#include "formats/rtc/copy.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "formats/rtc/read/reader.h"
#include "formats/rtc/writer.h"

namespace collect::rtc {
namespace {
// Two streams of one name whose descriptions take turns: from then on each has a name of its own.
constexpr int kMaxReopened = 64;

bool same_description(const StreamInfo& a, const StreamInfo& b) {
  const auto same_number = [](const std::optional<Decimal>& x, const std::optional<Decimal>& y) {
    return x.has_value() == y.has_value() && (!x || x->text() == y->text());
  };
  return a.name == b.name && a.format.text == b.format.text && a.length == b.length &&
         a.cont == b.cont && a.is_clock == b.is_clock && a.clock == b.clock && a.delta == b.delta &&
         a.stream == b.stream && same_number(a.gain, b.gain) && same_number(a.offset, b.offset) &&
         a.extra == b.extra;
}

// The first reading: which objects never end, and which descriptions there are.
class Survey final : public ReaderObserver {
 public:
  Status run(Bytes file, Copied& copied, const std::function<void(uint64_t)>& done) {
    ReaderOptions options;
    options.observer = this;
    options.exact_index_targets = true;  // else a frame that is missing is not seen
    auto opened = Reader::open(file, options);
    if (!opened.ok()) return opened.error();
    done_ = &done;
    uint64_t version = ~uint64_t{0};
    Object object;
    while (opened->next(object)) {
      if (object.possibly_incomplete) ++copied.possibly_incomplete;
      if (version == opened->streams_version()) continue;
      version = opened->streams_version();
      for (const StreamInfo* info : opened->streams())
        streams_.insert_or_assign(info->label(), *info);
    }
    geometry_ = opened->geometry();
    endian_ = opened->endian();
    for (const auto* info : opened->streams()) streams_.insert_or_assign(info->label(), *info);
    copied.dropped += dropped_.size();
    copied.head_bytes += opened->head_bytes();
    copied.tail_bytes += opened->tail_bytes();
    for (const Finding& finding : opened->findings().list()) copied.findings.add(finding);
    std::sort(dropped_.begin(), dropped_.end());
    return {};
  }

  // Whether the object whose first frame is there never ends.
  bool is_dropped(uint64_t object) const {
    return std::binary_search(dropped_.begin(), dropped_.end(), object);
  }
  const std::map<std::string, StreamInfo>& streams() const { return streams_; }
  Geometry geometry() const { return geometry_; }
  Endian endian() const { return endian_; }

  void object_dropped(const StreamInfo&, uint64_t offset) override { dropped_.push_back(offset); }
  void unit_ended(const UnitInfo& unit) override {
    if (*done_) (*done_)(unit.offset);
  }

 private:
  const std::function<void(uint64_t)>* done_ = nullptr;
  std::vector<uint64_t> dropped_;
  std::map<std::string, StreamInfo> streams_;
  Geometry geometry_;
  Endian endian_ = Endian::kLittle;
};

// That of the input, or so much larger that Index and Meta leave room for data with all streams.
Geometry geometry_for(const std::vector<Survey>& surveys, const WriterOptions& options) {
  std::map<std::string, StreamInfo> streams;
  for (const Survey& survey : surveys)
    streams.insert(survey.streams().begin(), survey.streams().end());
  const Geometry first = surveys.front().geometry();
  Geometry geometry = first;
  for (;; geometry.unit_bytes *= 2, geometry.minor_bytes *= 2) {
    VectorSink discarded;
    WriterOptions trial = options;
    trial.geometry = geometry;
    auto writer = Writer::create(discarded, trial);
    if (!writer.ok()) return first;
    bool fits = true;
    for (const auto& [label, info] : streams) {
      StreamInfo alone = info;  // references take no room that a limit could be about
      alone.name = label;
      if (alone.is_clock) alone.is_clock = alone.format.is_number() && !alone.length;
      alone.clock.clear();
      alone.delta.clear();
      alone.stream.clear();
      const auto id = writer->open_stream(std::move(alone));
      fits = id.ok() || id.code() != Code::kLimit;
      if (!fits) break;
    }
    if (fits) return geometry;
  }
}

// The second reading: frame by frame, so that objects may interleave with each other, and between
// the values of the clocks, as they did.
class Copier {
 public:
  Copier(Writer writer, Copied& copied) : writer_(std::move(writer)), copied_(copied) {}

  // The next file.
  Status add(Reader& reader, const Survey& survey, const std::function<void(uint64_t)>& done);
  Status finish() { return writer_.finish(); }

 private:
  // A stream of the copy.
  struct Target {
    bool is_open = false;
    uint64_t id = 0;  // in the copy
    StreamInfo info;  // as it is described in the copy, but for the id
    bool unfinished = false;
    int reopened = 0;
    // For a clock.
    bool shows = false;            // whether readers of the copy know its value
    std::vector<uint8_t> value;    // the last
    std::vector<uint8_t> partial;  // what there is of the next
    uint64_t ticks = 0;            // values written
    uint64_t base_ticks = 0;       // of a delta: how often its base had ticked then
  };
  struct Known {
    Target* target = nullptr;
    bool without_time = false;  // the reference to its clock is left out, as is_forgotten() said
  };
  static constexpr uint64_t kNone = ~uint64_t{0};

  Status take(const Frame& frame);
  Status write(Target& target, const Frame& frame);
  Status write_clock(Target& target, const Frame& frame);
  Target* target_of(const StreamInfo& source);
  Target* open(const StreamInfo& source, bool without_time);
  StreamInfo description(const StreamInfo& source, bool without_time);
  void keep_references(const StreamInfo& source, StreamInfo& info);
  bool is_forgotten(const std::string& clock) const;
  Target* referred(const std::string& name, bool clock);
  bool close(Target& target);
  void change(std::string sentence);

  Reader* reader_ = nullptr;  // of the present file, as the next one
  const Survey* survey_ = nullptr;
  Writer writer_;
  Copied& copied_;
  std::map<std::string, Target> targets_;  // by name in the copy; nodes stay
  std::map<uint64_t, Known> known_;        // by id in the input, as long as nothing changes
  uint64_t streams_version_ = kNone;
  std::map<uint64_t, Target*> unfinished_;  // by id in the input; null: the object is passed over
  std::set<uint64_t> renamed_;              // ids in the input
  std::set<std::string> opening_;           // streams may refer to each other in a circle
  std::set<std::string> said_;
  bool behind_index_ = false;  // where the input's writer repeats its clocks
};

void Copier::change(std::string sentence) {
  if (copied_.changes.size() == kMaxCopySentences) {
    ++copied_.changes_left_out;
  } else if (said_.insert(sentence).second) {
    copied_.changes.push_back(std::move(sentence));
  }
}

// Whether the input has lost the clock's value while readers of the copy still know one.
bool Copier::is_forgotten(const std::string& clock) const {
  const auto target = targets_.find(clock);
  return target != targets_.end() && target->second.shows && !reader_->clock_ns(clock);
}

// The target of a stream that another one names; null when there is none.
Copier::Target* Copier::referred(const std::string& name, bool clock) {
  if (opening_.contains(name)) return nullptr;
  for (const StreamInfo* info : reader_->streams()) {
    if (info->name != name || (clock && !info->is_clock)) continue;
    Target* target = target_of(*info);
    return target == nullptr || (clock && !target->info.is_clock) ? nullptr : target;
  }
  return nullptr;
}

// How the stream is described in the copy: as in the input, but for what cannot be written.
StreamInfo Copier::description(const StreamInfo& source, bool without_time) {
  StreamInfo info = source;
  info.name = source.label();
  if (renamed_.contains(source.id)) info.name += fmt::format(" (id {})", source.id);
  const auto size = info.format.value_bytes();
  if (info.is_clock &&
      (!info.format.is_number() || (info.length && (!size || *info.length != *size)))) {
    change(fmt::format("stream {}: a clock cannot be described so", info.name));
    info.is_clock = false;
  }
  if (info.is_clock) info.clock.clear();
  const bool nested = !opening_.insert(source.name).second;
  keep_references(source, info);
  if (!nested) opening_.erase(source.name);
  if (!without_time) return info;
  // A delta without its base shows nothing: it is no clock until the base has a value.
  info.is_clock = false;
  info.clock.clear();
  info.delta.clear();
  return info;
}

void Copier::keep_references(const StreamInfo& source, StreamInfo& info) {
  if (!info.is_clock) info.delta.clear();
  if (!info.delta.empty() && referred(info.delta, true) == nullptr) {
    change(fmt::format("stream {}: there is no clock \"{}\"", info.name, source.delta));
    info.delta.clear();
    info.is_clock = false;
  }
  if (!info.clock.empty() && referred(info.clock, true) == nullptr) {
    change(fmt::format("stream {}: there is no clock \"{}\"", info.name, source.clock));
    info.clock.clear();
  }
  if (!info.stream.empty() && referred(info.stream, false) == nullptr) {
    change(fmt::format("stream {}: there is no stream \"{}\"", info.name, source.stream));
    info.stream.clear();
  }
}

// False while an object of it, or of one that refers to it, is unfinished.
bool Copier::close(Target& target) {
  if (!target.is_open) return true;
  if (target.unfinished) return false;
  for (auto& [name, other] : targets_) {
    const bool refers = other.info.clock == target.info.name ||
                        other.info.delta == target.info.name ||
                        other.info.stream == target.info.name;
    if (&other != &target && other.is_open && refers && !close(other)) return false;
  }
  if (!writer_.close_stream(target.id).ok()) return false;
  target.is_open = false;
  target.shows = false;
  target.ticks = 0;
  known_.clear();
  return true;
}

// Where an object goes that begins now; null when nothing can take it.
Copier::Target* Copier::target_of(const StreamInfo& source) {
  if (streams_version_ != reader_->streams_version()) {
    streams_version_ = reader_->streams_version();
    known_.clear();
  }
  const std::string& clock = source.is_clock ? source.delta : source.clock;
  const bool without_time = !clock.empty() && is_forgotten(clock);
  const auto known = known_.find(source.id);
  if (known != known_.end() && known->second.without_time == without_time) {
    return known->second.target;
  }
  Target* target = open(source, without_time);
  known_[source.id] = {target, without_time};
  return target;
}

Copier::Target* Copier::open(const StreamInfo& source, bool without_time) {
  StreamInfo info = description(source, without_time);
  Target& target = targets_[info.name];
  if (target.is_open && !target.unfinished && same_description(target.info, info)) return &target;
  if (target.is_open && (++target.reopened > kMaxReopened || !close(target))) {
    if (!renamed_.insert(source.id).second) return nullptr;
    change(fmt::format("stream {}: two are described under this name", info.name));
    return open(source, without_time);
  }
  auto opened = writer_.open_stream(info);
  if (!opened.ok()) {
    change(fmt::format("stream {}: {}", info.name, opened.error().message));
    return nullptr;
  }
  ++copied_.streams;
  target.is_open = true;
  target.id = *opened;
  target.info = std::move(info);
  return &target;
}

// Every Index of the input repeats the clocks' values; the copy has its own repetitions.
Status Copier::write_clock(Target& target, const Frame& frame) {
  target.partial.insert(target.partial.end(), frame.payload.begin(), frame.payload.end());
  if (frame.more) return {};
  std::vector<uint8_t> value = std::exchange(target.partial, {});
  const auto base = targets_.find(target.info.delta);
  const uint64_t base_ticks = base == targets_.end() ? 0 : base->second.ticks;
  const bool shows = reader_->clock_ns(target.info.name).has_value();
  if (behind_index_ && target.ticks != 0 && value == target.value && target.shows == shows &&
      target.base_ticks == base_ticks) {
    return {};
  }
  COLLECT_TRY(writer_.write(target.id, value));
  ++copied_.objects;
  ++target.ticks;
  target.base_ticks = base_ticks;
  target.value = std::move(value);
  target.shows = shows;
  return {};
}

Status Copier::write(Target& target, const Frame& frame) {
  if (target.info.is_clock) return write_clock(target, frame);
  behind_index_ = false;
  COLLECT_TRY(writer_.write(target.id, frame.payload, frame.more));
  target.unfinished = frame.more;
  if (!frame.more) ++copied_.objects;
  return {};
}

Status Copier::take(const Frame& frame) {
  if (frame.stream == nullptr) {
    behind_index_ |= frame.id == kIndexId || frame.id == kMinorIndexId;
    return {};
  }
  if (copied_.streams == 0) {  // all that the first Meta names, so that the copy's first names them
    for (const StreamInfo* info : reader_->streams()) (void)target_of(*info);
  }
  const bool begins = frame.offset == frame.object_offset;
  const bool multiple = frame.more || !begins;
  Target* target = nullptr;
  if (multiple && survey_->is_dropped(frame.object_offset)) return {};
  if (begins) {
    target = target_of(*frame.stream);
  } else {
    target = unfinished_[frame.stream->id];
  }
  Status written;
  if (target == nullptr) {
    if (begins) ++copied_.refused;
  } else {
    written = write(*target, frame);
    if (!written.ok() && written.code() != Code::kInvalidArgument) return written;
  }
  if (!written.ok()) {
    change(fmt::format("stream {}: {}", target->info.name, written.error().message));
    ++copied_.refused;
    target = nullptr;
  }
  if (frame.more) unfinished_[frame.stream->id] = target;
  return {};
}

Status Copier::add(Reader& reader, const Survey& survey,
                   const std::function<void(uint64_t)>& done) {
  reader_ = &reader;
  survey_ = &survey;
  streams_version_ = kNone;
  unfinished_.clear();
  behind_index_ = false;
  Frame frame;
  while (reader_->next_frame(frame)) {
    COLLECT_TRY(take(frame));
    if (done && frame.id == kMarkerId) done(frame.offset);
  }
  for (const auto& [label, info] : survey_->streams()) {
    if (!targets_.contains(label)) (void)target_of(info);  // without objects
  }
  return {};
}

}  // namespace

Result<Copied> copy_objects(std::span<const Bytes> files, ByteSink& out,
                            const std::function<void(uint64_t)>& done) {
  // Half of the way to its end is each file's first reading, half its second.
  uint64_t before = 0;
  const auto half_done = [&](uint64_t bytes) {
    if (done) done(before + bytes / 2);
  };
  Copied copied;
  std::vector<Survey> surveys(files.size());
  for (size_t i = 0; i < files.size(); ++i) {
    COLLECT_TRY(surveys[i].run(files[i], copied, half_done));
    before += files[i].size() / 2;
  }
  WriterOptions options;
  options.endian = surveys.front().endian();
  options.keep_bad_clock_values = true;
  options.geometry = geometry_for(surveys, options);
  auto writer = Writer::create(out, options);
  if (!writer.ok()) return writer.error();
  Copier copier(std::move(*writer), copied);
  ReaderOptions reading;
  reading.verify_crc = false;  // the survey did
  for (size_t i = 0; i < files.size(); ++i) {
    auto reader = Reader::open(files[i], reading);
    if (!reader.ok()) return reader.error();
    COLLECT_TRY(copier.add(*reader, surveys[i], half_done));
    before += files[i].size() / 2;
  }
  COLLECT_TRY(copier.finish());
  return copied;
}

}  // namespace collect::rtc
