// The commands that work on files alone, as the command line knows them.
#include <sys/ioctl.h>
#include <unistd.h>

#include <cctype>
#include <cstdlib>
#include <iostream>
#include <type_traits>
#include <utility>
#include <vector>

#include "daemon/ctl/command_line/command_line.h"
#include "daemon/ctl/command_line/newest_capture.h"
#include "daemon/ctl/run/program_paths.h"
#include "daemon/ctl/terminal/json.h"
#include "storage/model/thread_pattern.h"

namespace collect::ctl {

CLI::Validator whole_number() {
  return CLI::Validator(
      [](std::string& text) {
        const bool is_one =
            !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
        return is_one ? std::string() : text + " is not a whole number";
      },
      "");
}

CLI::Validator thread_check() {
  return CLI::Validator(
      [](std::string& word) {
        const auto pattern = storage::ThreadPattern::parse(word);
        return pattern.ok() ? std::string() : pattern.error().message;
      },
      "", "thread");
}

CLI::Validator moment_check() {
  return CLI::Validator(
      [](std::string& word) {
        const auto moment = parse_moment(word, {});
        const bool is_one = moment.ok() || moment.code() == Code::kNotFound;
        return is_one ? std::string() : moment.error().message;
      },
      "", "time");
}

bool is_terminal(int fd) {
  const char* const term = std::getenv("TERM");
  return ::isatty(fd) == 1 && (term == nullptr || std::string_view(term) != "dumb");
}

size_t terminal_columns() {
  winsize size{};
  if (::isatty(STDOUT_FILENO) != 1 || ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return 0;
  return size.ws_col;
}

void add_color(CLI::App* command, Line& line) {
  command
      ->add_option("--color", line.color,
                   "When to colour: auto, on a terminal unless NO_COLOR or TERM=dumb says "
                   "otherwise (the default), always or never")
      ->type_name("WHEN")
      ->transform(one_of<ColorChoice>({{"auto", ColorChoice::kAuto},
                                       {"always", ColorChoice::kOn},
                                       {"never", ColorChoice::kOff}}));
}

CLI::App* add_command(CLI::App& app, const char* name, const char* what) {
  CLI::App* command = app.add_subcommand(name, what);
  command->set_help_flag("-h,--help", "Print this help");
  command->footer("");  // not the one of the whole program
  return command;
}

void add_json(CLI::App* command, Line& line) {
  command->add_flag("--json", line.json, "Print JSON instead of tables");
}

bool has_capture(std::string& path, bool json) {
  if (!path.empty()) return true;
  Result<std::string> newest = newest_capture(std::cerr);
  if (newest.ok()) {
    path = std::move(*newest);
    return true;
  }
  Answer{json, std::cout, std::cerr}.refuse_briefly(newest.error(), kExitUsage);
  return false;
}

bool has_capture(std::vector<std::string>& paths, bool json) {
  if (!paths.empty()) return true;
  paths.emplace_back();
  return has_capture(paths.front(), json);
}

namespace {

constexpr char kFromHelp[] =
    "Only from this time on: 1ms or 2.5s since the start, a time of day such as 14:03:05.250, or a "
    "number of ns as dump --json prints them (of several captures: since the epoch)";
constexpr char kUntilHelp[] = "Only up to this time, the same";

// `path` is one of the options: a path, or a list of them.
template <class Path>
void add_path(CLI::App* command, Path& path) {
  command->add_option("PATH", path,
                      "A session, one thread or one file of it (default: your newest recording)");
}

template <class Options, class Path>
CLI::App* add_offline(CLI::App& app, Line& line, Options& options, Path& path, const char* name,
                      const char* what, int (*run)(const Options&, std::ostream&, std::ostream&)) {
  CLI::App* command = add_command(app, name, what);
  add_path(command, path);
  add_json(command, line);
  if constexpr (requires { options.color; }) add_color(command, line);
  command->callback([&line, &options, &path, run] {
    line.command = [&line, &options, &path, run] {
      if (!has_capture(path, line.json)) return kExitUsage;
      options.json = line.json;
      if constexpr (requires { options.color; }) {
        options.color = !line.json && wants_color(line.color, ::isatty(STDOUT_FILENO) == 1,
                                                  std::getenv("NO_COLOR"), std::getenv("TERM"));
      }
      if constexpr (requires { options.columns; }) options.columns = terminal_columns();
      options.progress = is_terminal(STDERR_FILENO);
      // Events on the same terminal say by themselves how far they are.
      if constexpr (std::is_same_v<Options, DumpOptions>) {
        options.progress = options.progress && !is_terminal(STDOUT_FILENO);
      }
      return run(options, std::cout, std::cerr);
    };
  });
  return command;
}

void add_open(CLI::App& app, Line& line) {
  OpenOptions& open = line.open;
  CLI::App* command =
      add_command(app, "open", "Show a capture in the browser: flame graph, functions, time line");
  add_path(command, open.page.inputs);
  command
      ->add_option("-o,--output", open.page.output,
                   "File for the page (default: one in the user's cache directory)")
      ->type_name("FILE");
  command->add_flag("--force", open.page.force, "Replace the output file");
  add_selection(command, open.page.selection, "");
  command->add_flag("--no-browser", open.no_browser, "Only make the page, and print its address");
  command->callback([&line, &open] {
    line.command = [&open] {
      if (!has_capture(open.page.inputs, false)) return kExitUsage;
      open.page.progress = is_terminal(STDERR_FILENO);
      return open_page(open, std::cout, std::cerr);
    };
  });
  command->footer(
      "Several captures lie on one time line. The page is one file that loads nothing else.\n"
      "BROWSER is the program that shows it (default: the desktop's).\n"
      "Exit code 1: no browser could be started; the page is there.\n"
      "Example: collectctl run -- ./app && collectctl open");
}

void add_merge(CLI::App& app, Line& line) {
  CLI::App* command =
      add_command(app, "merge", "Join what several collectors stored of the same recordings");
  command
      ->add_option("PATH", line.merge.inputs,
                   "Sessions, or directories above sessions: all below them")
      ->required();
  command->add_option("-o,--output", line.merge.output, "Directory that the sessions are made in")
      ->type_name("DIRECTORY")
      ->required();
  add_json(command, line);
  command->callback([&line] {
    line.command = [&line] {
      line.merge.json = line.json;
      line.merge.progress = is_terminal(STDERR_FILENO);
      return merge(line.merge, std::cout, std::cerr);
    };
  });
  command->footer(
      "An agent with several collectors (COLLECT_CONNECT=A,B) leaves a part of its session at "
      "each\n"
      "that it used. Exit code 1: merged, but some records are in none of the parts; a message "
      "says\n"
      "which.\n"
      "Example: collectctl merge collector-a/traces collector-b/traces -o merged");
}

// Of files here, or of all that a URL of a store means.
int verify_path(const VerifyOptions& options, std::ostream& out, std::ostream& err) {
  if (!upload::is_store_url(options.path)) return verify(options, out, err);
  upload::StoreRequest request;
  request.want = upload::StoreWant::kVerify;
  request.location.url = options.path;
  request.strict = options.strict;
  request.allow_incomplete = options.allow_incomplete;
  return become_store_program(std::move(request), options.json);
}

void add_recover(CLI::App& app, Line& line) {
  CLI::App* command =
      add_command(app, "recover", "Repair a cut off or damaged capture, as far as it can be read");
  command
      ->add_option("PATH", line.recover.path,
                   "An unsealed session (sealed in place), or a file of any other format")
      ->required();
  command
      ->add_option("-o,--output", line.recover.output,
                   "File for the repaired capture (not for a session)")
      ->type_name("FILE");
  command->add_flag("--force", line.recover.force, "Replace the output file");
  add_json(command, line);
  command->callback([&line] {
    line.command = [&line] {
      line.recover.json = line.json;
      line.recover.progress = is_terminal(STDERR_FILENO);
      return recover(line.recover, std::cout, std::cerr);
    };
  });
}

void add_symbolize(CLI::App& app, Line& line) {
  CLI::App* command = add_command(
      app, "symbolize", "Name the functions of a sealed session from files with the same build id");
  command->add_option("PATH", line.symbolize.path,
                      "A session; the names are written into its manifest (default: your newest "
                      "recording)");
  command
      ->add_option("--symbols", line.symbolize.directories,
                   "Directory with unstripped files or dSYMs; may be repeated")
      ->type_name("DIRECTORY")
      ->allow_extra_args(false);
  command->add_flag("--debuginfod", line.asks_debuginfod,
                    "Ask the servers of DEBUGINFOD_URLS for files that are not here");
  add_json(command, line);
  command->callback([&line] {
    line.command = [&line] {
      if (!has_capture(line.symbolize.path, line.json)) return kExitUsage;
      line.symbolize.json = line.json;
      if (line.asks_debuginfod) {
        const auto client = find_program("debuginfod-find");
        if (!client.ok()) {
          const Error error{client.code(), "--debuginfod: no debuginfod-find (package debuginfod)"};
          return Answer{line.json, std::cout, std::cerr}.refuse(error, 2);
        }
        line.symbolize.debuginfod_client = *client;
      }
      return symbolize(line.symbolize, std::cout, std::cerr);
    };
  });
  command->footer(
      "The paths of the modules, and /usr/lib/debug, are searched too.\n"
      "Exit code 1: some modules have no names; a message says why.\n"
      "Example: collectctl symbolize --symbols app/build/intermediates traces/session_…/pid_…");
}

void add_report_choices(CLI::App* reporter, Line& line) {
  using By = ReportBy;
  reporter->add_option("--by", line.report.by, "What a row is (default function)")
      ->type_name("KIND")
      ->transform(one_of<By>({{"function", By::kFunction},
                              {"thread", By::kThread},
                              {"module", By::kModule},
                              {"caller", By::kCaller}}));
  reporter
      ->add_option("--graph", line.report.graph,
                   "Instead: on which paths this function was called, and what it called")
      ->type_name("FUNCTION");
  reporter->add_option("--diff", line.report.other, "What is different in this other capture")
      ->type_name("PATH");
  reporter->add_option("--from", line.report.when.from, kFromHelp)
      ->type_name("TIME")
      ->check(moment_check());
  reporter->add_option("--to", line.report.when.until, kUntilHelp)
      ->type_name("TIME")
      ->check(moment_check());
  reporter->add_flag("--percentiles", line.report.percentiles,
                     "With columns of how long the calls took: p50, p95, p99");
  reporter->add_flag("--lines", line.report.lines,
                     "With the file and line where each function begins, where they are known");
  reporter->footer(
      "Percent are of the time that all threads ran together.\n"
      "Example: collectctl report OLD --diff NEW --sort self --limit 20");
}

}  // namespace

void add_selection(CLI::App* command, ExportSelection& selection, const std::string& when) {
  const auto help = [&when](const std::string& text) {
    return when.empty() ? text
                        : when + ": " + static_cast<char>(std::tolower(text[0])) + text.substr(1);
  };
  command->add_option("--from", selection.when.from, help(kFromHelp))
      ->type_name("TIME")
      ->check(moment_check());
  command->add_option("--until", selection.when.until, help(kUntilHelp))
      ->type_name("TIME")
      ->check(moment_check());
  command->add_option("--thread", selection.threads, help(kThreadHelp))
      ->type_name("THREAD")
      ->check(thread_check())
      ->allow_extra_args(false);
  command->add_option("--function", selection.functions, help(kFunctionHelp))
      ->type_name("FUNCTION")
      ->allow_extra_args(false);
}

void add_file_commands(CLI::App& app, Line& line) {
  add_offline(app, line, line.inspect, line.inspect.path, "inspect",
              "Show what a file or session is, and its status", inspect);
  CLI::App* verifier = add_offline(app, line, line.verify, line.verify.path, "verify",
                                   "Run every check; exit with 1 if one fails", verify_path);
  verifier->add_flag("--strict", line.verify.strict, "Treat warnings as findings");
  verifier->add_flag("--allow-incomplete", line.verify.allow_incomplete,
                     "Accept what is not complete, if what is there is valid");

  verifier->footer(
      "s3://BUCKET, or the URL of one session as collectctl sessions --store lists it, checks\n"
      "what is in a store; see collectctl upload --help.");

  CLI::App* dumper =
      add_offline(app, line, line.dump, line.dump.paths, "dump", "Print the events", dump);
  dumper->add_flag(
      "--merged", line.dump.merged,
      "Print in time order across threads, and across sessions on the collector's clock");
  dumper->add_flag("--detail", line.dump.detail, "Print registers and stack bytes too");
  dumper->add_option("--thread", line.dump.threads, kThreadHelp)
      ->type_name("THREAD")
      ->check(thread_check())
      ->allow_extra_args(false);
  dumper->add_option("--from", line.dump.when.from, kFromHelp)
      ->type_name("TIME")
      ->check(moment_check());
  dumper->add_option("--to", line.dump.when.until, kUntilHelp)
      ->type_name("TIME")
      ->check(moment_check());
  dumper->add_option("--function", line.dump.functions, kFunctionHelp)
      ->type_name("FUNCTION")
      ->allow_extra_args(false);
  dumper->add_option("--limit", line.dump.limit, "Print at most this many events")
      ->type_name("N")
      ->check(whole_number());
  dumper->footer(
      "With --merged, several sessions share one time line, for example of a phone and a server.\n"
      "Example: collectctl dump --merged --function 'parse_*' --json PATH | jq .");

  add_open(app, line);
  add_convert(app, line);
  add_query(app, line);
  add_load(app, line);
  add_merge(app, line);
  add_upload(app, line);
  add_recover(app, line);
  add_plan(app, line);
  add_symbolize(app, line);
  CLI::App* reporter =
      add_offline(app, line, line.report, line.report.path, "report",
                  "Show calls, total and self time of each function, without stalls", report);
  add_report_choices(reporter, line);
  reporter->add_option("--sort", line.report.sort, "Column to sort by (default total)")
      ->type_name("COLUMN")
      ->transform(one_of<ReportSort>({{"total", ReportSort::kTotal},
                                      {"self", ReportSort::kSelf},
                                      {"calls", ReportSort::kCalls},
                                      {"name", ReportSort::kName}}));
  reporter->add_option("--limit", line.report.limit, "Print at most this many rows")
      ->type_name("N")
      ->check(whole_number());
  reporter->add_option("--thread", line.report.threads, kThreadHelp)
      ->type_name("THREAD")
      ->check(thread_check())
      ->allow_extra_args(false);
}

}  // namespace collect::ctl
