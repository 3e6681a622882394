#include "storage/capture_replay.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "formats/core/crc32.h"
#include "storage/capture_layout.h"

namespace collect::storage {
namespace {

// After how many bytes of a container the caller hears how far it is.
constexpr uint64_t kProgressStep = 8u << 20;

// What the target's disk does is no fault of the container.
bool is_target_fault(Code code) {
  return code != Code::kDamaged && code != Code::kLimit && code != Code::kInvalidArgument;
}

Page page_of(const PageObject& object, Bytes bytes) {
  Page page;
  page.stream_id = object.stream_id;
  page.lane = static_cast<Lane>(object.lane);
  page.pre_roll = (object.flags & kPageObjectPreRoll) != 0;
  page.first_seq = object.first_seq;
  page.record_count = object.record_count;
  page.bytes_crc32c = object.bytes_crc32c;
  page.lost_reasons = object.lost_reasons;
  page.lost_total = object.lost_total;
  page.lost_first_ns = object.lost_first_ns;
  page.lost_last_ns = object.lost_last_ns;
  page.first_ns = object.first_ns;
  page.last_ns = object.last_ns;
  page.bytes = bytes;
  return page;
}

std::string_view text_of(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The first that can be read, or none: a whole container begins with it, and one without its head
// may still end with it.
Result<std::optional<Manifest>> first_manifest(const std::string& name, Bytes container) {
  rtc::ReaderOptions options;
  options.verify_crc = false;  // replay() checks
  auto reader = rtc::Reader::open(container, options);
  if (!reader.ok()) return Error{reader.code(), name + ": " + reader.error().message};
  rtc::Object object;
  while (reader->next(object)) {
    if (object.stream->name != kManifestStream) continue;
    auto manifest = manifest_from_json(text_of(object.payload()));
    if (manifest.ok()) return std::optional(std::move(*manifest));
  }
  return std::optional<Manifest>();
}

}  // namespace

// The wall clock of the recording: its session is named, and its manifest dated, as it was.
class CaptureReplay::RecordedClock final : public Clock {
 public:
  uint64_t unix_ns() override { return now_unix_ns; }
  uint64_t monotonic_ns() override { return system_clock().monotonic_ns(); }
  uint64_t now_unix_ns = 0;
};

CaptureReplay::CaptureReplay(Fs& fs, SessionOptions options, std::optional<atf::Version> version)
    : fs_(fs),
      options_(std::move(options)),
      clock_(std::make_unique<RecordedClock>()),
      version_(version) {
  options_.clock = clock_.get();
  options_.symbolize = false;
}

CaptureReplay::~CaptureReplay() = default;

void CaptureReplay::problem(uint64_t offset, const std::string& sentence) {
  missing({name_ + ": at " + std::to_string(offset) + ": " + sentence});
}

void CaptureReplay::missing(MissingInput missing) {
  if (report_.missing.size() == kMaxMissingInput) {
    ++report_.missing_left_out;
  } else {
    report_.missing.push_back(std::move(missing));
  }
}

Status CaptureReplay::add(const std::string& name, Bytes container, const Progress& progress) {
  if (writer_) return replay(name, container, progress);
  // Nothing can be stored before it is known which session it is of, and which thread a page.
  auto manifest = first_manifest(name, container);
  if (!manifest.ok()) return manifest.error();
  waiting_.push_back({name, container, progress});
  if (!*manifest) return {};
  COLLECT_TRY(begin(**manifest));
  COLLECT_TRY(explain(**manifest));
  for (const Waiting& one : std::exchange(waiting_, {})) {
    COLLECT_TRY(replay(one.name, one.container, one.progress));
  }
  return {};
}

Status CaptureReplay::replay(const std::string& name, Bytes container, const Progress& progress) {
  name_ = name;
  auto opened = rtc::Reader::open(container);
  if (!opened.ok()) return Error{opened.code(), name + ": " + opened.error().message};
  rtc::Reader& reader = *opened;
  rtc::Object object;
  uint64_t told = 0;
  uint64_t errors = 0;
  while (reader.next(object)) {
    if (const uint64_t now = reader.findings().errors(); now != errors) {
      errors = now;
      for (auto& [kind, stream] : foreign_) stream.doubt();
    }
    COLLECT_TRY(take(object));
    if (progress && object.offset - told >= kProgressStep) {
      told = object.offset;
      progress(told);
    }
  }
  for (const rtc::Finding& finding : reader.findings().list()) {
    if (finding.severity == Severity::kError) problem(finding.offset, finding.sentence);
  }
  if (reader.head_bytes() != 0) {
    problem(0, std::to_string(reader.head_bytes()) + " bytes in front of the first Marker");
  }
  if (progress) progress(container.size());
  return writer_->commit();
}

Status CaptureReplay::take(const rtc::Object& object) {
  const std::string& stream = object.stream->name;
  if (stream == kManifestStream) return take_manifest(object.payload(), object.offset);
  if (stream == kChangesStream) return take_change(object.payload(), object.offset);
  if (stream == kIndexPagesStream || stream == kDetailPagesStream) {
    return take_page(object.payload(), object.offset);
  }
  for (const ForeignKind kind : kForeignKinds) {
    if (stream == foreign_kind_name(kind)) {
      return take_foreign(kind, object.payload(), object.offset);
    }
  }
  return {};  // clock, gaps, log, markers: said in the manifest and the pages too
}

Status CaptureReplay::take_manifest(Bytes json, uint64_t offset) {
  auto manifest = manifest_from_json(text_of(json));
  if (!manifest.ok()) {
    problem(offset, manifest.error().message);
    return {};
  }
  if (manifest->identity.process_id != writer_->identity().process_id ||
      manifest->identity.recording != writer_->identity().recording) {
    return Error{Code::kInvalidArgument,
                 name_ + ": belongs to another session than the containers before it"};
  }
  last_ = std::move(*manifest);
  count_missing(*last_);
  expect_foreign(*last_);
  return explain(*last_);
}

// Whatever a manifest counts stands before it, in this container or in one before. But that of a
// sealed session may stand first too, so that only the end can tell (finish).
void CaptureReplay::count_missing(const Manifest& manifest) {
  const SessionTotals found = writer_->totals();
  const auto less = [](uint64_t counted, uint64_t there) {
    return counted - std::min(counted, there);
  };
  missing_events_ = less(manifest.totals.events, found.events + pages_->left_out(Lane::kIndex));
  missing_detail_records_ =
      less(manifest.totals.detail_records, found.detail_records + pages_->left_out(Lane::kDetail));
}

Status CaptureReplay::begin(const Manifest& manifest) {
  clock_->now_unix_ns = manifest.created_unix_ns;
  SessionIdentity identity = manifest.identity;
  identity.version = version_.value_or(identity.version);
  pages_.emplace(manifest.identity.version, identity.version);
  auto created = SessionWriter::create(fs_, options_, identity);
  if (!created.ok()) return created.error();
  writer_ = std::move(*created);
  report_.directory = writer_->directory();
  return {};
}

Status CaptureReplay::take_change(Bytes json, uint64_t offset) {
  auto delta = manifest_from_json(text_of(json));
  if (!delta.ok()) {
    problem(offset, delta.error().message);
    return {};
  }
  return explain(*delta);
}

// Everything that a manifest says and a SessionWriter can be told. What is known already is taken
// silently there; the ends of streams wait until all pages are through.
Status CaptureReplay::explain(const Manifest& manifest) {
  COLLECT_TRY(writer_->add_modules(manifest.modules));
  for (const ManifestThread& thread : manifest.threads) {
    const Status opened =
        writer_->open_stream({thread.stream_id, thread.thread_id, thread.name, thread.start_ns});
    if (!opened.ok()) return opened;
    threads_[thread.stream_id] = thread;
    streams_[thread.id] = thread.stream_id;
  }
  COLLECT_TRY(add_stalls(manifest.stalls));
  for (const DetailWindow& window : manifest.detail_windows) {
    COLLECT_TRY(writer_->detail_state({window.mode, window.start_ns, window.pre_roll_from_ns,
                                       window.pre_roll_records, window.reason}));
    if (window.end_ns != 0) {
      COLLECT_TRY(writer_->detail_state({"off", window.end_ns, 0, 0, window.reason}));
    }
  }
  for (const FunctionFilter& filter : manifest.function_filters) {
    COLLECT_TRY(writer_->function_filter(filter));
  }
  for (const Marker& marker : manifest.markers) COLLECT_TRY(writer_->marker(marker));
  if (manifest.lost_without_stream != 0) {
    writer_->set_lost_without_stream(manifest.lost_without_stream);
  }
  writer_->set_process_end(manifest.process_end);
  return {};
}

Status CaptureReplay::add_stalls(const std::vector<Stall>& stalls) {
  for (const Stall& stall : stalls) {
    const auto stream = stall.thread ? streams_.find(*stall.thread) : streams_.end();
    if (stall.thread && stream == streams_.end()) {
      missing({"stalls of threads that no manifest names", stall.count});
      continue;
    }
    COLLECT_TRY(writer_->add_stalls(stall.thread ? stream->second : 0, {&stall, 1}));
  }
  return {};
}

Status CaptureReplay::take_page(Bytes object, uint64_t offset) {
  ++report_.pages;
  const auto refuse = [&](const std::string& sentence) {
    ++report_.pages_refused;
    problem(offset, sentence);
    return Status();
  };
  if (object.size() < sizeof(PageObject)) return refuse("a page without its header");
  const PageObject header = load_le<PageObject>(object.data());
  if (header.header_bytes < sizeof header || header.header_bytes > object.size() ||
      header.lane > static_cast<uint8_t>(Lane::kDetail)) {
    return refuse("not the header of a page");
  }
  const Bytes bytes = object.subspan(header.header_bytes);
  if (crc32c(bytes) != header.bytes_crc32c) {
    return refuse("the page of stream " + std::to_string(header.stream_id) + " at record " +
                  std::to_string(header.first_seq) + " does not have its checksum");
  }
  const auto thread = threads_.find(header.stream_id);
  const auto page = pages_->convert(page_of(header, bytes),
                                    thread == threads_.end() ? 0 : thread->second.thread_id);
  if (!page.ok()) return refuse(page.error().message);
  const Status stored = writer_->append_pages({&*page, 1});
  if (stored.ok()) return {};
  if (is_target_fault(stored.code())) return stored;
  return refuse(stored.error().message);
}

void CaptureReplay::expect_foreign(const Manifest& manifest) {
  for (const ForeignStream& stream : manifest.foreign_streams) {
    foreign_.try_emplace(stream.kind, stream.kind).first->second.expect(stream.bytes);
  }
}

Status CaptureReplay::take_foreign(ForeignKind kind, Bytes object, uint64_t offset) {
  const auto [known, is_new] = foreign_.try_emplace(kind, kind);
  ForeignReplay& stream = known->second;
  if (is_new && !last_) stream.begin_anywhere();  // the container's head is missing
  auto missing = stream.take(*writer_, object);
  if (!missing.ok()) return missing.error();
  if (*missing) problem(offset, **missing);
  return {};
}

Status CaptureReplay::finish_foreign() {
  for (auto& [kind, stream] : foreign_) {
    ForeignStream last{.kind = kind};
    for (const ForeignStream& told : last_->foreign_streams) {
      if (told.kind == kind) last = told;
    }
    auto missing = stream.finish(*writer_, last);
    if (!missing.ok()) return missing.error();
    if (*missing) problem(0, **missing);
  }
  return {};
}

Status CaptureReplay::end_streams() {
  for (const auto& [stream, thread] : threads_) {
    const Status ended = end_stream(stream, thread);
    if (!ended.ok() && is_target_fault(ended.code())) return ended;
    if (!ended.ok()) problem(0, ended.error().message);
  }
  return {};
}

// What the newest word on a thread counts and no page brought is lost at its end.
Status CaptureReplay::end_stream(uint32_t stream, const ManifestThread& thread) {
  // A manifest's loss holds the numbered ones too: those are the jump in the numbers.
  const auto dropped = [](uint64_t lost, uint64_t next, uint64_t stored) {
    const uint64_t numbered = next - std::min(next, stored);
    return lost - std::min(lost, numbered);
  };
  const uint64_t index_lost = dropped(thread.lost_events, thread.index_next, thread.events);
  const uint64_t detail_lost =
      dropped(thread.lost_detail_records, thread.detail_next, thread.detail_records);
  if (thread.ended) {
    StreamEnd end;
    end.stream_id = stream;
    end.thread_name = thread.name;
    end.end_ns = thread.end_ns;
    end.index_count = thread.index_next;
    end.detail_count = thread.detail_next;
    end.index_lost = index_lost;
    end.detail_lost = detail_lost;
    return writer_->close_stream(end);
  }
  for (const Lane lane : {Lane::kIndex, Lane::kDetail}) {
    Page nothing;  // that stands behind what is missing
    nothing.stream_id = stream;
    nothing.lane = lane;
    nothing.first_seq = lane == Lane::kIndex ? thread.index_next : thread.detail_next;
    nothing.lost_total = lane == Lane::kIndex ? index_lost : detail_lost;
    nothing.lost_reasons = kLostForgotten;
    COLLECT_TRY(writer_->append_pages({&nothing, 1}));
  }
  return {};
}

void CaptureReplay::say_missing() {
  const auto counted = [this](const char* what, uint64_t count) {
    if (count != 0) missing({what, count});
  };
  if (last_->state != SessionState::kRecording) count_missing(*last_);
  counted("pages that do not hold", report_.pages_refused);
  counted("events that were stored and are not in the containers", missing_events_);
  counted("detail records that were stored and are not in the containers", missing_detail_records_);
  if (last_->state == SessionState::kRecording) {
    missing({"the end of the session: the containers end before it"});
  }
  for (const MissingInput& one : last_->input_missing) writer_->input_missing(one);
  for (const MissingInput& one : report_.missing) writer_->input_missing(one);
}

Result<ReplayReport> CaptureReplay::finish() {
  if (!writer_ || !last_) {
    return Error{Code::kNotFound, "no manifest can be read" +
                                      (waiting_.empty() ? "" : " in " + waiting_.front().name) +
                                      ", so that it is not known which session it is of"};
  }
  COLLECT_TRY(end_streams());
  COLLECT_TRY(finish_foreign());
  for (const ClockSync& sync : last_->clock_syncs) COLLECT_TRY(writer_->clock_sync(sync));
  for (const Note& note : last_->notes) {
    clock_->now_unix_ns = note.at_unix_ns;
    COLLECT_TRY(writer_->note(note.what));
  }
  const bool was_sealed = last_->state != SessionState::kRecording;
  clock_->now_unix_ns = was_sealed ? last_->finished_unix_ns : system_clock().unix_ns();
  say_missing();
  // Names come after the containers' end: `collectctl symbolize` looks up what they do not hold.
  writer_->adopt_symbols(last_->symbols, last_->module_symbols, last_->symbols_state);
  report_.state = was_sealed ? last_->state : SessionState::kRecovered;
  if (!report_.missing.empty() && report_.state == SessionState::kComplete) {
    report_.state = SessionState::kRecovered;
  }
  const std::string reason =
      was_sealed ? last_->reason : "rebuilt from containers that end before the session did";
  COLLECT_TRY(writer_->seal(report_.state, reason));
  report_.totals = writer_->totals();
  report_.left_out_events = pages_->left_out(Lane::kIndex);
  report_.left_out_detail_records = pages_->left_out(Lane::kDetail);
  report_.left_out_depths = pages_->depths_left_out();
  return std::move(report_);
}

}  // namespace collect::storage
