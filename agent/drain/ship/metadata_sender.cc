#include "agent/drain/ship/metadata_sender.h"

#include <cstring>

#include "agent/text.h"

namespace collect::agent {
namespace {

// Bytes that one frame of the given message can take, so that a frame is only begun when it fits.
constexpr size_t kModulesBytes = collect_wire_Modules_size + sizeof(wire::FrameHeader);

void fill_module(const ModuleRecord& from, collect_wire_Module& module) {
  module.module_id = from.module_id;
  copy_utf8(module.path, sizeof module.path, from.path, sizeof from.path);
  const uint32_t build_id_bytes =
      from.build_id_bytes < kMaxBuildId ? from.build_id_bytes : kMaxBuildId;
  module.build_id.size = static_cast<pb_size_t>(build_id_bytes);
  std::memcpy(module.build_id.bytes, from.build_id, build_id_bytes);
  module.base_address = from.base_address;
  module.size = from.size;
  module.loaded_ns = from.loaded_ns;
  module.unloaded_ns = from.unloaded_ns.load(std::memory_order_acquire);
}

}  // namespace

void MetadataSender::begin_recording(bool unasked) {
  unasked_ = unasked;
  detail_count_ = detail_reported_ = 0;
  begin_link();
}

void MetadataSender::begin_link() {
  recording_reported_ = false;
  modules_reported_ = 0;
  modules_seen_ = module_changes() - 1;  // anything but what it is
  std::memset(unload_reported_, 0, sizeof unload_reported_);
  detail_reported_ = detail_count_ > kMaxDetailStates ? detail_count_ - kMaxDetailStates : 0;
}

void MetadataSender::add_detail_state(uint32_t mode, const DetailChange& change,
                                      const char* reason) {
  collect_wire_DetailState& state = detail_[detail_count_ % kMaxDetailStates];
  state = collect_wire_DetailState_init_zero;
  state.mode = static_cast<collect_wire_DetailMode>(mode);
  state.at_ns = change.at_ns;
  state.pre_roll_from_ns = change.pre_roll_from_ns;
  state.pre_roll_records = change.pre_roll_records;
  copy_utf8(state.reason, sizeof state.reason, reason, sizeof state.reason);
  ++detail_count_;
  if (detail_count_ - detail_reported_ > kMaxDetailStates) {
    detail_reported_ = detail_count_ - kMaxDetailStates;
  }
}

bool MetadataSender::report_recording(SendBuffer& out) {
  if (recording_reported_) return true;
  collect_wire_RecordingStart start = collect_wire_RecordingStart_init_zero;
  start.recording = current_recording();
  start.start_ns = recording_start_ns();
  start.start_unix_ns = recording_start_unix_ns();
  start.atf_version = atf_version_;
  start.max_depth = max_depth_;
  start.longer_than_ns = longer_than_ns_;
  start.late_ns = late_ns_;
  start.max_rate = max_rate_;
  start.switches = has_switches_;
  start.sample_hz = sample_hz_;
  const auto say_why = [](auto& to, const char* why) {
    if (why != nullptr) copy_utf8(to, sizeof to, why, std::strlen(why));
  };
  say_why(start.no_switches, no_switches_);
  say_why(start.no_samples, no_samples_);
  recording_reported_ =
      out.push(wire::FrameType::kRecordingStart, collect_wire_RecordingStart_fields, &start);
  return recording_reported_;
}

bool MetadataSender::report_detail(SendBuffer& out) {
  for (; detail_reported_ < detail_count_; ++detail_reported_) {
    if (!out.push(wire::FrameType::kDetailState, collect_wire_DetailState_fields,
                  &detail_[detail_reported_ % kMaxDetailStates])) {
      return false;
    }
  }
  return true;
}

bool MetadataSender::is_unsent(uint32_t index) const {
  if (index >= modules_reported_) return true;
  const bool unload_reported = (unload_reported_[index / 8] >> (index % 8) & 1) != 0;
  return !unload_reported && module_at(index).unloaded_ns.load(std::memory_order_acquire) != 0;
}

bool MetadataSender::report_modules(SendBuffer& out) {
  if (!modules_changed()) return true;
  const uint32_t changes = module_changes();
  const uint32_t count = module_count();
  modules_.modules_count = 0;
  for (uint32_t i = 0; i < count; ++i) {
    if (!is_unsent(i)) continue;
    if (modules_.modules_count == 0 && out.room() < kModulesBytes) return false;
    collect_wire_Module& module = modules_.modules[modules_.modules_count++];
    fill_module(module_at(i), module);
    // The frame fits, so the module counts as distinguished from here on.
    if (module.unloaded_ns != 0) {
      unload_reported_[i / 8] = static_cast<uint8_t>(unload_reported_[i / 8] | 1u << (i % 8));
    }
    if (i >= modules_reported_) modules_reported_ = i + 1;
    if (modules_.modules_count == wire::kMaxModulesPerFrame || i + 1 == count) {
      if (!out.push(wire::FrameType::kModules, collect_wire_Modules_fields, &modules_))
        return false;
      modules_.modules_count = 0;
    }
  }
  // The last module may have been sent before: those gathered in front of it still wait.
  if (modules_.modules_count != 0 &&
      !out.push(wire::FrameType::kModules, collect_wire_Modules_fields, &modules_)) {
    return false;
  }
  modules_seen_ = changes;
  return true;
}

bool MetadataSender::report_streams(StreamTable& streams, SendBuffer& out) {
  for (uint32_t i = 0; i < streams.size(); ++i) {
    StreamSlot& slot = streams.at(i);
    if (slot.stream == nullptr || slot.close_sent) continue;
    // Again when its thread has another name.
    if (slot.opened && slot.names_sent == stream_names(*slot.stream)) continue;
    StreamInfo info;
    stream_info(*slot.stream, info);
    collect_wire_StreamOpen open = collect_wire_StreamOpen_init_zero;
    open.recording = info.recording;
    open.stream_id = info.stream_id;
    open.thread_id = info.thread_id;
    open.start_ns = info.start_ns;
    open.named_ns = info.named_ns;
    copy_utf8(open.thread_name, sizeof open.thread_name, info.name, sizeof info.name);
    if (!out.push(wire::FrameType::kStreamOpen, collect_wire_StreamOpen_fields, &open)) {
      return false;
    }
    slot.opened = true;
    slot.names_sent = info.names;
  }
  return true;
}

// A program that is not instrumented, as the children of a traced one often are, would else leave a
// session of nothing.
bool MetadataSender::keeps_recording(StreamTable& streams) {
  if (!unasked_) return false;
  streams.refresh();
  unasked_ = streams.size() == 0 && recorder_stats().lost_without_stream == 0;
  return unasked_;
}

bool MetadataSender::send(StreamTable& streams, SendBuffer& out) {
  if (keeps_recording(streams)) return true;
  return report_recording(out) && report_detail(out) && report_modules(out) &&
         report_streams(streams, out);
}

}  // namespace collect::agent
