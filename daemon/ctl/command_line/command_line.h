// What main.cc, run_options.cc and the *_command_line.cc share of the command line. CLI11 is known
// to these alone.
#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/ctl/android/android_command.h"
#include "daemon/ctl/doctor/doctor_command.h"
#include "daemon/ctl/ios/ios_command.h"
#include "daemon/ctl/live/tail.h"
#include "daemon/ctl/live/top.h"
#include "daemon/ctl/offline/convert_command.h"
#include "daemon/ctl/offline/dump.h"
#include "daemon/ctl/offline/inspect.h"
#include "daemon/ctl/offline/merge.h"
#include "daemon/ctl/offline/open_page.h"
#include "daemon/ctl/offline/plan.h"
#include "daemon/ctl/offline/query.h"
#include "daemon/ctl/offline/recover.h"
#include "daemon/ctl/offline/report.h"
#include "daemon/ctl/offline/symbolize.h"
#include "daemon/ctl/offline/verify.h"
#include "daemon/ctl/online/commands.h"
#include "daemon/ctl/online/conformance_command.h"
#include "daemon/ctl/online/devices.h"
#include "daemon/ctl/online/download.h"
#include "daemon/ctl/online/session_conversion.h"
#include "daemon/ctl/processes/attach_process.h"
#include "daemon/ctl/processes/list_command.h"
#include "daemon/ctl/run/run_command.h"
#include "daemon/ctl/terminal/terminal.h"
#include "daemon/upload/store_request.h"
#include "daemon/warehouse/load_arguments.h"

namespace collect::ctl {

// What the command line fills in and the chosen command reads.
struct Line {
  ControlTarget control;
  bool json = false;
  ColorChoice color = ColorChoice::kAuto;
  RunOptions run;
  AndroidOptions android;
  IosOptions ios;
  ProcessOptions process;
  ListOptions list;
  QueryOptions query;
  warehouse::LoadArguments warehouse;  // load, and query --server
  DetailOptions detail;
  DeviceOptions devices;
  DoctorOptions doctor;
  ConformanceOptions conformance;
  FilterOptions functions;
  StartOptions start;
  DownloadOptions download;
  TriggerOptions trigger;
  ConversionOptions conversion;
  WatchOptions watch;
  FollowedCalls tail;
  TopOptions top;
  InspectOptions inspect;
  VerifyOptions verify;
  DumpOptions dump;
  ReportOptions report;
  OpenOptions open;
  PlanOptions plan;
  ConvertOptions convert;
  MergeOptions merge;
  RecoverOptions recover;
  SymbolizeOptions symbolize;
  upload::StoreRequest store;
  bool asks_debuginfod = false;
  std::string filter;
  std::string name;
  std::string text;  // of a marker
  std::string duration;
  std::string pre_roll;
  std::string longer_than;
  std::string interval = "1s";
  std::string timeout;
  std::string slower_than;
  bool takes_signals = false;  // the command waits for them by itself, and has no other thread yet
  std::function<int()> command;
};

// One meaning everywhere, and one text: symbolize/function_pattern.h,
// storage/model/thread_pattern.h.
inline constexpr char kFunctionHelp[] =
    "Only this function: its name, with or without namespace and arguments, a pattern with * and "
    "?, "
    "or a 0x… id; may be repeated";
inline constexpr char kThreadHelp[] =
    "Only this thread: the operating system's id, thread_N (in files) or name=PATTERN; may be "
    "repeated";

// Which store, and who asks: as other programs for S3 know it.
inline constexpr char kStoreVariables[] =
    "AWS_ENDPOINT_URL is the address of a store that is not AWS, AWS_REGION its region. Keys come\n"
    "from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or the profile AWS_PROFILE of\n"
    "~/.aws/credentials.\n";
CLI::Validator store_url_check();
// Ends here with a program of ours in its place; where that cannot be started, says so and returns
// the exit code.
int become_program(const std::string& name, std::vector<std::string> words);
int become_store_program(upload::StoreRequest request, bool json);
void add_upload(CLI::App& app, Line& line);

CLI::Validator thread_check();
CLI::Validator moment_check();  // of time_words.h

// Takes one of these words for its value; others are refused, with the list of them.
template <class Value>
CLI::Validator one_of(const std::vector<std::pair<std::string, Value>>& words) {
  std::string list;
  for (const auto& [word, value] : words) list += (list.empty() ? "" : ",") + word;
  return CLI::Validator(
      [words, list](std::string& text) {
        for (const auto& [word, value] : words) {
          if (text != word) continue;
          text = std::to_string(static_cast<int>(value));
          return std::string();
        }
        return text + " not in {" + list + "}";
      },
      "{" + list + "}");
}

// A count or a time: CLI11 itself takes "-1" for the largest one.
CLI::Validator whole_number();

// One whose lines can be written again: TERM is not "dumb".
bool is_terminal(int fd);
size_t terminal_columns();  // of standard output; 0: it is no terminal
void add_color(CLI::App* command, Line& line);

// Fills in a capture that is not given. False: there is none, which is said.
bool has_capture(std::string& path, bool json);
bool has_capture(std::vector<std::string>& paths, bool json);

CLI::App* add_command(CLI::App& app, const char* name, const char* what);
void add_json(CLI::App* command, Line& line);

// Where the collector is and what is shown there: before the command or behind it.
void add_control(CLI::App& app, ControlTarget& control);

// How a program is recorded, of `run` and `android run`.
void add_recording_options(CLI::App& command, AgentSettings& agent);

// The collector that a run uses: of the command line, or of the environment unless it brings one.
ControlTarget run_control(const ControlTarget& given, const std::string& root);

// Where sessions go, and how the end is told, of whatever records an app on a phone.
void add_phone_recording(CLI::App& command, Line& line, RecordingOptions& recording);

// An app on a phone.
void add_android_commands(CLI::App& app, Line& line);
void add_ios_commands(CLI::App& app, Line& line);

// A collector or a program behind --, which main.cc takes off the line.
CLI::App* add_conformance(CLI::App& app, Line& line);
// A command that talks to a collector, which `run` is told.
CLI::App* add_online(CLI::App& app, Line& line, const char* name, const char* what,
                     std::function<int(const Online&)> run);
CLI::Validator duration_check();
// Of a text that was checked; empty: 0.
std::chrono::nanoseconds duration_of(const std::string& text);

// detail, trigger, filter.
void add_detail_commands(CLI::App& app, Line& line);

// watch, tail, top.
void add_live_commands(CLI::App& app, Line& line);

// What talks to a collector.
void add_online_commands(CLI::App& app, Line& line);

// attach and detach: of a process, or of an agent that listens.
void add_attach_commands(CLI::App& app, Line& line);

// Where the collector is that a command talks to.
Online online(const Line& line);

// plan, and run --dynamic.
void add_plan(CLI::App& app, Line& line);
void add_convert(CLI::App& app, Line& line);
void add_query(CLI::App& app, Line& line);
void add_load(CLI::App& app, Line& line);
// Where the ClickHouse server is.
void add_server(CLI::App* command, warehouse::LoadArguments& warehouse);
std::string server_of_environment();
// The exit code of collect-load.
int run_warehouse(const warehouse::LoadArguments& arguments);
// What of a capture is wanted. `when` is put before the help of each option.
void add_selection(CLI::App* command, ExportSelection& selection, const std::string& when);
void add_dynamic(CLI::App& command, std::vector<std::string>& patterns);

// inspect, verify, dump, report, open, convert, recover, symbolize.
void add_file_commands(CLI::App& app, Line& line);

}  // namespace collect::ctl
