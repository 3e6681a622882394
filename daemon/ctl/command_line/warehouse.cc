// What collectctl asks of a ClickHouse server: `load`, and `query --server`. collect-load does it.
#include <cstdlib>
#include <iostream>

#include "daemon/ctl/command_line/command_line.h"
#include "daemon/ctl/terminal/json.h"

namespace collect::ctl {
namespace {

constexpr char kServerVariable[] = "COLLECT_CLICKHOUSE";

}  // namespace

void add_server(CLI::App* command, warehouse::LoadArguments& warehouse) {
  command
      ->add_option("--server", warehouse.server,
                   "ClickHouse server, as http://host:8123 (default: COLLECT_CLICKHOUSE)")
      ->type_name("URL");
  command
      ->add_option("--database", warehouse.database,
                   "Database of the server that has the tables (default collect)")
      ->type_name("NAME");
}

std::string server_of_environment() {
  const char* server = std::getenv(kServerVariable);
  return server == nullptr ? "" : server;
}

int run_warehouse(const warehouse::LoadArguments& arguments) {
  return become_program("collect-load", arguments.to_words());
}

void add_load(CLI::App& app, Line& line) {
  CLI::App* command = add_command(app, "load", "Load captures into the tables of ClickHouse");
  warehouse::LoadArguments& load = line.warehouse;
  load.database = "collect";
  load.events = "reference";
  command
      ->add_option("PATH", load.words,
                   "Sessions, directories above sessions, or s3://BUCKET/PREFIX; parts of one "
                   "session are merged, so name them together")
      ->required();
  add_server(command, load);
  command
      ->add_option("--events", load.events,
                   "Events: load them, reference them to be asked in place (the default), or none; "
                   "what is counted of them is always loaded")
      ->type_name("HOW")
      ->check(CLI::IsMember({"load", "reference", "none"}));
  command->add_flag_callback(
      "--again", [&load] { load.again = "again"; }, "Also what has been loaded before");
  add_json(command, line);
  command->callback([&line] {
    line.command = [&line] {
      warehouse::LoadArguments& wanted = line.warehouse;
      wanted.command = "load";
      wanted.json = line.json ? "json" : "";
      if (wanted.server.empty()) wanted.server = server_of_environment();
      if (wanted.server.empty()) {
        return Answer{line.json, std::cout, std::cerr}.refuse_briefly(
            {Code::kInvalidArgument, "which server? --server URL or COLLECT_CLICKHOUSE says it"},
            kExitUsage);
      }
      return run_warehouse(wanted);
    };
  });
  command->footer(
      "deploy/clickhouse/schema.sql makes the tables. User and password of the server are those "
      "of\n"
      "CLICKHOUSE_USER and CLICKHOUSE_PASSWORD. A bucket is that of AWS_ENDPOINT_URL_S3, "
      "AWS_REGION\n"
      "and the credentials that the tools of AWS use.\n"
      "\n"
      "It may be repeated, also after it was ended half way: what has been loaded is skipped.\n"
      "\n"
      "Exit code: 0 all is loaded, 1 something could not be loaded or a remark was printed, 2\n"
      "nothing was done or the server failed.\n"
      "\n"
      "Examples:\n"
      "  collectctl load --server http://localhost:8123 ~/traces\n"
      "  collectctl load --server http://localhost:8123 --events load s3://traces/v1/");
}

}  // namespace collect::ctl
