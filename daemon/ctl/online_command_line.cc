// The commands that talk to a collector, as the command line knows them.
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <iostream>
#include <string>
#include <utility>

#include "daemon/ctl/client.h"
#include "daemon/ctl/command_line.h"
#include "daemon/ctl/text.h"

namespace collect::ctl {

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

namespace {

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

CLI::App* add_online(CLI::App& app, Line& line, const char* name, const char* what,
                     std::function<int(const Online&)> run) {
  CLI::App* command = add_command(app, name, what);
  add_control(*command, line.control);
  add_json(command, line);
  command->callback(
      [&line, run = std::move(run)] { line.command = [&line, run] { return run(online(line)); }; });
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
  attach
      ->add_option(
          "ADDRESS", line.name,
          "host:port, tcp:port (of this machine) or unix:/path of the agent, or a place on a "
          "device as agents shows it: adb:SERIAL:NAME, usbmux:SERIAL:tcp:PORT")
      ->required();
  attach->footer(
      "Example: adb forward tcp:7720 localabstract:collect_agent_4711\n"
      "         collectctl attach 127.0.0.1:7720");
  CLI::App* detach = add_online(app, line, "detach", "Seal an agent's session and let it go",
                                [&line](const Online& to) { return detach_agent(to, line.name); });
  detach->add_option("AGENT", line.name, "Name, as collectctl agents lists it")->required();
}

void add_start(CLI::App& app, Line& line) {
  CLI::App* start = add_online(app, line, "start", "Start a recording", [&line](const Online& to) {
    line.start.duration = duration_of(line.duration);
    return start_session(to, line.start);
  });
  start->add_option("AGENT", line.start.target, "Which one (default: every idle agent)");
  start->add_option("--only", line.start.only, kFunctionHelp)
      ->type_name("FUNCTION")
      ->allow_extra_args(false);
  start->add_option("--except", line.start.except, "But not this function; may be repeated")
      ->type_name("FUNCTION")
      ->allow_extra_args(false);
  start->add_flag("--detail", line.start.detail, "Record detail from the first event on");
  start->add_option("--duration", line.duration, "Stop by itself after this time, for example 30s")
      ->type_name("DURATION")
      ->check(duration_check());
}

void add_rules(CLI::App& app, Line& line) {
  CLI::App* rules =
      add_online(app, line, "rules", "Show or set what becomes of agents that are still to come",
                 [&line](const Online& to) {
                   return line.name.empty() ? show_rules(to) : set_rules(to, line.name);
                 });
  rules
      ->add_option("--set", line.name,
                   "File with the new rules, as they are shown; -: standard input")
      ->type_name("FILE");
  rules->footer(
      "The first rule that is about an agent holds. Rules are kept when the collector is "
      "restarted.\n"
      "Example: echo '{\"rules\": [{\"target\": {\"processName\": \"render*\"}, \"action\":\n"
      "         \"ACTION_RECORD\", \"duration\": \"60s\"}]}' | collectctl rules --set -");
}

void add_session_commands(CLI::App& app, Line& line) {
  CLI::App* sessions =
      add_online(app, line, "sessions", "List the recordings, the newest first",
                 [&line](const Online& to) { return list_sessions(to, line.filter); });
  sessions->add_option("FILTER", line.filter, "Process name, pid, device id or tag");
  add_start(app, line);
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
  fetch->add_flag("--force", line.download.force,
                  "Replace files of the same names that are not of this session");
  fetch->footer(
      "The manifest always comes too. What an interrupted download left is gone on with; what is\n"
      "whole is kept.");
  CLI::App* other =
      add_online(app, line, "convert-session",
                 "Let the collector make a session of another ATF version out of one",
                 [&line](const Online& to) { return convert_session(to, line.conversion); });
  other->add_option("SESSION", line.conversion.session, "Which one (default: the newest)");
  other
      ->add_option("--atf-version", line.conversion.atf_version,
                   "Version of the new session's trace files: 1 or 2")
      ->type_name("VERSION")
      ->check(CLI::IsMember({1, 2}))
      ->required();
  other->add_flag("--strict", line.conversion.strict,
                  "Exit code 1 also when the version has no place for something");
  other->footer(
      "The new session stands beside the first, which stays as it is: session_…_atf1. Ctrl-C ends\n"
      "the conversion, and nothing is left of it.\n"
      "Exit code 1: it failed, or something is missing from the first session; what, is said.\n"
      "Example: collectctl convert-session session_20260131_235959/pid_4711 --atf-version 1");
  CLI::App* snapshot =
      add_online(app, line, "snapshot", "Make a sealed copy of what a recording holds now",
                 [&line](const Online& to) { return snapshot_session(to, line.name); });
  snapshot->add_option("SESSION", line.name, "Which one (default: the newest that records)");
  snapshot->footer(
      "The copy stands beside the session, which goes on: session_…_snap1.\n"
      "Exit code 1: it failed, or the agent could not ship what it still had; what, is said.");
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
    command->add_option("--thread", line.detail.threads, kThreadHelp)
        ->type_name("THREAD")
        ->check(thread_check())
        ->allow_extra_args(false);
    return command;
  };
  CLI::App* start = add("start", "Record detail from now on", api::DETAIL_MODE_ON);
  CLI::App* arm =
      add("arm", "Keep detail in the rings for a later start --pre-roll", api::DETAIL_MODE_ARMED);
  add("stop", "Stop recording detail", api::DETAIL_MODE_OFF);
  for (CLI::App* command : {start, arm}) {
    command->add_option("--function", line.detail.functions, kFunctionHelp)
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

void add_trigger(CLI::App& app, Line& line) {
  CLI::App* trigger =
      add_command(app, "trigger",
                  "Record detail when a function is called, takes long or throws, or a "
                  "counter exceeds a value");
  trigger->require_subcommand(1);
  CLI::App* set = add_online(
      *trigger, line, "set", "Wait for this, instead of what was waited for",
      [&line](const Online& to) {
        if (line.trigger.functions.empty() && line.trigger.counter.empty()) {
          return failed(to.err,
                        {Code::kInvalidArgument, "say --function, or --counter and --above"});
        }
        line.trigger.longer_than = duration_of(line.longer_than);
        line.trigger.duration = duration_of(line.duration);
        line.trigger.pre_roll = duration_of(line.pre_roll);
        return set_trigger(to, line.trigger);
      });
  CLI::Option* function = set->add_option("--function", line.trigger.functions, kFunctionHelp)
                              ->type_name("FUNCTION")
                              ->allow_extra_args(false);
  CLI::Option* counter =
      set->add_option("--counter", line.trigger.counter,
                      "When this counter of the program (collect_counter) passes --above")
          ->type_name("NAME")
          ->excludes(function);
  CLI::Option* above = set->add_option("--above", line.trigger.above, "The value that it passes")
                           ->type_name("N")
                           ->needs(counter);
  counter->needs(above);
  const auto duration = [&](const char* name, std::string& value, const char* what) {
    return set->add_option(name, value, what)->type_name("DURATION")->check(duration_check());
  };
  CLI::Option* longer = duration("--longer-than", line.longer_than,
                                 "Only when a call takes more than this, for example 5ms");
  longer->excludes(counter);
  set->add_flag("--throws", line.trigger.throws, "Only when an exception leaves the function")
      ->excludes(longer)
      ->excludes(counter);
  duration("--duration", line.duration, "Detail stops by itself after this time");
  set->add_option("--until", line.trigger.until, "Detail stops when this function is called")
      ->type_name("FUNCTION")
      ->allow_extra_args(false);
  duration("--pre-roll", line.pre_roll, "Arm detail now, and ship it back to this");
  set->add_option("--times", line.trigger.times, "At most so often (default: whenever it happens)")
      ->type_name("N");
  set->footer(
      "Without --duration and --until detail goes on until detail stop, and it fires once. Each "
      "time\n"
      "there is a marker in the session. Triggers end with the session. Several: grpcurl.\n"
      "Examples: collectctl trigger set --function 'parse_*' --longer-than 5ms --pre-roll 1s\n"
      "          --duration 1s --times 3\n"
      "          collectctl trigger set --counter queue_depth --above 1000 --duration 1s");
  CLI::App* show = add_online(*trigger, line, "show", "Show the triggers, and how often they fired",
                              [&line](const Online& to) { return show_triggers(to, line.name); });
  CLI::App* clear = add_online(
      *trigger, line, "clear", "Wait for nothing any more; detail stays as it is",
      [&line](const Online& to) { return set_trigger(to, {.target = line.trigger.target}); });
  for (CLI::App* command : {set, clear}) {
    command->add_option("TARGET", line.trigger.target,
                        "Session or agent (default: every one that records)");
  }
  show->add_option("TARGET", line.name, "Session or agent (default: every one that records)");
}

void add_filter(CLI::App& app, Line& line) {
  CLI::App* filter =
      add_online(app, line, "filter", "Choose which functions are recorded from now on",
                 [&line](const Online& to) { return set_function_filter(to, line.functions); });
  filter->add_option("TARGET", line.functions.target, "Session or agent (default: everywhere)");
  CLI::Option* clear = filter->add_flag("--clear", line.functions.clear, "Every function again");
  filter->add_option("--only", line.functions.only, kFunctionHelp)
      ->type_name("FUNCTION")
      ->allow_extra_args(false)
      ->excludes(clear);
  filter->add_option("--except", line.functions.except, "But not this function; may be repeated")
      ->type_name("FUNCTION")
      ->allow_extra_args(false)
      ->excludes(clear);
  filter->footer(
      "It takes the place of the filter before. Names are looked up in what is loaded then.\n"
      "Example: collectctl filter --only 'parse_*' --except parse_char");
}

}  // namespace

void add_online_commands(CLI::App& app, Line& line) {
  add_detail(app, line);
  add_trigger(app, line);
  add_filter(app, line);
  add_watch(app, line);
  add_rules(app, line);
  add_agent_commands(app, line);
  add_session_commands(app, line);
}

}  // namespace collect::ctl
