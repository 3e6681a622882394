#include "daemon/warehouse/part_rows.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "formats/core/text/hex.h"
#include "storage/manifest/record_ranges.h"

namespace collect::warehouse {
namespace {

constexpr uint64_t kNsPerSecond = 1'000'000'000;
constexpr uint64_t kSecondsPerDay = 86'400;
constexpr uint64_t kNamed = uint64_t{1} << 63;  // `version` of a function that has a name

template <class Number>
Number at_most(uint64_t value) {
  return static_cast<Number>(std::min<uint64_t>(value, std::numeric_limits<Number>::max()));
}

}  // namespace

std::string_view event_rows_name(EventRows rows) {
  switch (rows) {
    case EventRows::kNone:
      return "none";
    case EventRows::kReference:
      return "reference";
    case EventRows::kLoad:
      return "load";
  }
  return "none";
}

FleetFunctions::FleetFunctions(const storage::Manifest& manifest, std::string session)
    : session_(std::move(session)) {
  for (const storage::ModuleInfo& module : manifest.modules) {
    std::string name = warehouse::build_of(&module, module.module_id, session_);
    const uint64_t first = first_function_of(name);
    builds_[module.module_id] = {std::move(name), first};
  }
}

FleetFunctions::Build& FleetFunctions::build(uint32_t module) {
  const auto found = builds_.find(module);
  if (found != builds_.end()) return found->second;
  std::string name = warehouse::build_of(nullptr, module, session_);
  const uint64_t first = first_function_of(name);
  return builds_[module] = {std::move(name), first};
}

const std::string& FleetFunctions::build_of(uint32_t module) {
  return build(module).name;
}

void FleetFunctions::find(uint32_t module) {
  first_function_ = build(module).first_function;
  module_ = module;
}

PartRows::PartRows(ClickHouseClient& client, PartIdentity identity, std::vector<std::string> covers,
                   std::string place, EventRows event_rows)
    : client_(client),
      identity_(std::move(identity)),
      covers_(std::move(covers)),
      place_(std::move(place)),
      event_rows_(event_rows),
      threads_{"part_threads", "session, load, stream, thread, tid, name, events, lost_events"},
      ranges_{"part_ranges",
              "session, load, stream, thread, position, first_seq, records, is_exact"},
      modules_{"part_modules", "session, load, module, build_id, first_function, path"},
      gaps_{"part_gaps",
            "session, load, stream, lane, before_seq, reasons, lost, numbered_lost, first_ns, "
            "last_ns"},
      functions_{"functions", "function, build_id, offset, name, module, file, line, version"},
      seconds_{"part_function_seconds",
               "function, session, load, stream, second, piece, calls, total_ns, self_ns, "
               "longest_ns, buckets, counts"} {}

void PartRows::put_key(RowBatch& rows) const {
  rows.text(identity_.session);
  rows.number(identity_.load);
}

Status PartRows::send(Table& table) {
  if (table.rows.rows() == 0) return {};
  COLLECT_TRY(client_.insert(table.name, table.columns, table.rows.bytes()));
  table.rows.clear();
  return {};
}

Status PartRows::end_row(Table& table) {
  table.rows.end_row();
  return table.rows.bytes().size() < kMaxBlockBytes ? Status() : send(table);
}

PartRows::ThreadPlace& PartRows::place_of(uint32_t thread) {
  return threads_of_[thread];
}

Status PartRows::begin(const exports::CaptureSession& session) {
  of_ = &session;
  const storage::Manifest& manifest = session.session.about;
  functions_of_.emplace(manifest, identity_.session);
  const uint64_t began_ns = manifest.identity.start_unix_ns != 0 ? manifest.identity.start_unix_ns
                                                                 : manifest.created_unix_ns;
  day_ = at_most<uint16_t>(began_ns / kNsPerSecond / kSecondsPerDay);
  for (const storage::ManifestThread& thread : manifest.threads) {
    threads_of_[thread.id].stream = thread.stream_id;
  }
  // Whether numbers are exact must be known before the first event.
  for (const atf::SessionThread& thread : session.session.reader.threads()) {
    if (!thread.index) continue;
    const auto ranges =
        storage::record_ranges(manifest.gaps, thread.n, Lane::kIndex, thread.index->size());
    ThreadPlace& place = place_of(thread.n);
    place.is_exact = ranges.empty() || ranges.back().is_exact;
    if (!place.is_exact) counts_.inexact_threads.push_back(thread.n);
  }
  put_modules();
  return put_gaps();
}

void PartRows::put_modules() {
  for (const storage::ModuleInfo& module : of_->session.about.modules) {
    RowBatch& rows = modules_.rows;
    const std::string& build = functions_of_->build_of(module.module_id);
    put_key(rows);
    rows.number(module.module_id);
    rows.text(build);
    rows.number(first_function_of(build));
    rows.text(module.path);
    rows.end_row();
  }
}

Status PartRows::put_gaps() {
  for (const storage::Gap& gap : of_->session.about.gaps) {
    RowBatch& rows = gaps_.rows;
    put_key(rows);
    rows.number(place_of(gap.thread).stream);
    rows.text(storage::lane_name(gap.lane));
    rows.number(gap.before_seq);
    const std::vector<std::string> reasons = storage::lost_reason_names(gap.reasons);
    rows.length(reasons.size());
    for (const std::string& reason : reasons) rows.text(reason);
    rows.number(gap.lost);
    rows.number(gap.numbered_lost);
    rows.number(gap.first_ns);
    rows.number(gap.last_ns);
    COLLECT_TRY(end_row(gaps_));
  }
  return {};
}

Status PartRows::put_ranges(const exports::ThreadRow& row) {
  const uint32_t stream = place_of(row.thread).stream;
  const auto& threads = of_->session.reader.threads();
  const auto found = std::ranges::lower_bound(threads, row.thread, {}, &atf::SessionThread::n);
  const bool is_there = found != threads.end() && found->n == row.thread && found->index;
  const uint64_t records = is_there ? found->index->size() : 0;
  for (const storage::RecordRange& range :
       storage::record_ranges(of_->session.about.gaps, row.thread, Lane::kIndex, records)) {
    RowBatch& rows = ranges_.rows;
    put_key(rows);
    rows.number(stream);
    rows.number(row.thread);
    rows.number(range.position);
    rows.number(range.first_seq);
    rows.number(range.records);
    rows.number(static_cast<uint8_t>(range.is_exact ? 1 : 0));
    COLLECT_TRY(end_row(ranges_));
  }
  return {};
}

Status PartRows::thread(const exports::ThreadRow& row) {
  COLLECT_TRY(put_ranges(row));
  RowBatch& rows = threads_.rows;
  put_key(rows);
  rows.number(place_of(row.thread).stream);
  rows.number(row.thread);
  rows.number(row.tid);
  rows.text(row.name);
  rows.number(row.events);
  rows.number(row.lost_events);
  return end_row(threads_);
}

Status PartRows::event(const exports::EventRow& row) {
  if (row.thread != event_thread_) {
    COLLECT_TRY(send_events());  // a block is of one thread
    event_thread_ = row.thread;
    event_place_ = &place_of(row.thread);
  }
  if (!event_place_->is_exact) return {};
  events_.row(row.seq, row.time_ns, functions_of_->number_of(row.function),
              static_cast<uint8_t>(row.kind));
  return events_.rows() < kEventsPerBlock ? Status() : send_events();
}

Status PartRows::send_events() {
  if (events_.rows() == 0) return {};
  COLLECT_TRY(client_.insert_selected(
      "events", "session, stream, seq, time_ns, function, kind, day",
      fmt::format("{}, toUInt32({}), seq, time_ns, function, kind, toDate({})",
                  sql_text(identity_.session), event_place_->stream, day_),
      "seq UInt64, time_ns UInt64, function UInt64, kind UInt8", events_.bytes()));
  counts_.event_rows += events_.rows();
  events_.clear();
  return {};
}

Status PartRows::second(const exports::SecondRow& row) {
  ThreadPlace& place = place_of(row.thread);
  if (row.second < place.last_second) ++place.piece;
  place.last_second = row.second;
  RowBatch& rows = seconds_.rows;
  rows.number(functions_of_->number_of(row.function.function));
  put_key(rows);
  rows.number(place.stream);
  rows.number(at_most<uint32_t>(row.second));
  rows.number(place.piece);
  rows.number(row.times.calls);
  rows.number(row.times.total_ns);
  rows.number(row.times.self_ns);
  rows.number(row.times.longest_ns);
  uint64_t buckets = 0;
  row.times.durations.for_each([&](uint32_t, uint64_t) { ++buckets; });
  rows.length(buckets);
  row.times.durations.for_each(
      [&](uint32_t bucket, uint64_t) { rows.number(static_cast<uint16_t>(bucket)); });
  rows.length(buckets);
  row.times.durations.for_each([&](uint32_t, uint64_t count) { rows.number(count); });
  ++counts_.second_rows;
  return end_row(seconds_);
}

Status PartRows::function(const exports::FunctionLocation& place, const calls::FunctionTimes&) {
  const read::NameTable& names = of_->session.names;
  const read::SourceLocation* source = names.source_of(place.function);
  const storage::Manifest& manifest = of_->session.about;
  const uint64_t known_unix_ns = std::max(manifest.finished_unix_ns, manifest.created_unix_ns);
  RowBatch& rows = functions_.rows;
  rows.number(functions_of_->number_of(place.function));
  rows.text(functions_of_->build_of(static_cast<uint32_t>(place.function >> 32)));
  rows.number(place.offset);
  rows.text(names.name_of(place.function));
  rows.text(place.module);
  rows.text(source == nullptr ? "" : source->file);
  rows.number(source == nullptr ? uint32_t{0} : source->line);
  rows.number((names.is_named(place.function) ? kNamed : 0) | (known_unix_ns & (kNamed - 1)));
  return end_row(functions_);
}

Status PartRows::end(const exports::SessionRow& row) {
  COLLECT_TRY(send_events());
  for (Table* table : {&threads_, &ranges_, &modules_, &gaps_, &functions_, &seconds_}) {
    COLLECT_TRY(send(*table));
  }
  const storage::Manifest& manifest = of_->session.about;
  const storage::SessionIdentity& identity = manifest.identity;
  counts_.events = row.events;
  RowBatch rows;
  rows.text(identity_.session);
  rows.text(identity_.part);
  rows.number(identity_.load);
  rows.length(covers_.size());
  for (const std::string& part : covers_) rows.text(part);
  rows.text(place_);
  rows.text(identity.device_id);
  rows.text(identity.device_model);
  rows.text(identity.process_name);
  rows.number(identity.pid);
  rows.text(identity.tag);
  rows.text(row.state.empty() ? storage::session_state_name(manifest.state)
                              : std::string_view(row.state));
  rows.text(row.missing);
  rows.text(identity.collector.is_known() ? hex_bytes(identity.collector.id) : "");
  rows.number(identity.collector.epoch);
  rows.number(day_);
  rows.number(identity.start_ns);
  rows.number(identity.start_unix_ns);
  rows.number(row.first_ns);
  rows.number(row.last_ns);
  rows.number(row.events);
  rows.number(row.lost_events);
  rows.number(static_cast<uint8_t>(identity.version));
  rows.text(event_rows_name(event_rows_));
  rows.number(storage::system_clock().unix_ns());
  rows.end_row();
  return client_.insert(
      "parts",
      "session, part, load, covers, place, device, device_model, process, pid, tag, state, "
      "missing, "
      "collector, epoch, day, start_ns, start_unix_ns, first_ns, last_ns, events, lost_events, "
      "atf_version, event_rows, loaded_unix_ns",
      rows.bytes());
}

}  // namespace collect::warehouse
