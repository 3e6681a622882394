// The drain thread's ear: what the collector says on the control channel, and the answers.
#include <cstring>

#include "agent/drain/drain_thread.h"
#include "agent/drain/status.h"
#include "agent/ring/counters.h"

namespace collect::agent {

void DrainThread::protocol_error(const char* reason) {
  link_.refuse(now_ms_, link_.control(), collect_wire_RefuseCode_REFUSE_PROTOCOL, reason);
}

void DrainThread::send_control(wire::FrameType type, const pb_msgdesc_t* fields,
                               const void* message) {
  Channel& control = link_.control();
  if (control.step != ChannelStep::kOpen) return;
  if (control.out.push(type, fields, message)) {
    (void)link_.flush(now_ms_, control);
  } else {
    link_.break_link(now_ms_, "the collector does not read the control channel");
  }
}

void DrainThread::read_control() {
  Channel& control = link_.control();
  for (uint32_t i = 0; i < kFramesPerRound && control.step == ChannelStep::kOpen; ++i) {
    const Bytes before = control.in.unread();
    if (!link_.read(now_ms_, control)) return;
    probe_ns_ = now_ns();
    wire::Frame frame;
    bool any = false;
    while (control.step == ChannelStep::kOpen && link_.next_frame(now_ms_, control, frame)) {
      take_control_frame(frame);
      any = true;
    }
    if (!any && control.in.unread().size() == before.size()) return;
  }
}

void DrainThread::take_control_frame(const wire::Frame& frame) {
  switch (frame.type) {
    case wire::FrameType::kClockProbe:
      answer_probe(frame.body);
      return;
    case wire::FrameType::kAck:
      take_ack(frame.body);
      return;
    case wire::FrameType::kCommand:
      take_command(frame.body);
      return;
    case wire::FrameType::kHeartbeat:
      return;  // hearing it is all there is to it
    case wire::FrameType::kBye:
      take_goodbye(frame.body);
      return;
    case wire::FrameType::kRefuse:
      link_.refused(now_ms_, link_.control(), frame.body);
      return;
    default:
      if (is_known_type(frame.type)) {
        protocol_error("not what a collector says on the control channel");
      }
  }
}

void DrainThread::take_goodbye(Bytes body) {
  collect_wire_Bye bye = collect_wire_Bye_init_zero;
  if (decode_message(body, collect_wire_Bye_fields, &bye)) {
    link_.collector_leaves(now_ms_, bye.will_return);
  } else {
    protocol_error("a Bye that can't be read");
  }
}

void DrainThread::answer_probe(Bytes body) {
  collect_wire_ClockProbe probe = collect_wire_ClockProbe_init_zero;
  if (!decode_message(body, collect_wire_ClockProbe_fields, &probe)) {
    protocol_error("a ClockProbe that can't be read");
    return;
  }
  collect_wire_ClockReply reply = collect_wire_ClockReply_init_zero;
  reply.burst = probe.burst;
  reply.number = probe.number;
  reply.t1_ns = probe.t1_ns;
  reply.t2_ns = probe_ns_;
  reply.t3_ns = now_ns();
  send_control(wire::FrameType::kClockReply, collect_wire_ClockReply_fields, &reply);
}

void DrainThread::take_ack(Bytes body) {
  ack_ = collect_wire_Ack_init_zero;
  if (!decode_message(body, collect_wire_Ack_fields, &ack_)) {
    protocol_error("an Ack that can't be read");
    return;
  }
  // Before the pair is up, what was sent on the last link means nothing any more.
  if (!link_.is_up()) return;
  for (pb_size_t i = 0; i < ack_.positions_count; ++i) {
    shipper_.streams().acknowledge(ack_.positions[i]);
  }
  shipper_.stalls().acknowledge(ack_.stalls_next);
  if (ack_.recording_ended == 0 || phase_ == Phase::kIdle) return;
  if (ack_.recording_ended != current_recording()) return;
  if (phase_ == Phase::kRecording) log_line("the collector ended the recording");
  recording_is_over();
}

void DrainThread::answer(uint64_t command_id, const CommandAnswer& answer) {
  collect_wire_CommandResult result = collect_wire_CommandResult_init_zero;
  result.command_id = command_id;
  result.ok = answer.error == nullptr;
  if (answer.error != nullptr) {
    copy_utf8(result.error, sizeof result.error, answer.error, sizeof result.error);
  }
  result.at_ns = answer.at_ns;
  result.recording = current_recording();
  result.pre_roll_records = answer.pre_roll_records;
  result.pre_roll_from_ns = answer.pre_roll_from_ns;
  result.functions_patched = answer.functions_patched;
  send_control(wire::FrameType::kCommandResult, collect_wire_CommandResult_fields, &result);
}

void DrainThread::take_command(Bytes body) {
  command_.which_what = 0;
  if (!decode_message(body, collect_wire_Command_fields, &command_)) {
    protocol_error("a Command that can't be read, or is longer than the protocol allows");
    return;
  }
  const uint64_t id = command_.command_id;
  if (stop_seen_) {
    answer(id, {"the agent is being stopped", now_ns()});
    return;
  }
  switch (command_.which_what) {
    case collect_wire_Command_start_recording_tag:
      start_by_command();
      return;
    case collect_wire_Command_stop_recording_tag:
      stop_by_command();
      return;
    case collect_wire_Command_set_detail_tag:
      set_detail_by_command();
      return;
    case collect_wire_Command_set_function_filter_tag:
      set_function_filter_by_command();
      return;
    case collect_wire_Command_set_buffering_tag:
      set_buffering_by_command();
      return;
    case collect_wire_Command_flush_tag:
      flush_by_command();
      return;
    default:
      answer(id, {"this agent does not know the command", now_ns()});
  }
}

void DrainThread::start_by_command() {
  const uint64_t id = command_.command_id;
  if (filter_wanted_) {
    answer(id,
           {"the function filter that the program was started with has not come yet", now_ns()});
    return;
  }
  if (phase_ == Phase::kEnding) {
    // One recording at a time: it begins, and is answered, when the last one is sealed.
    if (start_pending_) {
      answer(id, {"a recording is about to start already", now_ns()});
      return;
    }
    start_pending_ = true;
    start_command_ = id;
    return;
  }
  if (phase_ == Phase::kIdle) {
    shipper_.metadata_sender().set_late(0);
    begin_recording(false);
  }
  shipper_.metadata_sender().recording_was_asked_for();
  answer(id, {nullptr, recording_start_ns()});
}

void DrainThread::stop_by_command() {
  if (start_pending_) {
    start_pending_ = false;
    answer(start_command_, {"the recording was stopped before it began", now_ns()});
  }
  if (phase_ == Phase::kRecording) end_recording("command", nullptr);
  if (phase_ == Phase::kEnding) end_kept_recording();
  answer(command_.command_id, {nullptr, now_ns()});
}

void DrainThread::flush_by_command() {
  if (phase_ == Phase::kIdle) {
    answer(command_.command_id, {nullptr, now_ns()});
    return;
  }
  if (flush_count_ == kMaxFlushes) {
    answer(command_.command_id, {"too many flushes are waiting", now_ns()});
    return;
  }
  flush_commands_[flush_count_++] = command_.command_id;
  shipper_.request_flush();
}

void DrainThread::answer_flushes() {
  for (uint32_t i = 0; i < flush_count_; ++i) answer(flush_commands_[i], {nullptr, now_ns()});
  flush_count_ = 0;
}

void DrainThread::set_detail_by_command() {
  const collect_wire_SetDetail& wanted = command_.what.set_detail;
  const uint64_t id = command_.command_id;
  const uint32_t mode = enum_number(wanted.mode);
  if (mode > collect_wire_DetailMode_DETAIL_ON) {
    answer(id, {"this agent does not know the detail mode", now_ns()});
    return;
  }
  if (detail_until_ns_ == 0) {
    // What a limited time returns to; a second command in that time does not change it.
    detail_before_ = detail_mode();
    filtered_before_ = filtered_;
    if (filtered_) filter_before_ = filter_;
  }
  filter_.thread_count = wanted.thread_ids_count;
  filter_.function_count = wanted.function_ids_count;
  std::memcpy(filter_.thread_ids, wanted.thread_ids, sizeof(uint32_t) * wanted.thread_ids_count);
  std::memcpy(filter_.function_ids, wanted.function_ids,
              sizeof(uint64_t) * wanted.function_ids_count);
  filtered_ = filter_.thread_count != 0 || filter_.function_count != 0;
  DetailChange change{};
  change_detail(mode, wanted.pre_roll_ns, filtered_ ? &filter_ : nullptr, "command", change);
  const bool limited = mode == collect_wire_DetailMode_DETAIL_ON && wanted.duration_ns != 0;
  detail_until_ns_ = 0;
  if (limited) {
    const bool for_ever = wanted.duration_ns > UINT64_MAX - change.at_ns;
    detail_until_ns_ = for_ever ? 0 : change.at_ns + wanted.duration_ns;
  }
  answer(id, {nullptr, change.at_ns, change.pre_roll_records, change.pre_roll_from_ns});
}

// Null, or why the part can't be taken; then the parts before it are forgotten too.
const char* DrainThread::take_filter_part(FunctionFilterChange* change) {
  const collect_wire_SetFunctionFilter& wanted = command_.what.set_function_filter;
  const uint32_t mode = enum_number(wanted.mode);
  if (mode > collect_wire_SetFunctionFilter_Mode_ALL_BUT) {
    return "this agent does not know the filter mode";
  }
  if (wanted.part != 0 && wanted.part != filter_part_) {
    return "a part of the function filter is missing";
  }
  if (wanted.part == 0) begin_function_filter(static_cast<FunctionFilterMode>(mode));
  if (!add_to_function_filter(wanted.function_ids, wanted.function_ids_count)) {
    return "more than 65536 functions, or an id that no function has";
  }
  filter_part_ = wanted.part + 1;
  if (wanted.last) {
    may_have_blocked_ = true;
    *change = commit_function_filter();
    filter_has_come();
  }
  return nullptr;
}

void DrainThread::set_function_filter_by_command() {
  FunctionFilterChange change{now_ns(), 0};
  const char* const error = take_filter_part(&change);
  if (error != nullptr || command_.what.set_function_filter.last) filter_part_ = 0;
  answer(command_.command_id, {error, change.at_ns, 0, 0, change.functions_patched});
}

void DrainThread::send_counters() {
  counters_at_ms_ = now_ms_ + kCountersMs;
  counters_sent_ = counter_changes();
  counters_.at_ns = now_ns();
  counters_.counters_count = 0;
  for (uint32_t index = 0; index < wire::kMaxCounters; ++index) {
    CounterReading reading;
    if (!read_counter(index, reading)) continue;
    collect_wire_Counter& counter = counters_.counters[counters_.counters_count++];
    copy_utf8(counter.name, sizeof counter.name, reading.name, sizeof reading.name);
    counter.value = reading.value;
    counter.highest = reading.highest;
  }
  if (counters_.counters_count != 0) {
    send_control(wire::FrameType::kCounters, collect_wire_Counters_fields, &counters_);
  }
}

void DrainThread::send_heartbeat() {
  // A little early, so that the interval holds although the thread sleeps between two looks.
  heartbeat_at_ms_ = now_ms_ + link_.heartbeat_ms() / 2;
  const RecorderStats stats = recorder_stats();
  collect_wire_Heartbeat heartbeat = collect_wire_Heartbeat_init_zero;
  heartbeat.recorded = stats.recorded;
  heartbeat.lost = stats.lost;
  heartbeat.detail_recorded = stats.detail_recorded;
  heartbeat.detail_lost = stats.detail_lost;
  heartbeat.buffer_used = stats.buffer_used;
  heartbeat.buffer_bytes = stats.buffer_bytes;
  heartbeat.threads = stats.threads;
  heartbeat.is_recording = is_recording();
  heartbeat.detail = static_cast<collect_wire_DetailMode>(detail_mode());
  heartbeat.lost_without_stream = stats.lost_without_stream;
  heartbeat.recording = current_recording();
  heartbeat.spooled_bytes = shipper_.streams().spool().bytes();
  heartbeat.link_raw_bytes = shipper_.link_raw_bytes();
  heartbeat.link_sent_bytes = shipper_.link_sent_bytes();
  send_control(wire::FrameType::kHeartbeat, collect_wire_Heartbeat_fields, &heartbeat);
}

}  // namespace collect::agent
