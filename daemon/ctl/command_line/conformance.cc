// `conformance`, as the command line knows it.
#include <iostream>

#include "daemon/ctl/command_line/command_line.h"
#include "daemon/ctl/offline/time_words.h"

namespace collect::ctl {
namespace {

constexpr std::chrono::milliseconds kLongestTimeout = std::chrono::hours(1);

CLI::Validator timeout_check() {
  return CLI::Validator(
      [](std::string& text) {
        const auto time = parse_duration(text);
        if (!time.ok()) return time.error().message;
        const auto whole = std::chrono::duration_cast<std::chrono::milliseconds>(*time);
        if (whole.count() < 1 || whole > kLongestTimeout) {
          return "\"" + text + "\" is not between 1ms and 1h";
        }
        text = std::to_string(whole.count());
        return std::string();
      },
      "", "duration");
}

}  // namespace

CLI::App* add_conformance(CLI::App& app, Line& line) {
  ConformanceOptions& options = line.conformance;
  CLI::App* command = add_command(
      app, "conformance", "Check a collector or an agent against the protocol between them");
  command->add_option("ADDRESS", options.address,
                      "Collector to check: where agents connect to it, host:port or unix:/path");
  // For --help alone: split_off_program() takes it before anything is parsed.
  command->add_option("PROGRAM", options.program,
                      "Behind --: program whose agent is checked, with its arguments");
  command->add_option("--check", options.checks, "Only this check, by its name; may be repeated")
      ->type_name("NAME")
      ->allow_extra_args(false);
  command->add_flag("--list", options.list, "List the checks and the rules that they hold to");
  command
      ->add_option("--token-file", options.token_file,
                   "File with the token that both sides have to prove")
      ->type_name("FILE");
  command
      ->add_option("--timeout", line.timeout, "How long to wait for what has to come (default 10s)")
      ->type_name("TIME")
      ->transform(timeout_check());
  add_json(command, line);
  command->footer(
      "The protocol is described in proto/wire/WIRE.md; each check names its section. A check is\n"
      "ok, failed (what was expected and what came), or skipped (why it says nothing).\n"
      "\n"
      "A collector gets a process of its own for each check, and some sessions that are not\n"
      "complete. PROGRAM is started again and again with COLLECT_CONNECT, and ended when a check\n"
      "is over; its standard output goes nowhere. Give it something to record that takes a few\n"
      "seconds at most. The first of its processes that connects is checked. Connections are\n"
      "plain, without TLS.\n"
      "\n"
      "Exit code: 0 if no check failed, 1 if one did, 2 wrong usage, 125 if nothing could be\n"
      "checked: no one answers at ADDRESS, or PROGRAM cannot be started.\n"
      "\n"
      "Examples:\n"
      "  collectctl conformance 127.0.0.1:7710\n"
      "  collectctl conformance -- env LD_PRELOAD=libcollect_agent.so ./app\n"
      "  collectctl conformance --check clock-reply -- ./program_with_an_agent");
  command->callback([&line] {
    line.takes_signals = true;  // the program is to end with it
    line.command = [&line] {
      line.conformance.json = line.json;
      if (!line.timeout.empty()) {
        line.conformance.timeout = std::chrono::milliseconds(std::stoll(line.timeout));
      }
      return conformance(line.conformance, std::cout, std::cerr);
    };
  });
  return command;
}

}  // namespace collect::ctl
