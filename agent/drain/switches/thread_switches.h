// The times in which recorded threads were off the processor, blocked or preempted, and samples of
// where they ran: made of the kernel's records, and reported to the stall log. Drain thread only;
// part of DrainThread.
#pragma once

#include <cstdint>

#include "agent/drain/link/stream_table.h"
#include "agent/drain/ship/stall_log.h"
#include "agent/drain/switches/switch_rings.h"

namespace collect::agent {

inline constexpr uint32_t kMaxSwitchingThreads = 8192;  // a power of two; three quarters are used

class ThreadSwitches {
 public:
  ThreadSwitches(StreamTable& streams, StallLog& stalls) : streams_(streams), stalls_(stalls) {}

  // While the process waits. Null, or a static sentence.
  const char* watch(int32_t process, const SwitchesWanted& wanted);
  const char* no_samples() const { return rings_.no_samples(); }
  bool are_watched() const { return rings_.is_open(); }

  // What has happened, but for the last moment: other processors may still write that. `end_ns`:
  // of a recording that does not run any more; threads that are off the processor then are so until
  // its end.
  void look(uint64_t now_ns, bool is_running, uint64_t end_ns);
  // A stream that ended sooner has all its times in the stall log.
  uint64_t known_until_ns() const;
  // Switches that the kernel, or the table of threads, found no room for.
  uint64_t lost() const { return rings_.lost() + lost_; }

 private:
  enum Kind : uint32_t { kBlocked, kPreempted, kSample, kKinds };

  struct Times {  // that found no room in the stall log
    uint64_t first_ns;
    uint64_t last_ns;
    uint64_t off_ns;
    uint32_t count;
  };
  struct Thread {
    uint32_t thread_id;  // 0: a free place
    uint32_t stream_id;  // the last one that was found; 0: none yet
    uint32_t searched;   // for a stream, when so many had come
    bool is_preempted;
    uint64_t out_ns;  // since when it is off the processor; 0: it is not, or not known
    Times joined[kKinds];
  };

  static bool has_joined(const Thread& thread) {
    uint32_t count = 0;
    for (const Times& joined : thread.joined) count += joined.count;
    return count != 0;
  }
  void read(uint64_t until_ns);
  void take(const SwitchRecord& record);
  Thread* find(uint32_t thread_id, bool add);
  void forget_threads();
  StreamSlot* stream_of(Thread& thread);
  void report(Thread& thread, uint64_t in_ns);
  void report_sample(Thread& thread, const SwitchRecord& record);
  void add(Thread& thread, uint32_t stream_id, Kind kind, const ThreadStall& time);
  uint64_t code_at(uint64_t address);
  void give_joined();

  StreamTable& streams_;
  StallLog& stalls_;
  SwitchRings rings_;
  bool is_recorded_ = false;
  uint64_t known_until_ns_ = 0;
  uint64_t lost_ = 0;
  uint32_t joined_count_ = 0;  // of Times that are not empty
  uint32_t thread_count_ = 0;
  uint32_t sampled_module_ = 0;           // the last one
  Thread threads_[kMaxSwitchingThreads];  // cleared when they are watched
};

}  // namespace collect::agent
