// collectctl android
#include <iostream>

#include "daemon/ctl/command_line/recording_options.h"
#include "daemon/ctl/command_line/shared_options.h"
#include "daemon/ctl/commands/commands.h"
#include "daemon/ctl/record/android/android_command.h"

namespace collect::ctl {
namespace {

constexpr const char* kAndroidRunFooter =
    "The app must be debuggable, its libraries built with -finstrument-functions; Android 10 or\n"
    "later. The agent is copied into the app's data, and the property wrap.PACKAGE starts the app\n"
    "with it; an APK that contains the wrap.sh of deploy/android is started unchanged. All\n"
    "changes are undone when the command ends, or by the next one. The adb server is found as adb\n"
    "finds it (ADB_SERVER_SOCKET, ANDROID_ADB_SERVER_PORT); no adb program is needed.\n"
    "\n"
    "The collector at --control (default as in collectctl run --help) is used if it looks for\n"
    "phones. If none does, or with -o, one is started for this run.\n"
    "\n"
    "Exit code: 0, or 125 if nothing was recorded, a session is not complete, the changes on\n"
    "the phone could not be undone, or a pattern of --only or --except matched no function.\n"
    "\n"
    "Examples:\n"
    "  collectctl android run com.example.app\n"
    "  collectctl android run --max-time 10s --symbols app/build/intermediates com.example.app";

constexpr const char* kAndroidAttachFooter =
    "Without --dynamic the app has the agent in it and listens.\n"
    "\n"
    "With --dynamic the app needs no preparation: the agent and plans for its libraries are\n"
    "copied into its data, Android loads the agent (am attach-agent), and the agent changes the\n"
    "code of the libraries that are loaded then, while the app runs. The app must be debuggable\n"
    "and run as arm64-v8a, Android 10 or later, its libraries beside the APK\n"
    "(useLegacyPackaging), with build ids; code of Java and Kotlin is not recorded. Patterns\n"
    "choose among the app's own libraries. What was copied is removed when the command ends; the\n"
    "agent and the changed code stay in the app until that ends. --agent, --when-full,\n"
    "--agent-token-file and what limits the recording are for --dynamic alone.\n"
    "\n"
    "Ctrl-C ends the recording; the app continues. Exit codes are those of android run.\n"
    "\n"
    "Example:\n"
    "  collectctl android attach --dynamic --max-time 10s com.example.app";

void add_package(const Command& command, AndroidOptions& android) {
  command.positional("PACKAGE", android.package, "The app, such as com.example.app").required();
  command.option("-s,--serial", "SERIAL", &android.serial,
                 "Which device (default: ANDROID_SERIAL, or the only one)");
}

void add_agent_options(const Command& command, AndroidOptions& android) {
  command.option("--agent", "FILE", &android.library, kPhoneAgentHelp);
  add_when_full(command, "--when-full", android.agent,
                "When the ring and the spool are full: drop the new event and count it (the "
                "default), overwrite the oldest, or let the app wait, so that nothing is lost");
  command.option("--agent-token-file", "FILE", &android.token_file,
                 "File with the token that the collector asks agents for; the app gets a copy");
  add_recording(command, android.agent);
}

void record_with(const Command& command, std::shared_ptr<AndroidOptions> android,
                 int (*record)(const AndroidOptions&, std::ostream&)) {
  add_recording_output(command, *android);
  command.run_with_signals([android, record](const Invocation& invocation) {
    android->control = run_control(invocation.control, android->root);
    android->json = invocation.json;
    return record(*android, std::cerr);
  });
}

void add_android_run(const Command& group) {
  const Command command = group.subcommand("run", "Start an app on a phone and record it");
  const auto android = std::make_shared<AndroidOptions>();
  add_package(command, *android);
  command.positional("ACTIVITY", android->activity,
                     "Activity to start, such as .MainActivity (default: the launcher's)");
  add_agent_options(command, *android);
  command.footer(kAndroidRunFooter);
  record_with(command, android, android_run);
}

void add_android_attach(const Command& group) {
  const Command command =
      group.subcommand("attach", "Record a running app that has the agent in it, or gets it");
  const auto android = std::make_shared<AndroidOptions>();
  add_package(command, *android);
  const size_t before = command.arguments().size();
  add_agent_options(command, *android);
  const std::vector<Argument> arguments = command.arguments();
  const Argument dynamic = command.flag(
      "--dynamic", "PATTERN", android->dynamic,
      "Give the agent to an app that was not built for it, and record its libraries by changing "
      "their code in memory; with =PATTERN: those whose file name or path matches; may be repeated "
      "(arm64)");
  for (size_t i = before; i < arguments.size(); ++i) (void)arguments[i].needs(dynamic);
  command.footer(kAndroidAttachFooter);
  record_with(command, android, android_attach);
}

}  // namespace

void add_android(const CommandGroup& group) {
  const Command android = group.add("android", "Record an app on an Android phone");
  add_android_run(android);
  add_android_attach(android);
  const Command undo =
      android.subcommand("undo", "Undo changes on the phone that a killed run left");
  const auto options = std::make_shared<AndroidOptions>();
  add_package(undo, *options);
  undo.run_with_signals([options](const Invocation& invocation) {
    options->json = invocation.json;
    return android_undo(*options, std::cout, std::cerr);
  });
}

}  // namespace collect::ctl
