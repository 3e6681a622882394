#include "daemon/ingest/link/wire_values.h"

#include <algorithm>
#include <utility>

namespace collect::ingest {

DetailMode detail_mode(int untrusted_mode) {
  return static_cast<DetailMode>(std::clamp(untrusted_mode, 0, 2));
}

std::vector<storage::ModuleInfo> to_storage(const wire::Modules& modules) {
  std::vector<storage::ModuleInfo> out;
  out.reserve(static_cast<size_t>(modules.modules_size()));
  for (const wire::Module& module : modules.modules()) {
    storage::ModuleInfo info;
    info.module_id = module.module_id();
    info.path = module.path();
    info.build_id.assign(module.build_id().begin(), module.build_id().end());
    info.base_address = module.base_address();
    info.size = module.size();
    info.loaded_ns = module.loaded_ns();
    info.unloaded_ns = module.unloaded_ns();
    out.push_back(std::move(info));
  }
  return out;
}

storage::StreamInfo to_storage(const wire::StreamOpen& stream) {
  storage::StreamInfo info;
  info.stream_id = stream.stream_id();
  info.thread_id = stream.thread_id();
  info.thread_name = stream.thread_name();
  info.start_ns = stream.start_ns();
  info.named_ns = stream.named_ns();
  return info;
}

storage::StreamEnd to_storage(const wire::StreamClose& stream) {
  storage::StreamEnd end;
  end.stream_id = stream.stream_id();
  end.thread_name = stream.thread_name();
  end.end_ns = stream.end_ns();
  end.index_count = stream.index_count();
  end.index_lost = stream.index_lost();
  end.detail_count = stream.detail_count();
  end.detail_lost = stream.detail_lost();
  end.calls_left_out = stream.calls_left_out();
  return end;
}

storage::DetailStateChange to_storage(const wire::DetailState& change) {
  storage::DetailStateChange out;
  out.mode = change.mode() == wire::DETAIL_ON      ? "on"
             : change.mode() == wire::DETAIL_ARMED ? "armed"
                                                   : "off";
  out.at_ns = change.at_ns();
  out.pre_roll_from_ns = change.pre_roll_from_ns();
  out.pre_roll_records = change.pre_roll_records();
  out.reason = change.reason();
  return out;
}

Result<std::optional<storage::Stall>> to_storage(const wire::Stall& stall) {
  const uint64_t all_ns = stall.last_ns() - stall.first_ns();
  if (stall.last_ns() < stall.first_ns() || stall.stalled_ns() > all_ns ||
      (stall.count() <= 1 && stall.stalled_ns() != 0 && stall.stalled_ns() != all_ns)) {
    return Error{Code::kDamaged, "a stall whose times contradict each other"};
  }
  using Kind = storage::StallKind;
  Kind kind{};
  switch (stall.kind()) {
    case wire::Stall::PAGE_WAIT:
      kind = Kind::kPageWait;
      break;
    case wire::Stall::STOPPED:
      kind = Kind::kStopped;
      break;
    case wire::Stall::SUSPENDED:
      kind = Kind::kSuspended;
      break;
    case wire::Stall::BLOCKED:
      kind = Kind::kBlocked;
      break;
    case wire::Stall::PREEMPTED:
      kind = Kind::kPreempted;
      break;
    case wire::Stall::LOCK:
      kind = Kind::kLock;
      break;
    case wire::Stall::SAMPLE:
      kind = Kind::kSample;
      break;
    default:
      return std::optional<storage::Stall>();
  }
  storage::Stall out = storage::make_stall(kind, stall.first_ns(), stall.last_ns());
  if (stall.count() > 1) out.count = stall.count();
  if (stall.stalled_ns() != 0 || kind == Kind::kSample) out.stalled_ns = stall.stalled_ns();
  out.place = stall.place();
  out.owner = stall.owner();
  return std::optional(out);
}

void set_position(const storage::StreamPosition& known, wire::StreamPosition& position) {
  position.set_stream_id(known.stream_id);
  position.set_index_next(known.index_next);
  position.set_detail_next(known.detail_next);
  position.set_closed(known.closed);
}

storage::ProcessEnd to_storage(const wire::ProcessEnd& end) {
  using How = storage::ProcessEnd::How;
  storage::ProcessEnd out;
  // A value that a later agent may have says as much as "unknown".
  out.how = end.how() == wire::ProcessEnd::HOW_UNSPECIFIED ? How::kNotKnown
            : end.how() == wire::ProcessEnd::EXITED        ? How::kExited
            : end.how() == wire::ProcessEnd::SIGNALED      ? How::kSignaled
            : end.how() == wire::ProcessEnd::EXECED        ? How::kExeced
                                                           : How::kUnknown;
  if (out.how == How::kExited) out.exit_code = end.exit_code();
  if (out.how == How::kSignaled) {
    out.signal = end.signal();
    out.core_dumped = end.core_dumped();
  }
  return out;
}

}  // namespace collect::ingest
