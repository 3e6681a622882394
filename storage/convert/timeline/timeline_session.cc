#include "storage/convert/timeline/timeline_session.h"

#include <fmt/core.h>

#include <algorithm>

#include "formats/core/text/figures.h"
#include "formats/core/text/utf8_text.h"
#include "storage/manifest/manifest.h"

namespace collect::convert {
namespace {

constexpr std::string_view kFurtherFunctions = "(all other functions)";
constexpr std::string_view kUnnamed = "(no name)";
constexpr uint64_t kProgressRecords = uint64_t{1} << 16;

// As a manifest has it: UTF-8 of bounded length.
std::string bounded(std::string_view text) {
  std::string clean;
  append_utf8(utf8_prefix(text, storage::kMaxTextBytes), clean);
  storage::bound_text(clean);
  return clean;
}

}  // namespace

// ---- what the reader says

uint32_t TimelineSession::add_process(uint32_t pid) {
  if (processes_.size() == kMaxTimelineProcesses) return kNone;
  processes_.push_back({pid, {}, false});
  return static_cast<uint32_t>(processes_.size() - 1);
}

uint32_t TimelineSession::add_track() {
  if (tracks_.size() == kMaxTimelineTracks) return kNone;
  tracks_.emplace_back();
  return static_cast<uint32_t>(tracks_.size() - 1);
}

void TimelineSession::label(std::string& name, std::string_view text) {
  if (text.empty()) return;
  std::string kept = bounded(text);
  if (kept.size() > kMaxTimelineLabelBytes - label_bytes_) {
    ++other_labels_;
    return;
  }
  label_bytes_ += kept.size();
  label_bytes_ -= name.size();
  name = std::move(kept);
}

void TimelineSession::name_process(uint32_t process, std::string_view name) {
  if (process < processes_.size()) label(processes_[process].name, name);
}

void TimelineSession::name_track(uint32_t track, std::string_view name) {
  if (track < tracks_.size()) label(tracks_[track].name, name);
}

void TimelineSession::place_track(uint32_t track, uint32_t process, uint32_t tid) {
  if (track >= tracks_.size()) return;
  if (process < processes_.size()) tracks_[track].process = process;
  if (tid != 0) tracks_[track].tid = tid;
}

uint32_t TimelineSession::function(std::string_view name, std::string_view file, uint32_t line) {
  if (name.empty()) name = kUnnamed;
  name = utf8_prefix(name, storage::kMaxTextBytes);
  file = utf8_prefix(file, storage::kMaxTextBytes);
  key_.assign(name);
  if (!file.empty()) key_.append(1, '\0').append(file).append(1, '\0').append(std::to_string(line));
  if (const auto known = functions_.find(key_); known != functions_.end()) return known->second;
  if (functions_.size() >= kMaxTimelineFunctions ||
      key_.size() > kMaxTimelineNameBytes - name_bytes_) {
    if (name != kFurtherFunctions) {
      ++other_functions_;
      return function(kFurtherFunctions, {}, 0);
    }
  }
  const auto id = static_cast<uint32_t>(functions_.size() + 1);
  name_bytes_ += std::min(key_.size(), kMaxTimelineNameBytes - name_bytes_);
  functions_.emplace(key_, id);
  session_.name_function({id, bounded(name), bounded(file), file.empty() ? 0 : line});
  return id;
}

bool TimelineSession::takes(int64_t ns) {
  if (ns > -kMaxTimelineNs && ns < kMaxTimelineNs) return true;
  ++bad_times_;
  return false;
}

Status TimelineSession::add(uint32_t track, int64_t ns, RecordKind kind, uint32_t function,
                            uint64_t duration_ns) {
  if (!takes(ns)) return {};
  if (track >= tracks_.size()) {
    ++other_tracks_;
    return {};
  }
  tracks_[track].has_events = true;
  first_ns_ = std::min(first_ns_, ns);
  TimelineRecord record;
  record.ns = ns;
  record.track = track;
  record.kind = kind;
  record.function = function;
  record.duration_ns = duration_ns;
  return records_.add(record);
}

Status TimelineSession::begin(uint32_t track, int64_t ns, uint32_t function) {
  return add(track, ns, RecordKind::kBegin, function, 0);
}

Status TimelineSession::end(uint32_t track, int64_t ns) {
  return add(track, ns, RecordKind::kEnd, 0, 0);
}

Status TimelineSession::call(uint32_t track, int64_t ns, uint64_t duration_ns, uint32_t function) {
  if (duration_ns > static_cast<uint64_t>(kMaxTimelineNs)) {
    ++bad_times_;
    return {};
  }
  return add(track, ns, RecordKind::kCall, function, duration_ns);
}

Status TimelineSession::marker(int64_t ns, std::string_view text) {
  if (!takes(ns)) return {};
  std::string kept = bounded(text.empty() ? kUnnamed : text);
  if (markers_.size() == storage::kMaxMarkers ||
      kept.size() > kMaxTimelineMarkBytes - mark_bytes_) {
    ++other_markers_;
    return {};
  }
  first_ns_ = std::min(first_ns_, ns);
  const size_t bytes = kept.size();
  if (markers_.emplace(ns, std::move(kept)).second) mark_bytes_ += bytes;
  return {};
}

void TimelineSession::leave_out(std::string_view kind, uint64_t count) {
  left_out_[kind] += count;
}

// ---- the session

void TimelineSession::count_processes() {
  for (const Track& track : tracks_) {
    if (track.has_events && track.process != kNone) processes_[track.process].has_events = true;
  }
  shown_processes_ = static_cast<size_t>(std::count_if(processes_.begin(), processes_.end(),
                                                       [](const auto& p) { return p.has_events; }));
  if (shown_processes_ > 1) {
    log_.remark(
        fmt::format("{} processes are in one session; the name of each thread begins with "
                    "that of its process",
                    with_thousands(shown_processes_)));
  }
}

BuiltProcess TimelineSession::built_process(std::string_view name) const {
  BuiltProcess built;
  built.name = bounded(name);
  if (shown_processes_ > 1) {
    built.name = fmt::format("{} processes", shown_processes_);
  } else if (!processes_.empty()) {
    const auto shown = std::find_if(processes_.begin(), processes_.end(),
                                    [](const auto& p) { return p.has_events; });
    const Process& process = shown == processes_.end() ? processes_.front() : *shown;
    if (!process.name.empty()) built.name = process.name;
    built.pid = process.pid;
  }
  return built;
}

std::string TimelineSession::thread_name(const Track& track) const {
  if (shown_processes_ < 2 || track.process == kNone) return track.name;
  const Process& process = processes_[track.process];
  std::string name = process.name.empty() ? fmt::format("process {}", process.pid) : process.name;
  name += ": ";
  name += track.name.empty() ? fmt::format("thread {}", track.tid) : track.name;
  storage::bound_text(name);
  return name;
}

// The calls of one thread, in the session's time.
class TimelineSession::Steps final : public CallSteps {
 public:
  Steps(SessionBuilder& session, uint32_t position, uint64_t shift_ns)
      : session_(session), position_(position), shift_ns_(shift_ns) {}
  Status call(int64_t ns, uint32_t function) override {
    return session_.event(position_, at(ns), function, atf::EventKind::kCall);
  }
  Status returned(int64_t ns, uint32_t function) override {
    return session_.event(position_, at(ns), function, atf::EventKind::kReturn);
  }

 private:
  uint64_t at(int64_t ns) const { return static_cast<uint64_t>(ns) + shift_ns_; }

  SessionBuilder& session_;
  const uint32_t position_;
  const uint64_t shift_ns_;
};

Status TimelineSession::build_tracks(uint64_t shift_ns) {
  TimelineRecord record;
  bool more = records_.next(record);
  uint64_t taken = 0;
  while (more) {
    const uint32_t number = record.track;
    const Track& track = tracks_[number];
    const uint32_t tid = track.tid != 0 ? track.tid : number + 1;
    const auto added =
        session_.add_thread(tid, thread_name(track), static_cast<uint64_t>(record.ns) + shift_ns);
    if (!added.ok()) return added.error();
    Steps steps(session_, *added, shift_ns);
    TrackCalls calls(steps, counts_);
    for (; more && record.track == number; more = records_.next(record)) {
      COLLECT_TRY(calls.take(record));
      if (++taken % kProgressRecords == 0) log_.progress(file_bytes_, file_bytes_);
    }
    COLLECT_TRY(calls.finish());
    COLLECT_TRY(session_.end_thread(*added));
  }
  return {};
}

void TimelineSession::say_counts() {
  for (const auto& [kind, count] : left_out_) log_.leave_out(kind, count);
  log_.leave_out("ends without a begin: a return needs a call", counts_.lone_ends);
  log_.leave_out("ends of calls behind the end of their caller, moved to it", counts_.cut_calls);
  log_.leave_out("calls without an end, ended with their caller", counts_.unended_calls);
  log_.leave_out("calls nested too deeply to be followed", counts_.too_deep);
  log_.leave_out("names of functions past the number that is distinguished", other_functions_);
  log_.leave_out("names of processes and threads past the bytes that are kept", other_labels_);
  log_.leave_out("events of threads past the number of threads in a session", other_tracks_);
  log_.leave_out("marks past the number of markers in a session", other_markers_);
  log_.leave_out("events whose time or duration is out of range", bad_times_);
}

Status TimelineSession::build(std::string_view name) {
  if (first_ns_ == kMaxTimelineNs) first_ns_ = 0;
  uint64_t shift_ns = 0;
  if (first_ns_ < 0) {
    shift_ns = static_cast<uint64_t>(-first_ns_);
    log_.remark(fmt::format("times begin at {} ns; the session's begin at 0", first_ns_));
  }
  count_processes();
  BuiltProcess process = built_process(name);
  process.start_ns = static_cast<uint64_t>(first_ns_) + shift_ns;
  COLLECT_TRY(session_.begin(process));
  COLLECT_TRY(records_.sort());
  COLLECT_TRY(build_tracks(shift_ns));
  for (const auto& [ns, text] : markers_) {
    COLLECT_TRY(session_.marker(static_cast<uint64_t>(ns) + shift_ns, text));
  }
  say_counts();
  return {};
}

}  // namespace collect::convert
