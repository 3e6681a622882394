// collectctl inspect: of files, or of a session of the collector.
#include "daemon/ctl/check/inspect.h"

#include <unistd.h>

#include <filesystem>
#include <iostream>

#include "daemon/ctl/command_line/shared_options.h"
#include "daemon/ctl/commands/commands.h"
#include "daemon/ctl/control/commands.h"
#include "daemon/ctl/control/download.h"

namespace collect::ctl {
namespace {

struct InspectLine {
  InspectOptions inspect;
  ColorChoice color = ColorChoice::kAuto;
  bool at_collector = false;
  bool files = false;
};

// "session_20260131_235959/pid_4711", perhaps behind "sessions/", and no path of this machine.
bool is_session_name(const std::string& word) {
  std::error_code ignored;
  const bool has_its_form = word.starts_with("session_") || word.starts_with("sessions/session_");
  return has_its_form && !std::filesystem::exists(word, ignored);
}

int inspect_at_collector(const InspectLine& line, const Invocation& invocation) {
  const Online to = online(invocation);
  const std::string& session = line.inspect.path;
  if (line.files) return list_files(to, session);
  const int code = show_manifest(to, session);
  if (code != kExitOk || to.json) return code;
  to.out << "\n";
  return list_files(to, session);
}

}  // namespace

void add_inspect(const CommandGroup& group) {
  const Command command = group.add("inspect", "Show what a file or session is, and its status");
  const auto line = std::make_shared<InspectLine>();
  command.positional("PATH", line->inspect.path,
                     "A session, one thread or one file of it (default: your newest recording); or "
                     "the name of a session of the collector, as sessions lists it");
  command.json();
  add_color(command, line->color);
  const Argument at_collector = command.flag(
      "--at-collector", line->at_collector,
      "Show a session of the collector (default: its newest): manifest and files; with --json, the "
      "manifest as it is");
  (void)command.flag("--files", line->files, "Only list the files of a session of the collector")
      .needs(at_collector);
  command.collector();
  command.run([line](const Invocation& invocation) {
    if (line->at_collector || is_session_name(line->inspect.path)) {
      return inspect_at_collector(*line, invocation);
    }
    InspectOptions& options = line->inspect;
    if (!has_capture(options.path, invocation.json)) return kExitUsage;
    options.json = invocation.json;
    options.color = shows_color(line->color, invocation.json);
    options.progress = is_terminal(STDERR_FILENO);
    return inspect(options, std::cout, std::cerr);
  });
}

}  // namespace collect::ctl
