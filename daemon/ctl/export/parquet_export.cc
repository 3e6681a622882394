#include "daemon/ctl/export/parquet_export.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <vector>

#include "daemon/ctl/export/parquet_table.h"
#include "formats/calls/function_totals.h"
#include "formats/calls/sinks.h"
#include "formats/core/figures.h"
#include "formats/core/hex.h"
#include "storage/session_health.h"
#include "storage/trace/lod_files.h"

namespace collect::ctl {
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
Column id_column(const char* name) {
  return {name, Type::kUint64, Encoding::kRleDictionary};
}
Column optional_id(const char* name) {
  return {name, Type::kUint64, Encoding::kRleDictionary, true};
}
Column small_column(const char* name) {
  return {name, Type::kUint32, Encoding::kRleDictionary};
}

// The same for the parts of a session that several collectors stored.
std::string id_of(const ExportedSession& session) {
  const storage::SessionIdentity& identity = session.manifest.identity;
  const bool is_known =
      std::ranges::any_of(identity.process_id, [](uint8_t byte) { return byte != 0; });
  if (is_known) return hex_bytes(identity.process_id) + "-" + std::to_string(identity.recording);
  return session.trace.path;
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
  static Result<Tables> create(const std::string& directory);
  std::vector<ParquetTable*> all() { return {&functions, &threads, &calls, &events, &sessions}; }

  ParquetTable functions;
  ParquetTable threads;
  ParquetTable calls;
  ParquetTable events;
  ParquetTable sessions;
};

Result<Tables> Tables::create(const std::string& directory) {
  const auto table = [&](const char* name, std::vector<Column> columns) {
    return ParquetTable::create(directory + "/" + name + ".parquet", std::move(columns));
  };
  auto functions =
      table("functions",
            {text_column("session"), number_column("function"), text_column("name"),
             optional_text("module"), optional_text("build_id"), number_column("offset"),
             optional_text("file"), small_column("line"), number_column("calls"),
             number_column("total_ns"), number_column("self_ns"), number_column("longest_ns")});
  if (!functions.ok()) return functions.error();
  auto threads = table(
      "threads", {text_column("session"), small_column("thread"), small_column("tid"),
                  text_column("name"), number_column("events"), number_column("lost_events")});
  if (!threads.ok()) return threads.error();
  auto calls =
      table("calls", {text_column("session"), small_column("thread"), number_column("seq"),
                      number_column("begin_ns"), number_column("end_ns"),
                      number_column("duration_ns"), number_column("self_ns"), id_column("function"),
                      optional_id("caller"), small_column("depth"), text_column("ended")});
  if (!calls.ok()) return calls.error();
  auto events =
      table("events", {text_column("session"), small_column("thread"), number_column("seq"),
                       number_column("time_ns"), id_column("function"), text_column("kind")});
  if (!events.ok()) return events.error();
  auto sessions =
      table("sessions",
            {text_column("session"), text_column("path"), text_column("process"),
             small_column("pid"), text_column("device"), text_column("device_model"),
             number_column("start_ns"), number_column("start_unix_ns"), number_column("first_ns"),
             number_column("last_ns"), optional_text("state"), number_column("events"),
             number_column("lost_events"), optional_text("missing")});
  if (!sessions.ok()) return sessions.error();
  return Tables{std::move(*functions), std::move(*threads), std::move(*calls), std::move(*events),
                std::move(*sessions)};
}

// The agent's numbers of the records of a thread: those of the file, and what was lost before them.
class RecordNumbers {
 public:
  RecordNumbers(const std::vector<storage::Gap>& gaps, uint32_t thread) {
    std::map<uint64_t, uint64_t> lost;  // by the record behind it
    for (const storage::Gap& gap : gaps) {
      if (gap.thread == thread && gap.lane == Lane::kIndex) {
        lost[gap.before_seq] += gap.numbered_lost;
      }
    }
    uint64_t sum = 0;
    for (const auto& [before, count] : lost) gaps_.emplace_back(before, sum += count);
  }

  uint64_t of(uint64_t seq) const {
    if (gaps_.empty()) return seq;
    const auto behind =
        std::upper_bound(gaps_.begin(), gaps_.end(), seq,
                         [](uint64_t wanted, const auto& gap) { return wanted < gap.first; });
    return behind == gaps_.begin() ? seq : seq + std::prev(behind)->second;
  }

 private:
  std::vector<std::pair<uint64_t, uint64_t>> gaps_;  // from this record on so many are missing
};

// A thread's calls as rows, in the order in which they end.
class CallRows : public calls::CallSink {
 public:
  CallRows(ExportedSession& session, const std::string& id, uint32_t thread,
           const calls::FunctionSlots& slots, const RecordNumbers& numbers, ParquetTable& table)
      : session_(session),
        id_(id),
        thread_(thread),
        slots_(slots),
        numbers_(numbers),
        table_(table) {}

  void on_call_begin(const calls::Call& call) {
    open_.resize(call.depth);
    open_.push_back(call.slot);
  }
  void on_call_end(const calls::EndedCall& call) {
    const uint64_t function = slots_.function_of(call.slot);
    if (!status_.ok() || !session_.functions.wants(function)) return;
    table_.text(id_);
    table_.number(thread_);
    table_.number(call.begin.seq == calls::kNoEvent ? call.begin.seq : numbers_.of(call.begin.seq));
    table_.number(call.begin.ns);
    table_.number(call.end.ns);
    table_.number(call.total_ns);
    table_.number(call.self_ns);
    table_.number(function);
    if (call.depth != 0 && call.depth <= open_.size()) {
      table_.number(slots_.function_of(open_[call.depth - 1]));
    } else {
      table_.null();
    }
    table_.number(call.depth);
    table_.text(to_text(call.reason));
    status_ = table_.end_row();
  }
  const Status& status() const { return status_; }

 private:
  ExportedSession& session_;
  const std::string& id_;
  const uint32_t thread_;
  const calls::FunctionSlots& slots_;
  const RecordNumbers& numbers_;
  ParquetTable& table_;
  std::vector<uint32_t> open_;  // slots of the open calls, by depth
  Status status_;
};

class ParquetExport {
 public:
  ParquetExport(ExportedSessions& sessions, Tables& tables, convert::ConvertLog& log)
      : sessions_(sessions), tables_(tables), log_(log) {
    for (const auto& session : sessions) all_ += session->reader.threads().size();
  }

  Status run() {
    for (const auto& session : sessions_) COLLECT_TRY(add(*session));
    for (ParquetTable* table : tables_.all()) COLLECT_TRY(table->finish());
    log_.count("events", tables_.events.rows());
    log_.count("calls", tables_.calls.rows());
    log_.count("functions", tables_.functions.rows());
    if (lost_events_ != 0) log_.count("lost_events", lost_events_);
    log_.leave_out("returns without a call", counts_.lone_ends);
    log_.leave_out("calls nested deeper than can be followed", counts_.too_deep);
    log_.leave_out("detail records: registers and stack bytes have no table", detail_records_);
    return {};
  }

 private:
  Status add(ExportedSession& session) {
    const std::string id = id_of(session);
    calls::FunctionSlots slots;
    calls::FunctionTotals totals;
    for (const atf::SessionThread& thread : session.reader.threads()) {
      log_.progress(done_++, all_);
      if (thread.index) COLLECT_TRY(add(session, id, thread, slots, totals));
      session.drop_pages(thread.n);
    }
    COLLECT_TRY(add_functions(session, id, slots, totals));
    return add_session(session, id);
  }

  Status add(ExportedSession& session, const std::string& id, const atf::SessionThread& thread,
             calls::FunctionSlots& slots, calls::FunctionTotals& totals) {
    const RecordNumbers numbers(session.manifest.gaps, thread.n);
    std::vector<uint32_t> reasons;
    const auto gaps = session.gaps_of(thread.n, reasons);
    const auto stalls = session.stalls_of(thread.n);
    CallRows rows(session, id, thread.n, slots, numbers, tables_.calls);
    calls::Sinks<CallRows, calls::FunctionTotals> sink(rows, totals);
    calls::ThreadCalls<decltype(sink)> calls(slots, sink, stalls, session.window());
    trace::read_calls(session.trace.thread(thread.n), *thread.index, gaps, stalls, session.window(),
                      calls);
    COLLECT_TRY(rows.status());
    counts_.add(calls.counts());
    if (thread.detail) detail_records_ += thread.detail->size();
    return add_events(session, id, thread, numbers);
  }

  Status add_events(ExportedSession& session, const std::string& id,
                    const atf::SessionThread& thread, const RecordNumbers& numbers) {
    const calls::Window& window = session.window();
    ParquetTable& table = tables_.events;
    const uint64_t before = table.rows();
    Status status;
    thread.index->events(0, thread.index->size()).for_each([&](uint64_t seq, const auto& event) {
      if (!status.ok() || event.timestamp_ns < window.first_ns ||
          event.timestamp_ns > window.last_ns || !session.functions.wants(event.function_id)) {
        return;
      }
      table.text(id);
      table.number(thread.n);
      table.number(numbers.of(seq));
      table.number(event.timestamp_ns);
      table.number(event.function_id);
      table.text(kind_text(event.kind));
      status = table.end_row();
    });
    COLLECT_TRY(status);
    const trace::ManifestThread* said = session.manifest.thread(thread.n);
    const uint64_t lost = said == nullptr ? 0 : said->lost_events;
    lost_events_ += lost;
    tables_.threads.text(id);
    tables_.threads.number(thread.n);
    tables_.threads.number(thread.index->header().thread_id);
    tables_.threads.text(session.name_of_thread(thread.n));
    tables_.threads.number(table.rows() - before);
    tables_.threads.number(lost);
    return tables_.threads.end_row();
  }

  Status add_functions(ExportedSession& session, const std::string& id,
                       const calls::FunctionSlots& slots, const calls::FunctionTotals& totals) {
    std::map<uint32_t, const storage::ModuleInfo*> modules;
    for (const storage::ModuleInfo& module : session.manifest.modules) {
      modules[module.module_id] = &module;
    }
    ParquetTable& table = tables_.functions;
    for (uint32_t slot = 0; slot < totals.times().size(); ++slot) {
      const calls::FunctionTimes& times = totals.times()[slot];
      const uint64_t function = slots.function_of(slot);
      if (!times.is_seen() || !session.functions.wants(function)) continue;
      const auto module = modules.find(static_cast<uint32_t>(function >> 32));
      const trace::SourceLocation* source = session.names.source_of(function);
      table.text(id);
      table.number(function);
      table.text(session.names.name_of(function));
      put_text(table, module == modules.end() ? "" : module->second->path);
      put_text(table, module == modules.end() ? "" : hex_bytes(module->second->build_id));
      table.number(function & UINT32_MAX);
      put_text(table, source == nullptr ? "" : source->file);
      table.number(source == nullptr ? 0 : source->line);
      table.number(times.calls);
      table.number(times.total_ns);
      table.number(times.self_ns);
      table.number(times.longest_ns);
      COLLECT_TRY(table.end_row());
    }
    return {};
  }

  Status add_session(ExportedSession& session, const std::string& id) {
    const storage::Manifest& said = session.manifest;
    const auto health = session.manifest.health();
    const auto range = session.time_range({});
    ParquetTable& table = tables_.sessions;
    table.text(id);
    table.text(session.trace.path);
    table.text(said.identity.process_name);
    table.number(said.identity.pid);
    table.text(said.identity.device_id);
    table.text(said.identity.device_model);
    table.number(said.identity.start_ns);
    table.number(said.identity.start_unix_ns);
    table.number(range ? range->first_ns : 0);
    table.number(range ? range->last_ns : 0);
    put_text(table, health ? storage::session_state_name(health->state) : "");
    uint64_t events = 0;
    for (const atf::SessionThread& thread : session.reader.threads()) {
      if (thread.index) events += thread.index->size();
    }
    table.number(events);
    table.number(health ? health->lost_events : 0);
    put_text(table, health ? health->missing : "");
    return table.end_row();
  }

  // Null where nothing is known.
  static void put_text(ParquetTable& table, std::string_view text) {
    if (text.empty()) {
      table.null();
    } else {
      table.text(text);
    }
  }

  ExportedSessions& sessions_;
  Tables& tables_;
  convert::ConvertLog& log_;
  calls::ThreadCounts counts_;
  uint64_t lost_events_ = 0;
  uint64_t detail_records_ = 0;
  uint64_t done_ = 0;
  uint64_t all_ = 0;
};

}  // namespace

Status export_parquet(ExportedSessions& sessions, const std::string& directory,
                      const std::function<Status()>& check, convert::ConvertLog& log) {
  std::error_code error;
  if (std::filesystem::exists(directory, error) &&
      !std::filesystem::is_directory(directory, error)) {
    return Error{Code::kAlreadyExists,
                 directory + ": is a file, and tables of Parquet need a directory"};
  }
  const bool is_new = std::filesystem::create_directory(directory, error);
  if (error) return Error{Code::kIo, directory + ": no directory can be made: " + error.message()};
  auto tables = Tables::create(directory);
  Status made = tables.ok() ? ParquetExport(sessions, *tables, log).run() : tables.error();
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

}  // namespace collect::ctl
