#include "daemon/ingest/peer/control_frames.h"

#include <algorithm>

#include "daemon/ingest/link/wire_values.h"

namespace collect::ingest {
namespace {

std::vector<std::string> split_patterns(const std::string& text) {
  std::vector<std::string> patterns;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(';', begin), text.size());
    if (end != begin) patterns.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return patterns;
}

}  // namespace

Verdict ControlFrames::take(const wire::Frame& frame) {
  switch (frame.type) {
    case wire::FrameType::kHeartbeat:
      return verdict_on(frame, *this, &ControlFrames::on_heartbeat);
    case wire::FrameType::kCommandResult:
      return verdict_on(frame, *this, &ControlFrames::on_command_result);
    case wire::FrameType::kModules:
      return verdict_on(frame, *this, &ControlFrames::on_modules);
    case wire::FrameType::kWantFunctionFilter:
      return verdict_on(frame, *this, &ControlFrames::on_want_function_filter);
    case wire::FrameType::kCounters:
      return verdict_on(frame, *this, &ControlFrames::on_counters);
    default:
      return misplaced(frame, "control");
  }
}

Verdict ControlFrames::on_heartbeat(const wire::Heartbeat& beat) {
  AgentSession* storing = recordings_.storing();
  if (storing != nullptr && beat.recording() == storing->recording) {
    storing->store_lost_without_stream(beat.lost_without_stream());
  }
  if (!profile_.take(beat)) return std::nullopt;
  const DetailMode mode = profile_.shown().detail;
  AgentSession* session = recordings_.current();
  if (session != nullptr && session->shown.detail != mode) session->show_detail(mode);
  profile_.show();
  return std::nullopt;
}

Verdict ControlFrames::on_command_result(const wire::CommandResult& result) {
  commands_.take(result);
  return std::nullopt;
}

bool ControlFrames::may_ask_for_filter() const {
  return (profile_.agreed_features() & wire::kFeatureStartFilter) != 0 && !filter_asked_;
}

// For the names in WantFunctionFilter. Those of a recording come on data.
Verdict ControlFrames::on_modules(const wire::Modules& modules) {
  if (!may_ask_for_filter() || recordings_.current() != nullptr) {
    return violation("modules on the control channel, and no function filter is asked for");
  }
  if (Verdict bad = check_untrusted_modules(modules)) return bad;
  return modules_.add_early(to_storage(modules), profile_.account());
}

Verdict ControlFrames::on_want_function_filter(const wire::WantFunctionFilter& want) {
  if (!may_ask_for_filter()) {
    return violation("a function filter that was not agreed on, or is asked for twice");
  }
  if (want.only().size() > wire::kMaxFilterText || want.except().size() > wire::kMaxFilterText) {
    return violation("the patterns of a function filter are longer than the protocol allows");
  }
  filter_asked_ = true;
  observer_.filter_wanted(profile_.shown(), {split_patterns(want.only()),
                                             split_patterns(want.except()), modules_.all()});
  return std::nullopt;
}

Verdict ControlFrames::on_counters(const wire::Counters& counters) {
  const Status taken = profile_.take(counters);
  return taken.ok() ? std::nullopt : Verdict(violation(taken.error().message));
}

}  // namespace collect::ingest
