// The drain thread: the only one of the agent, or the whole of its drain process. Its rounds, how
// long it waits between them, and its life until the end; what a round does is done by the parts
// that it owns. AGENT.md "Drain" has the table of them.
#pragma once

#include <cstdint>

#include "agent/drain/commands.h"
#include "agent/drain/control_reader.h"
#include "agent/drain/detail_window.h"
#include "agent/drain/link/control.h"
#include "agent/drain/link/control_sender.h"
#include "agent/drain/link/link.h"
#include "agent/drain/recording_state.h"
#include "agent/drain/ship/buffering.h"
#include "agent/drain/ship/process_pauses.h"
#include "agent/drain/ship/shipper.h"
#include "agent/drain/ship/traced_process.h"
#include "agent/drain/start_filter.h"
#include "agent/drain/status_reports.h"
#include "agent/drain/switches/thread_clocks.h"
#include "agent/drain/switches/thread_switches.h"
#include "agent/ring/recorder.h"
#include "agent/settings.h"

namespace collect::agent {

// After no one took pages for so long, neither a collector nor a spool, FullPolicy::kWait waits no
// longer.
inline constexpr uint64_t kPageWaitTimeoutMs = 30000;
// What other threads record after a thread has called exit() or _exit() comes sooner than this.
inline constexpr uint64_t kExitingNs = 100'000'000;
inline constexpr uint64_t kPollThreadsMs = 50;
inline constexpr uint64_t kCalibrateMs = 100;
inline constexpr uint64_t kBusyMs = 20;  // after data flowed, look at the rings every millisecond
inline constexpr int kIdleWaitMs = 20;   // while recording; less with small buffers
inline constexpr int kOffWaitMs = 50;    // while not
inline constexpr uint64_t kGoodbyeMs = 200;       // for the last frames, beyond the flush limit
inline constexpr uint64_t kGoodbyeReadMs = 1000;  // for the collector to read the Bye
inline constexpr uint32_t kPumpsPerRound = 16;
inline constexpr uint32_t kNearlyFullPercent = 70;  // of the buffer, used

class DrainThread {
 public:
  DrainThread();

  // On the thread that starts the agent; the recording begins here, so that no event is missed
  // while the thread comes up. Null or a static sentence.
  const char* prepare(const Settings& settings);
  void run();
  // Switches of the process's threads, if they are wanted: in its drain process, before it
  // continues; a drain thread (process 0) has none, and says so.
  void watch_switches(int32_t process);
  // run() of the drain process, for another process: also what was left when that one ended.
  void run_for(TracedProcess& traced);
  const Settings& settings() const { return settings_; }
  // Recording waits for the filter that the settings ask for.
  bool wants_filter() const { return start_filter_.is_wanted(); }
  // After run(): the program is over but for this thread, which now has to end the process.
  bool leaves_process() const { return leaves_process_; }

  // Any thread.
  void request_stop(uint32_t timeout_ms);

  // In a forked child, where no drain thread runs: gives back the child's copies of the
  // sockets and the spool.
  void abandon();
  // Gives up a recording that was begun and can't be shipped.
  void drop_recording();

 private:
  using Phase = RecordingState::Phase;

  void round();
  void note_link();
  bool finished();
  bool must_see_first_event() const;
  bool may_give_up() const;
  void answer_at_exit();
  uint64_t noted_exit_code() const;
  void watch_process();
  void end_with_process();
  void link_came_up();
  void do_housekeeping();
  void note_stats();
  bool page_wait_timed_out() const;
  int wait_ms() const;
  void wait(bool moved);
  void ask_for_filter();
  bool read_data();
  bool ship();

  Settings settings_;  // constant after prepare()
  Link link_;
  Shipper shipper_;
  ProcessPauses pauses_{shipper_.stalls()};
  ThreadSwitches switches_{shipper_.streams(), shipper_.stalls()};
  ThreadClocks clocks_{shipper_.streams(), shipper_.stalls()};
  DetailWindow detail_{settings_, shipper_.metadata_sender(), pauses_};
  RecordingState recording_{settings_, link_, shipper_, detail_, pauses_};
  StartFilter start_filter_{settings_, shipper_.metadata_sender(), recording_, g_control};
  Buffering buffering_{settings_, shipper_.streams().spool()};
  ControlSender sender_{link_};
  Commands commands_{sender_, shipper_, recording_, detail_, start_filter_, buffering_, pauses_};
  ControlReader reader_{link_, sender_, shipper_, recording_, commands_};
  StatusReports reports_{link_, sender_, shipper_};

  uint64_t now_ms_ = 0;
  uint64_t busy_ms_ = 0;  // when a page was last found well filled
  uint64_t poll_threads_at_ms_ = 0;
  uint64_t calibrate_at_ms_ = 0;
  bool goodbye_said_ = false;
  uint64_t closed_until_ms_ = 0;
  bool leaves_process_ = false;
  bool stop_seen_ = false;
  uint64_t exit_answered_ms_ = 0;
  bool up_since_stop_ = false;
  TracedProcess* traced_ = nullptr;   // null: this is a thread of it
  bool process_over_ = false;         // no one waits for the drain process any more
  uint64_t least_left_ = UINT64_MAX;  // in the buffer and the spool, since then
  bool writers_settled_ = false;
  bool was_ever_up_ = false;
  uint32_t rounds_failed_at_stop_ = 0;
};

}  // namespace collect::agent
