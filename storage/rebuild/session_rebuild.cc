#include "storage/rebuild/session_rebuild.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "storage/model/switch_times.h"

namespace collect::storage {
namespace {

// What the target's disk does is no fault of the input.
bool is_target_fault(Code code) {
  return code != Code::kDamaged && code != Code::kLimit && code != Code::kInvalidArgument;
}

}  // namespace

// The wall clock of the recording: its session is named, and its manifest dated, as it was.
class SessionRebuild::RecordedClock final : public Clock {
 public:
  uint64_t unix_ns() override { return now_unix_ns; }
  uint64_t monotonic_ns() override { return system_clock().monotonic_ns(); }
  uint64_t now_unix_ns = 0;
};

SessionRebuild::SessionRebuild(Fs& fs, SessionOptions options, std::string input,
                               std::optional<atf::Version> version)
    : fs_(fs),
      options_(std::move(options)),
      input_(std::move(input)),
      clock_(std::make_unique<RecordedClock>()),
      version_(version) {
  options_.clock = clock_.get();
  options_.symbolize = false;
}

SessionRebuild::~SessionRebuild() = default;

void SessionRebuild::missing(MissingInput missing) {
  if (report_.missing.size() == kMaxMissingInput) {
    ++report_.missing_left_out;
  } else {
    report_.missing.push_back(std::move(missing));
  }
}

Status SessionRebuild::manifest(Manifest manifest) {
  if (manifest.identity.process_id != writer_->identity().process_id ||
      manifest.identity.recording != writer_->identity().recording) {
    return Error{Code::kInvalidArgument, "belongs to another session than what came before it"};
  }
  last_ = std::move(manifest);
  newer_clock_syncs_.clear();
  newer_notes_.clear();
  count_missing(*last_);
  expect_passthrough(*last_);
  return add_metadata(*last_);
}

Status SessionRebuild::change(const Manifest& delta) {
  for (const ClockSync& sync : delta.clock_syncs) {
    if (newer_clock_syncs_.size() == kMaxClockSyncs) newer_clock_syncs_.pop_back();
    newer_clock_syncs_.push_back(sync);
  }
  for (const Note& note : delta.notes) {
    if (newer_notes_.size() == kMaxNotes) {
      missing({fmt::format("a note beyond the {} that a session has", kMaxNotes)});
    } else {
      newer_notes_.push_back(note);
    }
  }
  return add_metadata(delta);
}

// A manifest repeats those of the one before, so they wait for the last one.
Status SessionRebuild::add_notes() {
  for (const auto* list : {&last_->clock_syncs, &newer_clock_syncs_}) {
    for (const ClockSync& sync : *list) COLLECT_TRY(writer_->clock_sync(sync));
  }
  for (const auto* list : {&last_->notes, &newer_notes_}) {
    for (const Note& note : *list) {
      clock_->now_unix_ns = note.at_unix_ns;
      COLLECT_TRY(writer_->note(note.what));
    }
  }
  return {};
}

// All that a manifest counts is before it, in this container or in one before. But that of a
// sealed session may come first too, so that only the end decides (finish).
void SessionRebuild::count_missing(const Manifest& manifest) {
  const SessionTotals found = writer_->totals();
  const auto less = [](uint64_t counted, uint64_t there) {
    return counted - std::min(counted, there);
  };
  missing_events_ = less(manifest.totals.events, found.events + pages_->left_out(Lane::kIndex));
  missing_detail_records_ =
      less(manifest.totals.detail_records, found.detail_records + pages_->left_out(Lane::kDetail));
}

Status SessionRebuild::begin(const Manifest& manifest) {
  clock_->now_unix_ns = manifest.created_unix_ns;
  SessionIdentity identity = manifest.identity;
  identity.version = version_.value_or(identity.version);
  pages_.emplace(manifest.identity.version, identity.version);
  auto created = Session::create(fs_, options_, identity);
  if (!created.ok()) return created.error();
  writer_ = std::move(*created);
  report_.directory = writer_->directory();
  return {};
}

// Everything that a manifest says and a Session can take. What is known already is taken
// silently there; the ends of streams wait until all pages are through.
Status SessionRebuild::add_metadata(const Manifest& manifest) {
  COLLECT_TRY(writer_->add_modules(manifest.modules));
  for (const ManifestThread& thread : manifest.threads) {
    const auto open = [&](const std::string& name, uint64_t named_ns) {
      return writer_->open_stream(
          {thread.stream_id, thread.thread_id, name, thread.start_ns, named_ns});
    };
    if (thread.names.empty()) COLLECT_TRY(open(thread.name, 0));
    for (const ThreadName& one : thread.names) COLLECT_TRY(open(one.name, one.from_ns));
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
  writer_->set_switches_lost(manifest.switches_lost);
  writer_->set_process_end(manifest.process_end);
  return {};
}

Status SessionRebuild::add_stalls(const std::vector<Stall>& stalls) {
  std::vector<StreamStall> arrived;
  for (const Stall& stall : stalls) {
    const auto stream = stall.thread ? streams_.find(*stall.thread) : streams_.end();
    if (stall.thread && stream == streams_.end()) {
      missing({"stalls of threads that no manifest names", stall.count});
      continue;
    }
    arrived.push_back({stall.thread ? stream->second : 0, stall});
  }
  return writer_->add_stalls(arrived);
}

Result<Refusal> SessionRebuild::page(const Page& page) {
  ++report_.pages;
  const auto thread = threads_.find(page.stream_id);
  const auto converted =
      pages_->convert(page, thread == threads_.end() ? 0 : thread->second.thread_id);
  Status stored = converted.ok() ? writer_->append_pages({&*converted, 1}) : converted.error();
  if (stored.ok()) return Refusal();
  // A session that has failed has reached its own limit: that is no fault of the page.
  if (converted.ok() && (is_target_fault(stored.code()) || writer_->failed())) {
    return stored.error();
  }
  ++report_.pages_refused;
  return Refusal(stored.error().message);
}

void SessionRebuild::expect_passthrough(const Manifest& manifest) {
  for (const PassthroughStream& stream : manifest.passthrough_streams) {
    if (stream.kind == PassthroughKind::kSwitches) continue;  // counted by their times
    passthrough_.try_emplace(stream.kind, stream.kind).first->second.expect(stream.bytes);
  }
}

Result<Refusal> SessionRebuild::passthrough(PassthroughKind kind, Bytes frames) {
  if (kind == PassthroughKind::kSwitches) {
    std::vector<Stall> switches;
    const Status decoded = decode_switches(frames, switches);
    COLLECT_TRY(add_stalls(switches));
    return decoded.ok() ? Refusal() : Refusal(decoded.error().message);
  }
  const auto [known, is_new] = passthrough_.try_emplace(kind, kind);
  PassthroughReplay& stream = known->second;
  if (is_new && !last_) stream.begin_anywhere();  // the container's head is missing
  return stream.take(*writer_, frames);
}

void SessionRebuild::doubt() {
  for (auto& [kind, stream] : passthrough_) stream.doubt();
}

Status SessionRebuild::finish_passthrough() {
  for (auto& [kind, stream] : passthrough_) {
    PassthroughStream last{.kind = kind};
    for (const PassthroughStream& listed : last_->passthrough_streams) {
      if (listed.kind == kind) last = listed;
    }
    auto missing = stream.finish(*writer_, last);
    if (!missing.ok()) return missing.error();
    if (*missing) this->missing({std::move(**missing)});
  }
  return {};
}

Status SessionRebuild::end_streams() {
  for (const auto& [stream, thread] : threads_) {
    const Status ended = end_stream(stream, thread);
    if (!ended.ok() && is_target_fault(ended.code())) return ended;
    if (!ended.ok()) missing({ended.error().message});
  }
  return {};
}

// What the newest word on a thread counts and no page brought is lost at its end.
Status SessionRebuild::end_stream(uint32_t stream, const ManifestThread& thread) {
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
    end.calls_left_out = thread.calls_left_out;
    return writer_->close_stream(end);
  }
  for (const Lane lane : {Lane::kIndex, Lane::kDetail}) {
    Page nothing;  // that is behind what is missing
    nothing.stream_id = stream;
    nothing.lane = lane;
    nothing.first_seq = lane == Lane::kIndex ? thread.index_next : thread.detail_next;
    nothing.lost_total = lane == Lane::kIndex ? index_lost : detail_lost;
    nothing.lost_reasons = kLostUnavailable;
    COLLECT_TRY(writer_->append_pages({&nothing, 1}));
  }
  return {};
}

void SessionRebuild::say_missing() {
  const auto counted = [this](std::string what, uint64_t count) {
    if (count != 0) missing({std::move(what), count});
  };
  if (last_->state != SessionState::kRecording) count_missing(*last_);
  counted(report_.pages_refused == 1 ? "damaged page" : "damaged pages", report_.pages_refused);
  counted("events that were stored and are not in " + input_, missing_events_);
  counted("detail records that were stored and are not in " + input_, missing_detail_records_);
  const StallTotals& has = writer_->totals().stalls;
  const StallTotals& had = last_->totals.stalls;
  const auto fewer = [&](std::string what, uint64_t before, uint64_t now) {
    if (before > now) counted(what + " that were stored and are not in " + input_, before - now);
  };
  fewer("times off the processor", had.switches, has.switches);
  fewer("waits for locks", had.lock_waits, has.lock_waits);
  fewer("samples", had.samples, has.samples);
  if (last_->state == SessionState::kRecording) {
    missing({fmt::format("the end of the session: {} end before it", input_)});
  }
  for (const MissingInput& one : last_->input_missing) writer_->input_missing(one);
  for (const MissingInput& one : report_.missing) writer_->input_missing(one);
}

Result<ReplayReport> SessionRebuild::finish() {
  if (!writer_ || !last_) return Error{Code::kNotFound, "no manifest can be read"};
  COLLECT_TRY(end_streams());
  COLLECT_TRY(finish_passthrough());
  COLLECT_TRY(add_notes());
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
      was_sealed ? last_->reason
                 : fmt::format("rebuilt from {} that end before the session did", input_);
  COLLECT_TRY(writer_->seal(report_.state, reason));
  report_.totals = writer_->totals();
  report_.left_out = pages_->left_out();
  return std::move(report_);
}

}  // namespace collect::storage
