// The drain thread: the only one of the agent, or the whole of its drain process. Ships what the
// recorder holds, does what the collector says, and keeps house. AGENT.md has the ownership table.
#pragma once

#include <cstdint>

#include "agent/drain/control.h"
#include "agent/drain/link.h"
#include "agent/drain/pause_watch.h"
#include "agent/drain/shipper.h"
#include "agent/drain/traced_process.h"
#include "agent/ring/recorder.h"
#include "agent/settings.h"

namespace collect::agent {

// After nobody took pages for so long, neither a collector nor a spool, FullPolicy::kWait waits no
// longer.
inline constexpr uint64_t kMaxWaitInVainMs = 30000;
inline constexpr uint64_t kPollThreadsMs = 50;
inline constexpr uint64_t kCalibrateMs = 100;
inline constexpr uint64_t kBusyMs = 20;  // after data flowed, look at the rings every millisecond
inline constexpr int kIdleWaitMs = 20;   // while recording; less with small buffers
inline constexpr int kOffWaitMs = 50;    // while not
inline constexpr uint64_t kGoodbyeMs = 200;       // for the last frames, beyond the flush limit
inline constexpr uint64_t kGoodbyeReadMs = 1000;  // for the collector to read the Bye
inline constexpr uint64_t kStopLookMs = 10;  // at least, between two looks whether it is stopped
inline constexpr uint64_t kCountersMs = 10;  // at least, between two frames of counters
inline constexpr uint32_t kMaxFlushes = 8;
// How long a program is held for the filter that it is to be recorded with: until a collector is
// asked for it, and until that one has answered.
inline constexpr uint64_t kFilterHoldMs = 2000;
inline constexpr uint64_t kMaxFilterHoldMs = 30000;
inline constexpr uint32_t kPumpsPerRound = 16;
inline constexpr uint32_t kFramesPerRound = 64;

// How a command ended.
struct CommandAnswer {
  const char* error;  // null: it was done
  uint64_t at_ns;
  uint64_t pre_roll_records = 0;
  uint64_t pre_roll_from_ns = 0;  // 0 without
  uint32_t functions_patched = 0;
};

class DrainThread {
 public:
  // On the thread that starts the agent; the recording begins here, so that no event is missed
  // while the thread comes up. Null or a static sentence.
  const char* prepare(const Settings& settings);
  void run();
  // The same from the drain process, for another process: also what was left when that one ended.
  void run_for(TracedProcess& traced);
  const Settings& settings() const { return settings_; }
  // Recording waits for the filter that the settings ask for.
  bool wants_filter() const { return filter_wanted_; }
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
  enum class Phase : uint8_t { kIdle, kRecording, kEnding };

  void round();
  bool finished();
  bool may_give_up() const;
  void watch_process();
  void end_with_process();
  void link_came_up();
  void keep_house();
  const char* open_spool(uint32_t megabytes);
  bool waits_in_vain() const;
  int wait_ms() const;
  void wait(bool moved);

  // Control channel (commands.cc).
  void read_control();
  void take_control_frame(const wire::Frame& frame);
  void take_goodbye(Bytes body);
  void answer_probe(Bytes body);
  void take_ack(Bytes body);
  void take_command(Bytes body);
  void set_detail_by_command();
  void set_function_filter_by_command();
  void set_buffering_by_command();
  const char* change_full_policy(uint32_t when_full);
  const char* change_spool(uint32_t megabytes);
  const char* take_filter_part(FunctionFilterChange* change);
  void answer(uint64_t command_id, const CommandAnswer& answer);
  void send_control(wire::FrameType type, const pb_msgdesc_t* fields, const void* message);
  void start_by_command();
  void stop_by_command();
  void flush_by_command();
  void answer_flushes();
  void send_heartbeat();
  void send_counters();
  void protocol_error(const char* reason);

  // The filter that the settings ask for (start_filter.cc).
  void ask_for_filter();
  void filter_has_come();

  bool read_data();
  bool ship();

  // Recording.
  void begin_by_itself();
  void begin_recording(bool unasked);
  void end_recording(const char* reason, const collect_wire_ProcessEnd* process_end);
  void recording_is_over();
  void end_kept_recording();
  void change_detail(uint32_t mode, uint64_t pre_roll_ns, const DetailFilter* filter,
                     const char* reason, DetailChange& change);
  void watch_detail_timer();
  void end_at_limit();

  // Stalls of the whole process (drain_pauses.cc).
  void look_for_pauses(uint64_t may_sleep_ns);
  void look_for_stop();
  void end_stop();
  void add_pause(collect_wire_Stall_Kind kind, uint64_t first_ns, uint64_t last_ns);

  Settings settings_;
  Link link_;
  Shipper shipper_;

  Phase phase_ = Phase::kIdle;
  bool start_pending_ = false;  // a StartRecording that waits for the end of the recording before
  uint64_t start_command_ = 0;
  uint32_t flush_count_ = 0;  // Flush commands that wait for their pages
  uint64_t flush_commands_[kMaxFlushes];

  // Settings::max_time_ns and max_bytes, of this recording.
  uint64_t ends_at_ns_ = 0;      // 0: at no time
  uint64_t recorded_bytes_ = 0;  // of records, when last looked at; of detail the least

  // Detail recording for a limited time: when it ends, and what it was before.
  uint64_t detail_until_ns_ = 0;
  uint32_t detail_before_ = 0;
  bool filtered_before_ = false;
  bool filtered_ = false;
  DetailFilter filter_;
  DetailFilter filter_before_;

  bool filter_wanted_ = false;  // it has not come yet, and nothing is recorded
  bool filter_asked_ = false;   // on this link
  bool filter_late_said_ = false;
  uint32_t filter_part_ = 0;  // of a SetFunctionFilter: the one that is wanted next

  uint64_t now_ms_ = 0;
  uint64_t busy_ms_ = 0;  // when a page was last found well filled
  uint64_t heartbeat_at_ms_ = 0;
  uint64_t counters_at_ms_ = 0;
  uint32_t counters_sent_ = 0;  // counter_changes() when they were sent last
  uint64_t poll_threads_at_ms_ = 0;
  uint64_t calibrate_at_ms_ = 0;
  uint64_t probe_ns_ = 0;  // when the bytes being looked at arrived
  bool goodbye_said_ = false;
  uint64_t closed_until_ms_ = 0;
  bool leaves_process_ = false;
  bool stop_seen_ = false;
  bool up_since_stop_ = false;
  TracedProcess* traced_ = nullptr;   // null: this is a thread of it
  bool process_over_ = false;         // nobody waits for the drain process any more
  uint64_t least_left_ = UINT64_MAX;  // in the buffer and the spool, since then
  bool writers_settled_ = false;
  bool was_ever_up_ = false;
  uint32_t rounds_failed_at_stop_ = 0;

  PauseWatch pause_watch_;
  bool may_have_blocked_ = false;  // since the last look: on the disk, or for threads to be quiet
  uint64_t stop_look_at_ms_ = 0;
  uint64_t stopped_first_ns_ = 0;  // the stop that is seen now; 0: none
  uint64_t stopped_last_ns_ = 0;

  collect_wire_Command command_;  // 33 KiB
  collect_wire_Ack ack_;
  collect_wire_Counters counters_;
};

}  // namespace collect::agent
