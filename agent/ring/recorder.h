// The recorder: threads write events into pages, the drain thread takes the pages away.
//
// Ownership. A *stream* is one thread within one recording: it has an index lane and a detail lane,
// each a chain of pages from one process-wide pool. The thread writes (producer), the drain thread
// reads, ships and frees (consumer); everything below marked [drain] is called by the drain thread
// alone. Nothing here allocates memory or takes a lock that the host program could hold.
//
// The drain is built against this header alone: tests put a recorder of their own behind it.
//
// Pages hold ATF records as they will be in the file. A page stays in memory until its records
// are acknowledged, so a broken link loses nothing as long as the pool lasts.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "agent/settings.h"
#include "proto/wire/layout.h"

namespace collect::agent {

inline constexpr uint32_t kPageBytes = 64 * 1024;
inline constexpr uint32_t kMaxStreams = 8192;  // alive at once, closed but unacknowledged included
inline constexpr uint32_t kMaxModules = 4096;
inline constexpr uint32_t kMaxBuildId = 64;
inline constexpr uint32_t kMaxModulePath = 512;
inline constexpr uint32_t kMaxFilterFunctions = wire::kMaxFilterFunctions;
inline constexpr uint32_t kMaxFilterThreads = wire::kMaxFilterThreads;

struct Stream;  // opaque outside agent/ring

struct StreamInfo {
  uint32_t stream_id;
  uint32_t recording;
  uint32_t thread_id;
  char name[32];      // as the kernel has it now; may change until the thread ends
  uint64_t named_ns;  // since when, for all that is known; 0: from its start
  uint32_t names;     // how many it has had
  uint64_t start_ns;
};

struct StreamCounts {
  uint64_t index_count;  // records numbered so far, per lane
  uint64_t index_lost;   // records dropped so far (overwritten ones are numbered, not dropped)
  uint64_t detail_count;
  uint64_t detail_lost;
  uint64_t calls_left_out;  // that a filter or a limit did not want
};

// Times in which a thread waited for a page: one stall, or several that were joined.
struct ThreadStall {
  uint64_t first_ns = 0;
  uint64_t last_ns = 0;
  uint64_t stalled_ns = 0;  // in all; of one stall, from first to last
  uint32_t count = 0;
  // It waited for a lock of the program, not for a page: the lock's address, and the number of the
  // thread that had it then. 0: not known, or not the same of all that were joined. Of a sample,
  // where it ran.
  bool is_for_lock = false;
  uint32_t owner = 0;
  uint64_t place = 0;
};
// Of a thread, until the drain takes them; with more streams than kRoomyStreams the others hold
// few.
inline constexpr uint32_t kStallsHeld = 256;
inline constexpr uint32_t kFewStallsHeld = 16;
inline constexpr uint32_t kRoomyStreams = 1024;

struct ModuleRecord {
  uint32_t module_id;
  char path[kMaxModulePath];
  uint8_t build_id[kMaxBuildId];
  uint32_t build_id_bytes;
  uint64_t base_address;  // load bias
  uint64_t size;
  uint64_t loaded_ns;
  std::atomic<uint64_t> unloaded_ns;  // 0 while loaded
};

struct RecorderStats {
  uint64_t recorded;
  uint64_t lost;
  uint64_t detail_recorded;
  uint64_t detail_lost;
  uint64_t lost_without_stream;
  uint64_t buffer_used;
  uint64_t buffer_bytes;
  uint32_t threads;
};

struct DetailFilter {
  uint32_t thread_count = 0;
  uint32_t thread_ids[kMaxFilterThreads];
  uint32_t function_count = 0;
  uint64_t function_ids[kMaxFilterFunctions];
};

// Which functions are recorded at all.
// kLess: those that the present filter takes, without the ones that are added.
enum class FunctionFilterMode : uint8_t { kEverything = 0, kOnly = 1, kAllBut = 2, kLess = 3 };
inline constexpr uint32_t kMaxFunctionFilter = wire::kMaxFunctionFilter;

struct FunctionFilterChange {
  uint64_t at_ns;
  uint32_t functions_patched;  // XRay: entry sleds that are patched in now
};

struct DetailChange {
  uint64_t at_ns;
  uint64_t pre_roll_from_ns;  // 0 without pre-roll
  uint64_t pre_roll_records;
};

// ---- set-up. Called once per process, before any event; again in a forked child, whose only
// thread has no stream. False: no memory.
bool recorder_init(const Settings& settings);
// New settings for a recorder that is there, while nothing is recorded; its memory stays as it is.
void recorder_configure(const Settings& settings);
bool recorder_ready();
// In a forked child, after shared_memory_after_fork_in_child(): set-up begins again.
void recorder_after_fork_in_child();
// Device clock, ns: the platform's continuous clock, read by the CPU counter.
uint64_t now_ns();

// ---- recording state [drain]
uint32_t start_recording();  // returns its number, counting from 1; the old one must have ended
// Stops the hooks and waits until none is inside. Streams stay until they are released.
void stop_recording();
bool is_recording();
// The hooks have stopped: the recording has as many bytes as Settings::max_bytes allows. It is
// still to be stopped here.
bool size_reached();
uint32_t current_recording();  // or the last one; 0 before any
uint64_t recording_start_ns();
uint64_t recording_start_unix_ns();

// ---- detail [drain]. mode: wire DetailMode values 0 off, 1 armed, 2 on. `filter` may be null.
DetailChange set_detail(uint32_t mode, uint64_t pre_roll_ns, const DetailFilter* filter);
uint32_t detail_mode();

// ---- function filter [drain]. It holds, also for later recordings, until the next one. What was
// begun has no effect before it is committed, and is forgotten by the next begin.
void begin_function_filter(FunctionFilterMode mode);
// False: more than kMaxFunctionFilter, or an id that no function has.
bool add_to_function_filter(const uint64_t* ids, uint32_t count);
FunctionFilterChange commit_function_filter();

// ---- streams [drain]
// Slots 0 .. stream_slots()-1; an unused slot is null. New streams may appear at any time.
uint32_t stream_slots();
Stream* stream_at(uint32_t slot);
void stream_info(Stream& stream, StreamInfo& info);
uint32_t stream_names(Stream& stream);  // StreamInfo::names at the last look; cheap
StreamCounts stream_counts(Stream& stream);
// True when nothing more will be written: the thread is gone, or the recording was stopped.
bool stream_ended(Stream& stream);
uint64_t stream_end_ns(Stream& stream);

// The next unsent run of records, at most `max_bytes` of them; false when there is none now. With
// `flush` false, a page that is still being filled is handed out only when half full, so that a
// busy thread gives large pages; with true, all that is there. A span must be followed by mark_sent
// or dropped (the link broke: rewind follows).
bool next_span(Stream& stream, Lane lane, uint32_t max_bytes, bool flush, Page& span);
void mark_sent(Stream& stream, Lane lane, const Page& span);
// For the spool: the same of the oldest records that are held, from number `from` on, sent or not.
// Nothing counts as sent by it.
bool oldest_span(Stream& stream, Lane lane, uint64_t from, bool flush, Page& span);
// Everything below `next` is in the spool: it is not sent from here any more, and its memory goes.
void set_aside(Stream& stream, Lane lane, uint64_t next);
// The losses of an ended stream after its last record, as a span of no records. False when no more
// than `lost_sent` were lost in all.
bool trailing_loss(Stream& stream, Lane lane, uint64_t lost_sent, Page& span);
// Everything below `next` is stored at the collector: frees whole pages, and of a stream that has
// ended the last one too.
void acknowledge(Stream& stream, Lane lane, uint64_t next);
// After a reconnect: the next span begins at `next`, or at the oldest record still held.
void rewind(Stream& stream, Lane lane, uint64_t next);
bool all_acknowledged(Stream& stream);
// The stream's next stall, in order of time; false when there is none now. A stall is there before
// any record that comes after it: take spans first, stalls after, and send the stalls first.
bool take_stall(Stream& stream, ThreadStall& stall);
// Gives slot and pages back. The stream has ended and all is acknowledged, or the recording is over
// and no one wants it any more.
void release_stream(Stream& stream);

// ---- modules [drain]. Append-only; 0 .. module_count()-1. A record that refers to a module is
// committed after the module is counted: read the count after taking a span, send modules first.
uint32_t module_count();
const ModuleRecord& module_at(uint32_t index);
// Code outside every known object (generated at run time): the symbol index is then the address's
// low half.
inline constexpr uint32_t kUnknownModule = 0xFFFFFFFF;
uint32_t module_changes();  // counts unloads too, so that a change can be seen

// ---- housekeeping [drain], at its pace: every few ms while there is work
// Finds threads that ended, and names that changed (of kNameLooks threads at most; one that keeps
// its name is looked at ever more rarely, up to every kRarestNameLook-th time). Call every ~50 ms.
void poll_threads();
inline constexpr uint32_t kNameLooks = 64;
inline constexpr uint32_t kRarestNameLook = 16;
// Only the calling thread and an ended main thread are left: without the agent, the program would
// be over. (The last thread of a process whose main thread left by pthread_exit ends it.)
bool only_this_thread_left();
// Whether the main thread has put a filter of system calls (seccomp) on itself since the agent
// started, as poll_threads() found it last: such a program is asked for as little as can be. Any
// thread.
bool program_is_filtered();
// The time of the newest event of any thread that has a stream; 0: there is none.
uint64_t newest_event_ns();
// The process whose threads write is dead, or its memory is (exec): every stream has ended, and
// what a thread was in the middle of is put in order. What was committed stays. From the drain
// process.
void settle_dead_writers();
// Asked by the drain process when it meets a lock for too long; null in the process itself. Before
// any event.
void set_writers_alive(bool (*alive)());
void recalibrate_clock();  // call every ~100 ms
RecorderStats recorder_stats();
bool buffer_used_beyond(uint32_t percent);  // cheap
// Takes from the system what threads will need next, so that no hook has to: page_pool.h. Cheap
// when there is nothing to do.
void prepare_pages();
RecorderStats published_stats();  // what recorder_stats() last found; any thread

// What a full ring does to new events: as the settings say, until set_full_policy().
FullPolicy full_policy();
// [drain] To and from kOverwrite only while there are no streams: both sides cut pages out of a
// lane then, and have to agree on it.
void set_full_policy(FullPolicy policy);

// With FullPolicy::kWait: whether a full ring may still hold the program up. The drain thread
// clears it when the link has been gone for too long and at exit, so that the host program
// continues.
void allow_waiting(bool allowed);

// Marks the calling thread as the agent's own: its calls are never recorded.
void ignore_this_thread();

}  // namespace collect::agent
