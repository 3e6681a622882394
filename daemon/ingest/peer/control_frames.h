// Takes the frames of a control channel that are not about the channel itself: what the agent says
// of itself, its answers to commands, and what it asks for before it records (WIRE.md "A filter
// before the recording").
//
// Belongs to the io thread of its Peer. A frame that the protocol does not allow changes nothing.
#pragma once

#include "daemon/ingest/peer/agent_commands.h"
#include "daemon/ingest/peer/agent_profile.h"
#include "daemon/ingest/peer/agent_recordings.h"
#include "daemon/ingest/session/loaded_modules.h"
#include "proto/wire/frame_decoder.h"

namespace collect::ingest {

class ControlFrames {
 public:
  ControlFrames(IngestObserver& observer, AgentProfile& profile, AgentRecordings& recordings,
                AgentCommands& commands, LoadedModules& modules)
      : observer_(observer),
        profile_(profile),
        recordings_(recordings),
        commands_(commands),
        modules_(modules) {}

  // A new channel.
  void restart() { filter_asked_ = false; }
  // Not empty: the connection has to end.
  Verdict take(const wire::Frame& frame);

 private:
  Verdict on_heartbeat(const wire::Heartbeat& beat);
  Verdict on_command_result(const wire::CommandResult& result);
  Verdict on_modules(const wire::Modules& modules);
  Verdict on_want_function_filter(const wire::WantFunctionFilter& want);
  Verdict on_counters(const wire::Counters& counters);
  bool may_ask_for_filter() const;

  IngestObserver& observer_;
  AgentProfile& profile_;
  AgentRecordings& recordings_;
  AgentCommands& commands_;
  LoadedModules& modules_;

  bool filter_asked_ = false;  // on this channel
};

}  // namespace collect::ingest
