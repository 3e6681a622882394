// `collectctl android …`: an app on a phone, recorded by one command. Everything is sent to the adb
// server itself; no adb program is needed beyond it.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "daemon/ctl/record/phones/phone_recording.h"

namespace collect::ctl {

// The fields library, connect and tag of `agent` are filled in here.
struct AndroidOptions : RecordingOptions {
  std::string serial;  // empty: ANDROID_SERIAL, or the only device
  std::string package;
  std::string activity;    // empty: what a launcher starts
  std::string library;     // the agent's; empty: the installed one for the phone
  std::string token_file;  // with the token that the collector asks agents for; empty: it does not
  // For `android attach`: libraries whose code is changed, as of --dynamic; empty: the app has the
  // agent in it.
  std::vector<std::string> dynamic;
};

// Exit codes as those of `run`: 0, or 125 (kExitRunFailed). To be called before any other thread
// exists.
int android_run(const AndroidOptions& options, std::ostream& err);
// A running app that has the agent in it, or, with `dynamic`, one that gets it.
int android_attach(const AndroidOptions& options, std::ostream& err);
// Undoes what a run left that was killed. 0, or 1.
int android_undo(const AndroidOptions& options, std::ostream& out, std::ostream& err);

}  // namespace collect::ctl
