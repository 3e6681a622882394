// Captures as something else: `convert`, and `query`.
#include <unistd.h>

#include <iostream>

#include "daemon/ctl/command_line/command_line.h"
#include "daemon/ctl/run/program_paths.h"
#include "daemon/ctl/terminal/json.h"

namespace collect::ctl {
namespace {

std::vector<std::pair<std::string, Target>> target_words() {
  std::vector<std::pair<std::string, Target>> words;
  for_each_target([&](Target target) { words.emplace_back(name_of(target), target); });
  return words;
}

// In the words of ClickHouse; without escape sequences, which a terminal does not get from us.
const char* server_format(const std::string& form) {
  if (form == "csv") return "CSVWithNames";
  return form == "json" ? "JSONEachRow" : "PrettyCompactNoEscapes";
}

int query_server(Line& line, bool has_path) {
  const ExportSelection& selection = line.query.selection;
  if (has_path || selection.is_part() || !selection.functions.empty()) {
    return Answer{false, std::cout, std::cerr}.refuse_briefly(
        {Code::kInvalidArgument,
         "--server asks about what was loaded: no PATH, --from, --until, --thread or --function"},
        kExitUsage);
  }
  line.warehouse.command = "query";
  line.warehouse.format = server_format(line.query.format);
  line.warehouse.words = {line.query.sql};
  return run_warehouse(line.warehouse);
}

}  // namespace

void add_convert(CLI::App& app, Line& line) {
  CLI::App* command = add_command(app, "convert", "Convert a capture into another format");
  command->add_option(
      "INPUT", line.convert.inputs,
      "A session, or a file of any format; several: the RTC containers of one session, or for "
      "viewers several captures on one time line (default: your newest recording)");
  command->add_option("--to", line.convert.to, "Format of the output")
      ->required()
      ->type_name("FORMAT")
      ->transform(one_of(target_words()));
  command
      ->add_option("-o,--output", line.convert.output,
                   "File to write; for atf and parquet, a directory")
      ->type_name("FILE")
      ->required();
  command
      ->add_option(
          "--atf-version", line.convert.atf_version,
          "Version of the trace files that --to atf makes: 1 or 2 (default: that of the input, "
          "of other formats 2)")
      ->type_name("VERSION")
      ->check(CLI::IsMember({1, 2}));
  command
      ->add_option("--wtf-events", line.convert.wtf_json.events,
                   "How wtf-json holds events: base64, which the published viewer reads, or json, "
                   "which people can read and the viewer ignores (default base64)")
      ->type_name("FORM")
      ->transform(one_of<wtf::JsonEvents>(
          {{"base64", wtf::JsonEvents::kBase64}, {"json", wtf::JsonEvents::kEvents}}));
  command
      ->add_option("--wtf-mode", line.convert.wtf_json.mode,
                   "Mode of wtf-json: complete, one document, or partial, one line for each chunk, "
                   "which the published viewer refuses (default complete)")
      ->type_name("MODE")
      ->transform(one_of<wtf::JsonMode>(
          {{"complete", wtf::JsonMode::kComplete}, {"partial", wtf::JsonMode::kPartial}}));
  add_selection(command, line.convert.selection, "For viewers");
  command->add_flag("--force", line.convert.force, "Replace the output file");
  command->add_flag("--strict", line.convert.strict,
                    "Exit with 1 also if the format cannot hold something");
  add_json(command, line);
  command->callback([&line] {
    line.command = [&line] {
      const Answer answer{line.json, std::cout, std::cerr};
      if (line.convert.atf_version && line.convert.to != Target::kAtf) {
        return answer.refuse_briefly({Code::kInvalidArgument, "--atf-version is for --to atf"},
                                     kExitUsage);
      }
      const ExportSelection& selection = line.convert.selection;
      if (!is_view(line.convert.to) && (selection.is_part() || !selection.functions.empty())) {
        return answer.refuse_briefly(
            {Code::kInvalidArgument,
             "--from, --until, --thread and --function are for --to " + view_words()},
            kExitUsage);
      }
      if (!has_capture(line.convert.inputs, line.json)) return kExitUsage;
      line.convert.json = line.json;
      line.convert.progress = is_terminal(STDERR_FILENO);
      return convert(line.convert, std::cout, std::cerr);
    };
  });
  command->footer(
      "Exit code 1: converted, but something is missing from the input; a message says what.\n"
      "To convert a collector's session to another ATF version: collectctl convert-session.\n"
      "Example: collectctl convert traces/session_…/pid_… --to wtf -o app.wtf-trace");
}

void add_query(CLI::App& app, Line& line) {
  CLI::App* command = add_command(
      app, "query", "Answer a question in SQL about captures, by DuckDB or a ClickHouse server");
  command->add_option("SQL", line.query.sql, "The question")->required();
  CLI::Option* path =
      command->add_option("PATH", line.query.inputs,
                          "Captures, or a directory that convert --to parquet made (default: your "
                          "newest recording)");
  add_selection(command, line.query.selection, "");
  command->add_option("--format", line.query.format, "What is printed (default table)")
      ->type_name("FORM")
      ->check(CLI::IsMember({"table", "csv", "json"}));
  line.warehouse.database = "collect";
  add_server(command, line.warehouse);
  command->callback([&line, path] {
    line.command = [&line, path] {
      if (line.warehouse.server.empty() && path->count() == 0) {
        line.warehouse.server = server_of_environment();
      }
      if (!line.warehouse.server.empty()) return query_server(line, path->count() != 0);
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
    };
  });
  command->footer(
      "Tables: sessions, threads, functions, calls, events, function_seconds and\n"
      "function_histograms; TABLES.md has their columns. A capture is converted each time, into\n"
      "TMPDIR: for several questions convert it once. Exit code: that of duckdb, or 2 if it was "
      "not\n"
      "asked.\n"
      "\n"
      "With --server, or COLLECT_CLICKHOUSE and no PATH, the question goes to a ClickHouse "
      "server,\n"
      "about what collectctl load brought there: WAREHOUSE.md has its tables. json is then an\n"
      "object a line. Exit code: 0 or 2.\n"
      "\n"
      "Examples:\n"
      "  collectctl query 'SELECT name, calls, self_ns FROM functions ORDER BY self_ns DESC LIMIT "
      "10'\n"
      "  collectctl convert PATH --to parquet -o tables; collectctl query 'FROM sessions' tables\n"
      "  collectctl query --server http://localhost:8123 'SELECT * FROM sessions'");
}

}  // namespace collect::ctl
