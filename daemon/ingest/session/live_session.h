// A session that is not sealed yet, as its io thread has it: what is shown of it, and its
// SessionQueue. An agent's recording and a dial9 feed are one each.
//
// Belongs to one io thread.
#pragma once

#include <asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "daemon/ingest/link/snapshot.h"
#include "daemon/ingest/session/core.h"
#include "daemon/ingest/session/session_queue.h"

namespace collect::ingest {

using SteadyTime = std::chrono::steady_clock::time_point;
template <class T>
using Answer = std::function<void(Result<T>)>;  // called exactly once, on the io thread

class LiveSession {
 public:
  LiveSession(IngestCore& core, asio::io_context& io, std::shared_ptr<principal::Account> account,
              SessionQueue::OnReport on_report);

  // Its first task, and others; what they change is committed when nothing more comes.
  void push(SessionQueue::Act act);
  void note(std::string text);
  void seal(storage::SessionState state, const std::string& reason);

  // Takes name and totals of a report.
  void take(const SessionReport& report);
  void take_sealed(const SessionReport::Sealed& sealed);
  // No one wants its reports any more.
  void leave();
  // At once, or the next time that the sweep finds it due.
  void show(bool now);
  // Time passes.
  void sweep(SteadyTime now);
  // The manifest is not written for every change; when nothing more comes, it is made true.
  void commit_when_settled(SteadyTime now);

  const std::shared_ptr<SessionQueue> queue;
  SessionSnapshot shown;
  bool opened = false;  // it has a name; before that no one is informed of it
  std::vector<Answer<SessionSnapshot>> when_sealed;

 private:
  IngestCore& core_;
  bool unshown_ = false;  // something changed since shown_at_
  SteadyTime shown_at_{};
  SteadyTime put_at_{};      // something came for it
  SteadyTime settled_at_{};  // the last commit for its own sake
};

}  // namespace collect::ingest
