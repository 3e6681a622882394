#include "agent/drain/commands.h"

#include "agent/text.h"

namespace collect::agent {

bool Commands::take(uint64_t now_ms, Bytes body) {
  command_.which_what = 0;
  if (!decode_message(body, collect_wire_Command_fields, &command_)) return false;
  const uint64_t id = command_.command_id;
  if (is_stopping_) {
    answer(now_ms, id, {"the agent is being stopped", now_ns()});
    return true;
  }
  switch (command_.which_what) {
    case collect_wire_Command_start_recording_tag:
      take_start(now_ms);
      return true;
    case collect_wire_Command_stop_recording_tag:
      take_stop(now_ms);
      return true;
    case collect_wire_Command_set_detail_tag:
      take_detail(now_ms);
      return true;
    case collect_wire_Command_set_function_filter_tag:
      take_function_filter(now_ms);
      return true;
    case collect_wire_Command_set_buffering_tag:
      take_buffering(now_ms);
      return true;
    case collect_wire_Command_flush_tag:
      take_flush(now_ms);
      return true;
    default:
      answer(now_ms, id, {"this agent does not know the command", now_ns()});
      return true;
  }
}

void Commands::stop() {
  is_stopping_ = true;
  start_waits_ = false;
}

void Commands::answer(uint64_t now_ms, uint64_t command_id, const CommandAnswer& answer) {
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
  sender_.send(now_ms, wire::FrameType::kCommandResult, collect_wire_CommandResult_fields, &result);
}

void Commands::take_start(uint64_t now_ms) {
  const uint64_t id = command_.command_id;
  if (start_filter_.is_wanted()) {
    answer(now_ms, id,
           {"the function filter that the program was started with has not come yet", now_ns()});
    return;
  }
  if (recording_.phase() == Phase::kEnding) {
    // One recording at a time: it begins, and is answered, when the last one is sealed.
    if (start_waits_) {
      answer(now_ms, id, {"a recording is about to start already", now_ns()});
      return;
    }
    start_waits_ = true;
    start_command_ = id;
    return;
  }
  recording_.ask();
  answer(now_ms, id, {nullptr, recording_start_ns()});
}

void Commands::recording_is_over(uint64_t now_ms) {
  if (!start_waits_) return;
  start_waits_ = false;
  recording_.ask();
  answer(now_ms, start_command_, {nullptr, recording_start_ns()});
}

void Commands::take_stop(uint64_t now_ms) {
  if (start_waits_) {
    start_waits_ = false;
    answer(now_ms, start_command_, {"the recording was stopped before it began", now_ns()});
  }
  if (recording_.is_running()) recording_.end("command", nullptr);
  recording_.end_kept(now_ms);
  answer(now_ms, command_.command_id, {nullptr, now_ns()});
}

void Commands::take_flush(uint64_t now_ms) {
  if (recording_.phase() == Phase::kIdle) {
    answer(now_ms, command_.command_id, {nullptr, now_ns()});
    return;
  }
  if (flush_count_ == kMaxFlushes) {
    answer(now_ms, command_.command_id, {"too many flushes are waiting", now_ns()});
    return;
  }
  flush_commands_[flush_count_++] = command_.command_id;
  shipper_.request_flush();
}

void Commands::flush_is_done(uint64_t now_ms) {
  for (uint32_t i = 0; i < flush_count_; ++i)
    answer(now_ms, flush_commands_[i], {nullptr, now_ns()});
  flush_count_ = 0;
}

void Commands::take_detail(uint64_t now_ms) {
  const collect_wire_SetDetail& wanted = command_.what.set_detail;
  const uint64_t id = command_.command_id;
  if (enum_number(wanted.mode) > collect_wire_DetailMode_DETAIL_ON) {
    answer(now_ms, id, {"this agent does not know the detail mode", now_ns()});
    return;
  }
  const DetailChange change = detail_.change(wanted, recording_.is_running());
  answer(now_ms, id, {nullptr, change.at_ns, change.pre_roll_records, change.pre_roll_from_ns});
}

void Commands::take_function_filter(uint64_t now_ms) {
  FunctionFilterChange change{now_ns(), 0};
  const bool is_less = enum_number(command_.what.set_function_filter.mode) ==
                       collect_wire_SetFunctionFilter_Mode_LESS;
  if (is_less && filter_part_ != 0) {  // whose parts continue
    answer(now_ms, command_.command_id, {"another function filter is being set", change.at_ns});
    return;
  }
  const char* const error = take_filter_part(change);
  if (error != nullptr || command_.what.set_function_filter.last) filter_part_ = 0;
  answer(now_ms, command_.command_id, {error, change.at_ns, 0, 0, change.functions_patched});
}

// Null, or why the part can't be taken; then the parts before it are discarded too.
const char* Commands::take_filter_part(FunctionFilterChange& change) {
  const collect_wire_SetFunctionFilter& wanted = command_.what.set_function_filter;
  const uint32_t mode = enum_number(wanted.mode);
  if (mode > collect_wire_SetFunctionFilter_Mode_LESS) {
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
    pauses_.note_blocking();
    change = commit_function_filter();
    start_filter_.has_come();
  }
  return nullptr;
}

void Commands::take_buffering(uint64_t now_ms) {
  const bool has_recording = recording_.phase() != Phase::kIdle;
  const char* const error = buffering_.change(command_.what.set_buffering, has_recording);
  answer(now_ms, command_.command_id, {error, now_ns()});
}

}  // namespace collect::agent
