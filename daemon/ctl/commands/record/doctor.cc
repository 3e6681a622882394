// collectctl doctor
#include <iostream>

#include "daemon/ctl/command_line/recording_options.h"
#include "daemon/ctl/command_line/shared_options.h"
#include "daemon/ctl/commands/commands.h"
#include "daemon/ctl/doctor/doctor_command.h"

namespace collect::ctl {

void add_doctor(const CommandGroup& group) {
  const Command command = group.add(
      "doctor", "Check whether this machine and its phones can record, and say what prevents it");
  const auto options = std::make_shared<DoctorOptions>();
  command.option("-o,--output", "DIRECTORY", &options->root, kSessionsHelp);
  command.option("-s,--serial", "SERIAL", &options->serial, "The only Android phone to check");
  command.option("-u,--udid", "UDID", &options->udid, "The only iPhone to check");
  command.option("--agent", "FILE", &options->phone_agent, kPhoneAgentHelp);
  command.collector();
  command.json();
  command.footer(
      "Checks the collector, its ports, the agents, the phones behind the adb server and usbmuxd,\n"
      "the system's limits, and the disk, to which it writes at most 256 MiB, for one second, "
      "into\n"
      "a file without a name.\n"
      "\n"
      "Exit code: 0 if programs of this machine can be recorded, 1 if there is a problem. A phone\n"
      "that cannot be recorded on is a warning, and a problem if --serial or --udid names it.");
  command.run([options](const Invocation& invocation) {
    options->control = run_control(invocation.control, "");
    options->json = invocation.json;
    options->columns = terminal_columns();
    return doctor(*options, std::cout);
  });
}

}  // namespace collect::ctl
