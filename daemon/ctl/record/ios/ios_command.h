// `collectctl ios …`: an app on an iPhone, recorded through usbmuxd. Everything is sent to usbmuxd
// itself. Apps are started by Xcode: that needs a pairing with the phone, and TLS.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>

#include "daemon/ctl/record/phones/phone_recording.h"

namespace collect::ctl {

struct IosOptions : RecordingOptions {
  std::string udid;    // empty: the only device
  std::string bundle;  // of `run`: the tag that its agent has
  uint16_t port = 0;   // of `attach`; 0: the only one that an agent listens on
};

// Exit codes as those of `run`: 0, or 125 (kExitRunFailed). To be called before any other thread
// exists.
//
// Waits until the user starts the app, and records it.
int ios_run(const IosOptions& options, std::ostream& err);
// An app that runs, and has the agent in it.
int ios_attach(const IosOptions& options, std::ostream& err);

}  // namespace collect::ctl
