#include "storage/convert/dial9/dial9_session_reader.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>

namespace collect::convert {
namespace {

using dial9::FieldType;
using Kind = SessionEventType::Kind;

struct FieldRule {
  std::string_view name;
  enum class Is : uint8_t { kNumber, kText, kBytes, kMap } is;
  bool is_optional = false;
};
using Is = FieldRule::Is;

struct TypeRule {
  std::string_view name;
  Kind kind;
  std::array<FieldRule, SessionEventType::kMaxFields> fields{};
};

namespace d9 = dial9_session;
constexpr FieldRule kThreadField{"thread", Is::kNumber};
constexpr FieldRule kFunctionField{"function", Is::kNumber};
const TypeRule kRules[] = {
    {d9::kMetadata, Kind::kMetadata, {{{"entries", Is::kMap}}}},
    {d9::kClockSync, Kind::kClockSync, {}},
    {d9::kModule,
     Kind::kModule,
     {{{"module", Is::kNumber},
       {"path", Is::kText},
       {"build_id", Is::kBytes},
       {"base_address", Is::kNumber},
       {"size", Is::kNumber},
       {"unloaded_ns", Is::kNumber}}}},
    {d9::kThread,
     Kind::kThread,
     {{kThreadField,
       {"thread_id", Is::kNumber},
       {"name", Is::kText},
       {d9::kEndNs, Is::kNumber, true}}}},
    {d9::kFunction,
     Kind::kFunction,
     {{kFunctionField,
       {"name", Is::kText},
       {"is_symbol", Is::kNumber},
       {d9::kFile, Is::kText, true},
       {d9::kLine, Is::kNumber, true}}}},
    {d9::kCall, Kind::kCall, {{kThreadField, kFunctionField}}},
    {d9::kReturn, Kind::kReturn, {{kThreadField, kFunctionField}}},
    {d9::kException, Kind::kException, {{kThreadField, kFunctionField}}},
    {d9::kDetail,
     Kind::kDetail,
     {{kThreadField, {"kind", Is::kNumber}, {"flags", Is::kNumber}, {"payload", Is::kBytes}}}},
    {d9::kGap,
     Kind::kGap,
     {{kThreadField,
       {"lane", Is::kNumber},
       {"lost", Is::kNumber},
       {"reasons", Is::kNumber},
       {"first_ns", Is::kNumber},
       {"last_ns", Is::kNumber}}}},
    {d9::kMarker, Kind::kMarker, {{{"text", Is::kText}}}},
    {d9::kDetailWindow, Kind::kNotKept, {}},
    {d9::kCollectorClock, Kind::kNotKept, {}},
    {d9::kNote, Kind::kNotKept, {}},
};

bool fits(FieldType type, Is is) {
  switch (type) {
    case FieldType::kVarint:
    case FieldType::kU8:
    case FieldType::kU16:
    case FieldType::kU32:
    case FieldType::kBool:
      return is == Is::kNumber;
    case FieldType::kString:
    case FieldType::kPooledString:
      return is == Is::kText;
    case FieldType::kBytes:
      return is == Is::kBytes;
    case FieldType::kStringMap:
      return is == Is::kMap;
    default:
      return false;
  }
}

uint64_t number_of(std::string_view text) {
  uint64_t number = 0;
  (void)std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

uint64_t optional_number(const dial9::Event& event, size_t field) {
  return field == SessionEventType::kNoField ? 0 : event[field].u64();
}

// How the process ended, entry by entry; false: the key is none of these.
bool take_end(std::string_view key, std::string_view value, storage::ProcessEnd& end) {
  using How = storage::ProcessEnd::How;
  if (key == dial9_session::kProcessEnd) {
    for (const How how : {How::kExited, How::kSignaled, How::kExeced, How::kUnknown}) {
      if (storage::process_end_name(how) == value) end.how = how;
    }
  } else if (key == dial9_session::kExitCode) {
    (void)std::from_chars(value.data(), value.data() + value.size(), end.exit_code);
  } else if (key == dial9_session::kSignal) {
    (void)std::from_chars(value.data(), value.data() + value.size(), end.signal);
  } else if (key == dial9_session::kCoreDumped) {
    end.core_dumped = value == "1";
  } else {
    return false;
  }
  return true;
}

// A number that must fit; what does not is no id of ours.
std::optional<uint32_t> small(const dial9::Value& value) {
  const uint64_t number = value.u64();
  if (!value.present() || number > UINT32_MAX) return std::nullopt;
  return static_cast<uint32_t>(number);
}

}  // namespace

SessionEventType::SessionEventType(const dial9::KnownSchema& schema) {
  const auto rule = std::find_if(std::begin(kRules), std::end(kRules),
                                 [&](const auto& r) { return r.name == schema.name(); });
  if (rule == std::end(kRules) || !schema.has_timestamp()) return;
  for (size_t i = 0; i < kMaxFields && !rule->fields[i].name.empty(); ++i) {
    const auto field = schema.find(rule->fields[i].name);
    const bool is_there = field && fits(schema.type(*field), rule->fields[i].is);
    if (!is_there && !rule->fields[i].is_optional) return;
    fields[i] = is_there ? *field : kNoField;
  }
  kind = rule->kind;
}

bool Dial9SessionReader::is_head(const dial9::Event& event) {
  const dial9::Value* entries = event.find("entries");
  if (entries == nullptr || !event.has_timestamp()) return false;
  dial9::StringMapView pairs = entries->string_map();
  for (dial9::StringMapView::Pair pair; pairs.next(pair);) {
    if (pair.key == dial9_session::kSessionKey) return true;
  }
  return false;
}

Status Dial9SessionReader::begin(const dial9::Event& event) {
  if (begun_) {
    second_ = true;
    of_second_.add(event.schema().name());
    return {};
  }
  begun_ = true;
  BuiltProcess process;
  storage::ProcessEnd end;
  const dial9::Value* entries = event.find("entries");
  dial9::StringMapView pairs = entries->string_map();
  for (dial9::StringMapView::Pair pair; pairs.next(pair);) {
    const std::string_view value = pair.value;
    const uint64_t number = number_of(value);
    if (pair.key == "process_name") {
      process.name = value.substr(0, storage::kMaxTextBytes);
    } else if (pair.key == "executable") {
      process.executable = value.substr(0, storage::kMaxTextBytes);
    } else if (pair.key == "pid") {
      process.pid = static_cast<uint32_t>(number);
    } else if (pair.key == "arch") {
      process.arch = static_cast<atf::Arch>(number & 0xFF);
    } else if (pair.key == "os") {
      process.os = static_cast<atf::Os>(number & 0xFF);
    } else if (pair.key == "clock_type") {
      process.clock = static_cast<atf::ClockType>(number & 0xFF);
    } else if (pair.key == "start_ns") {
      process.start_ns = number;
    } else if (pair.key == "start_unix_ns") {
      process.start_unix_ns = number;
    } else if (pair.key == "state" && value != "complete") {
      session_.was(value == storage::session_state_name(storage::SessionState::kFailed)
                       ? storage::SessionState::kFailed
                       : storage::SessionState::kRecovered);
    } else if (take_end(pair.key, value, end)) {
      continue;
    } else if (pair.key.starts_with(dial9_session::kMissingKey)) {
      log_.missing(value.substr(0, storage::kMaxTextBytes));
    } else if ((pair.key == "device_id" || pair.key == "device_model" || pair.key == "boot_id" ||
                pair.key == "tag" || pair.key == "agent_version" || pair.key == "parent_pid" ||
                pair.key == "lost_without_stream") &&
               !value.empty() && value != "0") {
      log_.leave_out("entries of the process: " + std::string(pair.key));
    }
  }
  COLLECT_TRY(session_.begin(process));
  session_.process_ended(end);
  return {};
}

Status Dial9SessionReader::add(const SessionEventType& type, const dial9::Event& event) {
  if (type.kind == Kind::kMetadata && is_head(event)) return begin(event);
  if (!begun_ || type.kind == Kind::kOther || type.kind == Kind::kMetadata) {
    left_out_.add(event.schema().name());
    return {};
  }
  if (second_) {
    of_second_.add(event.schema().name());
    return {};
  }
  if (type.kind == Kind::kDetail) return detail(type, event);
  COLLECT_TRY(flush_call());
  switch (type.kind) {
    case Kind::kCall:
    case Kind::kReturn:
    case Kind::kException:
      return call(type, event);
    case Kind::kThread: {
      const auto tid = small(event[type.fields[1]]);
      const auto added =
          add_thread(event[type.fields[0]].u64(), tid.value_or(0), text_of(event, type.fields[2]),
                     event.timestamp_ns(), optional_number(event, type.fields[3]));
      return added.ok() || added.code() == Code::kLimit ? Status() : Status(added.error());
    }
    case Kind::kGap:
      return gap(type, event);
    case Kind::kMarker:
      return session_.marker(event.timestamp_ns(), text_of(event, type.fields[0]));
    case Kind::kModule:
      module(type, event);
      return {};
    case Kind::kFunction:
      function(type, event);
      return {};
    case Kind::kNotKept:
      not_kept_.add(event.schema().name());
      return {};
    default:  // the clock is in the metadata too
      return {};
  }
}

Status Dial9SessionReader::finish() {
  COLLECT_TRY(flush_call());
  left_out_.report(log_, "no part of the session in the stream");
  not_kept_.report(log_, "a session that is built from events has no place for it");
  of_second_.report(log_, "of another session behind the first one; convert it by itself");
  return {};
}

Status Dial9SessionReader::flush_call() {
  if (!call_) return {};
  const Call call = *std::exchange(call_, std::nullopt);
  return session_.event(call.thread, call.ns, call.function_id, call.kind);
}

Result<uint32_t> Dial9SessionReader::add_thread(uint64_t n, uint32_t thread_id,
                                                std::string_view name, uint64_t ns,
                                                uint64_t end_ns) {
  const auto known = threads_.find(n);
  if (known != threads_.end()) return known->second;
  if (threads_.size() == storage::kMaxThreads) {
    return Error{Code::kLimit, "more threads than a session may have"};
  }
  auto added = session_.add_thread(thread_id, name, ns, end_ns);
  if (added.ok()) threads_.emplace(n, *added);
  return added;
}

Result<uint32_t> Dial9SessionReader::thread_of(uint64_t n, uint64_t ns) {
  const auto known = threads_.find(n);
  if (known != threads_.end()) return known->second;
  return add_thread(n, static_cast<uint32_t>(n), "", ns, 0);
}

Status Dial9SessionReader::call(const SessionEventType& type, const dial9::Event& event) {
  const auto thread = thread_of(event[type.fields[0]].u64(), event.timestamp_ns());
  if (!thread.ok() && thread.code() == Code::kLimit) {
    log_.leave_out("events of more threads than a session may have");
    return {};
  }
  if (!thread.ok()) return thread.error();
  const atf::EventKind kind = type.kind == Kind::kCall     ? atf::EventKind::kCall
                              : type.kind == Kind::kReturn ? atf::EventKind::kReturn
                                                           : atf::EventKind::kException;
  call_ = Call{*thread, event.timestamp_ns(), event[type.fields[1]].u64(), kind};
  return {};
}

Status Dial9SessionReader::detail(const SessionEventType& type, const dial9::Event& event) {
  const auto thread = threads_.find(event[type.fields[0]].u64());
  const Bytes payload = event[type.fields[3]].bytes();
  if (!call_ || thread == threads_.end() || thread->second != call_->thread) {
    log_.leave_out("detail records that are not behind an event of their thread");
    return {};
  }
  if (payload.empty() || payload.size() > storage::kMaxPageBytes / 2) {
    log_.leave_out(
        fmt::format("detail records without a payload, or with one of more than {} bytes",
                    storage::kMaxPageBytes / 2));
    return flush_call();
  }
  const Call call = *std::exchange(call_, std::nullopt);
  // What SessionBuilder gives a record.
  const auto usual = call.kind == atf::EventKind::kCall ? atf::DetailType::kFunctionCall
                                                        : atf::DetailType::kFunctionReturn;
  if (event[type.fields[1]].u64() != static_cast<uint64_t>(usual)) {
    log_.leave_out("types of detail records that differ from their events");
  }
  const auto flags = static_cast<uint16_t>(event[type.fields[2]].u64());
  if (event.timestamp_ns() != call.ns) {
    log_.leave_out("times of detail records that differ from their events");
  }
  return session_.event(call.thread, call.ns, call.function_id, call.kind, payload, flags);
}

Status Dial9SessionReader::gap(const SessionEventType& type, const dial9::Event& event) {
  const auto thread = thread_of(event[type.fields[0]].u64(), event.timestamp_ns());
  if (!thread.ok() && thread.code() != Code::kLimit) return thread.error();
  const auto reasons = small(event[type.fields[3]]);
  const uint64_t lane = event[type.fields[1]].u64();
  if (!thread.ok() || !reasons || lane > static_cast<uint64_t>(Lane::kDetail)) {
    log_.leave_out("gaps that no thread can have");
    return {};
  }
  const uint64_t lost = event[type.fields[2]].u64();
  if (static_cast<Lane>(lane) == Lane::kIndex && lost != 0) log_.count("lost_events", lost);
  session_.lost(*thread, static_cast<Lane>(lane), lost, *reasons, event[type.fields[4]].u64(),
                event[type.fields[5]].u64());
  return {};
}

void Dial9SessionReader::module(const SessionEventType& type, const dial9::Event& event) {
  const auto id = small(event[type.fields[0]]);
  const Bytes build_id = event[type.fields[2]].bytes();
  if (!id || modules_ == storage::kMaxModules || build_id.size() > storage::kMaxBuildIdBytes) {
    log_.leave_out("modules that a session cannot have");
    return;
  }
  ++modules_;
  storage::ModuleInfo module;
  module.module_id = *id;
  module.path = text_of(event, type.fields[1]);
  module.build_id.assign(build_id.begin(), build_id.end());
  module.base_address = event[type.fields[3]].u64();
  module.size = event[type.fields[4]].u64();
  module.loaded_ns = event.timestamp_ns();
  module.unloaded_ns = event[type.fields[5]].u64();
  session_.add_module(module);
}

std::string Dial9SessionReader::text_of(const dial9::Event& event, size_t field) {
  const std::string_view text = event.text(field).value_or("");
  if (text.size() > storage::kMaxTextBytes) {
    log_.leave_out(fmt::format("ends of texts of more than {} bytes", storage::kMaxTextBytes));
  }
  return std::string(text.substr(0, storage::kMaxTextBytes));
}

// Names that were made from modules are made again from them.
void Dial9SessionReader::function(const SessionEventType& type, const dial9::Event& event) {
  if (!event[type.fields[2]].boolean()) return;
  const uint64_t id = event[type.fields[0]].u64();
  if (named_.contains(id)) return;
  // Not cut: demangled names may be long.
  const std::string_view name = event.text(type.fields[1]).value_or("");
  const size_t file_field = type.fields[3];
  storage::Symbol symbol{id, std::string(name)};
  if (file_field != SessionEventType::kNoField) symbol.file = text_of(event, file_field);
  const uint64_t line = optional_number(event, type.fields[4]);
  if (!symbol.file.empty() && line <= UINT32_MAX) symbol.line = static_cast<uint32_t>(line);
  const size_t bytes = name.size() + symbol.file.size();
  if (named_.size() == kMaxNamedFunctions || bytes > kMaxFunctionNameBytes - name_bytes_) {
    log_.leave_out(fmt::format("names beyond those of {} functions, or beyond {} bytes of names",
                               kMaxNamedFunctions, kMaxFunctionNameBytes));
    return;
  }
  named_.insert(id);
  name_bytes_ += bytes;
  session_.name_function(std::move(symbol));
}

}  // namespace collect::convert
