// Names sealed sessions, one after the other, on a thread of its own: neither recording nor sealing
// waits for it. A session that takes longer than kNamingSlice goes to
// the end of the queue.
//
// What is not named when the daemon ends is marked as pending in its manifest, so that the next
// start continues. What was begun kMaxNamingTries times without an orderly end is given up.
//
// Thread-safe. `fs` and `on_named` outlive it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "daemon/symbolize/session_names.h"
#include "daemon/symbolize/symbolizer.h"
#include "storage/fs/fs.h"
#include "storage/manifest/manifest.h"

namespace collect::symbolize {

// A session whose manifest says that its names are pending.
struct SealedSession {
  std::string name;  // "session_YYYYMMDD_HHMMSS/pid_N"
  std::string directory;
  // That occur in it, sorted; empty: to be read from its files.
  std::vector<uint64_t> functions;
};

class NamingQueue {
 public:
  // What became of a session, on the queue's thread, once for each that was added: kDone, kFailed,
  // kPending when the next start has to continue; kNone when there was nothing to do. `said` is for
  // the log; empty when there is nothing to say.
  using OnNamed = std::function<void(const std::string& name, storage::SymbolsState state,
                                     const std::string& said)>;

  NamingQueue(storage::Fs& fs, SymbolizerOptions options, OnNamed on_named);
  ~NamingQueue();  // as stop() with no time

  const Status& started() const { return started_; }  // else nothing is named

  // False when the queue is full or stopping: the session stays pending.
  bool add(SealedSession session);
  // Ends all work on this session, and returns when nothing touches its files any more: before
  // they are removed.
  void forget(const std::string& name);
  // Continues for as long as `bound`, then leaves the rest pending. Once.
  void stop(std::chrono::milliseconds bound);

  const Symbolizer& symbolizer() const { return symbolizer_; }

 private:
  struct Job {
    SealedSession session;
    std::unique_ptr<SessionNames> names;  // null before its first turn
    uint32_t failed_starts = 0;
  };
  struct Verdict {
    bool is_over = true;
    storage::SymbolsState state = storage::SymbolsState::kNone;
    std::string said{};
  };

  void serve();
  Verdict take_turn(Job& job);
  Result<bool> begin(Job& job, Verdict& verdict);
  Verdict finish(Job& job);
  Verdict leave_pending(Job& job);
  Verdict give_up(Job& job, const Error& error);
  Status write(const storage::Manifest& manifest, const Job& job);

  storage::Fs& fs_;
  const Symbolizer symbolizer_;
  const OnNamed on_named_;

  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable idle_;
  std::deque<std::unique_ptr<Job>> queue_;  // guarded by mutex_
  size_t queued_functions_ = 0;             // guarded by mutex_; of those not begun
  std::string current_;                     // guarded by mutex_; session that is worked on
  uint64_t turns_ = 0;                      // guarded by mutex_; that have ended
  bool stopping_ = false;                   // guarded by mutex_; nothing more is added
  bool ended_ = false;                      // guarded by mutex_; the thread is to end
  std::atomic<bool> cancel_{false};         // what is being looked up now is not wanted any more

  Status started_;
  std::jthread thread_;
};

}  // namespace collect::symbolize
