#include "storage/export/viewers/perfetto_target.h"

#include <fmt/core.h>

#include "formats/core/text/figures.h"
#include "storage/manifest/manifest.h"

namespace collect::exports {
namespace {

constexpr uint32_t kRoleBits = 4;
constexpr uint32_t kThreadBits = 28;  // threads are numbered below 2^16

}  // namespace

uint64_t PerfettoTarget::uuid(const ExportedThread* thread, Role role) const {
  const uint64_t n = thread == nullptr ? 0 : uint64_t{thread->n} + 1;
  return (processes_ << kThreadBits | n) << kRoleBits | static_cast<uint64_t>(role);
}

// The parent is the thread or process that the track is beside.
uint64_t PerfettoTarget::plain_track(const ExportedThread* thread, Role role, std::string name,
                                     uint64_t ns) {
  const uint64_t track = uuid(thread, role);
  if (tracks_.insert(track).second) {
    perfetto::PlainTrack plain{track, uuid(thread, Role::kCalls), std::move(name), ""};
    if (role == Role::kRate) {
      plain.unit = "events/s";
      writer_.add_counter(plain, ns);
    } else {
      writer_.add_track(plain, ns);
    }
  }
  return track;
}

void PerfettoTarget::begin_process(const ExportedProcess& process, const FunctionNames& names) {
  names_ = &names;
  ++processes_;
  writer_.forget_functions();
  pid_ = pids_.take(process.pid);
  perfetto::ProcessTrack track{uuid(nullptr, Role::kCalls), pid_, process.name, {}};
  if (!process.device.empty()) track.name = fmt::format("{}: {}", process.device, process.name);
  if (static_cast<uint32_t>(pid_) != process.pid && process.pid != 0) {
    track.name += fmt::format(" (pid {})", process.pid);
  }
  writer_.add_process(track, process.start_ns);
}

void PerfettoTarget::marker(uint64_t ns, std::string_view text) {
  writer_.instant(plain_track(nullptr, Role::kMarkers, "markers", ns), ns, text);
}

void PerfettoTarget::ended(uint64_t ns, std::string_view what) {
  writer_.instant(plain_track(nullptr, Role::kEnds, "ends", ns), ns, what);
}

void PerfettoTarget::events_per_second(uint64_t ns, uint64_t count) {
  writer_.count(plain_track(nullptr, Role::kRate, "events per second", ns), ns, count);
}

void PerfettoTarget::begin_thread(const ExportedThread& thread, uint64_t first_ns) {
  thread_ = &thread;
  perfetto::ThreadTrack track{uuid(&thread, Role::kCalls), pid_, tids_.take(thread.tid),
                              thread.name};
  if (static_cast<uint32_t>(track.tid) != thread.tid) {
    track.name += (track.name.empty() ? "tid " : " (tid ") + std::to_string(thread.tid) +
                  (track.name.empty() ? "" : ")");
  }
  writer_.begin_thread(track, first_ns);
}

void PerfettoTarget::begin_call(uint64_t ns, uint32_t function, const EventNotes* notes) {
  writer_.begin_call(
      ns, function,
      [&] {
        const read::SourceLocation* source = names_->source_of(function);
        return source == nullptr
                   ? perfetto::FunctionText(names_->of(function))
                   : perfetto::FunctionText(names_->of(function), source->file, source->line);
      },
      notes);
}

void PerfettoTarget::end_call(uint64_t ns, uint32_t /*function*/, const EventNotes* notes) {
  writer_.end_call(ns, notes);
}

void PerfettoTarget::lose(uint64_t first_ns, uint64_t last_ns, uint64_t events,
                          std::string_view reasons) {
  EventNotes notes = {{"events", EventNote::Kind::kNumber, events, {}}};
  if (!reasons.empty()) notes.push_back({"reasons", EventNote::Kind::kText, 0, reasons});
  writer_.lose(first_ns, last_ns);
  writer_.slice(plain_track(thread_, Role::kLost, "lost events", first_ns), first_ns, last_ns,
                fmt::format("lost: {} events", with_thousands(events)), notes);
}

void PerfettoTarget::stall(const ExportedThread* thread, const storage::Stall& stall,
                           uint64_t first_ns, uint64_t last_ns) {
  const bool is_off = storage::is_off_processor(stall.kind);
  const auto kind = is_off ? size_t{3} : static_cast<size_t>(stall.kind);
  const auto role = static_cast<Role>(static_cast<size_t>(Role::kPageWait) + kind);
  static constexpr const char* kTracks[] = {"waits for the collector", "process stopped",
                                            "machine suspended", "off the processor"};
  EventNotes notes;
  if (!is_off || stall.count > 1) {
    notes.push_back({"stalled_ns", EventNote::Kind::kNumber, stall.stalled_ns, {}});
  }
  if (stall.count > 1) notes.push_back({"joined", EventNote::Kind::kNumber, stall.count, {}});
  writer_.slice(plain_track(thread, role, kTracks[kind], first_ns), first_ns, last_ns,
                idle_time_name(stall.kind), notes);
}

void PerfettoTarget::end_thread(uint64_t /*last_ns*/) {
  writer_.end_thread();
  thread_ = nullptr;
}

Status PerfettoTarget::finish(convert::ConvertLog& log) {
  log.leave_out(fmt::format("calls nested deeper than {}, which Perfetto drops: they are folded "
                            "into the calls around them",
                            perfetto::kMaxDepth),
                writer_.folded_calls());
  return writer_.finish();
}

}  // namespace collect::exports
