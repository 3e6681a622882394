// The events of a Writer and their arguments.
#include <cmath>

#include "formats/wtf/json_cursor.h"
#include "formats/wtf/text.h"
#include "formats/wtf/writer.h"

namespace collect::wtf {
namespace {

Error misfit(const Argument& argument, const char* why) {
  return refused("argument '" + argument.name + "' (" + std::string(arg_type_name(argument.type)) +
                 (argument.array ? "[]): " : "): ") + why);
}

struct Range {
  int64_t low;
  int64_t high;
};

constexpr Range range_of(ArgType type) {
  switch (type) {
    case ArgType::kBool:
      return {0, 1};
    case ArgType::kInt8:
      return {INT8_MIN, INT8_MAX};
    case ArgType::kUint8:
    case ArgType::kChar:
      return {0, UINT8_MAX};
    case ArgType::kInt16:
      return {INT16_MIN, INT16_MAX};
    case ArgType::kUint16:
    case ArgType::kWchar:
      return {0, UINT16_MAX};
    case ArgType::kInt32:
      return {INT32_MIN, INT32_MAX};
    default:
      return {0, UINT32_MAX};
  }
}

// Whether elements of one type may stand in an array of the other.
bool elements_fit(ArgType wanted, ArgType given) {
  if (wanted == given) return true;
  if (wanted == ArgType::kChar) return given == ArgType::kUint8 || given == ArgType::kInt8;
  if (wanted == ArgType::kWchar) return given == ArgType::kUint16;
  return given == ArgType::kChar &&
         wanted == (std::is_signed_v<char> ? ArgType::kInt8 : ArgType::kUint8);
}

}  // namespace

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
  const EventType& known = *types_[type];
  if (known.arguments.size() != arguments.size()) {
    return refused("event '" + known.name + "' has " + std::to_string(known.arguments.size()) +
                   " arguments, not " + std::to_string(arguments.size()));
  }
  const size_t before = used_;
  put_word(type);
  put_word(us);
  for (size_t i = 0; i < arguments.size(); ++i) {
    Status placed = put_argument(known.arguments[i], arguments[i]);
    if (placed.ok()) continue;
    used_ = before;
    return placed;
  }
  return {};
}

Status Writer::put_argument(const Argument& argument, const Arg& arg) {
  if (argument.array) return put_array(argument, arg);
  if (is_string(argument.type)) return put_text(argument, arg);
  if (argument.type == ArgType::kFloat32 && arg.kind() == Arg::Kind::kReal) {
    put_word(std::bit_cast<uint32_t>(arg.real()));
    return {};
  }
  return put_integer(argument, arg);
}

Status Writer::put_integer(const Argument& argument, const Arg& arg) {
  if (arg.kind() != Arg::Kind::kInteger) return misfit(argument, "a number is expected");
  if (argument.type == ArgType::kFloat32) {
    put_word(std::bit_cast<uint32_t>(static_cast<float>(arg.integer())));
    return {};
  }
  const Range range = range_of(argument.type);
  if (arg.integer() < range.low || arg.integer() > range.high) {
    return misfit(argument, "the number does not fit; 64 bits take two arguments or an 'any'");
  }
  // The low bytes of the word hold the value, the others are zero.
  const auto mask = static_cast<uint32_t>((uint64_t{1} << 8 * element_bytes(argument.type)) - 1);
  put_word(static_cast<uint32_t>(arg.integer()) & mask);
  return {};
}

Status Writer::put_text(const Argument& argument, const Arg& arg) {
  if (arg.kind() == Arg::Kind::kNull) {
    put_word(kNullOrdinal);
    return {};
  }
  if (arg.kind() != Arg::Kind::kText) return misfit(argument, "a text is expected");
  const std::string_view text = arg.text();
  if (text.size() > kMaxArgumentBytes) return misfit(argument, "more than 64 MiB");
  if (argument.type == ArgType::kAny && !is_json(text)) return misfit(argument, "it is not JSON");
  if (text.empty()) {
    put_word(kEmptyOrdinal);
    return {};
  }
  const auto known = ordinals_.find(text);
  if (known != ordinals_.end()) {
    put_word(known->second);
    return {};
  }
  if (!is_safe_text(text)) return misfit(argument, "it is not UTF-8, or holds a NUL");
  put_word(intern(text));
  return {};
}

Status Writer::put_array(const Argument& argument, const Arg& arg) {
  if (arg.kind() == Arg::Kind::kNull) {
    put_word(kNullOrdinal);
    return {};
  }
  if (arg.kind() != Arg::Kind::kArray || !elements_fit(argument.type, arg.element())) {
    return misfit(argument, "an array of that type is expected");
  }
  if (arg.elements().size() > kMaxArgumentBytes) return misfit(argument, "more than 64 MiB");
  put_word(static_cast<uint32_t>(arg.elements().size() / element_bytes(argument.type)));
  put_bytes(arg.elements());
  return {};
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
