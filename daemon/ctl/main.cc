// collectctl: the command line. Options to option structs, and exit codes. Here is `run`; the
// commands for phones are declared in android_command_line.cc, those that talk to a collector in
// online_command_line.cc, those for files in file_command_line.cc.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/ctl/command_line/command_line.h"
#include "daemon/ctl/online/client.h"
#include "daemon/ctl/online/text.h"
#include "daemon/ctl/terminal/json.h"
#include "daemon/ctl/terminal/terminal.h"
#include "daemon/machine/machine_limits.h"
#include "formats/core/text/nearest_word.h"
#include "formats/core/threads.h"
#include "formats/core/version.h"
#include "storage/fs/leftovers.h"
#include "storage/fs/standard_output.h"
#include "storage/fs/standard_streams.h"

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
    "  collectctl report                            of your newest recording\n"
    "\n"
    "Exit codes: 0 done, 1 failed or standard output could not be written, 2 wrong usage. run has\n"
    "its own: see collectctl run --help.\n"
    "COLLECT_CONTROL sets the default of --control, COLLECT_CONTROL_TLS_CA, _TLS_CERTIFICATE,\n"
    "_TLS_KEY, _TLS_NAME and _TOKEN_FILE set those of --tls-ca and so on. Without --control and\n"
    "COLLECT_CONTROL, the address is that of your collector that runs, also of a run in another\n"
    "terminal; else 127.0.0.1:7711 if you or root listen there, else /run/collectord/control.sock.";

constexpr const char* kRunFooter =
    "run uses the collector at --control (default 127.0.0.1:7711 if you or root listen there,\n"
    "else /run/collectord/control.sock). If none answers there, or with -o, run starts one for\n"
    "this run. With -o, --control is the address at which that collector listens; otherwise it is\n"
    "an error if no one answers at a given --control.\n"
    "\n"
    "The program gets the agent through LD_PRELOAD and COLLECT_* variables. Your own COLLECT_*\n"
    "variables apply if no option says otherwise, except for COLLECT_CONNECT and COLLECT_LISTEN.\n"
    "The program keeps its standard streams and signals.\n"
    "\n"
    "Exit code: the program's own, 128 + N if signal N ended it, 127 if there is no such\n"
    "program, 126 if it cannot be executed, 125 if collectctl failed. If the program's code is\n"
    "0, also 125 if a session is not complete (failed, recovered), if a process that ran with\n"
    "the agent left none, or if a pattern of --only or --except matched no function.\n"
    "\n"
    "Examples:\n"
    "  collectctl run -o /var/tmp/traces -- ctest --output-on-failure\n"
    "  collectctl run --max-time 10s --max-size 2G --no-follow -- ./server\n"
    "  collectctl run --detail armed -- ./server    then, in another terminal:\n"
    "  collectctl detail start --pre-roll 2s --duration 5s";

CLI::App* add_run(CLI::App& app, Line& line) {
  CLI::App* command = add_command(app, "run", "Run a program and record it");
  RunOptions& run = line.run;
  // For --help alone: split_off_program() takes them before anything is parsed.
  command->add_option("PROGRAM", run.command,
                      "Program to run, with its arguments; -- may come before it");
  command
      ->add_option("-o,--output", run.root,
                   "Directory for the sessions (default: ada_traces, or the running collector's)")
      ->type_name("DIRECTORY");
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
  add_recording_options(*command, run.agent);
  add_dynamic(*command, run.dynamic);
  command->add_flag("--no-follow", run.program_only,
                    "Record only the program, not the processes that it starts");
  command->add_flag("--web", run.web,
                    "Serve a live page of the recording to browsers of this machine while the "
                    "program runs; prints its address");
  command->add_flag("--open", run.open, "Show the recording in the browser at the end");
  add_control(*command, line.control);
  command->add_flag("-q,--quiet", run.quiet, "Print nothing unless something is wrong");
  command->add_flag("--json", line.json, "Print the summary as one line of JSON on standard error");
  command->footer(kRunFooter);
  command->callback([&line] {
    line.takes_signals = true;
    line.command = [&line] {
      line.run.control = run_control(line.control, line.run.root);
      line.run.json = line.json;
      return run_program(line.run, std::cerr);
    };
  });
  return command;
}

void add_doctor(CLI::App& app, Line& line) {
  CLI::App* command =
      add_command(app, "doctor", "Check whether this machine can record, and say what prevents it");
  command
      ->add_option("-o,--output", line.doctor.root,
                   "Directory for the sessions (default: ada_traces, or the running collector's)")
      ->type_name("DIRECTORY");
  add_control(*command, line.control);
  add_json(command, line);
  command->footer(
      "Checks the collector, its ports, the agents, the adb server, usbmuxd, the system's limits,\n"
      "and the disk, to which it writes at most 256 MiB, for one second, into a file without a\n"
      "name.\n"
      "\n"
      "Exit code: 0 if programs of this machine can be recorded, 1 if there is a problem. What is\n"
      "missing for phones is a warning; android doctor and ios doctor check phones.");
  command->callback([&line] {
    line.command = [&line] {
      line.doctor.control = run_control(line.control, "");
      line.doctor.json = line.json;
      line.doctor.columns = terminal_columns();
      return doctor(line.doctor, std::cout);
    };
  });
}

// True when `argument` is an option of `command` whose value is the next argument.
bool takes_next(const CLI::App* command, const std::string& argument) {
  const bool is_long = argument.starts_with("--");
  if (argument.find('=') != std::string::npos || (!is_long && argument.size() > 2)) return false;
  const CLI::Option* option = command->get_option_no_throw(argument);
  return option != nullptr && option->get_items_expected_max() > 0;
}

// Takes the program of `run` or `conformance` and its arguments off the line: they are not ours to
// parse. Returns what is left for CLI11.
std::vector<std::string> split_off_program(const CLI::App& app, const CLI::App* run,
                                           const CLI::App* conformance, int argc, char** argv,
                                           Line& line) {
  std::vector<std::string> ours;
  const CLI::App* command = &app;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (command == run && (argument == "--" || !argument.starts_with("-"))) {
      line.run.command.assign(argv + i + (argument == "--" ? 1 : 0), argv + argc);
      return ours;
    }
    if (command == conformance && argument == "--") {
      line.conformance.program.assign(argv + i + 1, argv + argc);
      return ours;
    }
    ours.push_back(argument);
    if (command == &app && !argument.starts_with("-")) {
      command = nullptr;  // of another command all is ours
      if (argument == "run") command = run;
      if (argument == "conformance") command = conformance;
    } else if (command != nullptr && takes_next(command, argument) && i + 1 < argc) {
      ours.emplace_back(argv[++i]);
    }
  }
  return ours;
}

int wrong_usage(const CLI::App& app, const std::string& message, bool json) {
  std::string command = app.get_name();
  for (const CLI::App* at = &app; !at->get_subcommands().empty();) {
    at = at->get_subcommands().front();
    command += " " + at->get_name();
  }
  const bool is_run = command == "collectctl run" || command == "collectctl android run" ||
                      command == "collectctl ios run";
  const std::string sentence = message + "; see " + command + " --help";
  if (json) {
    // Where the answer would have stood: the output of run is that of its program.
    (is_run ? std::cerr : std::cout) << error_line({Code::kInvalidArgument, sentence});
  } else {
    std::cerr << "collectctl: " << printable_sentence(sentence) << "\n";
  }
  return is_run ? kExitRunFailed : kExitUsage;
}

// " (did you mean report?)", if one of the names is nearly that word.
std::string did_you_mean(const std::string& word, const std::vector<std::string>& names) {
  const std::vector<std::string_view> candidates(names.begin(), names.end());
  const std::string_view near = nearest_word(word, candidates.data(), candidates.size());
  return near.empty() ? "" : " (did you mean " + std::string(near) + "?)";
}

std::string did_you_mean(const CLI::App& app, const std::string& word) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(command->get_name());
  }
  return did_you_mean(word, names);
}

// The same of an option, whose dashes make nothing nearer.
std::string nearest_option(const std::string& word, const std::vector<std::string>& names) {
  std::string near = did_you_mean(word.substr(2), names);
  if (!near.empty()) near.insert(near.find("mean ") + 5, "--");
  return near;
}

// The first option that the command does not know, where CLI11 would list all that it did not
// expect.
std::string unknown_option(const CLI::App& app, const std::vector<std::string>& arguments) {
  const CLI::App* command = &app;
  while (!command->get_subcommands().empty()) command = command->get_subcommands().front();
  std::vector<std::string> names;
  for (const CLI::App* at = command; at != nullptr; at = at->get_parent()) {
    for (const CLI::Option* option : at->get_options()) {
      for (const std::string& name : option->get_lnames()) names.push_back(name);
    }
  }
  for (const std::string& argument : arguments) {
    if (argument == "--") break;
    if (!argument.starts_with("-") || argument == "-") continue;
    const bool is_long = argument.starts_with("--");
    const std::string word =
        is_long ? argument.substr(0, argument.find('=')) : argument.substr(0, 2);
    bool is_known = false;
    for (const CLI::App* at = command; at != nullptr; at = at->get_parent()) {
      is_known = is_known || at->get_option_no_throw(word) != nullptr;
    }
    if (is_known) continue;
    return "there is no option " + word + (is_long ? nearest_option(word, names) : "");
  }
  return "";
}

// What is wrong with the words up to the command, if anything. CLI11 would say that none is there.
std::string wrong_beginning(const CLI::App& app, const std::vector<std::string>& arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    if (!word.starts_with("-")) {
      const auto named = app.get_subcommands(
          [&word](const CLI::App* command) { return command->check_name(word); });
      return named.empty() ? "there is no command \"" + word + "\"" + did_you_mean(app, word) : "";
    }
    const std::string option =
        word.starts_with("--") ? word.substr(0, word.find('=')) : word.substr(0, 2);
    if (app.get_option_no_throw(option) == nullptr) return "there is no option " + option;
    if (takes_next(&app, word)) ++i;
  }
  return "";
}

struct CommandGroup {
  const char* title;
  std::vector<std::string_view> commands;
};

// As --help lists them; what is in none is for the collector.
void group_commands(CLI::App& app) {
  const CommandGroup kGroups[] = {
      {"Record", {"run", "attach", "detach", "android", "ios", "doctor", "plan", "list"}},
      {"Control",
       {"start", "stop", "detail", "trigger", "filter", "rules", "annotate", "roll", "snapshot"}},
      {"Look",
       {"top", "tail", "watch", "report", "query", "open", "dump", "inspect", "verify",
        "manifest"}},
      {"Convert",
       {"convert", "convert-session", "download", "merge", "upload", "load", "symbolize",
        "recover"}},
  };
  for (CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    command->group("Collector");
    for (const CommandGroup& group : kGroups) {
      if (std::ranges::count(group.commands, command->get_name())) command->group(group.title);
    }
  }
}

int parse_and_run(int argc, char** argv) {
  Line line;
  CLI::App app(kSummary, "collectctl");
  app.set_help_flag("-h,--help", "Print this help");
  app.set_version_flag("-V,--version", std::string("collectctl ") + kVersion);
  add_control(app, line.control);
  app.add_flag("--json", line.json, "Print JSON instead of tables");
  app.require_subcommand(1);
  app.footer(kFooter);
  CLI::App* run = add_run(app, line);
  add_attach_commands(app, line);
  add_android_commands(app, line);
  add_ios_commands(app, line);
  add_doctor(app, line);
  add_online_commands(app, line);
  add_file_commands(app, line);
  CLI::App* conformance = add_conformance(app, line);
  group_commands(app);
  std::vector<std::string> arguments = split_off_program(app, run, conformance, argc, argv, line);
  if (!arguments.empty() && arguments.front() == "help") {  // help COMMAND is COMMAND --help
    arguments.erase(arguments.begin());
    arguments.emplace_back("--help");
  }
  const bool json = std::find(arguments.begin(), arguments.end(), "--json") != arguments.end();
  if (const std::string wrong = wrong_beginning(app, arguments); !wrong.empty()) {
    return wrong_usage(app, wrong, json);
  }
  const std::vector<std::string> given = arguments;
  std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants them
  try {
    app.parse(arguments);
  } catch (const CLI::Success& help) {
    std::signal(SIGPIPE, SIG_IGN);
    return app.exit(help);
  } catch (const CLI::ExtrasError& error) {
    const std::string unknown = unknown_option(app, given);
    return wrong_usage(app, unknown.empty() ? error.what() : unknown, json);
  } catch (const CLI::ParseError& error) {
    return wrong_usage(app, error.what(), json);
  }
  if (run->parsed() && line.run.command.empty()) {
    return wrong_usage(app, "the program to run is missing", json);
  }
  if (!line.takes_signals) {
    // A reader that goes away ends our output, not the process; a traced program keeps the default.
    std::signal(SIGPIPE, SIG_IGN);
    storage::remove_leftovers_on_signals();
  }
  return line.command();
}

// Of this machine: memory, threads, descriptors.
int fault(const Error& error, int argc, char** argv) {
  std::cerr << "collectctl: " << to_string(error) << "\n";
  const bool is_run = argc > 1 && std::string_view(argv[1]) == "run";
  return is_run ? kExitRunFailed : kExitFailed;
}

}  // namespace
}  // namespace collect::ctl

int main(int argc, char** argv) {
  collect::fit_into_address_space();
  collect::storage::hold_standard_streams();
  collect::storage::StandardOutput output(std::cout);
  int code = 0;
  {
    collect::ctl::PrintableStream out(std::cout), err(std::cerr);
    const collect::Status done =
        collect::contain([&] { code = collect::ctl::parse_and_run(argc, argv); });
    if (!done.ok()) code = collect::ctl::fault(done.error(), argc, argv);
  }
  return output.finish("collectctl", code);
}
