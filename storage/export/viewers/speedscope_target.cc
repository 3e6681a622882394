#include "storage/export/viewers/speedscope_target.h"

#include <fmt/core.h>

#include "formats/core/text/figures.h"
#include "storage/manifest/manifest.h"

namespace collect::exports {

void SpeedscopeTarget::begin_process(const ExportedProcess& process, const FunctionNames& names) {
  names_ = &names;
  writer_.forget_functions();
  process_ =
      process.device.empty() ? process.name : fmt::format("{}: {}", process.device, process.name);
  title_ += (title_.empty() ? "" : ", ") + process_;
}

void SpeedscopeTarget::begin_thread(const ExportedThread& thread, uint64_t /*first_ns*/) {
  too_deep_ = 0;
  writer_.begin_profile(fmt::format(
      "{}: {} ({})", process_,
      thread.name.empty() ? fmt::format("thread_{}", thread.n) : thread.name, thread.tid));
}

void SpeedscopeTarget::begin_call(uint64_t ns, uint32_t function, const EventNotes* notes) {
  if (writer_.depth() >= kMaxDepth) {
    ++too_deep_;
    ++folded_;
    return;
  }
  if (notes != nullptr) ++details_;
  writer_.open(ns, writer_.frame_of(function, [&] {
    const read::SourceLocation* source = names_->source_of(function);
    return source == nullptr ? speedscope::Frame{names_->of(function)}
                             : speedscope::Frame{names_->of(function), source->file, source->line};
  }));
}

void SpeedscopeTarget::end_call(uint64_t ns, uint32_t /*function*/, const EventNotes* notes) {
  if (too_deep_ != 0) {
    --too_deep_;
    return;
  }
  if (notes != nullptr) ++details_;
  writer_.close(ns);
}

// No call is open then.
void SpeedscopeTarget::lose(uint64_t first_ns, uint64_t last_ns, uint64_t events,
                            std::string_view /*reasons*/) {
  writer_.open(first_ns,
               writer_.frame_named(fmt::format("[lost: {} events]", with_thousands(events))));
  writer_.close(last_ns);
}

void SpeedscopeTarget::stall_within(const storage::Stall& stall, uint64_t first_ns,
                                    uint64_t last_ns) {
  if (stall.count > 1) {
    ++joined_;
    return;
  }
  if (too_deep_ != 0) return;
  writer_.open(first_ns, writer_.frame_named(fmt::format("[{}]", idle_time_name(stall.kind))));
  writer_.close(last_ns);
}

void SpeedscopeTarget::end_thread(uint64_t last_ns) {
  writer_.end_profile(last_ns);
}

Status SpeedscopeTarget::finish(convert::ConvertLog& log) {
  log.leave_out("notes of calls: registers, stack bytes, how a call ended", details_);
  log.leave_out("stalls that were joined: their times are not known one by one", joined_);
  log.leave_out(
      fmt::format("calls nested deeper than {}: they are folded into the calls around them",
                  kMaxDepth),
      folded_);
  return writer_.finish(title_);
}

}  // namespace collect::exports
