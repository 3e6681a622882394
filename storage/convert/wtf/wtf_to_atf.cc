// A WTF-trace file into an ATF session: zones become threads, scopes become calls and returns.
#include <fmt/core.h>
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_set>

#include "formats/wtf/binary/reader.h"
#include "formats/wtf/text.h"
#include "storage/convert/conversions.h"
#include "storage/convert/session_builder.h"
#include "storage/convert/wtf/wtf_events.h"
#include "storage/convert/wtf/wtf_zone_name.h"
#include "storage/manifest/manifest.h"

namespace collect::convert {
namespace {

using nlohmann::json;

constexpr uint64_t kWtfProgressEvents = 65536;
// A timebase outside of 1990 to 2200 is no time of day: writers put 0 or an uptime there.
constexpr double kMinTimebaseMs = 631'152'000'000;
constexpr double kMaxTimebaseMs = 7'258'118'400'000;
constexpr uint64_t kMaxStartNs = uint64_t{1} << 62;     // of the device clock in our metadata
constexpr size_t kMaxOpenCalls = size_t{1} << 22;       // of all zones together
constexpr size_t kMaxFunctions = size_t{1} << 20;       // names that scope#enter events bring
constexpr size_t kMaxFunctionBytes = size_t{64} << 20;  // all of these together
constexpr size_t kMaxValueBytes = 256;                  // of a mark's value that may be a loss
constexpr uint64_t kMaxLost = uint64_t{1} << 48;        // in all; more is not believed

constexpr std::string_view kOtherFunctions = "(all other functions)";

// What an ATF session cannot hold, by kind.
std::string_view left_out_name(wtf::Role role) {
  switch (role) {
    case wtf::Role::kScopeAppendData:
      return "values appended to scopes: ATF has no place for them";
    case wtf::Role::kTimeStamp:
      return "time stamp events: ATF has calls, returns and exceptions only";
    case wtf::Role::kDiscontinuity:
      return "discontinuities: they do not say how much is missing";
    case wtf::Role::kRangeBegin:
    case wtf::Role::kRangeEnd:
      return "time range events: ATF has calls, returns and exceptions only";
    case wtf::Role::kFlowBranch:
    case wtf::Role::kFlowExtend:
    case wtf::Role::kFlowTerminate:
    case wtf::Role::kFlowAppendData:
      return "flow events: ATF has calls, returns and exceptions only";
    case wtf::Role::kFrameStart:
    case wtf::Role::kFrameEnd:
      return "frame events: ATF has calls, returns and exceptions only";
    default:
      break;
  }
  return "instance events: ATF has calls, returns and exceptions only";
}

class WtfToAtf {
 public:
  WtfToAtf(Bytes file, SessionBuilder& session, ConvertLog& log)
      : file_(file), session_(session), log_(log) {}

  Status run();

 private:
  struct Thread {
    std::optional<uint32_t> position;  // in session_
    bool refused = false;              // the session has no more threads
    std::vector<uint64_t> open;        // functions, outermost first
    uint64_t too_deep = 0;             // open calls that `open` does not hold
    uint64_t unwinding = 0;            // leaves to come that are no returns

    bool known() const { return position || refused; }
  };

  Status begin(std::string_view first_zone);
  void read_header();
  Status add_thread(uint32_t zone, uint64_t ns);
  Status add_threads(uint64_t ns);
  Status take(const wtf::Event& event);
  Status enter(Thread& thread, const wtf::Event& event, uint64_t ns);
  Status leave(Thread& thread, uint64_t ns);
  Status instance(Thread& thread, const wtf::Event& event, uint64_t ns);
  Status mark(Thread& thread, const wtf::Event& event, uint64_t ns);
  bool lost(Thread& thread, std::string_view value);
  uint64_t function_of(const wtf::EventType& type);
  uint64_t function_named(std::string_view name);
  std::string zone_name(uint32_t zone) const;
  void count_resources();

  const Bytes file_;
  SessionBuilder& session_;
  ConvertLog& log_;
  wtf::Findings findings_;
  std::unique_ptr<wtf::Reader> reader_;
  bool begun_ = false;
  BuiltProcess process_;                    // its start is the file's timebase
  std::vector<Thread> threads_;             // as the reader's zones
  uint32_t next_zone_ = 1;                  // that add_threads() has not seen
  std::vector<uint64_t> function_of_type_;  // by EventType::index; 0: not yet
  std::unordered_set<std::string> named_;
  size_t named_bytes_ = 0;
  size_t open_calls_ = 0;
  uint64_t lost_ = 0;
  uint64_t events_[static_cast<size_t>(wtf::Role::kFrameEnd) + 1] = {};  // left out, by role
  uint64_t arguments_ = 0, lone_leaves_ = 0, too_deep_ = 0;
  uint64_t other_functions_ = 0, other_threads_ = 0, other_processes_ = 0;
};

// ---- the process

// What the header says of the process, and of the clock before the first event.
void WtfToAtf::read_header() {
  if (!reader_->header()) return;
  const wtf::FileHeader& header = *reader_->header();
  if (header.context) {
    process_.name = wtf::safe_text(header.context->title);
    process_.executable = wtf::safe_text(header.context->uri);
  }
  const double timebase = header.timebase_ms;
  if (timebase >= kMinTimebaseMs && timebase <= kMaxTimebaseMs) {
    const double whole = std::floor(timebase);
    process_.start_unix_ns = static_cast<uint64_t>(whole) * 1'000'000 +
                             static_cast<uint64_t>(std::llround((timebase - whole) * 1e6));
  }
  const json metadata = json::parse(header.metadata, nullptr, /*allow_exceptions=*/false);
  if (!metadata.is_object()) return;
  const auto ours = metadata.find(kMetadataKey);
  if (ours == metadata.end()) return;
  const auto number = [&](const char* key, uint64_t most) -> uint64_t {
    const auto at = ours->find(key);
    if (at == ours->end() || !at->is_number_unsigned()) return 0;
    const uint64_t value = at->get<uint64_t>();
    return value <= most ? value : 0;
  };
  process_.pid = static_cast<uint32_t>(number("pid", UINT32_MAX));
  process_.arch = static_cast<atf::Arch>(number("arch", UINT8_MAX));
  process_.os = static_cast<atf::Os>(number("os", UINT8_MAX));
  process_.clock = static_cast<atf::ClockType>(number("clock", UINT8_MAX));
  process_.start_ns = number("start_ns", kMaxStartNs);
  const auto missing = ours->find("missing");
  if (missing == ours->end() || !missing->is_array()) return;
  session_.was(ours->value("state", json()) == "failed" ? storage::SessionState::kFailed
                                                        : storage::SessionState::kRecovered);
  for (const json& one : *missing) {
    if (one.is_string()) log_.missing(wtf::safe_text(one.get<std::string>()));
  }
}

Status WtfToAtf::begin(std::string_view first_zone) {
  const ZoneName zone = parse_zone_name(first_zone);
  if (process_.pid == 0) process_.pid = zone.pid.value_or(0);
  if (!zone.process.empty() && (process_.name.empty() || process_.pid == zone.pid)) {
    process_.name = zone.process;
  }
  if (process_.start_unix_ns == 0) {
    log_.remark("the file's timebase is no time of day; the session does not know when it was");
  }
  begun_ = true;
  return session_.begin(process_);
}

std::string WtfToAtf::zone_name(uint32_t index) const {
  const wtf::Zone& zone = reader_->zones()[index];
  if (zone.name && !zone.name->empty()) return *zone.name;
  return fmt::format("zone {}", zone.zone_id);
}

Status WtfToAtf::add_thread(uint32_t zone, uint64_t ns) {
  Thread& thread = threads_[zone];
  if (thread.known()) return {};
  const std::string whole = zone_name(zone);
  if (!begun_) COLLECT_TRY(begin(whole));
  const ZoneName name = parse_zone_name(whole);
  if (name.pid && *name.pid != process_.pid) ++other_processes_;
  const uint32_t tid = name.tid.value_or(reader_->zones()[zone].zone_id);
  const auto added = session_.add_thread(tid, name.thread, ns);
  if (!added.ok() && added.code() != Code::kLimit) return added.error();
  if (added.ok()) thread.position = *added;
  thread.refused = !added.ok();
  return {};
}

// Zones are created in the order that their threads shall have, mostly before any event. The
// default zone is there from the start, but is none as long as it is not created or used.
Status WtfToAtf::add_threads(uint64_t ns) {
  const std::vector<wtf::Zone>& zones = reader_->zones();
  threads_.resize(zones.size());
  if (zones[0].created) COLLECT_TRY(add_thread(0, ns));
  for (; next_zone_ < zones.size(); ++next_zone_) COLLECT_TRY(add_thread(next_zone_, ns));
  return {};
}

// ---- functions

uint64_t WtfToAtf::function_of(const wtf::EventType& type) {
  if (type.index >= function_of_type_.size()) function_of_type_.resize(type.index + 1);
  uint64_t& id = function_of_type_[type.index];
  if (id == 0) id = session_.function_of(wtf::safe_event_name(type.name));
  return id;
}

// The function of a name that is in an event: there may be as many as there are events.
uint64_t WtfToAtf::function_named(std::string_view name) {
  const std::string safe = wtf::safe_event_name(name);
  if (!named_.contains(safe)) {
    if (named_.size() >= kMaxFunctions || safe.size() > kMaxFunctionBytes - named_bytes_) {
      ++other_functions_;
      return session_.function_of(kOtherFunctions);
    }
    named_.insert(safe);
    named_bytes_ += safe.size();
  }
  return session_.function_of(safe);
}

// ---- events

Status WtfToAtf::run() {
  auto opened = wtf::Reader::open(file_, findings_);
  if (!opened.ok()) return opened.error();
  reader_ = std::move(*opened);
  read_header();
  uint64_t seen = 0;
  for (wtf::Event event; reader_->next(event);) {
    COLLECT_TRY(take(event));
    if (++seen % kWtfProgressEvents == 0) log_.progress(event.offset, file_.size());
  }
  COLLECT_TRY(add_threads(process_.start_ns));
  if (!begun_) COLLECT_TRY(begin(""));
  for (const wtf::Finding& finding : findings_.list()) {
    if (finding.severity != Severity::kError) continue;
    log_.missing(fmt::format("at {}: {}", finding.offset, finding.sentence));
  }
  for (size_t role = 0; role < std::size(events_); ++role) {
    log_.leave_out(left_out_name(static_cast<wtf::Role>(role)), events_[role]);
  }
  log_.leave_out("scopes' arguments: ATF has no place for them", arguments_);
  log_.leave_out("leaves without a scope: a return needs a function", lone_leaves_);
  log_.leave_out("returns of calls nested too deeply to be followed", too_deep_);
  log_.leave_out("calls of functions past the number that is distinguished", other_functions_);
  log_.leave_out("events of zones past the number of threads in a session", other_threads_);
  log_.leave_out("process numbers of zones: a session has one process", other_processes_);
  if (lost_ != 0) log_.count("lost_events", lost_);
  count_resources();
  return {};
}

Status WtfToAtf::take(const wtf::Event& event) {
  const uint64_t ns = process_.start_ns + uint64_t{event.time_us} * 1000;
  if (reader_->zones().size() != threads_.size() || !threads_[event.zone].known()) {
    COLLECT_TRY(add_threads(ns));
    COLLECT_TRY(add_thread(event.zone, ns));
  }
  Thread& thread = threads_[event.zone];
  if (thread.refused) {
    ++other_threads_;
    return {};
  }
  if (event.type->role == wtf::Role::kScopeLeave) return leave(thread, ns);
  if (event.type->is_scope()) return enter(thread, event, ns);
  return instance(thread, event, ns);
}

Status WtfToAtf::enter(Thread& thread, const wtf::Event& event, uint64_t ns) {
  uint64_t function = 0;
  if (event.type->role == wtf::Role::kScopeEnter) {
    const auto name = event.argument("name");
    function = function_named(name && name->present() ? name->utf8() : "");
  } else {
    function = function_of(*event.type);
    if (!event.type->arguments.empty()) ++arguments_;
  }
  if (open_calls_ < kMaxOpenCalls && thread.too_deep == 0) {
    thread.open.push_back(function);
    ++open_calls_;
  } else {
    ++thread.too_deep;
  }
  return session_.event(*thread.position, ns, function, atf::EventKind::kCall);
}

Status WtfToAtf::leave(Thread& thread, uint64_t ns) {
  const bool is_return = thread.unwinding == 0;
  if (!is_return) --thread.unwinding;
  if (thread.too_deep != 0) {
    --thread.too_deep;
    if (is_return) ++too_deep_;
    return {};
  }
  if (thread.open.empty()) {
    ++lone_leaves_;
    return {};
  }
  const uint64_t function = thread.open.back();
  thread.open.pop_back();
  --open_calls_;
  return is_return ? session_.event(*thread.position, ns, function, atf::EventKind::kReturn)
                   : Status();
}

Status WtfToAtf::instance(Thread& thread, const wtf::Event& event, uint64_t ns) {
  if (event.type->role == wtf::Role::kMark) return mark(thread, event, ns);
  const bool exception = event.type->name == kExceptionEvent;
  if (exception || event.type->name == kReturnEvent) {
    const auto name = event.argument("function");
    if (name && name->is_text() && name->present()) {
      return session_.event(*thread.position, ns, function_named(name->utf8()),
                            exception ? atf::EventKind::kException : atf::EventKind::kReturn);
    }
  } else if (event.type->name == kUnwindEvent) {
    const auto calls = event.argument("calls");
    if (calls && calls->argument->type == wtf::ArgType::kUint32 && calls->present()) {
      thread.unwinding += static_cast<uint64_t>(calls->integer());
      return {};
    }
  }
  ++events_[static_cast<size_t>(event.type->role)];
  return {};
}

Status WtfToAtf::mark(Thread& thread, const wtf::Event& event, uint64_t ns) {
  const auto name = event.argument("name");
  const auto value = event.argument("value");
  const bool has_value = value && value->is_text() && value->present() && value->text != "null";
  if (has_value && lost(thread, value->text)) return {};
  std::string text = name && name->is_text() && name->present() ? name->utf8() : "";
  if (has_value) text += (text.empty() ? "" : " ") + value->utf8();
  return session_.marker(ns, wtf::safe_text(text));
}

// Whether a mark's value says that events are missing, in our words.
bool WtfToAtf::lost(Thread& thread, std::string_view value) {
  if (value.size() > kMaxValueBytes || value.find(kLostEventsKey) == std::string_view::npos) {
    return false;
  }
  const json object = json::parse(value, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return false;
  const auto count = object.find(kLostEventsKey);
  const auto reasons = object.find(kLostReasonsKey);
  if (count == object.end() || !count->is_number_unsigned() || reasons == object.end() ||
      !reasons->is_number_unsigned()) {
    return false;
  }
  const uint64_t number = count->get<uint64_t>();
  const uint64_t why = reasons->get<uint64_t>();
  if (number == 0 || number > kMaxLost - lost_ || why == 0 || why > UINT32_MAX) return false;
  lost_ += number;
  session_.lost(*thread.position, Lane::kIndex, number, static_cast<uint32_t>(why), 0, 0);
  return true;
}

void WtfToAtf::count_resources() {
  if (reader_->format_version() != wtf::kFormatVersion) return;
  wtf::Findings again;  // the reader has reported them
  wtf::ChunkCursor cursor(file_, again);
  uint64_t resources = 0;
  for (wtf::Chunk chunk; cursor.next(chunk);) {
    resources += static_cast<uint64_t>(
        std::count_if(chunk.parts.begin(), chunk.parts.end(), [](const wtf::Part& part) {
          return part.type == static_cast<uint32_t>(wtf::PartType::kBinaryResource) ||
                 part.type == static_cast<uint32_t>(wtf::PartType::kStringResource);
        }));
  }
  log_.leave_out("resources: ATF has no place for them", resources);
}

}  // namespace

Status wtf_to_atf(Bytes file, SessionBuilder& session, ConvertLog& log) {
  return WtfToAtf(file, session, log).run();
}

}  // namespace collect::convert
