#include "storage/export/viewers/chrome_target.h"

#include <fmt/core.h>

#include "formats/core/text/figures.h"
#include "storage/manifest/manifest.h"

namespace collect::exports {

void ChromeTarget::begin_process(const ExportedProcess& process, const FunctionNames& names) {
  names_ = &names;
  writer_.forget_functions();
  pid_ = pids_.take(process.pid);
  std::string name =
      process.device.empty() ? process.name : fmt::format("{}: {}", process.device, process.name);
  if (static_cast<uint32_t>(pid_) != process.pid && process.pid != 0) {
    name += fmt::format(" (pid {})", process.pid);
  }
  writer_.add_process(pid_, name);
}

void ChromeTarget::marker(uint64_t ns, std::string_view text) {
  writer_.instant(pid_, ns, text);
}

void ChromeTarget::events_per_second(uint64_t ns, uint64_t count) {
  writer_.count(pid_, ns, "events per second", count);
}

void ChromeTarget::begin_thread(const ExportedThread& thread, uint64_t /*first_ns*/) {
  tid_ = tids_.take(thread.tid);
  std::string name = thread.name.empty() ? fmt::format("thread_{}", thread.n) : thread.name;
  if (static_cast<uint32_t>(tid_) != thread.tid) {
    name += fmt::format(" (tid {})", thread.tid);
  }
  writer_.begin_thread(pid_, tid_, name);
}

void ChromeTarget::begin_call(uint64_t ns, uint32_t function, const EventNotes* notes) {
  writer_.begin_call(ns, function, [&] { return names_->of(function); }, notes);
}

void ChromeTarget::end_call(uint64_t ns, uint32_t function, const EventNotes* notes) {
  writer_.end_call(ns, function, [&] { return names_->of(function); }, notes);
}

void ChromeTarget::lose(uint64_t first_ns, uint64_t last_ns, uint64_t events,
                        std::string_view reasons) {
  EventNotes notes = {{"events", EventNote::Kind::kNumber, events, {}}};
  if (!reasons.empty()) notes.push_back({"reasons", EventNote::Kind::kText, 0, reasons});
  writer_.interval(pid_, tid_, "lost", ++intervals_, first_ns, last_ns,
                   fmt::format("lost: {} events", with_thousands(events)), notes);
}

void ChromeTarget::stall(const ExportedThread* thread, const storage::Stall& stall,
                         uint64_t first_ns, uint64_t last_ns) {
  EventNotes notes;
  const bool is_off = storage::is_off_processor(stall.kind);
  if (!is_off || stall.count > 1) {
    notes.push_back({"stalled_ns", EventNote::Kind::kNumber, stall.stalled_ns, {}});
  }
  if (stall.count > 1) notes.push_back({"joined", EventNote::Kind::kNumber, stall.count, {}});
  writer_.interval(pid_, thread == nullptr ? pid_ : tid_, is_off ? "off_processor" : "stall",
                   ++intervals_, first_ns, last_ns, idle_time_name(stall.kind), notes);
}

void ChromeTarget::end_thread(uint64_t /*last_ns*/) {}

Status ChromeTarget::finish(convert::ConvertLog& /*log*/) {
  const std::string origin = std::to_string(origin_ns_);
  return writer_.finish({{"origin_ns", EventNote::Kind::kText, 0, origin}});
}

}  // namespace collect::exports
