// The commands that talk to a collector, as the command line knows them.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iostream>
#include <string>
#include <utility>

#include "daemon/ctl/command_line/command_line.h"
#include "daemon/ctl/online/client.h"
#include "daemon/ctl/online/collector_choice.h"
#include "daemon/ctl/online/stored_sessions.h"
#include "daemon/ctl/online/text.h"

namespace collect::ctl {

void add_control(CLI::App& app, ControlTarget& control) {
  const auto add = [&app](const char* flag, std::string& field, const char* value,
                          const char* what) {
    app.add_option(flag, field, what)->type_name(value)->group("Where the collector is");
  };
  add("--control", control.address, "ADDRESS",
      "Address of the collector: host:port or unix:/path; the default is described below");
  add("--tls-ca", control.tls_ca, "FILE",
      "CA certificate (PEM) that signed the collector's certificate; enables TLS");
  add("--tls-certificate", control.tls_certificate, "FILE",
      "Client certificate (PEM), if the collector asks for one");
  add("--tls-key", control.tls_key, "FILE", "Private key (PEM) of --tls-certificate");
  add("--tls-name", control.tls_name, "NAME",
      "Name in the collector's certificate, if its address has another");
  add("--token-file", control.token_file, "FILE",
      "File with the token for the collector; needs TLS");
}

Online online(const Line& line) {
  ControlTarget control = line.control;
  add_from_environment(control);
  choose_collector(control, std::cerr);
  return {control, line.json, is_terminal(STDOUT_FILENO), std::cout, std::cerr, terminal_columns()};
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

namespace {

// Also of a directory that is missing; tags and names of sessions may have a slash within.
bool is_path(const std::string& word) {
  std::error_code ignored;
  return word.starts_with("/") || word.starts_with("./") || word.starts_with("../") ||
         std::filesystem::is_directory(word, ignored);
}

void add_agent_commands(CLI::App& app, Line& line) {
  CLI::App* agents = add_online(app, line, "agents", "List the agents that are, or were, connected",
                                [&line](const Online& to) { return list_agents(to, line.filter); });
  agents->add_option("FILTER", line.filter, "Process name, pid, device id or tag");
  CLI::App* phones =
      add_online(app, line, "devices", "List the phones that the collector finds agents on",
                 [&line](const Online& to) { return devices(to, line.devices); });
  phones->add_option("FILTER", line.devices.filter,
                     "Serial, model, or how it is reached: adb or usbmux");
  phones->add_flag("--watch", line.devices.watch, "Print changes as they happen");
  CLI::App* threads = add_online(app, line, "threads", "List the threads that an agent records now",
                                 [&line](const Online& to) { return list_threads(to, line.name); });
  threads->add_option("AGENT", line.name,
                      "Name, as collectctl agents lists it; without it, the only one that is "
                      "connected");
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
  start->add_option("--except", line.start.except, "Do not record this function; may be repeated")
      ->type_name("FUNCTION")
      ->allow_extra_args(false);
  start->add_flag("--detail", line.start.detail, "Record detail from the first event on");
  start
      ->add_option("--duration", line.duration,
                   "Stop automatically after this time, for example 30s")
      ->type_name("DURATION")
      ->check(duration_check());
}

void add_rules(CLI::App& app, Line& line) {
  CLI::App* rules =
      add_online(app, line, "rules", "Show or set what agents that connect later are to do",
                 [&line](const Online& to) {
                   return line.name.empty() ? show_rules(to) : set_rules(to, line.name);
                 });
  rules
      ->add_option(
          "--set", line.name,
          "File with the new rules, in the form in which they are shown; -: standard input")
      ->type_name("FILE");
  rules->footer(
      "The first rule that matches an agent applies. Rules survive a restart of the collector.\n"
      "Example: echo '{\"rules\": [{\"target\": {\"process_name\": \"render*\"}, \"action\":\n"
      "         \"record\", \"duration_s\": 60}]}' | collectctl rules --set -");
}

int download_from_store(Line& line) {
  if (!line.download.files.empty() || line.download.force || line.download.output.empty()) {
    std::cerr << "collectctl: from a store whole sessions come, into the directory that -o names, "
                 "and nothing is replaced; see collectctl download --help\n";
    return kExitUsage;
  }
  line.store.want = upload::StoreWant::kDownload;
  line.store.location.url = line.download.session;
  line.store.output = line.download.output;
  return become_store_program(line.store, line.json);
}

void add_session_commands(CLI::App& app, Line& line) {
  CLI::App* sessions =
      add_online(app, line, "sessions",
                 "List the recordings of the collector, or those below a directory or in a store",
                 [&line](const Online& to) {
                   if (!line.store.location.url.empty()) {
                     line.store.want = upload::StoreWant::kList;
                     return become_store_program(line.store, to.json);
                   }
                   if (!is_path(line.filter)) return list_sessions(to, line.filter);
                   const StoredSessionsOptions stored{line.filter, to.json,
                                                      is_terminal(STDERR_FILENO), to.columns};
                   return list_stored_sessions(stored, to.out, to.err);
                 });
  sessions->add_option("FILTER", line.filter,
                       "Process name, pid, device id or tag; or a directory, whose sessions are "
                       "listed without a collector");
  sessions
      ->add_option("--store", line.store.location.url,
                   "List the sessions of this store instead: s3://BUCKET; see collectctl upload "
                   "--help")
      ->type_name("URL")
      ->check(store_url_check());
  sessions->footer(
      "The newest first. A word that names a directory, or begins with / or ./, is a directory.\n"
      "Example: collectctl sessions ada_traces");
  add_start(app, line);
  CLI::App* stop = add_online(app, line, "stop", "Stop recordings and seal their files",
                              [&line](const Online& to) { return stop_session(to, line.name); });
  stop->add_option("SESSION", line.name, "Session or agent (default: every session that records)");
  CLI::App* manifest =
      add_online(app, line, "manifest", "Show a session's manifest; with --json, the file itself",
                 [&line](const Online& to) { return show_manifest(to, line.name); });
  manifest->add_option("SESSION", line.name, "Which one (default: the newest)");
  CLI::App* files = add_online(app, line, "files", "List the files of a session",
                               [&line](const Online& to) { return list_files(to, line.name); });
  files->add_option("SESSION", line.name, "Which one (default: the newest)");
  CLI::App* fetch =
      add_online(app, line, "download", "Fetch the files of a session from the collector",
                 [&line](const Online& to) {
                   if (!upload::is_store_url(line.download.session)) {
                     return download(to, line.download);
                   }
                   return download_from_store(line);
                 });
  fetch->add_option("SESSION", line.download.session,
                    "Which one (default: the newest); or s3://BUCKET, or the URL of a session in "
                    "it: from that store");
  fetch->add_option("FILE", line.download.files,
                    "Only these files, as collectctl files lists them");
  fetch
      ->add_option("-o,--output", line.download.output,
                   "Directory to write into (default: the session's name)")
      ->type_name("DIRECTORY");
  fetch->add_flag("--force", line.download.force,
                  "Replace files of the same names that are not of this session");
  fetch->footer(
      "The manifest is always included. An interrupted download is continued; complete files are\n"
      "kept.");
  CLI::App* other = add_online(
      app, line, "convert-session", "Convert a session at the collector to another ATF version",
      [&line](const Online& to) { return convert_session(to, line.conversion); });
  other->add_option("SESSION", line.conversion.session, "Which one (default: the newest)");
  other
      ->add_option("--atf-version", line.conversion.atf_version,
                   "Version of the new session's trace files: 1 or 2")
      ->type_name("VERSION")
      ->check(CLI::IsMember({1, 2}))
      ->required();
  other->add_flag("--strict", line.conversion.strict,
                  "Exit with 1 also if the version cannot hold something");
  other->footer(
      "The new session is stored beside the first, which stays unchanged: session_…_atf1. Ctrl-C\n"
      "cancels the conversion, and nothing is left of it.\n"
      "Exit code 1: it failed, or something is missing from the first session; a message says "
      "what.\n"
      "Example: collectctl convert-session session_20260131_235959/pid_4711 --atf-version 1");
  CLI::App* snapshot =
      add_online(app, line, "snapshot", "Make a sealed copy of what a recording holds now",
                 [&line](const Online& to) { return snapshot_session(to, line.name); });
  snapshot->add_option("SESSION", line.name, "Which one (default: the newest that records)");
  snapshot->footer(
      "The copy is stored beside the session, which continues: session_…_snap1.\n"
      "Exit code 1: it failed, or the agent could not ship everything; a message says which.");
  CLI::App* remove =
      add_online(app, line, "delete", "Remove a sealed session from the collector",
                 [&line](const Online& to) { return delete_session(to, line.name); });
  remove->add_option("SESSION", line.name, "Which one; there is no default")->required();
  CLI::App* mark = add_online(
      app, line, "annotate", "Put a marker with a text into the recordings, at this moment",
      [&line](const Online& to) { return annotate(to, line.name, line.text); });
  mark->add_option("TEXT", line.text, "Text of the marker")->required();
  mark->add_option("TARGET", line.name, "Session or agent (default: every session that records)");
  CLI::App* roll = add_online(app, line, "roll",
                              "End the current RTC containers of the recordings and start new ones",
                              [&line](const Online& to) { return roll_container(to, line.name); });
  roll->add_option("TARGET", line.name, "Session or agent (default: every session that records)");
  add_online(app, line, "stats", "Show the collector's statistics", show_stats);
}

}  // namespace

void add_online_commands(CLI::App& app, Line& line) {
  add_detail_commands(app, line);
  add_live_commands(app, line);
  add_rules(app, line);
  add_agent_commands(app, line);
  add_session_commands(app, line);
}

}  // namespace collect::ctl
