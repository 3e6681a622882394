// `collectctl attach` and `detach`: a process of this machine by its number, or an agent that
// listens by its address.
#include <algorithm>
#include <charconv>
#include <iostream>
#include <string>

#include "daemon/ctl/command_line/command_line.h"
#include "formats/core/address.h"

namespace collect::ctl {
namespace {

constexpr const char* kAttachFooter =
    "PID: the process is recorded from now on; it need not have been built for it (x86-64). Its\n"
    "threads stand still for some milliseconds; processes that it starts are not recorded. Ctrl-C\n"
    "ends the recording; the process continues, and its functions are as fast as before. The\n"
    "collector at --control (default as in collectctl run --help) is used; if none runs, or with\n"
    "-o, one is started for this recording.\n"
    "\n"
    "Exit code of attach PID: 0, or 125 if it could not be attached to, nothing was recorded, a\n"
    "session is not complete, or a pattern of --only or --except matched no function.\n"
    "\n"
    "Examples:\n"
    "  collectctl attach $(pidof redis-server)\n"
    "  collectctl attach --max-time 10s --dynamic='libsqlite3*' 4711\n"
    "  adb forward tcp:7720 localabstract:collect_agent_4711; collectctl attach 127.0.0.1:7720";

// A process's number; 0: it is something else.
pid_t process_in(const std::string& text) {
  pid_t pid = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), pid);
  return error == std::errc() && end == text.data() + text.size() && pid > 0 ? pid : 0;
}

// What is neither a process nor an address is wrong whatever the collector says.
void refuse_other_words(const CLI::App& command, const std::string& target) {
  const bool is_on_device = target.starts_with("adb:") || target.starts_with("usbmux:");
  if (is_on_device || parse_address(target).ok()) return;
  throw CLI::ValidationError(
      command.get_name(),
      "\"" + target + "\" is neither the number of a process nor the address of an agent");
}

// Options that say how a process is recorded mean nothing to an agent that runs.
void refuse_recording_options(const CLI::App& command, const std::vector<CLI::Option*>& options) {
  for (const CLI::Option* option : options) {
    if (option->count() == 0) continue;
    throw CLI::ValidationError(command.get_name(),
                               option->get_name() + " is for attach PID, not for an address");
  }
}

}  // namespace

void add_attach_commands(CLI::App& app, Line& line) {
  CLI::App* attach =
      add_command(app, "attach", "Record a running process, or connect to an agent that listens");
  attach
      ->add_option("TARGET", line.name,
                   "Number of a process of this machine; or host:port, tcp:port (of this machine) "
                   "or unix:/path of an agent, or an endpoint on a device as agents shows it: "
                   "adb:SERIAL:NAME, usbmux:SERIAL:tcp:PORT")
      ->required();
  const auto known = attach->get_options();
  add_dynamic(*attach, line.process.dynamic);
  attach
      ->add_option("--when-full", line.process.agent.full,
                   "When the ring is full: let the program wait, so that nothing is lost (the "
                   "default), drop the new event and count it, or overwrite the oldest")
      ->type_name("POLICY")
      ->check(CLI::IsMember({"wait", "drop", "overwrite"}));
  add_recording_options(*attach, line.process.agent);
  std::vector<CLI::Option*> recording;
  for (CLI::Option* option : attach->get_options()) {
    if (std::find(known.begin(), known.end(), option) == known.end()) recording.push_back(option);
  }
  add_phone_recording(*attach, line, line.process);
  attach->footer(kAttachFooter);
  attach->callback([&line, attach, recording] {
    line.process.pid = process_in(line.name);
    if (line.process.pid == 0) {
      refuse_other_words(*attach, line.name);
      refuse_recording_options(*attach, recording);
      line.command = [&line] { return attach_agent(online(line), line.name); };
      return;
    }
    line.takes_signals = true;
    line.command = [&line] {
      line.process.control = run_control(line.control, line.process.root);
      line.process.json = line.json;
      return attach_process(line.process, std::cerr);
    };
  });

  CLI::App* detach = add_command(
      app, "detach", "Seal an agent's session and release the agent, or let go of a process");
  add_control(*detach, line.control);
  add_json(detach, line);
  detach
      ->add_option("AGENT", line.name,
                   "Name, as collectctl agents lists it, or the number of a process that attach "
                   "recorded")
      ->required();
  detach->callback([&line] {
    line.command = [&line] {
      line.process.pid = process_in(line.name);
      line.process.json = line.json;
      if (line.process.pid == 0 || !has_agent(line.process.pid)) {
        return detach_agent(online(line), line.name);
      }
      // Numbers name the collector's agents, too, and these come first.
      return detach_agent(online(line), line.name,
                          [&line] { return detach_process(line.process, std::cout, std::cerr); });
    };
  });

  CLI::App* lister = add_command(
      app, "list",
      "List the functions of a program, or the files of a process, that can be recorded");
  lister
      ->add_option("TARGET", line.name,
                   "A program or a shared library; or the number of a process of this machine")
      ->required();
  lister->add_option("--function", line.list.functions, "Only functions with this name or pattern")
      ->type_name("PATTERN")
      ->allow_extra_args(false);
  lister->add_flag("--all", line.list.all,
                   "Also the functions that cannot be recorded, each with the reason");
  add_json(lister, line);
  lister->callback([&line] {
    line.command = [&line] {
      line.list.pid = process_in(line.name);
      line.list.path = line.name;
      line.list.json = line.json;
      return list(line.list, std::cout, std::cerr);
    };
  });
  lister->footer(
      "By run --dynamic and attach; nothing is run or changed. A number is a process, ./NUMBER a\n"
      "file. Exit code 1: nothing can be recorded; a message says why.\n"
      "\n"
      "Examples:\n"
      "  collectctl list --function 'sqlite3_*' /usr/lib/x86_64-linux-gnu/libsqlite3.so.0\n"
      "  collectctl list $(pidof redis-server)");
}

}  // namespace collect::ctl
