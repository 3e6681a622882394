#include "formats/wtf/binary/writer.h"

#include <fmt/core.h>

#include <algorithm>

#include "formats/core/text/json_cursor.h"
#include "formats/wtf/binary/chunk_encoder.h"
#include "formats/wtf/text.h"

namespace collect::wtf {
namespace {

bool is_json_object(std::string_view text) {
  JsonCursor cursor(text);
  return cursor.peek() == JsonKind::kObject && cursor.skip() && cursor.at_end();
}

bool header_is_text(const FileHeader& header) {
  bool good = true;
  for (const std::string& flag : header.flags) good = good && is_utf8(flag);
  if (header.context) {
    const ContextInfo& context = *header.context;
    const UserAgent& agent = context.user_agent;
    for (const std::string* text :
         {&context.uri, &context.title, &context.icon_uri, &context.task_id, &agent.value,
          &agent.type, &agent.platform, &agent.platform_version, &agent.device}) {
      good = good && is_utf8(*text);
    }
    for (const std::string& text : context.arguments) good = good && is_utf8(text);
  }
  return good;
}

std::string zone_key(std::string_view name, Writer::Text type, Writer::Text location) {
  std::string key(name);
  key += '\0';
  for (const Writer::Text& text : {type, location}) {
    key += text ? '\1' : '\0';
    if (text) key.append(*text) += '\0';
  }
  return key;
}

// An argument that says nothing, for scopes that are entered again.
std::vector<Arg> blank_arguments(const EventType& type) {
  std::vector<Arg> arguments;
  for (const Argument& argument : type.arguments) {
    arguments.push_back(argument.array || is_string(argument.type) ? Arg() : Arg(0));
  }
  return arguments;
}

}  // namespace

Writer::Writer(ByteSink& sink, const WriterOptions& options)
    : sink_(sink), options_(options), zones_(1) {
  open_ = &zones_[0];
  types_.resize(kDefineWireId + 1);
  auto define_type = std::make_unique<EventType>();
  const Builtin& known = builtin(Role::kDefine);
  define_type->wire_id = kDefineWireId;
  define_type->flags = known.flags;
  define_type->name = known.name;
  define_type->signature = known.signature;
  define_type->arguments = parse_signature(known.signature).value();
  define_type->finish();
  wire_ids_[define_type->name] = kDefineWireId;
  types_[kDefineWireId] = std::move(define_type);
}

Status Writer::usable() const {
  if (!status_.ok()) return status_;
  if (!begun_) return refused("the file was not begun");
  if (finished_) return refused("the file is finished");
  return {};
}

// --- Definitions and zones ---

Status Writer::begin(const FileHeader& header) {
  if (begun_) return refused("the file was begun already");
  if (!header.metadata.empty() && !is_json_object(header.metadata)) {
    return refused("the header's metadata is no JSON object");
  }
  if (!header_is_text(header)) return refused("a text of the header is not UTF-8");
  return begin_with(print_header(header));
}

Status Writer::begin_with(std::string_view json) {
  if (begun_) return refused("the file was begun already");
  if (json.size() > kMaxHeaderJsonBytes || !is_json_object(json)) {
    return refused("the header is no JSON object, or too long or nested too deeply");
  }
  begun_ = true;
  chunk_.reserve(options_.chunk_bytes);
  const PartOut part{static_cast<uint32_t>(PartType::kFileHeader), bytes_of(json)};
  status_ = write_file_header(sink_);
  if (status_.ok()) {
    status_ = write_chunk(sink_, {1, static_cast<uint32_t>(ChunkType::kFileHeader)}, {&part, 1});
  }
  stats_.chunks = 1;
  stats_.bytes = kFileHeaderBytes + kChunkHeaderBytes + kPartEntryBytes + (json.size() + 3) / 4 * 4;
  return status_;
}

Result<uint32_t> Writer::define(uint16_t event_class, uint32_t flags, std::string_view name,
                                std::string_view signature) {
  COLLECT_TRY(usable());
  if (event_class > kClassScope) return refused("an event class other than instance and scope");
  if (!is_event_name(name)) {
    return refused("the name of an event type is empty, not UTF-8, or holds a NUL or a line end");
  }
  bool odd = false;
  auto arguments = parse_signature(signature, &odd);
  if (!arguments) return refused(arguments.error().message);
  if (odd) return refused("an argument's name is repeated, or is no name");
  const auto known = wire_ids_.find(name);
  if (known != wire_ids_.end()) {
    const EventType& type = *types_[known->second];
    if (type.event_class == event_class && type.flags == flags && type.arguments == *arguments) {
      return known->second;
    }
    return Error{Code::kAlreadyExists, fmt::format("event type '{}' is defined otherwise", name)};
  }
  for (const Builtin& builtin_event : builtins()) {
    if (builtin_event.name != name) continue;
    if (options_.foreign_builtins && !writes_by_itself(builtin_event.role)) continue;
    if (event_class != builtin_event.event_class || flags != builtin_event.flags ||
        *arguments != parse_signature(builtin_event.signature).value()) {
      return Error{Code::kAlreadyExists, fmt::format("'{}' is a builtin event", name)};
    }
  }
  if (types_.size() > kMaxWireId) {
    return Error{Code::kLimit, "all 65535 wire ids are in use; begin another file"};
  }
  auto type = std::make_unique<EventType>();
  type->wire_id = static_cast<uint32_t>(types_.size());
  type->event_class = event_class;
  type->flags = flags;
  type->name = name;
  type->signature = print_signature(*arguments);
  type->arguments = std::move(arguments).value();
  type->finish();
  const Text text = type->signature.empty() ? Text() : Text(type->signature);
  const Arg words[] = {type->wire_id, event_class, flags, type->name, text};
  COLLECT_TRY(put(kDefineWireId, open_->last_us, words));
  if (type->role == Role::kScopeLeave && type->arguments.empty()) leave_type_ = type->wire_id;
  const bool plain_scope = type->is_scope() && type->arguments.empty();
  wire_ids_[type->name] = type->wire_id;
  types_.push_back(std::move(type));
  plain_scope_.resize(types_.size());
  plain_scope_.back() = plain_scope;
  const auto wire_id = static_cast<uint32_t>(types_.size() - 1);
  COLLECT_TRY(end_event());
  return wire_id;
}

Result<uint32_t> Writer::define_builtin(Role role) {
  if (role == Role::kNone) return refused("no builtin event has that role");
  const Builtin& known = builtin(role);
  return define(known.event_class, known.flags, known.name, known.signature);
}

Result<uint16_t> Writer::create_zone(std::string_view name, Text type, Text location) {
  COLLECT_TRY(usable());
  for (const Text& text : {Text(name), type, location}) {
    if (text && !is_safe_text(*text)) return refused("a zone's text is not UTF-8, or holds a NUL");
  }
  if (zones_.size() > kMaxZoneId) {
    return Error{Code::kLimit, "all 65535 zone ids are in use; begin another file"};
  }
  std::string key = zone_key(name, type, location);
  if (zone_keys_.count(key) != 0) {
    return Error{Code::kAlreadyExists, fmt::format("zone '{}' exists already", name)};
  }
  const auto create = define_builtin(Role::kZoneCreate);
  if (!create) return create.error();
  const auto id = static_cast<uint16_t>(zones_.size());
  const Arg words[] = {id, name, type, location};
  COLLECT_TRY(put(*create, open_->last_us, words));
  OpenZone zone;
  zone.made.name = name;
  if (type) zone.made.type = *type;
  if (location) zone.made.location = *location;
  zones_.push_back(std::move(zone));
  open_ = &zones_[zone_];
  zone_keys_[std::move(key)] = id;
  COLLECT_TRY(end_event());
  return id;
}

Status Writer::set_zone(uint16_t zone) {
  COLLECT_TRY(usable());
  if (zone == 0 || zone >= zones_.size()) return refused("no zone has that id");
  zone_ = zone;
  open_ = &zones_[zone];
  update_fast();
  return {};
}

Status Writer::delete_zone(uint16_t zone, uint64_t ns) {
  COLLECT_TRY(usable());
  if (zone == 0 || zone >= zones_.size()) return refused("no zone has that id");
  const auto type = define_builtin(Role::kZoneDelete);
  if (!type) return type.error();
  const uint64_t us = to_us(ns);
  if (us > kMaxTimeUs) return bad_time(ns);
  const Arg words[] = {zone};
  COLLECT_TRY(put(*type, static_cast<uint32_t>(us), words));
  return end_event();
}

// --- From one file to the next ---

WriterState Writer::state() const {
  WriterState state;
  for (size_t i = kDefineWireId + 1; i < types_.size(); ++i) state.types.push_back(*types_[i]);
  for (size_t i = 1; i < zones_.size(); ++i) state.zones.push_back(zones_[i].made);
  state.zone = zone_;
  return state;
}

Status Writer::resume(const WriterState& state, uint64_t ns) {
  COLLECT_TRY(usable());
  if (types_.size() != kDefineWireId + 1 || zones_.size() != 1) {
    return refused("resume() comes before any definition");
  }
  for (const EventType& type : state.types) {
    const auto id = define(type.event_class, type.flags, type.name, type.signature);
    if (!id) return id.error();
    if (*id != type.wire_id) return refused("the state's wire ids have holes");
  }
  for (const WriterState::ZoneState& zone : state.zones) {
    const auto id = create_zone(zone.name, zone.type ? Text(*zone.type) : Text(),
                                zone.location ? Text(*zone.location) : Text());
    if (!id) return id.error();
    COLLECT_TRY(set_zone(*id));
    for (const uint32_t scope : zone.open) {
      if (scope >= types_.size()) return refused("an open scope of an undefined type");
      COLLECT_TRY(enter(scope, ns, blank_arguments(*types_[scope])));
    }
  }
  return state.zone == 0 ? Status() : set_zone(state.zone);
}

// --- Chunks ---

Result<uint32_t> Writer::add_resource(uint32_t type, Bytes bytes) {
  COLLECT_TRY(usable());
  if (bytes.size() > kMaxArgumentBytes) return refused("a resource of more than 64 MiB");
  if (chunk_.has_resources() && chunk_.resource_bytes() + bytes.size() > options_.chunk_bytes) {
    COLLECT_TRY(write_out());
  }
  const uint32_t ordinal = chunk_.add_resource(type, bytes);
  resource_waits_ = true;
  update_fast();
  return ordinal;
}

Result<uint32_t> Writer::add_binary_resource(Bytes bytes) {
  return add_resource(static_cast<uint32_t>(PartType::kBinaryResource), bytes);
}

Result<uint32_t> Writer::add_string_resource(std::string_view text) {
  if (!is_utf8(text)) return refused("a string resource is not UTF-8");
  return add_resource(static_cast<uint32_t>(PartType::kStringResource), bytes_of(text));
}

// Behind every event: the chunk ends with the one that fills it.
Status Writer::end_event() {
  const size_t size = chunk_.event_bytes() + chunk_.other_bytes();
  if (size >= options_.chunk_bytes && !resource_waits_) return write_out();
  update_fast();
  return {};
}

void Writer::update_fast() {
  const size_t others = chunk_.other_bytes() + 2 * kEventHeaderBytes;
  // There is room for a whole chunk of events, so for one more event below this.
  fast_limit_ = options_.chunk_bytes > others ? options_.chunk_bytes - others : 0;
  fast_ = status_.ok() && begun_ && !finished_ && zone_ != 0 && zone_in_chunk_ == zone_ &&
          !resource_waits_ && chunk_.event_bytes() < fast_limit_;
}

Status Writer::write_out() {
  if (chunk_.is_empty()) return {};
  status_ = chunk_.write(sink_, static_cast<uint32_t>(stats_.chunks + 1), stats_.bytes);
  ++stats_.chunks;
  resource_waits_ = false;
  zone_in_chunk_ = 0;
  update_fast();
  return status_;
}

Status Writer::flush() {
  COLLECT_TRY(usable());
  return write_out();
}

Status Writer::close_scopes(uint64_t ns) {
  COLLECT_TRY(usable());
  const uint64_t us = to_us(ns);
  if (us > kMaxTimeUs) return bad_time(ns);
  return leave_all(static_cast<uint32_t>(us));
}

Status Writer::finish() {
  COLLECT_TRY(usable());
  if (options_.pair_scopes) COLLECT_TRY(leave_all(std::nullopt));
  COLLECT_TRY(write_out());
  finished_ = true;
  update_fast();
  return {};
}

// ---- events

Error Writer::bad_time(uint64_t ns) const {
  if (ns < options_.epoch_ns) {
    return refused(fmt::format("an event at {} ns, before the file's epoch", ns));
  }
  return {Code::kLimit,
          fmt::format("an event {} s behind the timebase; a file holds 71 minutes, begin another",
                      (ns - options_.epoch_ns) / 1'000'000'000)};
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
    return refused(fmt::format("wire id {} is no scope type", scope_type));
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
    return refused(fmt::format("wire id {} is not defined", type));
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
      return refused(fmt::format("'{}' is this writer's to write", known.name));
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
