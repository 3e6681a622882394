// Makes sessions out of other ones, one at a time, on a thread of its own: of sealed ones in
// another ATF version, and of those that record now as far as they are. A session may take minutes,
// in which others are recorded and sealed. STORAGE.md "Conversion" and "Snapshots" have the files.
//
// The thread is "converter", of low priority. Jobs wait in the order in which they came.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <variant>

#include "daemon/principal/budget.h"
#include "storage/rebuild/session_conversion.h"
#include "storage/rebuild/session_snapshot.h"

namespace collect::daemon {

// That run or wait; more are refused.
inline constexpr size_t kMaxConversions = 16;

class SessionConverter {
 public:
  struct Snapshot {
    storage::SessionCut cut;
    storage::SnapshotMoment moment;
  };
  struct Job {
    storage::SessionPath from;
    std::variant<atf::Version, Snapshot> wanted{};
    // False: no one wants it any more.
    std::function<bool(uint64_t done, uint64_t all)> progress;
    // Exactly once, on the converter's thread; or on the caller's, when it is refused.
    std::function<void(const Result<storage::MadeSession>&)> done;
    std::shared_ptr<void> use{};  // held as long as the session is read
  };

  // `fs` outlives it.
  SessionConverter(storage::Fs& fs, storage::SessionOptions options);
  ~SessionConverter();  // as stop()

  // Once, by who holds the root's lock: what a former daemon left half made is removed first. Jobs
  // are charged to the budget's accounts; it outlives stop().
  Status start(principal::Budget& budget);
  // kLimit: too many wait. Else the job's `done` is called.
  void add(Job job);
  // Ends what runs and answers what waits, with kUnavailable. Nothing is taken any more.
  void stop();

 private:
  void run(principal::Budget& budget);
  Result<storage::MadeSession> make(const Job& job, principal::Budget& budget);

  storage::Fs& fs_;
  const storage::SessionOptions options_;
  std::atomic<bool> stopping_{false};
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Job> waiting_;  // guarded by mutex_
  bool is_busy_ = false;     // guarded by mutex_
  std::jthread thread_;
};

}  // namespace collect::daemon
