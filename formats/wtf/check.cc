#include "formats/wtf/check.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <unordered_set>

#include "formats/core/text/json_cursor.h"
#include "formats/wtf/binary/reader.h"
#include "formats/wtf/text.h"
#include "formats/wtf/zone_tally.h"

namespace collect::wtf {
namespace {

constexpr uint64_t kProgressEvents = 1 << 18;

class Checker {
 public:
  Checker(Bytes file, FileReport& report) : file_(file), report_(report) {}

  bool run(Progress progress, void* context);

 private:
  void look_at_texts(const Event& event);
  void look_at_text(const Event& event, const Value& value);
  void look_at_scope_name(const Event& event);
  void count_resources();
  void put_in_order();
  void finish(const Reader& reader);

  Bytes file_;
  FileReport& report_;
  std::vector<ZoneTally> tallies_;
  std::vector<bool> has_texts_;  // by EventType::index
  TallyBudget budget_;
};

bool has_texts(const EventType& type) {
  return std::any_of(type.arguments.begin(), type.arguments.end(),
                     [](const Argument& argument) { return is_string(argument.type); });
}

struct ScopeStep {
  uint32_t us;
  int32_t step;
};

// By time, equal times as they are: two rounds of 16 bits.
void sort_by_time(std::vector<ScopeStep>& steps) {
  std::vector<ScopeStep> sorted(steps.size());
  for (const unsigned shift : {0u, 16u}) {
    std::vector<size_t> begin((size_t{1} << 16) + 1);
    for (const ScopeStep& step : steps) ++begin[(step.us >> shift & 0xFFFF) + 1];
    std::partial_sum(begin.begin(), begin.end(), begin.begin());
    for (const ScopeStep& step : steps) sorted[begin[step.us >> shift & 0xFFFF]++] = step;
    steps.swap(sorted);
  }
}

bool Checker::run(Progress progress, void* context) {
  Findings& findings = report_.findings;
  auto opened = Reader::open(file_, findings);
  if (!opened) return false;
  Reader& reader = **opened;
  report_.format_version = reader.format_version();
  report_.tool_version = reader.tool_version();
  uint64_t seen = 0;
  Event event;
  while (reader.next_any(event)) {
    if (progress != nullptr && ++seen % kProgressEvents == 0) progress(context, event.offset);
    const uint32_t index = event.type->index;
    while (has_texts_.size() <= index)
      has_texts_.push_back(has_texts(*reader.types().all()[has_texts_.size()]));
    if (has_texts_[index]) look_at_texts(event);
    const Role role = event.type->role;
    if (role == Role::kDefine || role == Role::kZoneCreate || role == Role::kZoneSet ||
        role == Role::kZoneDelete) {
      continue;
    }
    if (tallies_.size() <= event.zone) tallies_.resize(event.zone + 1);
    tallies_[event.zone].add(event, budget_);
    if (role == Role::kScopeEnter || role == Role::kTimeStamp) look_at_scope_name(event);
  }
  report_.chunks = reader.chunks();
  if (reader.format_version() == kFormatVersion) count_resources();
  report_.header = reader.header();
  tallies_.resize(reader.zones().size());
  put_in_order();
  finish(reader);
  if (progress != nullptr) progress(context, file_.size());
  return true;
}

void Checker::look_at_texts(const Event& event) {
  Value value;
  for (Arguments walk = event.arguments(); walk.next(value);) {
    if (value.is_text()) look_at_text(event, value);
  }
}

void Checker::look_at_text(const Event& event, const Value& value) {
  Findings& findings = report_.findings;
  const auto add = [&](Severity severity, Rule rule, const char* what) {
    findings.add_lazily(severity, rule, event.offset, [&] {
      return fmt::format("event '{}', argument '{}': {}", safe_text(event.type->name),
                         value.argument->name, what);
    });
  };
  switch (value.state) {
    case Value::State::kBadOrdinal:
      return add(Severity::kWarning, Rule::kOrdinal, "its ordinal is beyond the string table");
    case Value::State::kEmptyEntry:
      return add(Severity::kNote, Rule::kEmptyEntry, "an empty table entry, which reads as null");
    case Value::State::kEmptyAny:
      return add(Severity::kError, Rule::kAnyEmpty, "the empty string is no JSON");
    case Value::State::kNull:
    case Value::State::kCut:
      return;
    case Value::State::kPresent:
      break;
  }
  const bool latin1 =
      value.encoding == Encoding::kLegacy && value.argument->type == ArgType::kAscii;
  if (!latin1 && !is_utf8(value.text)) {
    add(Severity::kWarning, Rule::kStringText, "it is not UTF-8");
  } else if (value.argument->type == ArgType::kAny && !is_json(value.text)) {
    add(Severity::kError, Rule::kAnyJson, "it is not JSON, or nested too deeply");
  }
}

// The viewer reads these names as signatures.
void Checker::look_at_scope_name(const Event& event) {
  const std::string name = listed_name(event);
  if (is_scope_name(name)) return;
  // In brackets it looks for arguments, and breaks on what is none.
  const size_t open = name.find('(');
  const bool fatal =
      open != std::string::npos && name.back() == ')' &&
      is_scope_name(std::string_view(name).substr(0, open)) &&
      !parse_signature(std::string_view(name).substr(open + 1, name.size() - open - 2));
  report_.findings.add_lazily(fatal ? Severity::kError : Severity::kWarning,
                              fatal ? Rule::kScopeNameFatal : Rule::kScopeName, event.offset, [&] {
                                return fmt::format("the name '{}' {}", name.substr(0, 80),
                                                   fatal ? "breaks the published viewer"
                                                         : "is not kept by the published viewer");
                              });
}

void Checker::count_resources() {
  Findings again;  // the reader has reported them
  ChunkCursor cursor(file_, again);
  for (Chunk chunk; cursor.next(chunk);) {
    for (const Part& part : chunk.parts) {
      if (part.type == static_cast<uint32_t>(PartType::kBinaryResource) ||
          part.type == static_cast<uint32_t>(PartType::kStringResource)) {
        ++report_.resources;
      }
    }
  }
}

// Scopes are what they are in time order: zones whose times step back are read once more.
void Checker::put_in_order() {
  const bool all = std::all_of(tallies_.begin(), tallies_.end(),
                               [](const ZoneTally& tally) { return tally.in_order(); });
  if (all) return;
  std::vector<std::vector<ScopeStep>> steps(tallies_.size());
  Findings again;
  auto reader = Reader::open(file_, again);
  if (!reader) return;
  Event event;
  while ((*reader)->next(event)) {
    if (tallies_[event.zone].in_order()) continue;
    steps[event.zone].push_back({event.time_us, scope_step(*event.type)});
  }
  for (size_t i = 0; i < tallies_.size(); ++i) {
    if (tallies_[i].in_order()) continue;
    sort_by_time(steps[i]);
    tallies_[i].forget_scopes();
    for (const ScopeStep& step : steps[i]) tallies_[i].step(step.step);
    steps[i] = {};
  }
}

void Checker::finish(const Reader& reader) {
  Findings& findings = report_.findings;
  std::unordered_set<std::string_view> names;
  for (const auto& type : reader.types().all()) names.insert(type->name);
  for (size_t i = 0; i < tallies_.size(); ++i) {
    for (const auto& [name, count] : tallies_[i].own_names()) names.insert(name);
    ZoneReport zone;
    zone.name = reader.zones()[i].name;
    zone.type = reader.zones()[i].type;
    zone.location = reader.zones()[i].location;
    tallies_[i].finish(reader.types(), zone);
    report_.events += zone.events;
    if (zone.first_us) {
      report_.first_us = std::min(report_.first_us.value_or(*zone.first_us), *zone.first_us);
      report_.last_us = std::max(report_.last_us.value_or(*zone.last_us), *zone.last_us);
    }
    const std::string which = fmt::format("zone '{}': ", zone.name.value_or(""));
    const auto add = [&](bool that, Severity severity, Rule rule, const std::string& what) {
      if (that) findings.add(severity, rule, 0, which + what);
    };
    add(zone.backward_steps != 0, Severity::kNote, Rule::kTimeOrder,
        fmt::format("{} times an event is earlier than the one before it", zone.backward_steps));
    add(zone.unmatched_leaves + zone.open_scopes != 0, Severity::kNote, Rule::kScopeUnbalanced,
        fmt::format("{} leaves without an enter, {} scopes never left", zone.unmatched_leaves,
                    zone.open_scopes));
    add(zone.max_scope_depth >= kMaxViewerDepth, Severity::kWarning, Rule::kScopeDepth,
        fmt::format("scopes are nested {} deep; the published viewer builds 1023",
                    zone.max_scope_depth));
    add(tallies_[i].frame_at_zero(), Severity::kWarning, Rule::kFrameAtZero,
        "a frame starts at time 0 and is lost in the published viewer");
    report_.zones.push_back(std::move(zone));
  }
  report_.event_types = names.size();
  if (budget_.is_exceeded) {
    findings.add(Severity::kWarning, Rule::kLimit, 0,
                 "more distinct names, frames or time ranges than are counted");
  }
}

Grade grade_of(const FileReport& report) {
  if (report.findings.errors() == 0) return Grade::kOk;
  const bool cut = report.findings.has(Rule::kTruncated) &&
                   report.findings.errors_only({Rule::kTruncated, Rule::kFileLength});
  return cut ? Grade::kRecovered : Grade::kDamaged;
}

}  // namespace

std::string_view to_text(Grade grade) {
  switch (grade) {
    case Grade::kOk:
      return "ok";
    case Grade::kRecovered:
      return "recovered";
    case Grade::kDamaged:
      return "damaged";
    case Grade::kRejected:
      return "rejected";
  }
  return "rejected";
}

FileReport check_file(Bytes file, Progress progress, void* context) {
  FileReport report;
  report.kind = file_kind(file.first(std::min(file.size(), kSniffBytes)));
  report.bytes = file.size();
  bool readable = false;
  if (report.kind == FileKind::kJson) {
    VectorSink binary;
    const auto totals = json_to_binary(file, binary, report.findings);
    if (totals.ok()) report.json = *totals;
    readable = totals.ok() && Checker(binary.bytes(), report).run(progress, context);
  } else {
    readable = Checker(file, report).run(progress, context);
  }
  report.grade = readable ? grade_of(report) : Grade::kRejected;
  report.viewer_loads =
      readable && !report.findings.viewer_refuses_any() && report.json.mode == JsonMode::kComplete;
  report.viewer_has_events = report.viewer_loads && report.json.json_events == 0;
  return report;
}

}  // namespace collect::wtf
