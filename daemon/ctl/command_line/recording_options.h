// Options of the commands that record a program, a process or an app.
#pragma once

#include <string>
#include <vector>

#include "daemon/ctl/command_line/command.h"
#include "daemon/ctl/record/phones/phone_recording.h"
#include "daemon/ctl/record/program/run_environment.h"

namespace collect::ctl {

inline constexpr char kSessionsHelp[] =
    "Directory for the sessions (default: ada_traces, or the running collector's)";

// How it is recorded.
void add_recording(const Command& command, AgentSettings& agent);
// What happens when the ring is full; `help` says which is the default.
void add_when_full(const Command& command, const char* names, AgentSettings& agent,
                   const char* help);
// Programs that were not prepared.
void add_dynamic(const Command& command, std::vector<std::string>& patterns);
// Where sessions go, and how the end is reported.
void add_recording_output(const Command& command, RecordingOptions& recording);

// The collector that a run uses: of the command line, or of the environment unless it brings one.
ControlTarget run_control(const ControlTarget& given, const std::string& root);

}  // namespace collect::ctl
