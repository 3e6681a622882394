// collectctl: the command line. Options to option structs, and exit codes. Here is `run`; the
// commands that talk to a collector are declared in online_command_line.cc, those for files in
// file_command_line.cc.
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include "daemon/ctl/client.h"
#include "daemon/ctl/command_line.h"
#include "daemon/ctl/leftovers.h"
#include "daemon/ctl/terminal.h"
#include "daemon/ctl/text.h"
#include "storage/standard_output.h"
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
    "Exit codes: 0 done, 1 it failed or standard output could not be written, 2 wrong usage. run\n"
    "has its own: see collectctl run --help.\n"
    "COLLECT_CONTROL is the default of --control, COLLECT_CONTROL_TLS_CA, _TLS_CERTIFICATE,\n"
    "_TLS_KEY, _TLS_NAME and _TOKEN_FILE are those of --tls-ca and so on. Without both it is\n"
    "127.0.0.1:7711 where you or root listen, else /run/collectord/control.sock.";

constexpr const char* kRunFooter =
    "A collector that runs at --control (default as in collectctl --help) is used. When none\n"
    "answers there, or with -o, run starts one of its own for this run. With -o, --control says\n"
    "where that one listens; otherwise a --control at which nobody answers is an error.\n"
    "\n"
    "The program gets the agent by LD_PRELOAD and COLLECT_* variables. Yours hold where no option\n"
    "says otherwise, COLLECT_TAG too; but COLLECT_CONNECT and COLLECT_LISTEN, which say where the\n"
    "collector is. Its standard streams and its signals are its own.\n"
    "\n"
    "Exit code: the program's own, 128 + N when signal N ended it, 127 when there is no such\n"
    "program, 126 when it cannot be executed, 125 when collectctl, or storing a session, failed,\n"
    "or where a pattern of --only or --except matched no function and the program's code is 0.\n"
    "\n"
    "Examples:\n"
    "  collectctl run -o /var/tmp/traces -- ctest --output-on-failure\n"
    "  collectctl run --max-time 10s --max-size 2G --no-follow -- ./server\n"
    "  collectctl run --detail armed -- ./server    then, at the address that run prints:\n"
    "  collectctl --control ADDR detail start --pre-roll 2s --duration 5s";

// A duration as the agent reads it: agent/AGENT.md "Settings".
CLI::Validator shortest_call() {
  return CLI::Validator(
      [](std::string& text) {
        constexpr std::chrono::nanoseconds kHour = std::chrono::hours(1);
        const auto parsed = parse_duration(text);
        if (!parsed.ok()) return parsed.error().message;
        if (parsed->count() < 1 || *parsed > kHour) {
          return "\"" + text + "\" is not from 1 ns to 1 h";
        }
        text = std::to_string(parsed->count()) + "ns";
        return std::string();
      },
      "", "duration");
}

// How long a recording may last: agent/AGENT.md "Settings".
CLI::Validator longest_recording() {
  return CLI::Validator(
      [](std::string& text) {
        constexpr std::chrono::nanoseconds kLongest = std::chrono::hours(24 * 1000);
        const auto parsed = parse_duration(text);
        if (!parsed.ok()) return parsed.error().message;
        if (parsed->count() < 1 || *parsed > kLongest) {
          return "\"" + text + "\" is not a time up to 24000 h";
        }
        text = std::to_string(parsed->count()) + "ns";
        return std::string();
      },
      "", "duration");
}

CLI::Validator size_check() {
  return CLI::Validator(
      [](std::string& text) {
        const auto parsed = parse_size(text);
        if (!parsed.ok()) return parsed.error().message;
        text = std::to_string(*parsed);
        return std::string();
      },
      "", "size");
}

// How much of the program is recorded.
void add_limits(CLI::App& command, RunOptions& run) {
  command
      .add_option("--only", run.agent.only,
                  "Record this function alone, from the first call on: its name, with or without "
                  "namespace and arguments, a pattern with * and ?, or a 0x… id; may be repeated")
      ->type_name("FUNCTION")
      ->allow_extra_args(false);
  command.add_option("--except", run.agent.except, "But not this function; may be repeated")
      ->type_name("FUNCTION")
      ->allow_extra_args(false);
  command
      .add_option("--max-depth", run.agent.max_depth,
                  "Record calls down to this depth of each thread, 1 to 1000000; deeper ones are "
                  "left out and counted")
      ->type_name("N")
      ->check(CLI::Range(1, 1'000'000).description(""));
  command
      .add_option("--longer-than", run.agent.longer_than,
                  "Leave out calls that return sooner, and count them: a time such as 5us, 2ms, 1s")
      ->type_name("DURATION")
      ->transform(shortest_call());
  command
      .add_option("--max-time", run.agent.max_time,
                  "End the recording after this time, counted from the start of the program, which "
                  "goes on untraced")
      ->type_name("DURATION")
      ->transform(longest_recording());
  command
      .add_option("--max-size", run.agent.max_bytes,
                  "End the recording of each process when it has so many bytes: 512K, 10M, 2G; the "
                  "program goes on untraced")
      ->type_name("BYTES")
      ->transform(size_check());
  command.add_flag("--no-follow", run.program_only,
                   "Record the program alone, not the processes that it starts");
  command.add_flag("--idle", run.agent.start_idle, "Record nothing until collectctl start says so");
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
      ->add_option("--when-full,--full", run.agent.full,
                   "When the ring is full: wait until there is room, so that nothing is lost (the "
                   "default), drop the new event and count it, or overwrite the oldest")
      ->type_name("POLICY")
      ->check(CLI::IsMember({"wait", "drop", "overwrite"}));
  command
      ->add_option(
          "--drain", run.agent.drain,
          "What ships the events: a process of its own, so that a crash loses nothing (the "
          "default), or a thread of the program")
      ->type_name("DRAIN")
      ->check(CLI::IsMember({"thread", "process"}));
  command
      ->add_option("--buffer", run.agent.buffer_mb,
                   "Memory for rings in each process, in MB: 1 to 16384 (default 64)")
      ->type_name("MB")
      ->check(CLI::Range(1, 16 * 1024).description(""));
  add_limits(*command, run);
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
  add_online_commands(app, line);
  add_file_commands(app, line);
  std::vector<std::string> arguments = split_off_program(app, run, argc, argv, line);
  if (const std::string unknown = unknown_command(app, arguments); !unknown.empty()) {
    return wrong_usage(app, "there is no command \"" + unknown + "\"");
  }
  std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants them
  try {
    app.parse(arguments);
  } catch (const CLI::Success& help) {
    std::signal(SIGPIPE, SIG_IGN);
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    return wrong_usage(app, error.what());
  }
  if (run->parsed() && line.run.command.empty()) {
    return wrong_usage(app, "say which program to run");
  }
  if (!run->parsed()) {
    // A reader that goes away ends our output, not the process; a traced program keeps the default.
    std::signal(SIGPIPE, SIG_IGN);
    remove_leftovers_on_signals();
  }
  return line.command();
}

}  // namespace
}  // namespace collect::ctl

int main(int argc, char** argv) {
  collect::storage::hold_standard_streams();
  collect::storage::StandardOutput output(std::cout);
  int code = 0;
  {
    collect::ctl::PrintableStream out(std::cout), err(std::cerr);
    code = collect::ctl::parse_and_run(argc, argv);
  }
  return output.finish("collectctl", code);
}
