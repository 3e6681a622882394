// `collectctl ios` on the command line.
#include <iostream>
#include <string>

#include "daemon/ctl/command_line/command_line.h"

namespace collect::ctl {
namespace {

constexpr const char* kRunFooter =
    "An iPhone's apps are started by Xcode, or by devicectl on a Mac: that needs a pairing with "
    "the\n"
    "phone, which this command does not have. It prints the variables that the app needs, waits\n"
    "for the app, and records it until Ctrl-C or the app's end. The app must contain the agent\n"
    "(deploy/ios/README.md). usbmuxd is found by USBMUXD_SOCKET_ADDRESS, else at\n"
    "/var/run/usbmuxd.\n"
    "\n"
    "The collector at --control (default as in collectctl run --help) is used if it looks for "
    "iPhones.\n"
    "If none does, or with -o, one is started for this run.\n"
    "\n"
    "Exit code: 0, or 125 if nothing was recorded or a session is not complete.\n"
    "\n"
    "Example:\n"
    "  collectctl ios run 00008110-001A2B3C4D5E801E com.example.app";

using Recording = int (*)(const IosOptions&, std::ostream&);

void record_with(CLI::App* command, Line& line, Recording record) {
  add_phone_recording(*command, line, line.ios);
  command->callback([&line, record] {
    line.takes_signals = true;
    line.command = [&line, record] {
      line.ios.control = run_control(line.control, line.ios.root);
      line.ios.json = line.json;
      return record(line.ios, std::cerr);
    };
  });
}

void add_udid(CLI::App& command, IosOptions& ios) {
  command.add_option("-u,--udid", ios.udid, "Which device (default: the only one)")
      ->type_name("UDID");
}

}  // namespace

void add_ios_commands(CLI::App& app, Line& line) {
  CLI::App* ios = add_command(app, "ios", "Record an app on an iPhone");
  ios->require_subcommand(1);
  CLI::App* run = add_command(*ios, "run", "Wait for an app that Xcode starts, and record it");
  run->add_option("UDID", line.ios.udid, "The device, as ios doctor lists it")->required();
  run->add_option("BUNDLE", line.ios.bundle, "The app, such as com.example.app")->required();
  run->footer(kRunFooter);
  record_with(run, line, ios_run);
  CLI::App* attach = add_command(*ios, "attach", "Record a running app that contains the agent");
  add_udid(*attach, line.ios);
  attach
      ->add_option("--port", line.ios.port,
                   "Port of its agent (default: the only one with an agent)")
      ->type_name("PORT")
      ->check(CLI::Range(1, 65535).description(""));
  attach->footer("Ctrl-C ends the recording; the app continues. Exit codes are those of ios run.");
  record_with(attach, line, ios_attach);
  CLI::App* doctor =
      add_command(*ios, "doctor", "Show which iPhones can be recorded on, and why one cannot");
  add_udid(*doctor, line.ios);
  add_json(doctor, line);
  doctor->callback([&line] {
    line.command = [&line] {
      line.ios.json = line.json;
      line.ios.columns = terminal_columns();
      return ios_doctor(line.ios, std::cout, std::cerr);
    };
  });
}

}  // namespace collect::ctl
