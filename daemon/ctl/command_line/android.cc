// `collectctl android` on the command line.
#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include "daemon/ctl/command_line/command_line.h"

namespace collect::ctl {
namespace {

constexpr const char* kRunFooter =
    "The app must be debuggable, its libraries built with -finstrument-functions; Android 10 or\n"
    "later. The agent is copied into the app's data, and the property wrap.PACKAGE starts the app\n"
    "with it; an APK that contains the wrap.sh of deploy/android is started unchanged. All "
    "changes\n"
    "are undone when the command ends, or by the next one. The adb server is found as adb finds "
    "it\n"
    "(ADB_SERVER_SOCKET, ANDROID_ADB_SERVER_PORT); no adb program is needed.\n"
    "\n"
    "The collector at --control (default as in collectctl run --help) is used if it looks for "
    "phones.\n"
    "If none does, or with -o, one is started for this run.\n"
    "\n"
    "Exit code: 0, or 125 if nothing was recorded, a session is not complete, the changes on\n"
    "the phone could not be undone, or a pattern of --only or --except matched no function.\n"
    "\n"
    "Examples:\n"
    "  collectctl android run com.example.app\n"
    "  collectctl android run --max-time 10s --symbols app/build/intermediates com.example.app";

void add_serial(CLI::App& command, AndroidOptions& android) {
  command
      .add_option("-s,--serial", android.serial,
                  "Which device (default: ANDROID_SERIAL, or the only one)")
      ->type_name("SERIAL");
}

void add_package(CLI::App& command, AndroidOptions& android) {
  command.add_option("PACKAGE", android.package, "The app, such as com.example.app")->required();
  add_serial(command, android);
}

void add_library(CLI::App& command, AndroidOptions& android) {
  command
      .add_option("--agent", android.library,
                  "libcollect_agent.so for the phone (default: the installed one for its ABI)")
      ->type_name("FILE");
}

using Recording = int (*)(const AndroidOptions&, std::ostream&);

void record_with(CLI::App* command, Line& line, Recording record) {
  command->callback([&line, record] {
    line.takes_signals = true;
    line.command = [&line, record] {
      line.android.control = run_control(line.control, line.android.root);
      line.android.json = line.json;
      return record(line.android, std::cerr);
    };
  });
}

void add_agent_options(CLI::App& command, Line& line) {
  add_library(command, line.android);
  command
      .add_option("--when-full", line.android.agent.full,
                  "When the ring and the spool are full: drop the new event and count it (the "
                  "default), overwrite the oldest, or let the app wait, so that nothing is lost")
      ->type_name("POLICY")
      ->check(CLI::IsMember({"wait", "drop", "overwrite"}));
  command
      .add_option("--agent-token-file", line.android.token_file,
                  "File with the token that the collector asks agents for; the app gets a copy")
      ->type_name("FILE");
  add_recording_options(command, line.android.agent);
}

void add_android_run(CLI::App& android, Line& line) {
  CLI::App* command = add_command(android, "run", "Start an app on a phone and record it");
  add_package(*command, line.android);
  command->add_option("ACTIVITY", line.android.activity,
                      "Activity to start, such as .MainActivity (default: the launcher's)");
  add_agent_options(*command, line);
  add_phone_recording(*command, line, line.android);
  command->footer(kRunFooter);
  record_with(command, line, android_run);
}

constexpr const char* kAndroidAttachFooter =
    "Without --dynamic the app has the agent in it and listens.\n"
    "\n"
    "With --dynamic no one need have prepared the app: the agent and plans for its libraries are\n"
    "copied into its data, Android loads the agent (am attach-agent), and the agent changes the\n"
    "code of the libraries that are loaded then, while the app runs. The app must be debuggable "
    "and\n"
    "run as arm64-v8a, Android 10 or later, its libraries lie beside the APK\n"
    "(useLegacyPackaging), with build ids; code of Java and Kotlin is not recorded. Patterns "
    "choose\n"
    "among the app's own libraries. What was copied is removed when the command ends; the agent "
    "and\n"
    "the changed code stay in the app until that ends. --agent, --when-full, --agent-token-file "
    "and\n"
    "what limits the recording are for --dynamic alone.\n"
    "\n"
    "Ctrl-C ends the recording; the app continues. Exit codes are those of android run.\n"
    "\n"
    "Example:\n"
    "  collectctl android attach --dynamic --max-time 10s com.example.app";

void add_android_attach(CLI::App& android, Line& line) {
  CLI::App* command =
      add_command(android, "attach", "Record a running app that has the agent in it, or gets it");
  add_package(*command, line.android);
  const auto known = command->get_options();
  add_agent_options(*command, line);
  std::vector<CLI::Option*> of_dynamic;
  for (CLI::Option* option : command->get_options()) {
    if (std::find(known.begin(), known.end(), option) == known.end()) of_dynamic.push_back(option);
  }
  CLI::Option* const dynamic =
      command
          ->add_flag("--dynamic", line.android.dynamic,
                     "Give the agent to an app that was not built for it, and record its libraries "
                     "by changing their code in memory; with =PATTERN: those whose file name or "
                     "path matches; may be repeated (arm64)")
          ->type_name("PATTERN");
  for (CLI::Option* option : of_dynamic) option->needs(dynamic);
  add_phone_recording(*command, line, line.android);
  command->footer(kAndroidAttachFooter);
  record_with(command, line, android_attach);
}

using Look = int (*)(const AndroidOptions&, std::ostream&, std::ostream&);

void look_with(CLI::App* command, Line& line, Look look) {
  command->callback([&line, look] {
    line.takes_signals = look == android_stop;
    line.android.columns = terminal_columns();
    line.command = [&line, look] {
      line.android.json = line.json;
      return look(line.android, std::cout, std::cerr);
    };
  });
}

}  // namespace

void add_phone_recording(CLI::App& command, Line& line, RecordingOptions& recording) {
  command
      .add_option("-o,--output", recording.root,
                  "Directory for the sessions (default: ada_traces, or the running collector's)")
      ->type_name("DIRECTORY");
  command
      .add_option("--symbols", recording.symbols,
                  "Directory with unstripped libraries, found by build id; may be repeated")
      ->type_name("DIRECTORY")
      ->allow_extra_args(false);
  add_control(command, line.control);
  command.add_flag("-q,--quiet", recording.quiet, "Print nothing unless something is wrong");
  command.add_flag("--json", line.json, "Print the summary as one line of JSON on standard error");
}

void add_android_commands(CLI::App& app, Line& line) {
  CLI::App* android = add_command(app, "android", "Record an app on an Android phone");
  android->require_subcommand(1);
  add_android_run(*android, line);
  add_android_attach(*android, line);
  CLI::App* stop =
      add_command(*android, "stop", "Undo changes on the phone that a killed run left");
  add_package(*stop, line.android);
  look_with(stop, line, android_stop);
  CLI::App* doctor =
      add_command(*android, "doctor", "Show which phones can be recorded on, and why one cannot");
  add_serial(*doctor, line.android);
  add_library(*doctor, line.android);
  add_json(doctor, line);
  look_with(doctor, line, android_doctor);
}

}  // namespace collect::ctl
