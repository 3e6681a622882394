#include "tests/agent/fake_recorder.h"

#include <time.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <set>

#include "agent/platform/threads.h"
#include "formats/core/bytes.h"

namespace collect::agent {

namespace {
constexpr size_t kLaneBytes = 16u << 20;  // reserved, so that spans never move
}

struct FakeLane {
  std::vector<uint8_t> bytes;
  std::vector<size_t> starts;  // of each record; where the next one begins at the end
  uint64_t sent = 0;
  uint64_t acknowledged = 0;
  uint64_t lost = 0;
  uint64_t lost_reported = 0;
  uint32_t reasons = 0;

  uint64_t count() const { return starts.empty() ? 0 : starts.size() - 1; }
  // The memory is someone else's from now on.
  void give_back(uint64_t next) {
    const uint64_t end = std::min(next, count());
    if (end <= acknowledged) return;
    std::memset(bytes.data() + starts[acknowledged], 0xDD, starts[end] - starts[acknowledged]);
    acknowledged = end;
  }
  void append(const uint8_t* record, size_t size) {
    if (starts.empty()) {
      bytes.reserve(kLaneBytes);
      starts.push_back(0);
    }
    bytes.insert(bytes.end(), record, record + size);
    starts.push_back(bytes.size());
  }
};

struct Stream {
  uint32_t id = 0;
  uint32_t recording = 0;
  uint32_t thread_id = 0;
  std::string name;
  uint32_t names = 1;
  bool ended = false;
  uint64_t left_out = 0;
  FakeLane lanes[2];
  std::deque<ThreadStall> stalls;
};

namespace {

struct State {
  std::mutex mutex;
  std::array<std::unique_ptr<Stream>, kMaxStreams> slots;
  uint32_t used_slots = 0;
  uint32_t next_stream = 1;
  std::set<uint32_t> released;
  std::vector<std::unique_ptr<ModuleRecord>> modules;
  uint32_t module_changes = 0;
  uint32_t recording = 0;
  bool recording_now = false;
  bool size_is_reached = false;
  uint64_t start_ns = 0;
  uint64_t lost_without_stream = 3;
  uint32_t detail = 0;
  uint32_t filter_threads = 0;
  std::vector<uint64_t> filter_begun;
  std::vector<uint64_t> filter_held;
  uint32_t filters = 0;
  uint32_t filter_functions = 0;
  uint32_t thread_looks = 0;
  uint32_t clock_fits = 0;
  bool waiting = true;
  FullPolicy full = FullPolicy::kDrop;
  bool filled = false;
  std::function<void()> after_span;
};

State& state() {
  static State the_state;
  return the_state;
}

Stream& stream_of(uint32_t id) {
  for (auto& slot : state().slots) {
    if (slot && slot->id == id) return *slot;
  }
  std::abort();  // the test names a stream that it has not made
}

using Lock = std::lock_guard<std::mutex>;

}  // namespace

namespace fake {

void reset() {
  const Lock lock(state().mutex);
  State& s = state();
  for (auto& slot : s.slots) slot.reset();
  s.used_slots = 0;
  s.next_stream = 1;
  s.released.clear();
  s.modules.clear();
  s.filter_begun.clear();
  s.filter_held.clear();
  s.filters = 0;
  s.module_changes = s.recording = s.detail = s.filter_threads = s.filter_functions = 0;
  s.thread_looks = s.clock_fits = 0;
  s.lost_without_stream = 3;
  s.recording_now = false;
  s.size_is_reached = false;
  s.waiting = true;
  s.filled = false;
  s.after_span = nullptr;
}

uint32_t add_stream(uint32_t thread_id, const std::string& name) {
  const Lock lock(state().mutex);
  State& s = state();
  uint32_t slot = 0;
  while (s.slots[slot]) ++slot;
  if (slot + 1 > s.used_slots) s.used_slots = slot + 1;
  s.slots[slot] = std::make_unique<Stream>();
  Stream& stream = *s.slots[slot];
  stream.id = s.next_stream++;
  stream.recording = s.recording;
  stream.thread_id = thread_id;
  stream.name = name;
  return stream.id;
}

void rename_stream(uint32_t stream_id, const std::string& name) {
  const Lock lock(state().mutex);
  Stream& stream = stream_of(stream_id);
  stream.name = name;
  ++stream.names;
}

Bytes32 index_record(uint32_t stream_id, uint64_t number) {
  Bytes32 record{};
  store_le<uint64_t>(record.bytes, 1000 + number);
  store_le<uint64_t>(record.bytes + 8, uint64_t{stream_id} << 32 | number);
  store_le<uint64_t>(record.bytes + 16, UINT64_MAX);
  record.bytes[24] = static_cast<uint8_t>(1 + number % 2);
  return record;
}

std::vector<uint8_t> detail_record(uint64_t number) {
  std::vector<uint8_t> record(24 + number % 100, static_cast<uint8_t>(number));
  store_le<uint32_t>(record.data(), static_cast<uint32_t>(record.size()));
  store_le<uint64_t>(record.data() + 16, 1000 + number);
  return record;
}

void write_index(uint32_t stream_id, uint32_t count) {
  const Lock lock(state().mutex);
  FakeLane& lane = stream_of(stream_id).lanes[0];
  for (uint32_t i = 0; i < count; ++i) {
    lane.append(index_record(stream_id, lane.count()).bytes, 32);
  }
}

void write_detail(uint32_t stream_id, uint32_t count) {
  const Lock lock(state().mutex);
  FakeLane& lane = stream_of(stream_id).lanes[1];
  for (uint32_t i = 0; i < count; ++i) {
    const auto record = detail_record(lane.count());
    lane.append(record.data(), record.size());
  }
}

void lose(uint32_t stream_id, Lane which, uint64_t count, uint32_t reasons) {
  const Lock lock(state().mutex);
  FakeLane& lane = stream_of(stream_id).lanes[static_cast<size_t>(which)];
  lane.lost += count;
  lane.reasons |= reasons;
}
void lose_index(uint32_t stream_id, uint64_t count, uint32_t reasons) {
  lose(stream_id, Lane::kIndex, count, reasons);
}

void leave_out(uint32_t stream_id, uint64_t calls) {
  const Lock lock(state().mutex);
  stream_of(stream_id).left_out += calls;
}

void stall(uint32_t stream_id, const ThreadStall& stall) {
  const Lock lock(state().mutex);
  stream_of(stream_id).stalls.push_back(stall);
}

void end_stream(uint32_t stream_id) {
  const Lock lock(state().mutex);
  stream_of(stream_id).ended = true;
}

void add_module(const std::string& path) {
  const Lock lock(state().mutex);
  State& s = state();
  auto module = std::make_unique<ModuleRecord>();
  module->module_id = static_cast<uint32_t>(s.modules.size());
  std::memcpy(module->path, path.c_str(), path.size() + 1);
  module->build_id_bytes = 20;
  module->build_id[19] = 0x42;
  module->base_address = 0x7f0000000000;
  module->size = 0x5000;
  module->loaded_ns = 66;
  s.modules.push_back(std::move(module));
  ++s.module_changes;
}

void unload_module(uint32_t module_id) {
  const Lock lock(state().mutex);
  state().modules[module_id]->unloaded_ns.store(77);
  ++state().module_changes;
}

void after_next_span(std::function<void()> act) {
  const Lock lock(state().mutex);
  state().after_span = std::move(act);
}

uint64_t acknowledged(uint32_t stream_id, Lane lane) {
  const Lock lock(state().mutex);
  return stream_of(stream_id).lanes[static_cast<size_t>(lane)].acknowledged;
}

bool was_released(uint32_t stream_id) {
  const Lock lock(state().mutex);
  return state().released.contains(stream_id);
}

uint32_t streams_held() {
  const Lock lock(state().mutex);
  uint32_t count = 0;
  for (auto& slot : state().slots) count += slot ? 1 : 0;
  return count;
}

bool waiting_is_allowed() {
  const Lock lock(state().mutex);
  return state().waiting;
}

void fill_buffer(bool is_filled) {
  const Lock lock(state().mutex);
  state().filled = is_filled;
}

void begin_at(uint64_t ns) {
  const Lock lock(state().mutex);
  state().start_ns = ns;
}

void lose_without_stream(uint64_t count) {
  const Lock lock(state().mutex);
  state().lost_without_stream = count;
}

void reach_size() {
  const Lock lock(state().mutex);
  state().size_is_reached = true;
}

uint32_t detail_filter_functions() {
  const Lock lock(state().mutex);
  return state().filter_functions;
}
std::vector<uint64_t> function_filter() {
  const Lock lock(state().mutex);
  return state().filter_held;
}
uint32_t function_filters() {
  const Lock lock(state().mutex);
  return state().filters;
}
uint32_t thread_looks() {
  const Lock lock(state().mutex);
  return state().thread_looks;
}
uint32_t clock_fits() {
  const Lock lock(state().mutex);
  return state().clock_fits;
}
uint32_t detail_filter_threads() {
  const Lock lock(state().mutex);
  return state().filter_threads;
}

}  // namespace fake

uint64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000 + static_cast<uint64_t>(now.tv_nsec);
}

uint32_t start_recording() {
  const Lock lock(state().mutex);
  state().recording_now = true;
  state().size_is_reached = false;
  state().start_ns = now_ns();
  return ++state().recording;
}

void stop_recording() {
  const Lock lock(state().mutex);
  state().recording_now = false;
}

bool size_reached() {
  const Lock lock(state().mutex);
  return state().size_is_reached;
}

bool is_recording() {
  const Lock lock(state().mutex);
  return state().recording_now;
}

uint32_t current_recording() {
  const Lock lock(state().mutex);
  return state().recording;
}

uint64_t recording_start_ns() {
  return state().start_ns;
}
uint64_t recording_start_unix_ns() {
  return 1'700'000'000'000'000'000;
}

DetailChange set_detail(uint32_t mode, uint64_t pre_roll_ns, const DetailFilter* filter) {
  const Lock lock(state().mutex);
  state().detail = mode;
  state().filter_threads = filter != nullptr ? filter->thread_count : 0;
  state().filter_functions = filter != nullptr ? filter->function_count : 0;
  DetailChange change{now_ns(), 0, 0};
  if (pre_roll_ns != 0) {
    change.pre_roll_from_ns = change.at_ns - pre_roll_ns;
    change.pre_roll_records = 5;
  }
  return change;
}

void begin_function_filter(FunctionFilterMode) {
  const Lock lock(state().mutex);
  state().filter_begun.clear();
}

bool add_to_function_filter(const uint64_t* ids, uint32_t count) {
  const Lock lock(state().mutex);
  state().filter_begun.insert(state().filter_begun.end(), ids, ids + count);
  return state().filter_begun.size() <= kMaxFunctionFilter;
}

FunctionFilterChange commit_function_filter() {
  const Lock lock(state().mutex);
  state().filter_held = state().filter_begun;
  ++state().filters;
  return {now_ns(), 7};
}

uint32_t detail_mode() {
  const Lock lock(state().mutex);
  return state().detail;
}

uint32_t stream_slots() {
  const Lock lock(state().mutex);
  return state().used_slots;
}

Stream* stream_at(uint32_t slot) {
  const Lock lock(state().mutex);
  return state().slots[slot].get();
}

void stream_info(Stream& stream, StreamInfo& info) {
  const Lock lock(state().mutex);
  info = StreamInfo{};
  info.stream_id = stream.id;
  info.recording = stream.recording;
  info.thread_id = stream.thread_id;
  std::memcpy(info.name, stream.name.data(), std::min(stream.name.size(), sizeof info.name - 1));
  info.start_ns = 500;
  info.names = stream.names;
  info.named_ns = stream.names == 1 ? 0 : 500 + stream.names;
}
uint32_t stream_names(Stream& stream) {
  const Lock lock(state().mutex);
  return stream.names;
}

StreamCounts stream_counts(Stream& stream) {
  const Lock lock(state().mutex);
  return {stream.lanes[0].count(), stream.lanes[0].lost, stream.lanes[1].count(),
          stream.lanes[1].lost, stream.left_out};
}

bool trailing_loss(Stream& stream, Lane which, uint64_t lost_sent, Page& span) {
  const Lock lock(state().mutex);
  const FakeLane& lane = stream.lanes[static_cast<size_t>(which)];
  if (lane.lost <= lost_sent) return false;
  span = Page{};
  span.first_seq = lane.count();
  span.lost_total = lane.lost;
  span.lost_reasons = lane.reasons;
  return true;
}

bool stream_ended(Stream& stream) {
  const Lock lock(state().mutex);
  return stream.ended || !state().recording_now || stream.recording != state().recording;
}

uint64_t stream_end_ns(Stream&) {
  return 9000;
}

static bool span_from(const FakeLane& lane, Lane which, uint64_t from, uint32_t max_bytes,
                      bool flush, Page& span) {
  if (from >= lane.count()) return false;
  const size_t begin = lane.starts[from];
  if (!flush && lane.bytes.size() - begin < kPageBytes / 2) return false;
  uint64_t end = from + 1;
  while (end < lane.count() && lane.starts[end + 1] - begin <= max_bytes) ++end;
  span = Page{};
  span.lane = which;
  span.raw_bytes = static_cast<uint32_t>(lane.starts[end] - begin);
  span.bytes = Bytes(lane.bytes.data() + begin, span.raw_bytes);
  span.record_count = static_cast<uint32_t>(end - from);
  span.first_seq = from;
  span.first_ns = 1000 + from;
  span.last_ns = 1000 + end - 1;
  span.lost_total = lane.lost;
  if (lane.lost != lane.lost_reported) span.lost_reasons = lane.reasons;
  return true;
}

bool next_span(Stream& stream, Lane which, uint32_t max_bytes, bool flush, Page& span) {
  std::function<void()> act;
  {
    const Lock lock(state().mutex);
    const FakeLane& lane = stream.lanes[static_cast<size_t>(which)];
    if (!span_from(lane, which, lane.sent, max_bytes, flush, span)) return false;
    act.swap(state().after_span);
    fake::most_spans = std::max(fake::most_spans, ++fake::spans_since_preparation);
  }
  if (act) act();
  return true;
}

bool oldest_span(Stream& stream, Lane which, uint64_t from, bool flush, Page& span) {
  const Lock lock(state().mutex);
  const FakeLane& lane = stream.lanes[static_cast<size_t>(which)];
  return span_from(lane, which, std::max(from, lane.acknowledged), kPageBytes, flush, span);
}

void set_aside(Stream& stream, Lane which, uint64_t next) {
  {
    const Lock lock(state().mutex);
    FakeLane& lane = stream.lanes[static_cast<size_t>(which)];
    lane.sent = std::max(lane.sent, next);
  }
  acknowledge(stream, which, next);
}

void mark_sent(Stream& stream, Lane which, const Page& span) {
  const Lock lock(state().mutex);
  FakeLane& lane = stream.lanes[static_cast<size_t>(which)];
  lane.sent = span.first_seq + span.record_count;
  lane.lost_reported = span.lost_total;
}

void acknowledge(Stream& stream, Lane which, uint64_t next) {
  const Lock lock(state().mutex);
  FakeLane& lane = stream.lanes[static_cast<size_t>(which)];
  lane.give_back(std::min(next, lane.sent));
}

void rewind(Stream& stream, Lane which, uint64_t next) {
  const Lock lock(state().mutex);
  FakeLane& lane = stream.lanes[static_cast<size_t>(which)];
  lane.sent = std::max(next, lane.acknowledged);
  lane.lost_reported = 0;
}

bool take_stall(Stream& stream, ThreadStall& stall) {
  const Lock lock(state().mutex);
  if (stream.stalls.empty()) return false;
  stall = stream.stalls.front();
  stream.stalls.pop_front();
  return true;
}

bool all_acknowledged(Stream& stream) {
  const Lock lock(state().mutex);
  return stream.lanes[0].acknowledged == stream.lanes[0].count() &&
         stream.lanes[1].acknowledged == stream.lanes[1].count();
}

void release_stream(Stream& stream) {
  const Lock lock(state().mutex);
  state().released.insert(stream.id);
  for (auto& slot : state().slots) {
    if (slot.get() == &stream) slot.reset();
  }
}

uint32_t module_count() {
  const Lock lock(state().mutex);
  return static_cast<uint32_t>(state().modules.size());
}

const ModuleRecord& module_at(uint32_t index) {
  const Lock lock(state().mutex);
  return *state().modules[index];
}

uint32_t module_changes() {
  const Lock lock(state().mutex);
  return state().module_changes;
}

void prepare_pages() {
  fake::spans_since_preparation = 0;
}

bool buffer_used_beyond(uint32_t) {
  const Lock lock(state().mutex);
  return state().filled;
}

RecorderStats recorder_stats() {
  const Lock lock(state().mutex);
  RecorderStats stats{};
  for (auto& slot : state().slots) {
    if (!slot) continue;
    stats.recorded += slot->lanes[0].count();
    stats.lost += slot->lanes[0].lost;
    stats.detail_recorded += slot->lanes[1].count();
    stats.detail_lost += slot->lanes[1].lost;
    ++stats.threads;
  }
  stats.lost_without_stream = state().lost_without_stream;
  stats.buffer_used = 4096;
  stats.buffer_bytes = 64u << 20;
  return stats;
}

void allow_waiting(bool allowed) {
  const Lock lock(state().mutex);
  state().waiting = allowed;
}

FullPolicy full_policy() {
  const Lock lock(state().mutex);
  return state().full;
}
void set_full_policy(FullPolicy policy) {
  const Lock lock(state().mutex);
  state().full = policy;
}

void settle_dead_writers() {}
void set_writers_alive(bool (*)()) {}
void poll_threads() {
  const Lock lock(state().mutex);
  ++state().thread_looks;
}
// clang-format off
bool program_is_filtered() { return false; }
bool is_filtered(pid_t, uint32_t) { return false; }
uint32_t os_thread_id() { return 1; }
uint64_t newest_event_ns() { return 0; }
bool only_this_thread_left() { return false; }
uint64_t voluntary_switches() { return 0; }
bool was_filtered() { return false; }  bool read_thread_times(pid_t, uint32_t, ThreadTimes&) { return false; }
// clang-format on

void recalibrate_clock() {
  const Lock lock(state().mutex);
  ++state().clock_fits;
}
void ignore_this_thread() {}

}  // namespace collect::agent
