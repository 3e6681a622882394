#include "agent/drain/start_filter.h"

#include "agent/drain/link/status.h"
#include "agent/text.h"

namespace collect::agent {

static_assert(kMaxFilterText == wire::kMaxFilterText);

void StartFilter::say_if_late() {
  if (late_said_ || control_.released_ns.load(std::memory_order_relaxed) == 0) return;
  late_said_ = true;
  log_line("no function filter has come yet; the program continues, and is recorded when it comes");
}

bool StartFilter::ask(uint64_t features, SendBuffer& out) {
  if (is_asked_) return false;
  if ((features & wire::kFeatureStartFilter) == 0) {
    is_asked_ = true;  // but no one is waited for
    log_line("this collector makes no function filter, so nothing is recorded");
    return false;
  }
  if (metadata_sender_.report_modules(out)) {
    collect_wire_WantFunctionFilter want = collect_wire_WantFunctionFilter_init_zero;
    copy_utf8(want.only, sizeof want.only, settings_.only, sizeof settings_.only);
    copy_utf8(want.except, sizeof want.except, settings_.except, sizeof settings_.except);
    is_asked_ = out.push(wire::FrameType::kWantFunctionFilter,
                         collect_wire_WantFunctionFilter_fields, &want);
  }
  if (is_asked_) control_.filter_asked.store(true, std::memory_order_relaxed);
  return true;
}

void StartFilter::link_is_down() {
  if (!is_asked_) return;
  is_asked_ = false;
  control_.filter_asked.store(false, std::memory_order_relaxed);
}

void StartFilter::has_come() {
  if (!is_wanted_) return;
  is_wanted_ = false;
  const uint64_t released_ns = control_.released_ns.load(std::memory_order_acquire);
  metadata_sender_.set_late(released_ns != 0 ? now_ns() - released_ns : 0);
  recording_.begin_by_itself();
  control_.holds.store(false, std::memory_order_release);
}

}  // namespace collect::agent
