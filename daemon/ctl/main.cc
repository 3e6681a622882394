// collectctl: the command line. Options to option structs, and exit codes; the commands themselves
// are in run_command.h and online_commands.h; those for files are declared in file_command_line.cc.
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include "daemon/ctl/client.h"
#include "daemon/ctl/command_line.h"
#include "daemon/ctl/terminal.h"
#include "daemon/ctl/text.h"
#include "storage/standard_streams.h"

namespace collect::ctl {
namespace {

constexpr const char* kSummary =
    "collectctl records every function call of a program, and reads what was recorded.\n"
    "Build the program with -finstrument-functions, then: collectctl run -- ./program";

constexpr const char* kFooter =
    "Examples:\n"
    "  collectctl run -- ./app --its --own options\n"
    "  collectctl detail start --function 'parse_*' --duration 5s\n"
    "  collectctl watch\n"
    "  collectctl report ada_traces/session_20250101_120000/pid_4711\n"
    "\n"
    "Exit codes: 0 done, 1 it failed, 2 wrong usage. run has its own: see collectctl run --help.\n"
    "COLLECT_CONTROL is the default of --control, COLLECT_CONTROL_TLS_CA, _TLS_CERTIFICATE,\n"
    "_TLS_KEY, _TLS_NAME and _TOKEN_FILE are those of --tls-ca and so on. Without both it is\n"
    "127.0.0.1:7711 where you or root listen, else /run/collectord/control.sock.";

constexpr const char* kRunFooter =
    "A collector that runs at --control (default as in collectctl --help) is used. When none\n"
    "answers there, or with -o, run starts one of its own for this run. With -o, --control says\n"
    "where that one listens; otherwise a --control at which nobody answers is an error.\n"
    "\n"
    "The program gets the agent by LD_PRELOAD and COLLECT_* variables, which other COLLECT_*\n"
    "variables of yours join. Its standard streams and its signals are its own.\n"
    "\n"
    "Exit code: the program's own, 128 + N when signal N ended it, 127 when there is no such\n"
    "program, 126 when it cannot be executed, 125 when collectctl, or storing a session, failed.\n"
    "\n"
    "Examples:\n"
    "  collectctl run -o /var/tmp/traces --full wait -- ctest --output-on-failure\n"
    "  collectctl run --detail armed -- ./server    then, at the address that run prints:\n"
    "  collectctl --control ADDR detail start --pre-roll 2s --duration 5s";

Online online(const Line& line) {
  const char* variable = std::getenv("COLLECT_CONTROL");
  ControlTarget control = line.control;
  if (control.address.empty()) {
    control.address = variable != nullptr ? variable : default_control_address();
  }
  add_from_environment(control);
  return {control, line.json, is_terminal(STDOUT_FILENO), std::cout, std::cerr};
}

CLI::Validator duration_check() {
  return CLI::Validator(
      [](std::string& text) {
        const auto parsed = parse_duration(text);
        return parsed.ok() ? std::string() : parsed.error().message;
      },
      "", "duration");
}

std::chrono::nanoseconds duration_of(const std::string& text) {
  return text.empty() ? std::chrono::nanoseconds(0) : *parse_duration(text);
}

// Where the collector is and what is shown there: before the command or behind it.
void add_control(CLI::App& app, ControlTarget& control) {
  const auto add = [&app](const char* flag, std::string& field, const char* value,
                          const char* what) {
    app.add_option(flag, field, what)->type_name(value)->group("Where the collector is");
  };
  add("--control", control.address, "ADDRESS",
      "Address of the collector: host:port or unix:/path; the default stands below");
  add("--tls-ca", control.tls_ca, "FILE",
      "Speak TLS; PEM file of who signed the collector's certificate");
  add("--tls-certificate", control.tls_certificate, "FILE",
      "PEM file with our own certificate, where one is asked for");
  add("--tls-key", control.tls_key, "FILE", "PEM file with the key of --tls-certificate");
  add("--tls-name", control.tls_name, "NAME",
      "Name in the collector's certificate, if not that of its address");
  add("--token-file", control.token_file, "FILE", "File with the token to show");
}

CLI::App* add_online(CLI::App& app, Line& line, const char* name, const char* what,
                     std::function<int(const Online&)> run) {
  CLI::App* command = add_command(app, name, what);
  add_control(*command, line.control);
  add_json(command, line);
  command->callback(
      [&line, run = std::move(run)] { line.command = [&line, run] { return run(online(line)); }; });
  return command;
}

CLI::App* add_run(CLI::App& app, Line& line) {
  CLI::App* command = add_command(app, "run", "Run a program and record it");
  RunOptions& run = line.run;
  // For --help alone: split_off_program() takes them before anything is parsed.
  command->add_option("PROGRAM", run.command,
                      "What to run, with its own arguments; -- may stand in front of it");
  command
      ->add_option("-o,--output", run.root,
                   "Directory for the sessions (default: ada_traces, or the running collector's)")
      ->type_name("DIRECTORY");
  command
      ->add_option("--detail", run.agent.detail,
                   "Registers and stack bytes of each call: off, armed (kept in the ring for a "
                   "later detail start --pre-roll), on")
      ->type_name("MODE")
      ->check(CLI::IsMember({"off", "armed", "on"}));
  command
      ->add_option("--full", run.agent.full,
                   "When the ring is full: drop the new event and count it, overwrite the oldest, "
                   "or wait")
      ->type_name("POLICY")
      ->check(CLI::IsMember({"drop", "overwrite", "wait"}));
  command
      ->add_option("--drain", run.agent.drain,
                   "What ships the events: a thread of the program, or a process of its own, so "
                   "that a crash loses nothing")
      ->type_name("DRAIN")
      ->check(CLI::IsMember({"thread", "process"}));
  command
      ->add_option("--buffer", run.agent.buffer_mb,
                   "Memory for rings in each process, in MB: 1 to 16384 (default 64)")
      ->type_name("MB")
      ->check(CLI::Range(1, 16 * 1024).description(""));
  command->add_option("--atf-version", run.agent.atf_version, "Version of the trace files: 1 or 2")
      ->type_name("VERSION")
      ->check(CLI::IsMember({1, 2}));
  add_control(*command, line.control);
  command->add_flag("-q,--quiet", run.quiet, "Say nothing unless something is wrong");
  command->add_flag("--json", line.json, "The summary as one line of JSON on standard error");
  command->footer(kRunFooter);
  command->callback([&line] {
    line.command = [&line] {
      const char* variable = std::getenv("COLLECT_CONTROL");
      line.run.control = line.control;
      if (line.control.address.empty() && variable != nullptr && line.run.root.empty()) {
        line.run.control.address = variable;
      }
      add_from_environment(line.run.control);
      line.run.json = line.json;
      return run_program(line.run, std::cerr);
    };
  });
  return command;
}

void add_agent_commands(CLI::App& app, Line& line) {
  CLI::App* agents = add_online(app, line, "agents", "List the processes that stream, or have",
                                [&line](const Online& to) { return list_agents(to, line.filter); });
  agents->add_option("FILTER", line.filter, "Process name, pid, device id or tag");
  CLI::App* phones =
      add_online(app, line, "devices", "List the phones that the collector finds agents on",
                 [&line](const Online& to) { return devices(to, line.devices); });
  phones->add_option("FILTER", line.devices.filter,
                     "Serial, model, or how it is reached: adb or usbmux");
  phones->add_flag("--watch", line.devices.watch, "Follow their changes instead");
  CLI::App* attach = add_online(app, line, "attach", "Let the collector dial an agent that listens",
                                [&line](const Online& to) { return attach_agent(to, line.name); });
  attach->add_option("ADDRESS", line.name, "host:port or unix:/path of the agent")->required();
  attach->footer(
      "Example: adb forward tcp:7720 localabstract:collect_agent_4711\n"
      "         collectctl attach 127.0.0.1:7720");
  CLI::App* detach = add_online(app, line, "detach", "Seal an agent's session and let it go",
                                [&line](const Online& to) { return detach_agent(to, line.name); });
  detach->add_option("AGENT", line.name, "Name, as collectctl agents lists it")->required();
}

void add_session_commands(CLI::App& app, Line& line) {
  CLI::App* sessions =
      add_online(app, line, "sessions", "List the recordings, the newest first",
                 [&line](const Online& to) { return list_sessions(to, line.filter); });
  sessions->add_option("FILTER", line.filter, "Process name, pid, device id or tag");
  CLI::App* start = add_online(app, line, "start", "Start a recording",
                               [&line](const Online& to) { return start_session(to, line.name); });
  start->add_option("AGENT", line.name, "Which one (default: every idle agent)");
  CLI::App* stop = add_online(app, line, "stop", "Stop recordings and seal their files",
                              [&line](const Online& to) { return stop_session(to, line.name); });
  stop->add_option("SESSION", line.name, "Session or agent (default: every session that records)");
  CLI::App* manifest =
      add_online(app, line, "manifest", "Show a session's manifest; --json: the file as it is",
                 [&line](const Online& to) { return show_manifest(to, line.name); });
  manifest->add_option("SESSION", line.name, "Which one (default: the newest)");
  CLI::App* files = add_online(app, line, "files", "List the files of a session",
                               [&line](const Online& to) { return list_files(to, line.name); });
  files->add_option("SESSION", line.name, "Which one (default: the newest)");
  CLI::App* fetch =
      add_online(app, line, "download", "Fetch the files of a session from the collector",
                 [&line](const Online& to) { return download(to, line.download); });
  fetch->add_option("SESSION", line.download.session, "Which one (default: the newest)");
  fetch->add_option("FILE", line.download.files, "Only these, as collectctl files lists them");
  fetch
      ->add_option("-o,--output", line.download.output,
                   "Directory to write into (default: the session's name)")
      ->type_name("DIRECTORY");
  fetch->footer("What an interrupted download left is gone on with; what is whole is kept.");
  CLI::App* remove =
      add_online(app, line, "delete", "Remove a sealed session from the collector",
                 [&line](const Online& to) { return delete_session(to, line.name); });
  remove->add_option("SESSION", line.name, "Which one; never a default")->required();
  CLI::App* mark =
      add_online(app, line, "annotate", "Put a marker with a text at this moment of the recordings",
                 [&line](const Online& to) { return annotate(to, line.name, line.text); });
  mark->add_option("TEXT", line.text, "What it says")->required();
  mark->add_option("TARGET", line.name, "Session or agent (default: every session that records)");
  CLI::App* roll = add_online(app, line, "roll",
                              "End the RTC container of the recordings and begin the next one",
                              [&line](const Online& to) { return roll_container(to, line.name); });
  roll->add_option("TARGET", line.name, "Session or agent (default: every session that records)");
  add_online(app, line, "stats", "Show what the collector has done so far", show_stats);
}

void add_watch(CLI::App& app, Line& line) {
  CLI::App* watcher = add_online(
      app, line, "watch", "Follow a session until it is sealed", [&line](const Online& to) {
        line.watch.interval =
            std::chrono::duration_cast<std::chrono::milliseconds>(duration_of(line.interval));
        return watch(to, line.watch);
      });
  watcher->add_option("SESSION", line.watch.session, "Which one (default: the newest)");
  watcher->add_option("--interval", line.interval, "Time between two looks (default 1s)")
      ->type_name("DURATION")
      ->check(duration_check());
  CLI::Option* agents =
      watcher->add_flag("--agents", line.watch.agents, "Follow the agents instead");
  watcher->add_option("--filter", line.watch.filter, "Process name, pid, device id or tag")
      ->type_name("FILTER")
      ->needs(agents);
  watcher->footer("On a terminal one line is rewritten; otherwise every state is a line.");
}

void add_detail(CLI::App& app, Line& line) {
  CLI::App* detail = add_command(app, "detail", "Record registers and stack bytes, or stop it");
  detail->require_subcommand(1);
  const auto add = [&](const char* name, const char* what, api::DetailMode mode) {
    CLI::App* command = add_online(*detail, line, name, what, [&line, mode](const Online& to) {
      line.detail.mode = mode;
      line.detail.duration = duration_of(line.duration);
      line.detail.pre_roll = duration_of(line.pre_roll);
      return set_detail(to, line.detail);
    });
    command->add_option("TARGET", line.detail.target, "Session or agent (default: everywhere)");
    command
        ->add_option("--thread", line.detail.threads,
                     "Only this thread of the operating system; may be repeated")
        ->type_name("TID")
        ->allow_extra_args(false);
    return command;
  };
  CLI::App* start = add("start", "Record detail from now on", api::ON);
  CLI::App* arm = add("arm", "Keep detail in the rings for a later start --pre-roll", api::ARMED);
  add("stop", "Stop recording detail", api::OFF);
  for (CLI::App* command : {start, arm}) {
    command
        ->add_option("--function", line.detail.functions,
                     "Only this function: a name, a pattern with *, or a 0x… id; may be repeated")
        ->type_name("FUNCTION")
        ->allow_extra_args(false);
  }
  start->add_option("--duration", line.duration, "Stop by itself after this time, for example 5s")
      ->type_name("DURATION")
      ->check(duration_check());
  start
      ->add_option("--pre-roll", line.pre_roll, "Ship what was armed, back to this, for example 2s")
      ->type_name("DURATION")
      ->check(duration_check());
  start->footer(
      "Example: collectctl detail start --function 'parse_*' --duration 5s --pre-roll 2s");
}

void add_filter(CLI::App& app, Line& line) {
  CLI::App* filter =
      add_online(app, line, "filter", "Choose which functions are recorded from now on",
                 [&line](const Online& to) { return set_function_filter(to, line.functions); });
  filter->add_option("TARGET", line.functions.target, "Session or agent (default: everywhere)");
  CLI::Option* clear = filter->add_flag("--clear", line.functions.clear, "Every function again");
  filter
      ->add_option("--only", line.functions.only,
                   "This function: a name, a pattern with *, or a 0x… id; may be repeated")
      ->type_name("FUNCTION")
      ->allow_extra_args(false)
      ->excludes(clear);
  filter->add_option("--except", line.functions.except, "But not this one; may be repeated")
      ->type_name("FUNCTION")
      ->allow_extra_args(false)
      ->excludes(clear);
  filter->footer(
      "It takes the place of the filter before. Names are looked up in what is loaded then.\n"
      "Example: collectctl filter --only 'parse_*' --except parse_char");
}

// True when `argument` is an option of `command` whose value is the next argument.
bool takes_next(const CLI::App* command, const std::string& argument) {
  const bool is_long = argument.starts_with("--");
  if (argument.find('=') != std::string::npos || (!is_long && argument.size() > 2)) return false;
  const CLI::Option* option = command->get_option_no_throw(argument);
  return option != nullptr && option->get_items_expected_max() > 0;
}

// Takes `run`'s program and its arguments off the line: they are not ours to parse. Returns what
// is left for CLI11.
std::vector<std::string> split_off_program(const CLI::App& app, const CLI::App* run, int argc,
                                           char** argv, Line& line) {
  std::vector<std::string> ours;
  const CLI::App* command = &app;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (command == run && (argument == "--" || !argument.starts_with("-"))) {
      line.run.command.assign(argv + i + (argument == "--" ? 1 : 0), argv + argc);
      return ours;
    }
    ours.push_back(argument);
    if (command == &app && !argument.starts_with("-")) {
      command = argument == "run" ? run : nullptr;  // of another command all is ours
    } else if (command != nullptr && takes_next(command, argument) && i + 1 < argc) {
      ours.emplace_back(argv[++i]);
    }
  }
  return ours;
}

int wrong_usage(const CLI::App& app, const std::string& message) {
  std::string command = app.get_name();
  for (const CLI::App* at = &app; !at->get_subcommands().empty();) {
    at = at->get_subcommands().front();
    command += " " + at->get_name();
  }
  std::cerr << "collectctl: " << printable_sentence(message) << "; see " << command << " --help\n";
  return command == "collectctl run" ? kExitRunFailed : kExitUsage;
}

// The word that should name a command and does not, if any. CLI11 would say that one is missing.
std::string unknown_command(const CLI::App& app, const std::vector<std::string>& arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    if (!word.starts_with("-")) {
      const auto named = app.get_subcommands(
          [&word](const CLI::App* command) { return command->check_name(word); });
      return named.empty() ? word : "";
    }
    if (takes_next(&app, arguments[i])) ++i;
  }
  return "";
}

int parse_and_run(int argc, char** argv) {
  Line line;
  CLI::App app(kSummary, "collectctl");
  app.set_help_flag("-h,--help", "Say what there is");
  app.set_version_flag("--version", std::string("collectctl ") + COLLECT_VERSION);
  add_control(app, line.control);
  app.add_flag("--json", line.json, "JSON for programs instead of tables for people");
  app.require_subcommand(1);
  app.footer(kFooter);
  CLI::App* run = add_run(app, line);
  add_detail(app, line);
  add_filter(app, line);
  add_watch(app, line);
  add_agent_commands(app, line);
  add_session_commands(app, line);
  add_file_commands(app, line);
  std::vector<std::string> arguments = split_off_program(app, run, argc, argv, line);
  if (const std::string unknown = unknown_command(app, arguments); !unknown.empty()) {
    return wrong_usage(app, "there is no command \"" + unknown + "\"");
  }
  std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants them
  try {
    app.parse(arguments);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    return wrong_usage(app, error.what());
  }
  if (run->parsed() && line.run.command.empty()) {
    return wrong_usage(app, "say which program to run");
  }
  // A reader that goes away ends our output, not the process; a traced program keeps the default.
  if (!run->parsed()) std::signal(SIGPIPE, SIG_IGN);
  return line.command();
}

}  // namespace
}  // namespace collect::ctl

int main(int argc, char** argv) {
  collect::storage::hold_standard_streams();
  collect::ctl::PrintableStream out(std::cout), err(std::cerr);
  return collect::ctl::parse_and_run(argc, argv);
}
