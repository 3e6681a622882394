// Reads the events of a session as they come, pairs them (formats/calls), and makes messages of
// what was asked for. Begins behind what is there: calls that are open then are not known.
//
// Where more comes than can be read, events are skipped, which is a gap to the pairing. Memory: the
// open calls, a number for each function, and what one message may hold.
//
// One thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "collect/control/v1/calls.pb.h"
#include "daemon/ctl/follow/call_activity.h"
#include "daemon/ctl/follow/followed_session.h"
#include "daemon/ctl/follow/live_names.h"
#include "formats/calls/function_slots.h"
#include "formats/calls/thread_calls.h"
#include "storage/model/thread_pattern.h"
#include "storage/select/function_filter.h"

namespace collect::ctl::follow {

// What is wanted of a WatchCallsRequest, within its limits.
struct FollowOptions {
  std::vector<storage::ThreadPattern> threads;  // empty: all
  std::vector<std::string> functions;           // empty: all
  uint64_t least_ns = 0;
  size_t most_calls = 0;
};

// Functions that ran lately get their names first; waits for them.
void find_recent_names(const FollowedSession& session, LiveNames& names);

class CallFollower {
 public:
  using Clock = std::chrono::steady_clock;

  // Both outlive it. kInvalidArgument: a word that names no function.
  static Result<std::unique_ptr<CallFollower>> make(FollowedSession& session, LiveNames& names,
                                                    const FollowOptions& options);
  ~CallFollower();

  // Reads what a look has found, until then. Returns whether there is more.
  bool read(Clock::time_point until);
  control::v1::CallBatch take_batch();

 private:
  class Thread;

  CallFollower(FollowedSession& session, LiveNames& names, const FollowOptions& options,
               select::NameFilter filter);
  bool is_wanted(const FollowedThread& thread) const;
  void find_threads();
  uint64_t unread() const;
  void add_calls(control::v1::CallBatch& batch);
  void keep_busiest(std::vector<uint32_t>& slots);
  void add_functions(control::v1::CallBatch& batch);
  void add_threads(control::v1::CallBatch& batch);
  enum class Decision : uint8_t { kUnknown, kWanted, kUnwanted };
  Decision decide(uint32_t slot);
  std::string shown_name(uint32_t slot);

  void on_call(const SeenCall& call);

  FollowedSession& session_;
  LiveNames& names_;
  const FollowOptions options_;
  select::NameFilter filter_;
  calls::FunctionSlots slots_;
  std::vector<Decision> decisions_;  // by slot
  ActivityTable functions_;
  LongestCalls calls_;
  LongestCalls waiting_;                                 // the functions of these have no name yet
  std::map<uint32_t, std::unique_ptr<Thread>> threads_;  // those that are wanted, by n
  uint32_t next_thread_ = 0;                             // whose turn it is
  uint64_t first_ns_ = 0;                                // of the recording
  uint64_t newest_ns_ = 0;
  uint64_t boundary_ns_ = 0;  // newest_ns_ of the message before
  uint64_t skipped_events_ = 0;
  uint64_t skipped_calls_ = 0;
};

}  // namespace collect::ctl::follow
