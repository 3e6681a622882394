// Carries out the collector's commands, and answers each: at once, or when a flush is stored or the
// recording before is sealed. Drain thread only; part of DrainThread. Nothing allocates.
#pragma once

#include <cstdint>

#include "agent/drain/detail_window.h"
#include "agent/drain/link/control_sender.h"
#include "agent/drain/recording_state.h"
#include "agent/drain/ship/buffering.h"
#include "agent/drain/ship/process_pauses.h"
#include "agent/drain/ship/shipper.h"
#include "agent/drain/start_filter.h"
#include "formats/core/bytes.h"

namespace collect::agent {

inline constexpr uint32_t kMaxFlushes = 8;

// How a command ended.
struct CommandAnswer {
  const char* error;  // null: it was done
  uint64_t at_ns;
  uint64_t pre_roll_records = 0;
  uint64_t pre_roll_from_ns = 0;  // 0 without
  uint32_t functions_patched = 0;
};

class Commands {
 public:
  // What answers, and what commands change.
  Commands(ControlSender& sender, Shipper& shipper, RecordingState& recording, DetailWindow& detail,
           StartFilter& start_filter, Buffering& buffering, ProcessPauses& pauses)
      : sender_(sender),
        shipper_(shipper),
        recording_(recording),
        detail_(detail),
        start_filter_(start_filter),
        buffering_(buffering),
        pauses_(pauses) {}

  // The body of a Command. False: it can't be read, and nothing was done.
  bool take(uint64_t now_ms, Bytes body);
  // The last flush that was asked of the shipper is stored.
  void flush_is_done(uint64_t now_ms);
  // The collector has ended the recording: begins the next one, if a start waits for that.
  void recording_is_over(uint64_t now_ms);

  // Answers are owed on the link that asked.
  void link_is_down() { flush_count_ = 0; }
  // The rest of a filter that was begun on another link does not come.
  void control_is_closed() { filter_part_ = 0; }
  // The drain is about to end: no command is carried out from now on.
  void stop();

 private:
  using Phase = RecordingState::Phase;

  void answer(uint64_t now_ms, uint64_t command_id, const CommandAnswer& answer);
  void take_start(uint64_t now_ms);
  void take_stop(uint64_t now_ms);
  void take_detail(uint64_t now_ms);
  void take_function_filter(uint64_t now_ms);
  void take_buffering(uint64_t now_ms);
  void take_flush(uint64_t now_ms);
  const char* take_filter_part(FunctionFilterChange& change);

  ControlSender& sender_;
  Shipper& shipper_;
  RecordingState& recording_;
  DetailWindow& detail_;
  StartFilter& start_filter_;
  Buffering& buffering_;
  ProcessPauses& pauses_;

  bool is_stopping_ = false;
  bool start_waits_ = false;  // for the end of the recording before
  uint64_t start_command_ = 0;
  uint32_t flush_count_ = 0;  // that wait for their pages
  uint64_t flush_commands_[kMaxFlushes];
  uint32_t filter_part_ = 0;      // of a SetFunctionFilter: the one that is wanted next
  collect_wire_Command command_;  // being carried out; 33 KiB
};

}  // namespace collect::agent
