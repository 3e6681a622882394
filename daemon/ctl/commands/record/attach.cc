// collectctl attach: a process of this machine by its number, or an agent that listens by its
// address.
#include <fmt/core.h>

#include <algorithm>
#include <iostream>

#include "daemon/ctl/command_line/recording_options.h"
#include "daemon/ctl/command_line/shared_options.h"
#include "daemon/ctl/commands/commands.h"
#include "daemon/ctl/control/commands.h"
#include "daemon/ctl/record/processes/attach_process.h"
#include "formats/core/address.h"

namespace collect::ctl {
namespace {

constexpr const char* kAttachFooter =
    "PID: the process is recorded from now on; it need not have been built for it (x86-64). Its\n"
    "threads pause for some milliseconds; processes that it starts are not recorded. Ctrl-C\n"
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

bool is_address(const std::string& target) {
  return target.starts_with("adb:") || target.starts_with("usbmux:") || parse_address(target).ok();
}

}  // namespace

void add_attach(const CommandGroup& group) {
  const Command command =
      group.add("attach", "Record a running process, or connect to an agent that listens");
  struct Options {
    std::string target;
    ProcessOptions process;
  };
  const auto options = std::make_shared<Options>();
  command
      .positional("TARGET", options->target,
                  "Number of a process of this machine; or host:port, tcp:port (of this machine) "
                  "or unix:/path of an agent, or an endpoint on a device as agents shows it: "
                  "adb:SERIAL:NAME, usbmux:SERIAL:tcp:PORT")
      .required();
  // These say how a process is recorded and mean nothing to an agent that runs.
  const size_t before = command.arguments().size();
  add_dynamic(command, options->process.dynamic);
  add_when_full(command, "--when-full", options->process.agent,
                "When the ring is full: let the program wait, so that nothing is lost (the "
                "default), drop the new event and count it, or overwrite the oldest");
  add_recording(command, options->process.agent);
  std::vector<Argument> of_process = command.arguments();
  of_process.erase(of_process.begin(), of_process.begin() + static_cast<ptrdiff_t>(before));
  add_recording_output(command, options->process);
  command.footer(kAttachFooter);
  command.run_with_signals(
      [options](const Invocation& invocation) {
        ProcessOptions& process = options->process;
        if (process.pid == 0) {
          take_default_signals();
          return attach_agent(online(invocation), options->target);
        }
        process.control = run_control(invocation.control, process.root);
        process.json = invocation.json;
        return attach_process(process, std::cerr);
      },
      [options, of_process]() -> std::string {
        options->process.pid = process_in(options->target);
        if (options->process.pid != 0) return "";
        if (!is_address(options->target)) {
          return fmt::format(
              "\"{}\" is neither the number of a process nor the address of an agent",
              options->target);
        }
        for (const Argument& argument : of_process) {
          if (!argument.is_given()) continue;
          return argument.name() + " is for attach PID, not for an address";
        }
        return "";
      });
}

}  // namespace collect::ctl
