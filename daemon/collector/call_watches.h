// Follows the calls of recordings for those who watch, each by a run of collect-calls: what it
// reads, how long it takes and what it crashes on is no matter of this process, least of all of
// what stores the recording.
//
// Thread-safe. A thread for each watch, which waits for its program.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "daemon/control/call_feed.h"
#include "daemon/control/collector_api.h"
#include "daemon/symbolize/symbolizer.h"

namespace collect::daemon {

inline constexpr size_t kMaxCallWatches = 8;  // of all clients together

class CallWatches {
 public:
  // `program` is collect-calls. Without `symbols.program` functions are not looked up.
  CallWatches(std::string program, symbolize::SymbolizerOptions symbols);
  ~CallWatches();  // ends all of them; no call comes after it

  // `directory` and `name` are the session's; the name goes into each message. kLimit: there are
  // too many.
  Result<control::WatchId> watch(const std::string& directory, const std::string& name,
                                 const control::api::WatchCallsRequest& request,
                                 control::CallWatcher watcher);
  // Returns when no call runs any more and none will come. Not from inside a call.
  void unwatch(control::WatchId id);
  void stop();

 private:
  struct Watch {
    std::mutex calling;  // held during a call; guards `ended`
    bool ended = false;
    std::atomic<bool> stop{false};
    std::atomic<bool> is_over{false};  // its thread has nothing left to do
    control::CallWatcher watcher;      // constant
    std::jthread thread;
  };

  static void end(Watch& watch, const Status& said);
  void run(Watch& watch, const control::FeedRequest& request, const std::string& name) const;
  void join_ended();  // with mutex_ held

  const std::string program_;
  const symbolize::SymbolizerOptions symbols_;
  std::mutex mutex_;
  bool stopping_ = false;                                       // guarded by mutex_
  control::WatchId last_id_ = 0;                                // guarded by mutex_
  std::map<control::WatchId, std::shared_ptr<Watch>> watches_;  // guarded by mutex_
};

}  // namespace collect::daemon
