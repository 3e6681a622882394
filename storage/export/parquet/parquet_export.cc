#include "storage/export/parquet/parquet_export.h"

#include <fmt/core.h>

#include <filesystem>
#include <optional>
#include <vector>

#include "formats/calls/group_times.h"
#include "storage/export/capture_walk.h"
#include "storage/export/parquet/parquet_table.h"

namespace collect::exports {
namespace {

using parquet::Column;
using parquet::Encoding;
using parquet::Type;

Column text_column(const char* name) {
  return {name, Type::kString, Encoding::kRleDictionary};
}
Column optional_text(const char* name) {
  return {name, Type::kString, Encoding::kRleDictionary, true};
}
Column number_column(const char* name) {
  return {name, Type::kUint64, Encoding::kDeltaBinaryPacked};
}
// On a processor, of the two times of the same names; null where that is not known.
std::vector<Column> with_cpu_columns(std::vector<Column> columns) {
  for (const char* name : {"cpu_total_ns", "cpu_self_ns"}) {
    columns.push_back({name, Type::kUint64, Encoding::kDeltaBinaryPacked, true});
  }
  return columns;
}
Column id_column(const char* name) {
  return {name, Type::kUint64, Encoding::kRleDictionary};
}
Column optional_id(const char* name) {
  return {name, Type::kUint64, Encoding::kRleDictionary, true};
}
Column small_column(const char* name) {
  return {name, Type::kUint32, Encoding::kRleDictionary};
}

const char* kind_text(atf::EventKind kind) {
  switch (kind) {
    case atf::EventKind::kCall:
      return "call";
    case atf::EventKind::kReturn:
      return "return";
    case atf::EventKind::kException:
      return "exception";
  }
  return "unknown";
}

struct Tables {
  static Result<Tables> create(const std::string& directory, ParquetTables which);
  std::vector<ParquetTable*> all() {
    std::vector<ParquetTable*> tables = {&functions, &threads, &sessions, &seconds, &histograms};
    if (calls) tables.insert(tables.end(), {&*calls, &*events});
    return tables;
  }

  ParquetTable functions;
  ParquetTable threads;
  std::optional<ParquetTable> calls;   // of kAll
  std::optional<ParquetTable> events;  // the same
  ParquetTable sessions;
  ParquetTable seconds;
  ParquetTable histograms;
};

Result<Tables> Tables::create(const std::string& directory, ParquetTables which) {
  const auto table = [&](const char* name, std::vector<Column> columns) {
    return ParquetTable::create(fmt::format("{}/{}.parquet", directory, name), std::move(columns));
  };
  auto functions = table(
      "functions",
      with_cpu_columns({text_column("session"), number_column("function"), text_column("name"),
                        optional_text("module"), optional_text("build_id"), number_column("offset"),
                        optional_text("file"), small_column("line"), number_column("calls"),
                        number_column("total_ns"), number_column("self_ns"),
                        number_column("longest_ns")}));
  if (!functions.ok()) return functions.error();
  auto threads = table(
      "threads", {text_column("session"), small_column("thread"), small_column("tid"),
                  text_column("name"), number_column("events"), number_column("lost_events")});
  if (!threads.ok()) return threads.error();
  std::optional<ParquetTable> calls;
  std::optional<ParquetTable> events;
  if (which == ParquetTables::kAll) {
    auto all_calls = table(
        "calls", with_cpu_columns(
                     {text_column("session"), small_column("thread"), number_column("seq"),
                      number_column("begin_ns"), number_column("end_ns"),
                      number_column("duration_ns"), number_column("self_ns"), id_column("function"),
                      optional_id("caller"), small_column("depth"), text_column("ended")}));
    if (!all_calls.ok()) return all_calls.error();
    auto all_events =
        table("events", {text_column("session"), small_column("thread"), number_column("seq"),
                         number_column("time_ns"), id_column("function"), text_column("kind")});
    if (!all_events.ok()) return all_events.error();
    calls = std::move(*all_calls);
    events = std::move(*all_events);
  }
  auto sessions =
      table("sessions",
            {text_column("session"), text_column("path"), text_column("process"),
             small_column("pid"), text_column("device"), text_column("device_model"),
             number_column("start_ns"), number_column("start_unix_ns"), number_column("first_ns"),
             number_column("last_ns"), optional_text("state"), number_column("events"),
             number_column("lost_events"), optional_text("missing")});
  if (!sessions.ok()) return sessions.error();
  const auto of_second = [&](const char* name, std::vector<Column> values) {
    std::vector<Column> columns = {text_column("session"),  small_column("thread"),
                                   id_column("function"),   optional_text("build_id"),
                                   number_column("offset"), number_column("second")};
    columns.insert(columns.end(), values.begin(), values.end());
    return table(name, std::move(columns));
  };
  auto seconds =
      of_second("function_seconds",
                with_cpu_columns({number_column("calls"), number_column("total_ns"),
                                  number_column("self_ns"), number_column("longest_ns")}));
  if (!seconds.ok()) return seconds.error();
  auto histograms =
      of_second("function_histograms", {small_column("bucket"), number_column("count")});
  if (!histograms.ok()) return histograms.error();
  return Tables{std::move(*functions), std::move(*threads),  std::move(calls),
                std::move(events),     std::move(*sessions), std::move(*seconds),
                std::move(*histograms)};
}

// Null where nothing is known.
void put_text(ParquetTable& table, std::string_view text) {
  if (text.empty()) {
    table.null();
  } else {
    table.text(text);
  }
}

class ParquetRows : public CaptureRows {
 public:
  explicit ParquetRows(Tables& tables) : tables_(tables) {}

  Status begin(const CaptureSession& session) override {
    of_ = &session;
    return {};
  }

  Status thread(const ThreadRow& row) override {
    ParquetTable& table = tables_.threads;
    table.text(of_->id);
    table.number(row.thread);
    table.number(row.tid);
    table.text(row.name);
    table.number(row.events);
    table.number(row.lost_events);
    return table.end_row();
  }

  Status call(const CallRow& row) override {
    if (!tables_.calls) return {};
    ParquetTable& table = *tables_.calls;
    table.text(of_->id);
    table.number(row.thread);
    table.number(row.seq);
    table.number(row.call.begin.ns);
    table.number(row.call.end.ns);
    table.number(row.call.total_ns);
    table.number(row.call.self_ns);
    table.number(row.function);
    if (row.caller) {
      table.number(*row.caller);
    } else {
      table.null();
    }
    table.number(row.call.depth);
    table.text(to_text(row.call.reason));
    put_cpu(table, calls::GroupTimes{1, row.call.total_ns, row.call.self_ns, row.waited});
    return table.end_row();
  }

  Status event(const EventRow& row) override {
    ParquetTable& table = *tables_.events;
    table.text(of_->id);
    table.number(row.thread);
    table.number(row.seq);
    table.number(row.time_ns);
    table.number(row.function);
    table.text(kind_text(row.kind));
    return table.end_row();
  }

  Status second(const SecondRow& row) override {
    const auto put_key = [&](ParquetTable& table) {
      table.text(of_->id);
      table.number(row.thread);
      table.number(row.function.function);
      put_text(table, row.function.build_id);
      table.number(row.function.offset);
      table.number(row.second);
    };
    put_key(tables_.seconds);
    tables_.seconds.number(row.times.calls);
    tables_.seconds.number(row.times.total_ns);
    tables_.seconds.number(row.times.self_ns);
    tables_.seconds.number(row.times.longest_ns);
    put_cpu(tables_.seconds, row.times);
    COLLECT_TRY(tables_.seconds.end_row());
    Status status;
    row.times.durations.for_each([&](uint32_t bucket, uint64_t count) {
      if (!status.ok()) return;
      put_key(tables_.histograms);
      tables_.histograms.number(bucket);
      tables_.histograms.number(count);
      status = tables_.histograms.end_row();
    });
    return status;
  }

  Status function(const FunctionLocation& place, const calls::FunctionTimes& times) override {
    const read::NameTable& names = of_->session.names;
    const read::SourceLocation* source = names.source_of(place.function);
    ParquetTable& table = tables_.functions;
    table.text(of_->id);
    table.number(place.function);
    table.text(names.name_of(place.function));
    put_text(table, place.module);
    put_text(table, place.build_id);
    table.number(place.offset);
    put_text(table, source == nullptr ? "" : source->file);
    table.number(source == nullptr ? 0 : source->line);
    table.number(times.calls);
    table.number(times.total_ns);
    table.number(times.self_ns);
    table.number(times.longest_ns);
    put_cpu(table, times);
    return table.end_row();
  }

  Status end(const SessionRow& row) override {
    const storage::SessionIdentity& identity = of_->session.manifest.identity;
    ParquetTable& table = tables_.sessions;
    table.text(of_->id);
    table.text(of_->session.trace.path);
    table.text(identity.process_name);
    table.number(identity.pid);
    table.text(identity.device_id);
    table.text(identity.device_model);
    table.number(identity.start_ns);
    table.number(identity.start_unix_ns);
    table.number(row.first_ns);
    table.number(row.last_ns);
    put_text(table, row.state);
    table.number(row.events);
    table.number(row.lost_events);
    put_text(table, row.missing);
    return table.end_row();
  }

 private:
  void put_cpu(ParquetTable& table, const auto& times) const {
    if (of_->has_switches()) {
      table.number(cpu_total_ns(times));
      table.number(cpu_self_ns(times));
    } else {
      table.null();
      table.null();
    }
  }

  Tables& tables_;
  const CaptureSession* of_ = nullptr;
};

Status fill(Tables& tables, ExportedSessions& sessions, convert::ConvertLog& log) {
  ParquetRows rows(tables);
  CaptureWalk walk(rows, tables.events ? WalkedRows::kAll : WalkedRows::kWithoutEvents, log);
  COLLECT_TRY(walk.run(sessions));
  for (ParquetTable* table : tables.all()) COLLECT_TRY(table->finish());
  log.count("events", walk.counts().events);
  log.count("calls", walk.counts().calls);
  log.count("functions", tables.functions.rows());
  const WalkCounts& counts = walk.counts();
  if (counts.lost_events != 0) log.count("lost_events", counts.lost_events);
  log.leave_out("returns without a call", counts.paired.lone_ends);
  log.leave_out("calls nested deeper than can be followed", counts.paired.too_deep);
  log.leave_out("detail records: registers and stack bytes have no table", counts.detail_records);
  return {};
}

}  // namespace

Status export_parquet(ExportedSessions& sessions, ParquetTables which, const std::string& directory,
                      const std::function<Status()>& check, convert::ConvertLog& log) {
  std::error_code error;
  if (std::filesystem::exists(directory, error) &&
      !std::filesystem::is_directory(directory, error)) {
    return Error{Code::kAlreadyExists,
                 directory + ": is a file, and tables of Parquet need a directory"};
  }
  const bool is_new = std::filesystem::create_directory(directory, error);
  if (error)
    return Error{Code::kIo,
                 fmt::format("{}: no directory can be made: {}", directory, error.message())};
  auto tables = Tables::create(directory, which);
  Status made = tables.ok() ? fill(*tables, sessions, log) : tables.error();
  if (made.ok()) made = check();
  if (made.ok()) {
    for (ParquetTable* table : tables->all()) {
      made = table->commit(log);
      if (!made.ok()) break;
    }
  }
  if (!made.ok() && is_new) std::filesystem::remove(directory, error);  // if nothing is in it
  return made;
}

}  // namespace collect::exports
