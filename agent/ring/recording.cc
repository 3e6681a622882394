// Recordings: set-up, start and stop, detail, and what the drain thread keeps an eye on.
#include <sched.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <new>

#include "agent/platform/system.h"
#include "agent/platform/threads.h"
#include "agent/ring/counters.h"
#include "agent/ring/hooks/deferred.h"
#include "agent/ring/hooks/detail.h"
#include "agent/ring/hooks/page_wait.h"
#include "agent/ring/hooks/shared_threads.h"
#include "agent/ring/hooks/short_calls.h"
#include "agent/ring/modules.h"
#include "agent/ring/open_calls.h"
#include "agent/ring/sleds/sleds.h"
#include "agent/ring/stream.h"
#include "agent/ring/stream_reader.h"

namespace collect::agent {

namespace {

constinit SettingsMemory settings_memory;
constexpr Settings& the_settings = settings_memory.settings;
std::atomic<bool> ready{false};
pid_t traced = 0;  // the process whose threads write

// A copy of the last statistics for other threads, word by word: each figure is true by itself.
constexpr size_t kStatsWords = sizeof(RecorderStats) / sizeof(uint64_t);
static_assert(sizeof(RecorderStats) % sizeof(uint64_t) == 0);

struct alignas(kSharedPage) RecorderState {
  std::atomic<bool> waiting_is_over{false};  // zeroes only: no bytes in the file
  std::atomic<FullPolicy> full{FullPolicy::kDrop};
  std::atomic<uint32_t> recording_number{0};
  std::atomic<uint64_t> closed_bytes{0};  // of records, in pages that this recording closed
  std::atomic<bool> size_reached{false};
  std::atomic<bool> filtered{false};
  std::atomic<uint64_t> published[kStatsWords] = {};
  DetailFilter filter = {0, {}, 0, {}};  // changed while no hook is inside
};
constinit RecorderState recorder;

// The drain's.
bool no_writer = false;
uint64_t start_ns = 0;
uint64_t start_unix_ns = 0;
uint32_t detail_now = 0;
StreamCounts released_counts{};  // of this recording's streams that are gone already

void publish_stats(const RecorderStats& stats) {
  uint64_t words[kStatsWords];
  memcpy(words, &stats, sizeof stats);
  for (size_t i = 0; i < kStatsWords; ++i) {
    recorder.published[i].store(words[i], std::memory_order_relaxed);
  }
}

// Small and rare; qsort might allocate.
void sort_ids(uint64_t* ids, uint32_t count) {
  for (uint32_t gap = count / 2; gap > 0; gap /= 2) {
    for (uint32_t i = gap; i < count; ++i) {
      for (uint32_t k = i; k >= gap && ids[k - gap] > ids[k]; k -= gap) {
        const uint64_t moved = ids[k];
        ids[k] = ids[k - gap];
        ids[k - gap] = moved;
      }
    }
  }
}

uint64_t detail_flag(uint32_t mode) {
  if (mode == 2) return kStateDetailOn;
  return mode == 1 ? uint64_t{kStateDetailArmed} : 0;
}

void add(StreamCounts& sum, const StreamCounts& counts) {
  sum.index_count += counts.index_count;
  sum.index_lost += counts.index_lost;
  sum.detail_count += counts.detail_count;
  sum.detail_lost += counts.detail_lost;
}

}  // namespace

const Settings& settings() {
  return the_settings;
}
FullPolicy full_policy() {
  return recorder.full.load(std::memory_order_relaxed);
}
void set_full_policy(FullPolicy policy) {
  recorder.full.store(policy, std::memory_order_relaxed);
}

bool waiting_allowed() {
  return !recorder.waiting_is_over.load(std::memory_order_relaxed);
}
void allow_waiting(bool allowed) {
  recorder.waiting_is_over.store(!allowed, std::memory_order_relaxed);
}

pid_t traced_process() {
  return traced;
}
bool writers_gone() {
  return no_writer;
}

bool recorder_init(const Settings& wanted) {
  new (&the_settings) Settings(wanted);
  traced = sys::getpid();
  find_thread_ids();
  note_filters();
  no_writer = false;
  const bool shared = wanted.drain == DrainBy::kProcess && shared_memory_init(true);
  if (!shared && !shared_memory_init(false)) return false;
  g_state.store(g_state.load() & ~kStateFlags);
  if (tls_stream != &g_registering) tls_stream = nullptr;
  if (!share(recorder) || !clock_init() || !detail_init() || !pool_init(wanted.buffer_mb) ||
      !streams_init() || !modules_init() || !function_filter_init() || !counters_init() ||
      !shared_threads_init()) {
    return false;
  }
  open_calls_init();
  register_barrier(memory_is_shared());
  recorder.recording_number.store(0);
  threads_init();
  detail_now = wanted.detail;
  recorder.filter.thread_count = recorder.filter.function_count = 0;
  recorder.waiting_is_over.store(false);
  recorder.filtered.store(false);
  set_full_policy(wanted.full);
  ready.store(true, std::memory_order_release);
  return true;
}

void recorder_configure(const Settings& wanted) {
  const uint32_t buffer_mb = the_settings.buffer_mb;
  the_settings = wanted;
  the_settings.buffer_mb = buffer_mb;
  detail_now = wanted.detail;
  recorder.waiting_is_over.store(false);
  set_full_policy(wanted.full);
}

void settle_dead_writers() {
  no_writer = true;
  for_each_stream([](Stream& stream) { settle(stream); });
}

void recorder_after_fork_in_child() {
  ready.store(false, std::memory_order_relaxed);
  counters_after_fork_in_child();
}

bool recorder_ready() {
  return ready.load(std::memory_order_acquire);
}
uint64_t now_ns() {
  return clock_now(clock_line());
}

bool filter_takes_thread(uint32_t thread_id) {
  if (recorder.filter.thread_count == 0) return true;
  for (uint32_t i = 0; i < recorder.filter.thread_count; ++i) {
    if (recorder.filter.thread_ids[i] == thread_id) return true;
  }
  return false;
}

bool filter_takes_function(uint64_t id) {
  if (recorder.filter.function_count == 0) return true;
  uint32_t low = 0;
  uint32_t high = recorder.filter.function_count;
  while (low < high) {
    const uint32_t middle = (low + high) / 2;
    if (recorder.filter.function_ids[middle] == id) return true;
    if (recorder.filter.function_ids[middle] < id) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return false;
}

bool is_quiet(Stream& stream, uint64_t state) {
  return no_writer || stream.busy.load(std::memory_order_acquire) == 0 ||
         stream.waiting.load(std::memory_order_acquire) != 0 ||
         stream.epoch_state.load(std::memory_order_acquire) / kStateEpoch >= state / kStateEpoch;
}

void quiesce(uint64_t state) {
  barrier_all_threads();
  const uint64_t deadline = read_system_clock() + uint64_t{kQuiesceMs} * 1000000;
  for_each_stream([&](Stream& stream) {
    while (!is_quiet(stream, state) && read_system_clock() < deadline) sys::sched_yield();
  });
}

uint32_t start_recording() {
  start_ns = now_ns();
  timespec now;
  sys::clock_gettime(CLOCK_REALTIME, &now);
  start_unix_ns = uint64_t(now.tv_sec) * 1000000000u + uint64_t(now.tv_nsec);
  released_counts = {};
  const uint32_t number = recorder.recording_number.fetch_add(1, std::memory_order_seq_cst) + 1;
  recorder.closed_bytes.store(0, std::memory_order_relaxed);
  recorder.size_reached.store(false, std::memory_order_relaxed);
  uint64_t set = kStateRecording | detail_flag(detail_now);
  if (the_settings.atf_version == 1) set |= kStateVersion1;
  if (clock_line().ns_per_tick == 0) set |= kStateSlowClock;
  // Before the first event. The drain process can't reach the program's code: there it is patched
  // in from the start to the end of the agent (lifecycle.cc).
  if (!memory_is_shared()) sleds_in();
  change_state(set, kStateDetailArmed | kStateDetailOn);
  return number;
}

void stop_recording() {
  const uint64_t state = change_state(0, kStateRecording);
  quiesce(state);
  for_each_stream([state](Stream& stream) {
    if (!is_quiet(stream, state)) return;
    drop_armed(stream);
    settle_tentative(stream);
  });
  if (!memory_is_shared()) sleds_out();
}

void count_closed_page(const PageInfo& page) {
  const uint32_t end = page.committed.load(std::memory_order_relaxed);
  recorder.closed_bytes.fetch_add(end - page.begin, std::memory_order_relaxed);
}

bool end_by_size(const Stream& stream, PageRef open) {
  if (the_settings.max_bytes == 0 || stream.recording != current_recording()) return false;
  uint64_t bytes = recorder.closed_bytes.load(std::memory_order_relaxed);
  if (open != 0) {
    const PageInfo& page = page_info(open);
    bytes += page.committed.load(std::memory_order_relaxed) - page.begin;
  }
  if (bytes < the_settings.max_bytes) return false;
  recorder.size_reached.store(true, std::memory_order_relaxed);
  change_state(0, kStateRecording);
  return true;
}

bool size_reached() {
  return recorder.size_reached.load(std::memory_order_relaxed);
}

bool is_recording() {
  return (g_state.load(std::memory_order_relaxed) & kStateRecording) != 0;
}
uint32_t current_recording() {
  return recorder.recording_number.load(std::memory_order_relaxed);
}
uint64_t recording_start_ns() {
  return start_ns;
}
uint64_t recording_start_unix_ns() {
  return start_unix_ns;
}
uint32_t detail_mode() {
  return detail_now;
}

DetailChange set_detail(uint32_t mode, uint64_t pre_roll_ns, const DetailFilter* wanted) {
  const bool was_armed = detail_now == 1;
  const uint64_t state = change_state(0, kStateDetailArmed | kStateDetailOn);
  quiesce(state);
  if (wanted != nullptr) {
    recorder.filter = *wanted;
    sort_ids(recorder.filter.function_ids, recorder.filter.function_count);
  } else {
    recorder.filter.thread_count = recorder.filter.function_count = 0;
  }
  DetailChange change{now_ns(), 0, 0};
  const bool with_pre_roll = was_armed && mode == 2 && pre_roll_ns != 0;
  const uint64_t cut = change.at_ns > pre_roll_ns ? change.at_ns - pre_roll_ns : 0;
  if (with_pre_roll || mode != 1) {
    for_each_stream([&](Stream& stream) {
      if (!is_quiet(stream, state) || stream.recording != current_recording()) return;
      if (!with_pre_roll) {
        drop_armed(stream);
        return;
      }
      const PreRoll shipped = ship_armed(stream, cut);
      if (shipped.records == 0) return;
      change.pre_roll_records += shipped.records;
      if (change.pre_roll_from_ns == 0 || shipped.from_ns < change.pre_roll_from_ns) {
        change.pre_roll_from_ns = shipped.from_ns;
      }
    });
  }
  detail_now = mode;
  if (is_recording()) change_state(detail_flag(mode), 0);
  return change;
}

uint64_t newest_event_ns() {
  uint64_t newest = 0;
  for_each_stream([&newest](Stream& stream) {
    if (stream.last_ns > newest) newest = stream.last_ns;
  });
  return newest;
}

bool program_is_filtered() {
  return recorder.filtered.load(std::memory_order_relaxed);
}
void set_program_is_filtered(bool filtered) {
  recorder.filtered.store(filtered, std::memory_order_relaxed);
}

bool stream_ended(Stream& stream) {
  if (stream.ended) return true;
  const bool current = is_recording() && stream.recording == current_recording();
  if (current && !no_writer) return false;
  if (!is_quiet(stream, g_state.load(std::memory_order_relaxed))) return false;
  look_at_name(stream);
  end_stream(stream, now_ns());
  return true;
}

void end_stream(Stream& stream, uint64_t at_ns) {
  // Pairs with the end of the thread's last hook in the general path. That no other is inside, the
  // caller knows.
  (void)stream.busy.load(std::memory_order_acquire);
  settle_tentative(stream);
  lose_deferred(stream);
  add_last_stalls(stream.stalls);
  stream.ended = true;
  stream.end_ns = at_ns;
}

uint64_t stream_end_ns(Stream& stream) {
  return stream.end_ns;
}

void release_stream(Stream& stream) {
  if (stream.recording == current_recording()) add(released_counts, stream_counts(stream));
  release_pages(stream);
  stream_give(stream);
}

void recalibrate_clock() {
  if (clock_fit()) change_state(0, 0);
}

RecorderStats recorder_stats() {
  StreamCounts sum = released_counts;
  uint32_t threads = 0;
  for_each_stream([&](Stream& stream) {
    if (stream.recording != current_recording()) return;
    add(sum, stream_counts(stream));
    if (!stream.ended) ++threads;
  });
  RecorderStats stats{};
  stats.recorded = sum.index_count;
  stats.lost = sum.index_lost;
  stats.detail_recorded = sum.detail_count;
  stats.detail_lost = sum.detail_lost;
  stats.lost_without_stream = lost_without_stream();
  stats.buffer_used = pool_used_bytes();
  stats.buffer_bytes = pool_bytes();
  stats.threads = threads;
  publish_stats(stats);
  return stats;
}

void prepare_pages() {
  if (is_recording()) pool_prepare();
  take_idle_pages();
  if (full_policy() == FullPolicy::kWait && !writers_gone()) {
    wake_for_pages();
    answer_sleep_requests();
  }
}

bool buffer_used_beyond(uint32_t percent) {
  return pool_used_bytes() > pool_bytes() / 100 * percent;
}

RecorderStats published_stats() {
  RecorderStats stats;
  uint64_t words[kStatsWords];
  for (size_t i = 0; i < kStatsWords; ++i)
    words[i] = recorder.published[i].load(std::memory_order_relaxed);
  memcpy(&stats, words, sizeof stats);
  return stats;
}

}  // namespace collect::agent
