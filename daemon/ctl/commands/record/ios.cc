// collectctl ios
#include <iostream>

#include "daemon/ctl/command_line/recording_options.h"
#include "daemon/ctl/commands/commands.h"
#include "daemon/ctl/record/ios/ios_command.h"

namespace collect::ctl {
namespace {

constexpr const char* kIosRunFooter =
    "An iPhone's apps are started by Xcode, or by devicectl on a Mac: that needs a pairing with\n"
    "the phone, which this command does not have. It prints the variables that the app needs,\n"
    "waits for the app, and records it until Ctrl-C or the app's end. The app must contain the\n"
    "agent (deploy/ios/README.md). usbmuxd is found by USBMUXD_SOCKET_ADDRESS, else at\n"
    "/var/run/usbmuxd.\n"
    "\n"
    "The collector at --control (default as in collectctl run --help) is used if it looks for\n"
    "iPhones. If none does, or with -o, one is started for this run.\n"
    "\n"
    "Exit code: 0, or 125 if nothing was recorded or a session is not complete.\n"
    "\n"
    "Example:\n"
    "  collectctl ios run 00008110-001A2B3C4D5E801E com.example.app";

void record_with(const Command& command, std::shared_ptr<IosOptions> ios,
                 int (*record)(const IosOptions&, std::ostream&)) {
  add_recording_output(command, *ios);
  command.run_with_signals([ios, record](const Invocation& invocation) {
    ios->control = run_control(invocation.control, ios->root);
    ios->json = invocation.json;
    return record(*ios, std::cerr);
  });
}

}  // namespace

void add_ios(const CommandGroup& group) {
  const Command ios = group.add("ios", "Record an app on an iPhone");
  const Command run = ios.subcommand("run", "Wait for an app that Xcode starts, and record it");
  const auto of_run = std::make_shared<IosOptions>();
  run.positional("UDID", of_run->udid, "The device, as doctor lists it").required();
  run.positional("BUNDLE", of_run->bundle, "The app, such as com.example.app").required();
  run.footer(kIosRunFooter);
  record_with(run, of_run, ios_run);
  const Command attach = ios.subcommand("attach", "Record a running app that contains the agent");
  const auto of_attach = std::make_shared<IosOptions>();
  attach.option("-u,--udid", "UDID", &of_attach->udid, "Which device (default: the only one)");
  attach.number("--port", "PORT", &of_attach->port,
                "Port of its agent (default: the only one with an agent)", Range{1, 65535});
  attach.footer("Ctrl-C ends the recording; the app continues. Exit codes are those of ios run.");
  record_with(attach, of_attach, ios_attach);
}

}  // namespace collect::ctl
