#include "storage/convert/wtf/wtf_scopes.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <utility>

#include "storage/convert/wtf/wtf_events.h"
#include "storage/convert/wtf/wtf_zone_name.h"

namespace collect::convert {
namespace {

constexpr size_t kMaxNameBytes = 1000;   // of a function: a reader keeps 64 MiB of all of them
constexpr size_t kMaxLabelBytes = 256;   // of a process or a thread in its zone's name
constexpr size_t kMaxKeptTypes = 32768;  // of the calls that are opened again in a next file

constexpr std::string_view kTooDeep =
    "calls nested deeper than can be followed, with their returns";
constexpr std::string_view kShared =
    "functions of another function's name: a WTF-trace knows them by name alone";
constexpr std::string_view kChangedNames =
    "names of functions changed: too long, not UTF-8, with line ends, or the format's own";
constexpr std::string_view kSplitCalls =
    "calls open where a file ends: shown as a call of their own in the next file";
constexpr std::string_view kForgotten =
    "calls open where a file ends that the next file cannot open again";

}  // namespace

void WtfScopes::add_thread(uint32_t n, uint32_t thread_id, const std::string& name) {
  Thread& thread = threads_.emplace_back();
  thread.n = n;
  thread.thread_id = thread_id;
  thread.name = name.empty() ? fmt::format("thread {}", n) : name.substr(0, kMaxLabelBytes);
}

// Before any function, so that these ids are the same in every file and never run out.
Status WtfScopes::begin(uint64_t ns) {
  COLLECT_TRY(files_.begin(ns));
  wtf::Writer& writer = files_.writer();
  for (const wtf::Role role :
       {wtf::Role::kZoneCreate, wtf::Role::kZoneSet, wtf::Role::kScopeLeave, wtf::Role::kMark}) {
    const auto id = writer.define_builtin(role);
    if (!id.ok()) return id.error();
  }
  const std::pair<uint32_t*, std::array<std::string_view, 2>> ours[] = {
      {&exception_type_, {kExceptionEvent, kFunctionArgument}},
      {&return_type_, {kReturnEvent, kFunctionArgument}},
      {&unwind_type_, {kUnwindEvent, kUnwindArgument}}};
  for (const auto& [id, what] : ours) {
    const auto defined = writer.define_instance(what[0], what[1]);
    if (!defined.ok()) return defined.error();
    *id = newest_type_ = *defined;
  }
  return create_zones();
}

Status WtfScopes::create_zones() {
  const std::string process =
      identity_.process_name.empty() ? "process" : identity_.process_name.substr(0, kMaxLabelBytes);
  for (Thread& thread : threads_) {
    const std::string name =
        wtf::thread_zone_name(process, identity_.pid, thread.name, thread.thread_id);
    auto zone = files_.writer().create_zone(name);
    if (!zone.ok() && zone.code() == Code::kAlreadyExists) {
      // A thread number that the system gave out again.
      zone = files_.writer().create_zone(numbered_zone_name(name, thread.n));
    }
    if (!zone.ok() && zone.code() != Code::kLimit) return zone.error();
    if (zone.ok()) thread.zone = *zone;
  }
  return {};
}

// ---- functions

std::string WtfScopes::text_of(uint32_t slot) const {
  const uint64_t id = slots_.function_of(slot);
  if (id == calls::FunctionSlots::kOther) return "(all other functions)";
  return wtf::safe_event_name(names_.name_of(id).substr(0, kMaxNameBytes));
}

Status WtfScopes::define(uint32_t slot) {
  if (slot >= type_of_slot_.size()) type_of_slot_.resize(slot + 1);
  if (type_of_slot_[slot] != 0) return {};
  const auto type = define_function(slot);
  if (!type.ok()) return type.error();
  type_of_slot_[slot] = *type;
  return {};
}

Result<uint32_t> WtfScopes::define_function(uint32_t slot) {
  const uint64_t function_id = slots_.function_of(slot);
  std::string safe = text_of(slot);
  bool changed = function_id != calls::FunctionSlots::kOther && safe != names_.name_of(function_id);
  auto type = files_.writer().define_scope(safe);
  if (!type.ok() && type.code() == Code::kAlreadyExists) {
    safe += " (function)";
    changed = true;
    type = files_.writer().define_scope(safe);
  }
  if (!type.ok()) return type;
  const bool shared = *type <= newest_type_;
  newest_type_ = std::max(newest_type_, *type);
  if ((changed || shared) && odd_functions_.insert(function_id).second) {
    log_.leave_out(kChangedNames, changed ? 1 : 0);
    log_.leave_out(kShared, shared ? 1 : 0);
  }
  return type;
}

// ---- events

Result<bool> WtfScopes::select(uint32_t thread) {
  thread_ = &threads_[thread];
  if (thread_->zone == 0) return false;
  COLLECT_TRY(files_.writer().set_zone(thread_->zone));
  return true;
}

Status WtfScopes::call(uint64_t ns, uint32_t slot) {
  thread_->last_ns = std::max(thread_->last_ns, ns);
  if (!thread_->open.call(slot, {ns, ns})) {
    ++too_deep_;
    return {};
  }
  thread_->visible.push_back(true);
  return files_.writer().enter(type_of_slot_[slot], ns);
}

Status WtfScopes::mark(uint64_t ns, std::string_view text, std::string_view json_value) {
  thread_->last_ns = std::max(thread_->last_ns, ns);
  return files_.writer().mark(ns, wtf::safe_text(text), json_value);
}

WtfScopes::Ends WtfScopes::end_call(uint64_t ns, uint32_t slot) {
  Thread& thread = *thread_;
  thread.last_ns = std::max(thread.last_ns, ns);
  Ends ends;
  const auto count = [&](const calls::EndedCall& ended) {
    const bool visible = thread.visible.back();
    thread.visible.pop_back();
    if (ended.has_own_end()) {
      ends.own = visible;
      return;
    }
    ++unwound_;
    if (visible) ++ends.unwound;
  };
  const calls::Leave left = thread.open.leave(slot, {ns, ns}, calls::EndReason::kReturned, count);
  ends.matches = left != calls::Leave::kNoCall;
  ends.is_hidden = left == calls::Leave::kTooDeep;
  return ends;
}

Status WtfScopes::give_back(uint64_t ns, uint32_t slot) {
  const Ends ends = end_call(ns, slot);
  if (ends.is_hidden) return {};
  wtf::Writer& writer = files_.writer();
  if (ends.unwound != 0) COLLECT_TRY(writer.event(unwind_type_, ns, {ends.unwound}));
  for (uint32_t i = 0; i < ends.unwound; ++i) COLLECT_TRY(writer.leave(ns));
  if (ends.own) return writer.leave(ns);
  if (!ends.matches) ++lone_returns_;
  return writer.event(return_type_, ns, {text_of(slot)});
}

// None of the leaves is a return: the event of ours represents the one of the function itself.
Status WtfScopes::exception(uint64_t ns, uint32_t slot) {
  const Ends ends = end_call(ns, slot);
  if (ends.is_hidden) return {};
  ++exceptions_;
  wtf::Writer& writer = files_.writer();
  const uint32_t leaves = ends.unwound + (ends.own ? 1 : 0);
  if (leaves != 0) COLLECT_TRY(writer.event(unwind_type_, ns, {leaves}));
  for (uint32_t i = 0; i < ends.unwound; ++i) COLLECT_TRY(writer.leave(ns));
  COLLECT_TRY(writer.event(exception_type_, ns, {text_of(slot)}));
  return ends.own ? writer.leave(ns) : Status();
}

// Leaves what is open in this file, and says that these are no returns.
Status WtfScopes::close_calls(Thread& thread, uint64_t ns) {
  wtf::Writer& writer = files_.writer();
  const size_t depth = thread.zone == 0 ? 0 : writer.depth(thread.zone);
  if (depth == 0) return {};
  ns = std::max(ns, thread.last_ns);
  COLLECT_TRY(writer.set_zone(thread.zone));
  COLLECT_TRY(writer.event(unwind_type_, ns, {depth}));
  for (size_t i = 0; i < depth; ++i) COLLECT_TRY(writer.leave(ns));
  return {};
}

// ---- from one file to the next

Status WtfScopes::next_file(uint64_t ns, bool types_full) {
  wtf::WriterState state = files_.writer().state();
  if (types_full) keep_open_types(state);
  const uint64_t end_ns = std::min(ns, files_.last_ns());
  for (Thread& thread : threads_) COLLECT_TRY(close_calls(thread, end_ns));
  COLLECT_TRY(files_.end());
  COLLECT_TRY(files_.begin(ns));
  COLLECT_TRY(files_.writer().resume(state, ns));
  for (Thread& thread : threads_) hide_calls(thread, ns);
  return {};
}

// Only the types of open calls, and those that are no functions, continue into the next file.
void WtfScopes::keep_open_types(wtf::WriterState& state) {
  std::vector<uint32_t> renumbered(size_t{wtf::kMaxWireId} + 1);
  size_t kept = 0;
  for (const auto& zone : state.zones) {
    for (const uint32_t type : zone.open) kept += std::exchange(renumbered[type], 1) == 0 ? 1 : 0;
  }
  if (kept > kMaxKeptTypes) {
    std::fill(renumbered.begin(), renumbered.end(), 0);
    for (auto& zone : state.zones) zone.open.clear();
  }
  uint32_t next = wtf::kDefineWireId;
  std::vector<wtf::EventType> types;
  for (wtf::EventType& type : state.types) {
    if (type.is_scope() && renumbered[type.wire_id] == 0) continue;
    renumbered[type.wire_id] = ++next;
    type.wire_id = next;
    types.push_back(std::move(type));
  }
  state.types = std::move(types);
  newest_type_ = next;
  for (auto& zone : state.zones) {
    for (uint32_t& type : zone.open) type = renumbered[type];
  }
  for (uint32_t& type : type_of_slot_) type = renumbered[type];
}

// The writer remembers the outermost calls; those within them stay closed in the next file.
void WtfScopes::hide_calls(Thread& thread, uint64_t ns) {
  size_t open = thread.zone == 0 ? 0 : files_.writer().depth(thread.zone);
  log_.leave_out(kSplitCalls, open);
  if (open != 0) thread.last_ns = std::max(thread.last_ns, ns);
  for (size_t i = 0; i < thread.visible.size(); ++i) {
    if (!thread.visible[i]) continue;
    if (open != 0) {
      --open;
    } else {
      thread.visible[i] = false;
      log_.leave_out(kForgotten);
    }
  }
}

Status WtfScopes::finish() {
  uint64_t open = 0;
  for (Thread& thread : threads_) {
    open += thread.open.depth();
    COLLECT_TRY(close_calls(thread, files_.epoch_ns()));
  }
  COLLECT_TRY(files_.end());
  files_.finish(log_);
  for (const auto& [what, count] :
       {std::pair<std::string_view, uint64_t>{"exceptions", exceptions_},
        {"returns without a call", lone_returns_},
        {"calls closed by an outer return", unwound_},
        {"calls open at the end", open}}) {
    if (count != 0) log_.count(what, count);
  }
  log_.leave_out(kTooDeep, too_deep_);
  return {};
}

}  // namespace collect::convert
