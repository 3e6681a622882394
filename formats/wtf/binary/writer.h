// Writes WTF-trace files of format version 10 while a recording runs: events go into a chunk in
// memory, full chunks to the sink. What it writes the published viewer loads, as its rules are kept
// here: string tables per chunk, zone#set repeated in each, names unique per signature, leaves that
// match enters, no time beyond the 32 bits of microseconds.
//
//   Writer writer(sink, {.epoch_ns = first_event_ns});
//   writer.begin(header);
//   const auto zone = writer.create_zone(thread_zone_name(...));
//   const auto draw = writer.define_scope("Scene::draw", "uint32 n");
//   writer.set_zone(*zone);
//   writer.enter(*draw, ns, {7});
//   writer.leave(ns);
//   writer.finish();
//
// Codes: kLimit says that this file is full (time, wire ids, zones): finish() it and begin another
// with another Writer, see state(). kInvalidArgument: the call is off and nothing was written; what
// the sink says ends the file, and every later call says it again.
//
// Memory: one chunk, its strings, and the definitions. One thread owns it. The sink outlives it.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "formats/core/byte_sink.h"
#include "formats/core/result.h"
#include "formats/wtf/binary/arg.h"
#include "formats/wtf/binary/event_chunk.h"
#include "formats/wtf/binary/event_types.h"
#include "formats/wtf/binary/header.h"

namespace collect::wtf {

// Scopes of one zone whose types are remembered, to open them again in a next file.
inline constexpr size_t kMaxRememberedScopes = 4096;

// Builtin events that a Writer writes by itself: definitions and zones.
constexpr bool writes_by_itself(Role role) {
  return role == Role::kDefine || role == Role::kZoneCreate || role == Role::kZoneSet ||
         role == Role::kZoneDelete;
}

struct WriterOptions {
  uint64_t epoch_ns = 0;  // caller's clock at the header's timebase; no event is before it
  size_t chunk_bytes = size_t{512} << 10;  // a chunk ends with the event that reaches this
  // Drop leaves that match no enter, and close open scopes in finish(). Off for faithful copies.
  bool pair_scopes = true;
  // Take definitions of builtin events with other flags or arguments than the published ones,
  // except of those that this writer writes by itself (event#define, zone#…). On for faithful
  // copies, which then leave scopes by event() if wtf.scope#leave has arguments.
  bool foreign_builtins = false;
};

struct WriterStats {
  uint64_t events = 0;          // without definitions and zone events
  uint64_t dropped_leaves = 0;  // matched no enter
  uint64_t closed_scopes = 0;   // by close_scopes() and finish()
  uint64_t backward_steps = 0;  // an event before the last one of its zone; viewers sort
  uint64_t chunks = 0;          // with the header chunk
  uint64_t bytes = 0;           // handed to the sink
  uint32_t max_depth = 0;       // from kMaxViewerDepth on the viewer stops building scopes
};

// What a next file needs to continue where this one ends.
struct WriterState {
  struct ZoneState {
    std::string name;
    std::optional<std::string> type;
    std::optional<std::string> location;
    std::vector<uint32_t> open;  // wire ids, outermost first; at most kMaxRememberedScopes
  };
  std::vector<EventType> types;  // in the order of their wire ids
  std::vector<ZoneState> zones;  // in the order of their ids
  uint16_t zone = 0;             // the current one; 0: none
};

class Writer {
 public:
  using Text = std::optional<std::string_view>;  // nullopt is null

  explicit Writer(ByteSink& sink, const WriterOptions& options = {});
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  // First of all: file header and header chunk.
  Status begin(const FileHeader& header);
  // begin() with the header part of another file as it is there; a JSON object.
  Status begin_with(std::string_view header_json);
  // After begin(), instead of definitions: the same wire ids and zone ids as in the file that
  // `state` is from, and its open scopes entered again at `ns`, their arguments zero or null.
  Status resume(const WriterState& state, uint64_t ns);
  // Take it before finish(), which closes scopes.
  WriterState state() const;

  // Whether an event at `ns` can be in this file.
  bool takes(uint64_t ns) const {
    return ns >= options_.epoch_ns && (ns - options_.epoch_ns) / 1000 <= kMaxTimeUs;
  }

  // --- Definitions. The wire id; the same again for an equal definition. kAlreadyExists: the name
  // has another class, flags or arguments, or is a builtin event's. Names are is_event_name(). ---
  Result<uint32_t> define(uint16_t event_class, uint32_t flags, std::string_view name,
                          std::string_view signature);
  Result<uint32_t> define_scope(std::string_view name, std::string_view signature = {}) {
    return define(kClassScope, 0, name, signature);
  }
  Result<uint32_t> define_instance(std::string_view name, std::string_view signature = {}) {
    return define(kClassInstance, 0, name, signature);
  }
  Result<uint32_t> define_builtin(Role role);

  // --- Zones. Every event belongs to the zone set last. kAlreadyExists: name, type and location
  // are those of another zone, with which the viewer would merge it. ---
  Result<uint16_t> create_zone(std::string_view name, Text type = "native_script",
                               Text location = "");
  Status set_zone(uint16_t zone);
  // Writes wtf.zone#delete, in which viewers see nothing. The zone can still be set.
  Status delete_zone(uint16_t zone, uint64_t ns);

  // --- Events, at `ns` of the caller's clock, in the current zone ---
  Status enter(uint32_t scope_type, uint64_t ns) {
    if (!fast_ || scope_type >= plain_scope_.size() || !plain_scope_[scope_type]) [[unlikely]] {
      return enter(scope_type, ns, std::span<const Arg>());
    }
    const uint64_t us = to_us(ns);
    if (us > kMaxTimeUs) [[unlikely]]
      return bad_time(ns);
    push_scope(scope_type);
    put_plain(scope_type, static_cast<uint32_t>(us));
    return {};
  }
  Status enter(uint32_t scope_type, uint64_t ns, std::span<const Arg> arguments);
  Status enter(uint32_t scope_type, uint64_t ns, std::initializer_list<Arg> arguments) {
    return enter(scope_type, ns, std::span<const Arg>(arguments.begin(), arguments.size()));
  }
  // By name, which has to be is_scope_name(). A type of its own per name is the better way.
  Status enter_named(std::string_view name, uint64_t ns);
  Status leave(uint64_t ns) {
    if (!fast_ || open_->depth == 0 || leave_type_ == 0) [[unlikely]]
      return leave_slowly(ns);
    const uint64_t us = to_us(ns);
    if (us > kMaxTimeUs) [[unlikely]]
      return bad_time(ns);
    pop_scope();
    put_plain(leave_type_, static_cast<uint32_t>(us));
    return {};
  }
  // Any other defined type. Scope types go through enter(), wtf.scope#leave leaves.
  Status event(uint32_t type, uint64_t ns, std::span<const Arg> arguments);
  Status event(uint32_t type, uint64_t ns, std::initializer_list<Arg> arguments) {
    return event(type, ns, std::span<const Arg>(arguments.begin(), arguments.size()));
  }

  // `value` is JSON text.
  Status append_scope_data(uint64_t ns, std::string_view name, Text value);
  Status mark(uint64_t ns, std::string_view name, Text value = {});
  Status time_stamp(uint64_t ns, std::string_view name, Text value = {});  // is_scope_name()
  Status discontinuity(uint64_t ns);
  Status begin_range(uint64_t ns, uint32_t id, std::string_view name, Text value = {});
  Status end_range(uint64_t ns, uint32_t id);
  Status branch_flow(uint64_t ns, uint32_t id, uint32_t parent, std::string_view name,
                     Text value = {});
  Status extend_flow(uint64_t ns, uint32_t id, std::string_view name, Text value = {});
  Status terminate_flow(uint64_t ns, uint32_t id, Text value = {});
  Status append_flow_data(uint64_t ns, uint32_t id, std::string_view name, Text value);
  // The viewer loses a frame that starts in the first microsecond behind the timebase.
  Status start_frame(uint64_t ns, uint32_t number);
  Status end_frame(uint64_t ns, uint32_t number);

  // --- Resources. The ordinal within the chunk that the next event goes into. ---
  Result<uint32_t> add_binary_resource(Bytes bytes);
  Result<uint32_t> add_string_resource(std::string_view text);

  // Ends the chunk, so that everything so far is with the sink.
  Status flush();
  // Leaves every open scope of every zone at `ns`, or at the zone's last event if that is later.
  Status close_scopes(uint64_t ns);
  // Closes what is open at each zone's last event and flushes. Nothing can be written afterwards.
  Status finish();

  size_t depth(uint16_t zone) const { return zone < zones_.size() ? zones_[zone].depth : 0; }
  const WriterStats& stats() const { return stats_; }

 private:
  struct OpenZone {
    WriterState::ZoneState made;  // made.open: the innermost scopes are missing past the limit
    size_t depth = 0;
    uint32_t last_us = 0;
  };
  // UINT64_MAX below the epoch.
  uint64_t to_us(uint64_t ns) const {
    return ns >= options_.epoch_ns ? (ns - options_.epoch_ns) / 1000 : UINT64_MAX;
  }
  void push_scope(uint32_t type) {
    if (open_->depth < kMaxRememberedScopes) open_->made.open.push_back(type);
    ++open_->depth;
    if (open_->depth > stats_.max_depth) stats_.max_depth = static_cast<uint32_t>(open_->depth);
  }
  void pop_scope() {
    --open_->depth;
    if (open_->depth < kMaxRememberedScopes) open_->made.open.pop_back();
  }
  // An event without arguments. Only while fast_, which says that nothing is in the way: the
  // file is open, this chunk has its zone#set, and there is room for one more such event.
  void put_plain(uint32_t type, uint32_t us) {
    chunk_.put_plain(type, us);
    note_time(us);
    ++stats_.events;
    fast_ = chunk_.event_bytes() < fast_limit_;
  }
  void note_time(uint32_t us) {
    if (us < open_->last_us) ++stats_.backward_steps;
    if (us > open_->last_us) open_->last_us = us;
    chunk_.note_time(us);
  }

  Error bad_time(uint64_t ns) const;
  Status leave_slowly(uint64_t ns);
  Status put_leave(uint32_t type, uint64_t ns, std::span<const Arg> arguments);
  Status usable() const;
  Status prepare(uint64_t ns, uint32_t& us);
  Status put(uint32_t type, uint32_t us, std::span<const Arg> arguments);
  Status builtin_event(Role role, uint64_t ns, std::initializer_list<Arg> arguments);
  Status leave_all(std::optional<uint32_t> us);
  Result<uint32_t> add_resource(uint32_t type, Bytes bytes);
  Status end_event();
  Status write_out();
  void update_fast();

  ByteSink& sink_;
  const WriterOptions options_;
  Status status_;  // of the sink
  bool begun_ = false;
  bool finished_ = false;
  WriterStats stats_;

  std::vector<std::unique_ptr<EventType>> types_;  // by wire id
  std::vector<bool> plain_scope_;                  // by wire id: a scope without arguments
  std::unordered_map<std::string_view, uint32_t> wire_ids_;  // keys are in types_
  uint32_t leave_type_ = 0;                                  // if it has no arguments

  std::vector<OpenZone> zones_;  // by zone id; 0 is none
  std::unordered_map<std::string, uint16_t> zone_keys_;
  uint16_t zone_ = 0;
  uint16_t zone_in_chunk_ = 0;
  OpenZone* open_ = nullptr;  // of zone_

  EventChunk chunk_;
  size_t fast_limit_ = 0;
  bool fast_ = false;
  bool resource_waits_ = false;  // for the event that names it: the chunk must not end before
};

}  // namespace collect::wtf
