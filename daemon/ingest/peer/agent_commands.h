// Commands to one agent, and who waits for what becomes of them. A start is answered when the
// recording that the agent names has its session.
//
// Belongs to the io thread of its Peer.
#pragma once

#include <cstdint>
#include <string>

#include "daemon/ingest/peer/agent_recordings.h"
#include "daemon/ingest/peer/control_sender.h"
#include "daemon/ingest/peer/pending_answers.h"
#include "proto/wire/wire.pb.h"

namespace collect::ingest {

class AgentCommands {
 public:
  AgentCommands(const AgentProfile& profile, const AgentRecordings& recordings,
                ControlSender& control)
      : profile_(profile), recordings_(recordings), control_(control) {}

  // kUnavailable: the agent is not connected, its connection ended, or it did not answer in time.
  // kLimit: kMaxPendingCommands wait for it already.
  void issue(wire::Command command, Answer<wire::CommandResult> done);
  void start_recording(Answer<SessionSnapshot> done);
  // The answer that counts is the end of the recording on data.
  void stop_recording();

  // An answer that comes too late is dropped.
  void take(const wire::CommandResult& result) { results_.answer(result.command_id(), result); }
  // The current recording has its session.
  void answer_starts();
  void fail_all(const std::string& reason);
  void sweep(SteadyTime now);

 private:
  const AgentProfile& profile_;
  const AgentRecordings& recordings_;
  ControlSender& control_;

  PendingAnswers<wire::CommandResult> results_;  // by command id
  PendingAnswers<SessionSnapshot> starts_;       // by recording
  uint64_t last_id_ = 0;
};

}  // namespace collect::ingest
