// Commands to one agent, and the requests that wait for their results. A start is answered when
// the recording that the agent names has its session.
//
// Belongs to the io thread of its Peer.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "daemon/ingest/peer/agent_recordings.h"
#include "proto/wire/wire.pb.h"

namespace collect::ingest {

// Questions that wait for their answer, by a key. Each is answered exactly once: with a value, by
// its deadline or by the end of the link. An answer may add another question.
template <class T>
class PendingAnswers {
 public:
  size_t size() const { return pending_.size(); }
  void add(uint64_t key, Answer<T> done, SteadyTime deadline) {
    pending_.emplace(key, Pending{std::move(done), deadline});
  }
  // All that wait for the key, in the order in which they came; an unknown key is
  // passed by.
  void answer(uint64_t key, const T& value) {
    finish([key](uint64_t of, const Pending&) { return of == key; }, Result<T>(value));
  }
  void fail_all(const std::string& reason) {
    finish([](uint64_t, const Pending&) { return true; }, Error{Code::kUnavailable, reason});
  }
  void fail_late(SteadyTime now, const std::string& reason) {
    finish([now](uint64_t, const Pending& one) { return one.deadline <= now; },
           Error{Code::kUnavailable, reason});
  }

 private:
  struct Pending {
    Answer<T> done;
    SteadyTime deadline;
  };

  template <class Fits>
  void finish(const Fits& fits, const Result<T>& result) {
    std::vector<Answer<T>> finished;
    std::erase_if(pending_, [&](auto& one) {
      if (!fits(one.first, one.second)) return false;
      finished.push_back(std::move(one.second.done));
      return true;
    });
    for (const Answer<T>& done : finished) done(result);
  }

  std::multimap<uint64_t, Pending> pending_;
};

class AgentCommands {
 public:
  AgentCommands(const AgentProfile& profile, const AgentRecordings& recordings,
                AgentConnection& connection)
      : profile_(profile), recordings_(recordings), connection_(connection) {}

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
  AgentConnection& connection_;

  PendingAnswers<wire::CommandResult> results_;  // by command id
  PendingAnswers<SessionSnapshot> starts_;       // by recording
  uint64_t last_id_ = 0;
};

}  // namespace collect::ingest
