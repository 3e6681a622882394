// The stream: one thread's place within one recording.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "agent/platform/threads.h"
#include "agent/ring/clock.h"
#include "agent/ring/function_filter.h"
#include "agent/ring/page_pool.h"
#include "agent/ring/recorder.h"
#include "agent/ring/stalls.h"
#include "agent/ring/state.h"
#include "agent/shared_memory.h"

#define COLLECT_LIKELY(x) __builtin_expect(!!(x), 1)
#define COLLECT_UNLIKELY(x) __builtin_expect(!!(x), 0)

namespace collect::agent {

inline constexpr uint64_t kBusyGeneral = 1;  // frames are aligned, so the bit is free

// Whether a thread still has the page that it was filling: with more threads than pages, those that
// write nothing, or wait, must not keep theirs from the others. The drain wants it, begins a new
// epoch, and takes it from a thread that is in no hook or waits; the thread keeps it by its first
// look in the new epoch.
enum class OpenPage : uint32_t { kKept, kWanted, kTaken };

struct LaneState {
  // Producer's; the drain thread touches them only while no hook is inside (quiesced).
  PageRef open = 0;       // page being filled
  uint64_t next_seq = 0;  // of the first record of the next page
  std::atomic<uint64_t> lost_total{0};
  std::atomic<uint64_t> lost_first_ns{0};  // since the last page was opened
  std::atomic<uint64_t> lost_last_ns{0};
  std::atomic<uint32_t> lost_reasons{0};
  std::atomic<PageRef> first{0};  // set once, with release: the lane's first page ever

  std::atomic<OpenPage> open_page{OpenPage::kKept};  // both sides exchange it

  // With FullPolicy::kOverwrite both sides cut pages out of the chain; never held over a system
  // call.
  std::atomic<uint32_t> lock{0};  // ChainLock::Side, or 0
  bool lock_timed_out = false;    // producer's: the last wait for it ended without it

  // Drain thread's; `head` also the producer's under `lock`.
  PageRef head = 0;         // oldest page held
  PageRef send = 0;         // page that the next span comes from
  uint64_t given_back = 0;  // records of a lane that has no page left
};

// The name that a thread gave itself, as it did so; of a thread that ends soon it is all that there
// is of it. `changes` is odd while the thread writes, and 0 when it never did.
struct OwnName {
  std::atomic<uint32_t> changes{0};
  std::atomic<uint64_t> text[2] = {};  // terminated
  std::atomic<uint64_t> since_ns{0};
};
inline constexpr size_t kOwnNameBytes = sizeof OwnName::text;

struct OpenCall;
OpenCall* no_open_calls();  // the top of a stream that has seen no call: open_calls.cc

struct alignas(kCacheLine) Stream {
  Stream() = default;
  // A stream that belongs to no thread.
  constexpr explicit Stream(uint64_t is_busy) : busy(is_busy), open_calls(nullptr) {}

  // Producer's, the short path's own lines.
  // A hook is inside: the address of its frame, with kBusyGeneral in the general path; else 0. Read
  // by the drain thread to quiesce.
  std::atomic<uint64_t> busy{0};
  uint32_t recording = 0;
  std::atomic<uint32_t> deferred{0};  // there are deferred events: deferred.h
  uint64_t expected = 0;  // g_state for which the copies below hold and the short path applies
  uint8_t* pos = nullptr;
  uint8_t* end = nullptr;  // null forces the general path
  std::atomic<uint32_t>* committed = nullptr;
  uint64_t module_base = 0;
  uint64_t module_bytes = 0;
  uint64_t module_id_high = 0;  // module id << 32
  uint64_t last_ns = 0;
  OpenCall* open_calls = no_open_calls();  // where the next one goes
  ClockLine clock;

  // Producer's, the short path of a stream of which not every event is recorded.
  uint64_t expected_selected = 0;  // as `expected`; one of the two is 0
  uint32_t depth = 0;  // open calls that the filter takes, unless record_short takes them
  uint32_t max_depth = UINT32_MAX;
  std::atomic<uint64_t> left_out{0};  // calls that a filter or a limit did not want
  uint64_t longer_than_ns = 0;        // 0: calls of any length are recorded
  // Open calls whose records are between `kept` and `pos`, not committed: short_calls.h.
  uint8_t* kept = nullptr;
  std::atomic<uint32_t> tentative_end{0};  // of those, where they end in the open page; 0: none
  std::atomic<uint64_t> tentative_ns{0};   // when the newest of them was called, or later
  StreamFilter filter;

  // Producer's, general path.
  std::atomic<uint64_t> epoch_state{0};  // g_state of the last refresh
  bool hooks_are_direct = false;  // no hook of the program's own is before ours: unwinding.cc
  uint64_t landed_stack = 0;      // unwinding.cc: of the last landing in a frame with open calls
  uint32_t thread_id = 0;
  std::atomic<uint32_t> waiting{0};  // inside a hook, but at a safe point: waits for a page
  std::atomic<uint32_t> sleep{0};    // page_wait.h
  bool wait_timed_out = false;       // no page moved for kMaxWaitNs
  uint32_t turns_at_timeout = 0;     // pool_turns() then
  bool detail_thread = false;        // this thread passes the detail filter
  // Armed detail: a chain of its own that only this thread touches, but for quiesced changes.
  PageRef armed_first = 0;
  PageRef armed_open = 0;
  uint32_t armed_pages = 0;
  // Events of signal handlers that interrupted a hook (deferred.h): where the next one goes and
  // where the oldest one is, each a page in the high half and an offset in the low one.
  std::atomic<uint64_t> deferred_tail{0};
  uint64_t deferred_at = 0;
  PageRef deferred_first = 0;
  bool needs_deferred_page = false;  // a handler found none

  LaneState lanes[2];

  // Set by the producer before the stream is published, constant afterwards.
  uint32_t stream_id = 0;
  uint64_t start_ns = 0;

  OwnName own_name;  // producer's

  // Drain thread's.
  bool ended = false;
  uint64_t end_ns = 0;
  char name[32] = {};
  uint64_t named_ns = 0;   // since when it has this name; 0: for all that is known, from its start
  uint32_t names = 0;      // that it has had
  uint32_t own_seen = 0;   // own_name.changes at the last look
  uint32_t looks = 0;      // at its name, since that changed
  uint32_t next_look = 0;  // in which poll

  StallRing stalls;

  LaneState& lane(Lane which) { return lanes[static_cast<uint32_t>(which)]; }
};

// The calling thread's stream; null before its first event. Three streams of no thread stand for
// "being registered", "never recorded" and "shared with a thread that has no memory of its own"
// (shared_threads.h): all are always busy.
// Where the library is there from the start, its place is fixed, and reaching it is one
// instruction. An app on Android loads it later, which its dynamic linker does not allow for that.
#if defined(__linux__) && !defined(__ANDROID__)
#define COLLECT_TLS_MODEL __attribute__((tls_model("initial-exec")))
#else
#define COLLECT_TLS_MODEL
#endif
[[gnu::visibility("hidden")]] extern __thread Stream* tls_stream COLLECT_TLS_MODEL;
[[gnu::visibility("hidden")]] extern Stream g_registering;
[[gnu::visibility("hidden")]] extern Stream g_ignored;
[[gnu::visibility("hidden")]] extern Stream g_shared_by_threads;
[[gnu::visibility("hidden")]] extern Stream g_without_clock;  // shims/prctl.cc

// Slots for streams; any thread takes, fills and publishes, the drain thread gives back. Before it
// is published, the drain thread does not see a stream. A slot is free again when the drain gave it
// back and its thread left it, or is no more, which streams_reap() finds out [drain].
bool streams_init();
Stream* stream_take();
void stream_publish(Stream& stream);
void stream_give(Stream& stream);
void stream_leave(Stream& stream);
uint32_t stream_slot(const Stream& stream);
void streams_reap(const LivingThreads& living);
uint32_t next_stream_id();
void count_lost_without_stream(uint64_t events = 1);
uint64_t lost_without_stream();

// The settings of the process, constant after recorder_init.
const Settings& settings();
bool waiting_allowed();
// A full ring holds a program up for no longer than this without a single page coming free.
inline constexpr uint64_t kMaxWaitNs = 30'000'000'000;
// A signal handler inside a hook for no longer than this: shorter than kQuiesceMs.
inline constexpr uint64_t kMaxNestedWaitNs = 500'000'000;

// A call that the settings do not want: its thread counts it, the drain reads it.
[[gnu::always_inline]] static inline void count_left_out(Stream& stream) {
  stream.left_out.store(stream.left_out.load(std::memory_order_relaxed) + 1,
                        std::memory_order_relaxed);
}

// Settings::max_bytes. A page of the recording was closed.
void count_closed_page(const PageInfo& page);
// Before another index page is opened than `open`, which is full; 0: there is none. True: the
// recording has its size, and is over.
bool end_by_size(const Stream& stream, PageRef open);

// Counts one lost record of a lane. Also from a signal handler that interrupted a hook.
void count_lost(LaneState& lane, uint32_t reason, uint64_t ns);

// Whether detail is wanted of this thread, of this function. Producer side; the filter changes only
// while no hook is inside.
bool filter_takes_thread(uint32_t thread_id);
bool filter_takes_function(uint64_t function_id);

// What quiesce() asks of one stream.
bool is_quiet(Stream& stream, uint64_t state);

// What the stream's thread is called now. [drain]
void look_at_name(Stream& stream);
// The calling thread got this name from itself; its next stream begins with it. Producer side.
void note_own_name(const char* name);
void take_own_name(Stream& stream);

// The thread writes no more: marks the stream ended. [drain]
void end_stream(Stream& stream, uint64_t at_ns);

// The process whose threads write, and whether it is no more. [drain]
pid_t traced_process();
bool writers_gone();
void threads_init();
void set_program_is_filtered(bool filtered);

template <class Visit>
void for_each_stream(Visit visit) {
  const uint32_t used = stream_slots();
  for (uint32_t slot = 0; slot < used; ++slot) {
    if (Stream* stream = stream_at(slot)) visit(*stream);
  }
}

}  // namespace collect::agent
