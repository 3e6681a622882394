// collectctl query
#include "daemon/ctl/convert/query.h"

#include <unistd.h>

#include <cstdlib>
#include <iostream>

#include "daemon/ctl/command_line/shared_options.h"
#include "daemon/ctl/commands/commands.h"
#include "daemon/ctl/record/program/program_paths.h"

namespace collect::ctl {
namespace {

struct QueryLine {
  QueryOptions query;
  std::string server;
  std::string database = "collect";
};

// In the words of ClickHouse; without escape sequences, which a terminal does not get from us.
const char* server_format(const std::string& form) {
  if (form == "csv") return "CSVWithNames";
  return form == "json" ? "JSONEachRow" : "PrettyCompactNoEscapes";
}

int query_server(const QueryLine& line, bool has_path) {
  const exports::ExportSelection& selection = line.query.selection;
  if (has_path || selection.is_part() || !selection.functions.empty()) {
    return Answer{false, std::cout, std::cerr}.refuse_briefly(
        {Code::kInvalidArgument,
         "--server asks about what was loaded: no PATH, --from, --until, --thread or --function"},
        kExitUsage);
  }
  return become_program(
      "collect-load",
      {"--server=" + line.server, "--database=" + line.database,
       std::string("--format=") + server_format(line.query.format), "--query=" + line.query.sql});
}

int query_captures(QueryLine& line) {
  const auto engine = find_program("duckdb");
  if (!engine.ok()) {
    const Error error{engine.code(),
                      "there is no duckdb here: install DuckDB's command line program "
                      "(duckdb.org), or read the tables of convert --to parquet with another"};
    return Answer{false, std::cout, std::cerr}.refuse(error, kExitUsage);
  }
  if (!has_capture(line.query.inputs, false)) return kExitUsage;
  line.query.engine = *engine;
  line.query.progress = is_terminal(STDERR_FILENO);
  return query(line.query, std::cout, std::cerr);
}

}  // namespace

void add_query(const CommandGroup& group) {
  const Command command = group.add(
      "query", "Answer a question in SQL about captures, by DuckDB or a ClickHouse server");
  const auto line = std::make_shared<QueryLine>();
  command.positional("SQL", line->query.sql, "The question").required();
  const Argument path =
      command.positional("PATH", line->query.inputs,
                         "Captures, or a directory that convert --to parquet made (default: your "
                         "newest recording)");
  add_selection(command, line->query.selection, "");
  command.word("--format", "FORM", &line->query.format, {"table", "csv", "json"},
               "What is printed (default table)");
  command.option("--server", "URL", &line->server,
                 "ClickHouse server, as http://host:8123 (default: COLLECT_CLICKHOUSE)");
  command.option("--database", "NAME", &line->database,
                 "Database of the server that has the tables (default collect)");
  command.run([line, path](const Invocation&) {
    const char* server = std::getenv("COLLECT_CLICKHOUSE");
    if (line->server.empty() && !path.is_given() && server != nullptr) line->server = server;
    return line->server.empty() ? query_captures(*line) : query_server(*line, path.is_given());
  });
  command.footer(
      "Tables: sessions, threads, functions, calls, events, function_seconds and\n"
      "function_histograms; TABLES.md has their columns. A capture is converted each time, into\n"
      "TMPDIR: for several questions convert it once. Exit code: that of duckdb, or 2 if it was\n"
      "not asked.\n"
      "\n"
      "With --server, or COLLECT_CLICKHOUSE and no PATH, the question goes to a ClickHouse\n"
      "server, about what collect-load brought there: WAREHOUSE.md has its tables. json is then\n"
      "an object a line. Exit code: 0 or 2.\n"
      "\n"
      "Examples:\n"
      "  collectctl query 'SELECT name, calls, self_ns FROM functions ORDER BY self_ns DESC LIMIT "
      "10'\n"
      "  collectctl convert PATH --to parquet -o tables; collectctl query 'FROM sessions' tables\n"
      "  collectctl query --server http://localhost:8123 'SELECT * FROM sessions'");
}

}  // namespace collect::ctl
