// The events of a Writer.
#include "formats/wtf/text.h"
#include "formats/wtf/writer.h"

namespace collect::wtf {

Error Writer::bad_time(uint64_t ns) const {
  if (ns < options_.epoch_ns) {
    return refused("an event at " + std::to_string(ns) + " ns, before the file's epoch");
  }
  return {Code::kLimit, "an event " + std::to_string((ns - options_.epoch_ns) / 1'000'000'000) +
                            " s behind the timebase; a file holds 71 minutes, begin another"};
}

// Everything that comes before an event: the time, and this chunk's zone#set.
Status Writer::prepare(uint64_t ns, uint32_t& us) {
  COLLECT_TRY(usable());
  if (zone_ == 0) return refused("no zone is set");
  const uint64_t exact = to_us(ns);
  if (exact > kMaxTimeUs) return bad_time(ns);
  us = static_cast<uint32_t>(exact);
  if (zone_in_chunk_ == zone_) return {};
  const auto set = define_builtin(Role::kZoneSet);
  if (!set) return set.error();
  const Arg words[] = {zone_};
  COLLECT_TRY(put(*set, us, words));
  zone_in_chunk_ = zone_;
  return {};
}

Status Writer::put(uint32_t type, uint32_t us, std::span<const Arg> arguments) {
  return chunk_.put(*types_[type], us, arguments);
}

Status Writer::enter(uint32_t scope_type, uint64_t ns, std::span<const Arg> arguments) {
  COLLECT_TRY(usable());
  if (scope_type >= types_.size() || types_[scope_type] == nullptr ||
      !types_[scope_type]->is_scope()) {
    return refused("wire id " + std::to_string(scope_type) + " is no scope type");
  }
  uint32_t us = 0;
  COLLECT_TRY(prepare(ns, us));
  COLLECT_TRY(put(scope_type, us, arguments));
  push_scope(scope_type);
  note_time(us);
  ++stats_.events;
  resource_waits_ = false;
  return end_event();
}

Status Writer::enter_named(std::string_view name, uint64_t ns) {
  if (!is_scope_name(name)) return refused("the viewer would not keep that scope's name");
  const auto type = define_builtin(Role::kScopeEnter);
  if (!type) return type.error();
  return enter(*type, ns, {name});
}

Status Writer::leave_slowly(uint64_t ns) {
  COLLECT_TRY(usable());
  if (zone_ == 0) return refused("no zone is set");
  if (open_->depth == 0 && options_.pair_scopes) {
    ++stats_.dropped_leaves;
    return {};
  }
  if (leave_type_ != 0) return put_leave(leave_type_, ns, {});
  const auto type = define_builtin(Role::kScopeLeave);
  return type ? put_leave(*type, ns, {}) : Status(type.error());
}

Status Writer::put_leave(uint32_t type, uint64_t ns, std::span<const Arg> arguments) {
  uint32_t us = 0;
  COLLECT_TRY(prepare(ns, us));
  COLLECT_TRY(put(type, us, arguments));
  if (open_->depth != 0) pop_scope();
  note_time(us);
  ++stats_.events;
  resource_waits_ = false;
  return end_event();
}

// Each zone's open scopes, innermost first, at its last event or at `us` if that is later.
Status Writer::leave_all(std::optional<uint32_t> us) {
  const uint16_t zone = zone_;
  for (size_t id = 1; id < zones_.size(); ++id) {
    if (zones_[id].depth == 0) continue;
    COLLECT_TRY(set_zone(static_cast<uint16_t>(id)));
    const uint32_t at = std::max(us.value_or(0), open_->last_us);
    stats_.closed_scopes += open_->depth;
    while (open_->depth != 0) COLLECT_TRY(leave(options_.epoch_ns + uint64_t{at} * 1000));
  }
  return zone == 0 ? Status() : set_zone(zone);
}

Status Writer::event(uint32_t type, uint64_t ns, std::span<const Arg> arguments) {
  COLLECT_TRY(usable());
  if (type >= types_.size() || types_[type] == nullptr) {
    return refused("wire id " + std::to_string(type) + " is not defined");
  }
  const EventType& known = *types_[type];
  if (known.is_scope()) return enter(type, ns, arguments);
  switch (known.role) {
    case Role::kScopeLeave:
      return arguments.empty() && type == leave_type_ ? leave(ns) : put_leave(type, ns, arguments);
    case Role::kDefine:
    case Role::kZoneCreate:
    case Role::kZoneSet:
    case Role::kZoneDelete:
      return refused("'" + known.name + "' is this writer's to write");
    default:
      break;
  }
  uint32_t us = 0;
  COLLECT_TRY(prepare(ns, us));
  COLLECT_TRY(put(type, us, arguments));
  note_time(us);
  ++stats_.events;
  resource_waits_ = false;
  return end_event();
}

Status Writer::builtin_event(Role role, uint64_t ns, std::initializer_list<Arg> arguments) {
  const auto type = define_builtin(role);
  if (!type) return type.error();
  return event(*type, ns, arguments);
}

Status Writer::append_scope_data(uint64_t ns, std::string_view name, Text value) {
  return builtin_event(Role::kScopeAppendData, ns, {name, value});
}

Status Writer::mark(uint64_t ns, std::string_view name, Text value) {
  return builtin_event(Role::kMark, ns, {name, value});
}

Status Writer::time_stamp(uint64_t ns, std::string_view name, Text value) {
  if (!is_scope_name(name)) return refused("the viewer would not keep that time stamp's name");
  return builtin_event(Role::kTimeStamp, ns, {name, value});
}

Status Writer::discontinuity(uint64_t ns) {
  return builtin_event(Role::kDiscontinuity, ns, {});
}

Status Writer::begin_range(uint64_t ns, uint32_t id, std::string_view name, Text value) {
  return builtin_event(Role::kRangeBegin, ns, {id, name, value});
}

Status Writer::end_range(uint64_t ns, uint32_t id) {
  return builtin_event(Role::kRangeEnd, ns, {id});
}

Status Writer::branch_flow(uint64_t ns, uint32_t id, uint32_t parent, std::string_view name,
                           Text value) {
  return builtin_event(Role::kFlowBranch, ns, {id, parent, name, value});
}

Status Writer::extend_flow(uint64_t ns, uint32_t id, std::string_view name, Text value) {
  return builtin_event(Role::kFlowExtend, ns, {id, name, value});
}

Status Writer::terminate_flow(uint64_t ns, uint32_t id, Text value) {
  return builtin_event(Role::kFlowTerminate, ns, {id, value});
}

Status Writer::append_flow_data(uint64_t ns, uint32_t id, std::string_view name, Text value) {
  return builtin_event(Role::kFlowAppendData, ns, {id, name, value});
}

Status Writer::start_frame(uint64_t ns, uint32_t number) {
  return builtin_event(Role::kFrameStart, ns, {number});
}

Status Writer::end_frame(uint64_t ns, uint32_t number) {
  return builtin_event(Role::kFrameEnd, ns, {number});
}

}  // namespace collect::wtf
