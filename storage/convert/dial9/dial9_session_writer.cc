#include "storage/convert/dial9/dial9_session_writer.h"

#include <utility>

#include "formats/core/text/utf8_text.h"
#include "storage/convert/dial9/dial9_session.h"
#include "storage/manifest/session_health.h"

namespace collect::convert {
namespace {

using dial9::FieldType;

constexpr uint16_t kFirstTypeId = 256;

// Units of amounts only; viewers would show a moment with a unit as an amount.
std::string_view unit_of(std::string_view field_name) {
  if (field_name == "offset_ns" || field_name == "uncertainty_ns") return "ns";
  return field_name == "size" ? "bytes" : "";
}

std::string utf8_of(std::string_view text) {
  std::string out;
  append_utf8(text, out);
  return out;
}

}  // namespace

Dial9SessionWriter::Dial9SessionWriter(ByteSink& sink, ConvertLog& log)
    : out_(sink), log_(log), next_id_(kFirstTypeId) {}

Status Dial9SessionWriter::define_all() {
  namespace d9 = dial9_session;
  constexpr auto kNumber = FieldType::kVarint;
  constexpr auto kText = FieldType::kString;
  COLLECT_TRY(define(metadata_, d9::kMetadata, {{"entries", FieldType::kStringMap}}));
  COLLECT_TRY(define(clock_sync_, d9::kClockSync, {{"realtime_ns", kNumber}}));
  COLLECT_TRY(define(module_, d9::kModule,
                     {{"module", kNumber},
                      {"path", kText},
                      {"build_id", FieldType::kBytes},
                      {"base_address", kNumber},
                      {"size", kNumber},
                      {"unloaded_ns", kNumber}}));
  COLLECT_TRY(define(
      thread_, d9::kThread,
      {{"thread", kNumber}, {"thread_id", kNumber}, {"name", kText}, {d9::kEndNs, kNumber}}));
  COLLECT_TRY(define(function_, d9::kFunction,
                     {{"function", kNumber},
                      {"name", FieldType::kPooledString},
                      {"is_symbol", FieldType::kBool},
                      {d9::kFile, FieldType::kPooledString},
                      {d9::kLine, kNumber}}));
  for (const auto& [kind, name] : {std::pair{atf::EventKind::kCall, d9::kCall},
                                   std::pair{atf::EventKind::kReturn, d9::kReturn},
                                   std::pair{atf::EventKind::kException, d9::kException}}) {
    COLLECT_TRY(define(events_[static_cast<size_t>(kind)], name,
                       {{"thread", kNumber}, {"function", kNumber}}));
  }
  COLLECT_TRY(define(detail_, d9::kDetail,
                     {{"thread", kNumber},
                      {"kind", kNumber},
                      {"flags", kNumber},
                      {"payload", FieldType::kBytes}}));
  COLLECT_TRY(define(gap_, d9::kGap,
                     {{"thread", kNumber},
                      {"lane", kNumber},
                      {"lost", kNumber},
                      {"reasons", kNumber},
                      {"first_ns", kNumber},
                      {"last_ns", kNumber}}));
  COLLECT_TRY(define(marker_, d9::kMarker, {{"text", kText}}));
  COLLECT_TRY(define(window_, d9::kDetailWindow,
                     {{"mode", kText},
                      {"end_ns", kNumber},
                      {"pre_roll_from_ns", kNumber},
                      {"pre_roll_records", kNumber},
                      {"reason", kText}}));
  COLLECT_TRY(define(clock_, d9::kCollectorClock,
                     {{"offset_ns", FieldType::kI64},
                      {"uncertainty_ns", kNumber},
                      {"drift_ppb", FieldType::kF64},
                      {"at_unix_ns", kNumber},
                      {"boot_id", kText}}));
  return define(note_, d9::kNote, {{"at_unix_ns", kNumber}, {"text", kText}});
}

Status Dial9SessionWriter::process(const storage::Manifest& manifest) {
  const storage::SessionIdentity& identity = manifest.identity;
  const storage::SessionHealth health = storage::health_of(manifest);
  const auto number = [](auto value) { return std::to_string(static_cast<uint64_t>(value)); };
  const std::pair<std::string_view, std::string> entries[] = {
      {dial9_session::kSessionKey, "1"},
      {"process_name", utf8_of(identity.process_name)},
      {"executable", utf8_of(identity.executable)},
      {"pid", number(identity.pid)},
      {"parent_pid", number(identity.parent_pid)},
      {"arch", number(identity.arch)},
      {"os", number(identity.os)},
      {"clock_type", number(identity.clock)},
      {"atf_version", number(identity.version)},
      {"start_ns", number(identity.start_ns)},
      {"start_unix_ns", number(identity.start_unix_ns)},
      {"device_id", utf8_of(identity.device_id)},
      {"device_model", utf8_of(identity.device_model)},
      {"boot_id", utf8_of(identity.boot_id)},
      {"tag", utf8_of(identity.tag)},
      {"agent_version", utf8_of(identity.agent_version)},
      {"state", std::string(storage::session_state_name(health.state))},
      {"reason", utf8_of(manifest.reason)},
      {"lost_without_stream", number(manifest.lost_without_stream)},
  };
  std::vector<dial9::StringPair> pairs;
  for (const auto& [key, value] : entries) pairs.push_back({key, value});
  std::vector<std::pair<std::string_view, std::string>> end_entries;
  const storage::ProcessEnd& ended = manifest.process_end;
  if (ended.how != storage::ProcessEnd::How::kNotKnown) {
    end_entries = {{dial9_session::kProcessEnd, std::string(storage::process_end_name(ended.how))},
                   {dial9_session::kExitCode, std::to_string(ended.exit_code)},
                   {dial9_session::kSignal, number(ended.signal)},
                   {dial9_session::kCoreDumped, number(ended.core_dumped)}};
  }
  for (const auto& [key, value] : end_entries) pairs.push_back({key, value});
  std::vector<std::pair<std::string, std::string>> missing;
  for (const storage::MissingInput& one : manifest.input_missing) {
    missing.emplace_back(
        std::string(dial9_session::kMissingKey) + std::to_string(missing.size() + 1),
        utf8_of(storage::missing_text(one)));
  }
  for (const auto& [key, value] : missing) pairs.push_back({key, value});
  out_.begin_event(metadata_, identity.start_ns);
  out_.put_string_map(pairs);
  COLLECT_TRY(end());
  if (identity.start_unix_ns != 0) {
    out_.begin_event(clock_sync_, identity.start_ns);
    out_.put_varint(identity.start_unix_ns);
    COLLECT_TRY(end());
  }
  return notes_and_windows(manifest);
}

Status Dial9SessionWriter::notes_and_windows(const storage::Manifest& manifest) {
  for (const storage::Note& note : manifest.notes) {
    out_.begin_event(note_, manifest.identity.start_ns);
    out_.put_varint(note.at_unix_ns);
    out_.put_string(utf8_of(note.what));
    COLLECT_TRY(end());
  }
  for (const storage::ClockSync& sync : manifest.clock_syncs) {
    out_.begin_event(clock_, sync.at_ns);
    out_.put_i64(sync.offset_ns);
    out_.put_varint(sync.uncertainty_ns);
    out_.put_f64(sync.drift_ppb);
    out_.put_varint(sync.at_unix_ns);
    out_.put_string(utf8_of(sync.boot_id));
    COLLECT_TRY(end());
  }
  for (const storage::DetailWindow& window : manifest.detail_windows) {
    out_.begin_event(window_, window.start_ns);
    out_.put_string(utf8_of(window.mode));
    out_.put_varint(window.end_ns);
    out_.put_varint(window.pre_roll_from_ns);
    out_.put_varint(window.pre_roll_records);
    out_.put_string(utf8_of(window.reason));
    COLLECT_TRY(end());
  }
  return {};
}

Status Dial9SessionWriter::module(const storage::ModuleInfo& module) {
  out_.begin_event(module_, module.loaded_ns);
  out_.put_varint(module.module_id);
  out_.put_string(utf8_of(module.path));
  out_.put_bytes(module.build_id);
  out_.put_varint(module.base_address);
  out_.put_varint(module.size);
  out_.put_varint(module.unloaded_ns);
  return end();
}

Status Dial9SessionWriter::thread(uint64_t ns, uint32_t n, uint32_t thread_id,
                                  std::string_view name, uint64_t end_ns) {
  out_.begin_event(thread_, ns);
  out_.put_varint(n);
  out_.put_varint(thread_id);
  out_.put_string(utf8_of(name));
  out_.put_varint(end_ns);
  return end();
}

Status Dial9SessionWriter::function(uint64_t ns, uint64_t id, std::string_view name, bool is_symbol,
                                    std::string_view file, uint32_t line) {
  out_.begin_event(function_, ns);
  out_.put_varint(id);
  out_.put_pooled_string(utf8_of(name));
  out_.put_bool(is_symbol);
  out_.put_pooled_string(utf8_of(file));
  out_.put_varint(line);
  return end();
}

Status Dial9SessionWriter::event(uint32_t n, const atf::IndexEvent& event) {
  out_.begin_event(events_[static_cast<size_t>(event.kind)], event.timestamp_ns);
  out_.put_varint(n);
  out_.put_varint(event.function_id);
  return end();
}

Status Dial9SessionWriter::detail(uint32_t n, const atf::DetailRecord& record) {
  out_.begin_event(detail_, record.timestamp_ns);
  out_.put_varint(n);
  out_.put_varint(static_cast<uint64_t>(record.type));
  out_.put_varint(record.flags);
  out_.put_bytes(record.payload);
  return end();
}

Status Dial9SessionWriter::gap(uint64_t ns, const storage::Gap& gap) {
  out_.begin_event(gap_, ns);
  out_.put_varint(gap.thread);
  out_.put_varint(static_cast<uint64_t>(gap.lane));
  out_.put_varint(gap.lost);
  out_.put_varint(gap.reasons);
  out_.put_varint(gap.first_ns);
  out_.put_varint(gap.last_ns);
  return end();
}

Status Dial9SessionWriter::marker(const storage::Marker& marker) {
  out_.begin_event(marker_, marker.at_ns);
  out_.put_string(utf8_of(marker.text));
  return end();
}

// The fields say their units as the recorder's own types do.
Status Dial9SessionWriter::define(dial9::EventType& type, std::string_view name,
                                  std::vector<dial9::Field> fields) {
  std::vector<dial9::Annotation> units;
  for (size_t i = 0; i < fields.size(); ++i) {
    const std::string_view unit = unit_of(fields[i].name);
    if (unit.empty()) continue;
    units.push_back({static_cast<uint16_t>(i), std::string(dial9::kUnitKey), std::string(unit)});
  }
  const auto defined = out_.define({next_id_++, std::string(name), true, std::move(fields)});
  if (!defined.ok()) return defined.error();
  type = *defined;
  return units.empty() ? Status() : out_.annotate(type, units);
}

Status Dial9SessionWriter::end() {
  if (out_.end_event()) return {};
  if (out_.refusal() == dial9::Refusal::kSink) return out_.sink_status();
  log_.leave_out("events that dial9 cannot hold: " + std::string(to_text(out_.refusal())));
  return {};
}

}  // namespace collect::convert
