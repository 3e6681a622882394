// The function filter that the settings ask for: patterns go to the collector, which knows the
// names of functions, and come back as SetFunctionFilter. Nothing is recorded before.
#include "agent/drain/control.h"
#include "agent/drain/drain_thread.h"
#include "agent/drain/frames.h"
#include "agent/drain/status.h"

namespace collect::agent {

static_assert(kMaxFilterText == wire::kMaxFilterText);

void DrainThread::ask_for_filter() {
  if (!filter_late_said_ && g_control.released_ns.load(std::memory_order_relaxed) != 0) {
    filter_late_said_ = true;
    log_line("no function filter has come yet; the program goes on, and is recorded when it comes");
  }
  if (filter_asked_ || !link_.is_up()) return;
  if ((link_.features() & wire::kFeatureStartFilter) == 0) {
    filter_asked_ = true;  // but nobody is waited for
    log_line("this collector makes no function filter, so nothing is recorded");
    return;
  }
  // As far as there is room; the rest in the next round.
  SendBuffer& out = link_.control().out;
  if (shipper_.metadata_sender().report_modules(out)) {
    collect_wire_WantFunctionFilter want = collect_wire_WantFunctionFilter_init_zero;
    copy_utf8(want.only, sizeof want.only, settings_.only, sizeof settings_.only);
    copy_utf8(want.except, sizeof want.except, settings_.except, sizeof settings_.except);
    filter_asked_ = out.push(wire::FrameType::kWantFunctionFilter,
                             collect_wire_WantFunctionFilter_fields, &want);
  }
  if (filter_asked_) g_control.filter_asked.store(true, std::memory_order_relaxed);
  (void)link_.flush(now_ms_, link_.control());
}

// Any filter will do: somebody may have set another one meanwhile.
void DrainThread::filter_has_come() {
  if (!filter_wanted_) return;
  filter_wanted_ = false;
  const uint64_t released_ns = g_control.released_ns.load(std::memory_order_acquire);
  shipper_.metadata_sender().set_late(released_ns != 0 ? now_ns() - released_ns : 0);
  begin_by_itself();
  g_control.holds.store(false, std::memory_order_release);
}

}  // namespace collect::agent
