// collect-load: its command line. `collectctl query --server` starts it, too.
#include <fmt/core.h>
#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdlib>
#include <iostream>

#include "daemon/ctl/terminal/json.h"
#include "daemon/ctl/terminal/terminal.h"
#include "daemon/warehouse/load_command.h"
#include "formats/core/threads.h"
#include "formats/core/version.h"
#include "storage/fs/leftovers.h"
#include "storage/fs/standard_output.h"
#include "storage/fs/standard_streams.h"

namespace collect::warehouse {
namespace {

constexpr char kServerVariable[] = "COLLECT_CLICKHOUSE";

constexpr char kFooter[] =
    "deploy/clickhouse/schema.sql makes the tables. User and password of the server are those of\n"
    "CLICKHOUSE_USER and CLICKHOUSE_PASSWORD. A bucket is that of AWS_ENDPOINT_URL_S3, AWS_REGION\n"
    "and the credentials that the tools of AWS use.\n"
    "\n"
    "It may be repeated, also after it was ended half way: what has been loaded is skipped.\n"
    "\n"
    "Exit code: 0 all is loaded, 1 something could not be loaded or a remark was printed, 2\n"
    "nothing was done or the server failed.\n"
    "\n"
    "Examples:\n"
    "  collect-load --server http://localhost:8123 ~/traces\n"
    "  collect-load --server http://localhost:8123 --events load s3://traces/v1/";

void add_options(CLI::App& app, LoadArguments& load) {
  app.add_option("PATH", load.paths,
                 "Sessions, directories above sessions, or s3://BUCKET/PREFIX; parts of one "
                 "session are merged, so name them together");
  app.add_option("--server", load.server,
                 "ClickHouse server, as http://host:8123 (default: COLLECT_CLICKHOUSE)")
      ->type_name("URL");
  app.add_option("--database", load.database,
                 "Database of the server that has the tables (default collect)")
      ->type_name("NAME");
  app.add_option("--events", load.events,
                 "Events: load them, reference them to be asked in place (the default), or none; "
                 "what is counted of them is always loaded")
      ->type_name("HOW")
      ->check(CLI::IsMember({"load", "reference", "none"}));
  app.add_flag("--again", load.again, "Also what has been loaded before");
  app.add_option("--query", load.query, "Load nothing: answer this question in SQL")
      ->type_name("SQL");
  app.add_option("--format", load.format, "Format of that answer, as ClickHouse names it")
      ->type_name("FORMAT");
  app.add_flag("--json", load.json, "Print JSON instead of tables");
}

int serve(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  storage::remove_leftovers_on_signals();
  ctl::PrintableStream out(std::cout), err(std::cerr);
  LoadArguments load;
  CLI::App app("Load captures into the tables of ClickHouse", kLoaderName);
  app.set_help_flag("-h,--help", "Print this help");
  app.set_version_flag("-V,--version", fmt::format("{} {}", kLoaderName, kVersion));
  add_options(app, load);
  app.footer(kFooter);
  const auto refuse = [&load](const std::string& sentence) {
    return ctl::Answer{load.json, std::cout, std::cerr, kLoaderName}.refuse_briefly(
        {Code::kInvalidArgument, sentence + "; see collect-load --help"}, 2);
  };
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    return refuse(error.what());
  }
  const char* server = std::getenv(kServerVariable);
  if (load.server.empty() && server != nullptr) load.server = server;
  if (load.server.empty()) return refuse("name a server: --server URL or COLLECT_CLICKHOUSE");
  if (!load.query.empty()) return query(load, std::cout, std::cerr);
  if (load.paths.empty()) return refuse("PATH is required");
  return collect::warehouse::load(load, std::cout, std::cerr);
}

}  // namespace
}  // namespace collect::warehouse

int main(int argc, char** argv) {
  collect::storage::hold_standard_streams();
  collect::storage::StandardOutput output(std::cout);
  int code = 0;
  const collect::Status done =
      collect::contain([&] { code = collect::warehouse::serve(argc, argv); });
  if (!done.ok()) {
    std::cerr << "collect-load: " << to_string(done.error()) << "\n";
    code = 1;
  }
  return output.finish("collect-load", code);
}
