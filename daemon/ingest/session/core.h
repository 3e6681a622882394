// What every part of ingest shares, made once by Ingest and outliving all of them. Everything here
// is constant after start or thread-safe.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "daemon/ingest/link/options.h"
#include "daemon/ingest/link/snapshot.h"
#include "daemon/ingest/link/work_threads.h"
#include "daemon/ingest/session/completed_sessions.h"
#include "daemon/ingest/session/lane_buffers.h"
#include "daemon/ingest/session/session_queue.h"
#include "daemon/principal/budget.h"

namespace collect::ingest {

// The last few process ids of a kind; the oldest is dropped first.
class RecentProcesses {
 public:
  void add(const ProcessId& id);
  void remove(const ProcessId& id);
  bool holds(const ProcessId& id) const;

 private:
  mutable std::mutex mutex_;
  std::set<ProcessId> ids_;
  std::deque<ProcessId> order_;
};

// Lets a bounded number of log lines through in each period and counts the rest.
class LogRateLimiter {
 public:
  // Empty: not this one. Else the line, with what was left out before it.
  std::string admit(const std::string& line,
                    std::chrono::steady_clock::time_point now = std::chrono::steady_clock::now());

 private:
  std::mutex mutex_;
  std::chrono::steady_clock::time_point period_start_{};
  uint32_t lines_ = 0;
  uint64_t left_out_ = 0;
};

struct IngestCore {
  IngestCore(IngestOptions given, storage::Fs& file_system, IngestObserver& watcher);

  const IngestOptions options;
  storage::Fs& fs;
  IngestObserver& observer;
  IngestCounters counters;
  principal::Budget budget;
  LaneBuffers lane_buffers;
  CompletedSessions completed;
  WorkThreads data_threads;
  WorkThreads seal_threads;
  const SessionQueue::Dependencies queue_dependencies;
  std::atomic<AgentId> next_agent_id{1};
  std::atomic<uint32_t> feeds{0};          // connected
  std::atomic<uint64_t> live_sessions{0};  // not sealed yet
  std::atomic<bool> stopping{false};
  RecentProcesses detached;
  LogRateLimiter refusal_lines;

  std::string token() const;
  std::shared_ptr<const TlsContext> tls() const;
  // What new connections are asked for from now on. kInvalidArgument, and nothing changes, where
  // others than this machine can connect and could do so without showing who they are.
  Status set_access(std::string token, std::shared_ptr<const TlsContext> tls);
  // Others than this machine can connect: from now on nothing is taken back of what they must show.
  // kInvalidArgument when that is not enough; `address` is for the sentence.
  Status guard(const std::string& address);
  // For a session whose seal was deferred, and that is no one's any more: shows what became of it.
  SessionQueue::OnReport late_seal(SessionSnapshot shown);
  // Nothing is stored or sealed any more: before the io threads go, which are informed of it.
  void stop_threads();
  // Logs and counts a connection that was turned away.
  void refused(const std::string& peer, const std::string& reason);

 private:
  mutable std::mutex access_mutex_;
  std::string token_;                      // guarded by access_mutex_
  std::shared_ptr<const TlsContext> tls_;  // guarded by access_mutex_
  std::string guarded_;                    // guarded by access_mutex_; empty: this machine only
};

}  // namespace collect::ingest
