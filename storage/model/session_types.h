// What goes into storage and what it returns: plain values, no behaviour. session/session.h is the
// contract that uses them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "formats/atf/layout.h"
#include "formats/core/bytes.h"
#include "formats/core/page.h"
#include "storage/fs/clock.h"

namespace collect::storage {

enum class Durability : uint8_t {
  kOs,     // stored means: survives the end of the daemon
  kFsync,  // stored means: survives power loss
};

enum class SessionState : uint8_t { kRecording, kComplete, kRecovered, kFailed };

// collector_identity.h.
struct CollectorIdentity {
  std::array<uint8_t, 16> id{};
  uint64_t epoch = 0;
  bool is_known() const { return id != std::array<uint8_t, 16>{}; }
  bool operator==(const CollectorIdentity&) const = default;
};

struct SessionIdentity {
  std::array<uint8_t, 16>
      process_id{};  // of the agent, random; with `recording` it names the session
  uint32_t recording = 0;
  uint32_t pid = 0;
  uint32_t parent_pid = 0;
  std::string process_name;
  std::string executable;
  std::string device_id;
  std::string device_model;
  std::string boot_id;
  std::string route;  // the address at which its agent was dialled; empty: it came by itself
  std::string tag;
  std::string agent_version;
  atf::Arch arch{};
  atf::Os os{};
  atf::ClockType clock{};
  atf::Version version = atf::Version::kV2;
  uint64_t start_ns = 0;        // device clock
  uint64_t start_unix_ns = 0;   // device's idea of the time of day
  uint32_t max_depth = 0;       // deeper calls were not to be recorded; 0: all were
  uint64_t longer_than_ns = 0;  // shorter calls were not to be recorded; 0: all were
  uint32_t max_rate = 0;        // functions called more often in a second are switched off; 0: none
  bool switches = false;        // times in which threads were off the processor were recorded
  std::string no_switches{};    // why there are none, or why they are estimated
  uint32_t sample_hz = 0;       // samples in each second that a thread ran; 0: none
  std::string no_samples{};     // why there are none although they were wanted
  CollectorIdentity collector{};  // that began to store it
};

struct ModuleInfo {
  uint32_t module_id = 0;
  std::string path;  // as the device said it: shown; daemon/symbolize alone opens it
  std::vector<uint8_t> build_id;
  uint64_t base_address = 0;
  uint64_t size = 0;
  uint64_t loaded_ns = 0;
  uint64_t unloaded_ns = 0;
};

struct StreamInfo {
  uint32_t stream_id = 0;
  uint32_t thread_id = 0;
  std::string thread_name;
  uint64_t start_ns = 0;
  uint64_t named_ns = 0;  // since when it has this name; 0: from its start, or not known
};

// A page with more bytes than this is refused; the wire has fewer.
inline constexpr size_t kMaxPageBytes = 4u << 20;

struct StreamEnd {
  uint32_t stream_id = 0;
  std::string thread_name;
  uint64_t end_ns = 0;
  uint64_t index_count = 0;
  uint64_t index_lost = 0;
  uint64_t detail_count = 0;
  uint64_t detail_lost = 0;
  uint64_t calls_left_out = 0;  // that the agent's settings did not want recorded
};

// Why a thread did not run. The first three are stalls, for which the program had not asked; the
// next two are off the processor, as threads are. The last two lie over the others: why it did
// nothing, on the processor or off, and what it did.
enum class StallKind : uint8_t {
  kPageWait,   // it waited for room in the ring: for the collector
  kStopped,    // its process was stopped
  kSuspended,  // the machine slept
  kBlocked,    // it waited for something
  kPreempted,  // it could have run, and another one did
  kLock,       // another thread had the lock that it called for
  kSample,     // a moment in which it ran, and where
};
inline bool is_off_processor(StallKind kind) {
  return kind == StallKind::kBlocked || kind == StallKind::kPreempted;
}
// In switches.bin; the others are in the manifest.
inline bool is_in_switches_file(StallKind kind) {
  return kind >= StallKind::kBlocked;
}

// A stall, or several that were joined: then the thread ran in a part of the time.
struct Stall {
  StallKind kind = StallKind::kPageWait;
  uint64_t first_ns = 0;  // device clock
  uint64_t last_ns = 0;
  uint64_t stalled_ns = 0;  // at most last - first
  uint64_t count = 1;
  std::optional<uint32_t> thread{};  // N of thread_N, in a manifest; none: every thread
  // 0: not known, or not the same of all that were joined.
  uint32_t owner = 0;  // of kLock: the system's number of the thread that had it at first_ns
  uint64_t place = 0;  // of kLock: its address in the process; of kSample: as a function's id
};

// One that was not joined.
inline Stall make_stall(StallKind kind, uint64_t first_ns, uint64_t last_ns) {
  return {kind, first_ns, last_ns, last_ns - first_ns, 1, {}};
}

// As it arrives.
struct StreamStall {
  uint32_t stream_id = 0;  // 0: of the whole process
  Stall stall;
};

struct StallTotals {
  uint64_t count = 0;
  uint64_t stalled_ns = 0;
  uint64_t page_wait_ns = 0;  // of these, by waits for a page
  // Beside these.
  uint64_t switches = 0;
  uint64_t blocked_ns = 0;
  uint64_t preempted_ns = 0;
  uint64_t lock_waits = 0;
  uint64_t lock_wait_ns = 0;
  uint64_t samples = 0;

  void add(const Stall& stall) {
    if (stall.kind == StallKind::kSample) {
      samples += stall.count;
      return;
    }
    if (stall.kind == StallKind::kLock) {
      lock_waits += stall.count;
      lock_wait_ns += stall.stalled_ns;
      return;
    }
    if (is_off_processor(stall.kind)) {
      switches += stall.count;
      (stall.kind == StallKind::kBlocked ? blocked_ns : preempted_ns) += stall.stalled_ns;
      return;
    }
    count += stall.count;
    stalled_ns += stall.stalled_ns;
    if (stall.kind == StallKind::kPageWait) page_wait_ns += stall.stalled_ns;
  }
  void add(const StallTotals& other) {
    count += other.count;
    stalled_ns += other.stalled_ns;
    page_wait_ns += other.page_wait_ns;
    switches += other.switches;
    blocked_ns += other.blocked_ns;
    preempted_ns += other.preempted_ns;
    lock_waits += other.lock_waits;
    lock_wait_ns += other.lock_wait_ns;
    samples += other.samples;
  }
};

struct DetailStateChange {
  std::string mode;  // "off", "armed", "on"
  uint64_t at_ns = 0;
  uint64_t pre_roll_from_ns = 0;
  uint64_t pre_roll_records = 0;
  std::string reason;
};

// Device clock = collector's CLOCK_BOOTTIME + offset_ns, at collector time `at_ns`. What the
// collector's time of day was then, and of which boot its clock is, relates it to other sessions'.
struct ClockSync {
  uint64_t at_ns = 0;
  int64_t offset_ns = 0;
  uint64_t uncertainty_ns = 0;
  double drift_ppb = 0;
  uint64_t at_unix_ns = 0;  // 0: not known
  std::string boot_id{};    // of the collector's machine
};

// What the capture that a session was made of lacked: it was cut off, damaged, or parts of it were
// not given.
struct MissingInput {
  std::string what;
  uint64_t count = 0;  // of what `what` names; 0: how much is not known
  bool operator==(const MissingInput&) const = default;
};

// What a person said about a moment, on the device clock.
struct Marker {
  uint64_t at_ns = 0;
  std::string text;
};

// A function that was called more often than SessionIdentity::max_rate allows.
struct SwitchedOffFunction {
  uint64_t at_ns = 0;  // device clock: its calls are not recorded from then on
  uint64_t function_id = 0;
  uint64_t calls_per_second = 0;  // before that
  bool operator==(const SwitchedOffFunction&) const = default;
};

// Which functions were recorded from a moment on: what was asked for, and how many functions that
// meant. Both lists empty: every function. Then, without those that were switched off meanwhile.
struct FunctionFilter {
  uint64_t at_ns = 0;  // device clock
  std::vector<std::string> only;
  std::vector<std::string> except;
  uint64_t functions = 0;
  std::vector<SwitchedOffFunction> switched_off{};  // at most kMaxSwitchedOff
};

// How the traced process ended, as far as it is known. The names are those of the manifest.
struct ProcessEnd {
  enum class How : uint8_t { kNotKnown, kExited, kSignaled, kExeced, kUnknown };
  How how = How::kNotKnown;  // kNotKnown: it runs, or no one has said; kUnknown: no one can say
  int32_t exit_code = 0;
  uint32_t signal = 0;  // the number on the device
  bool core_dumped = false;
  bool operator==(const ProcessEnd&) const = default;
};

// What the collector wants next of a stream; everything below is stored. In the numbering of the
// agent, which counts overwritten records too.
struct StreamPosition {
  uint32_t stream_id = 0;
  uint64_t index_next = 0;
  uint64_t detail_next = 0;
  bool closed = false;  // close_stream() was stored for it, in this process
};

// Streams of whole frames in a file of their own, beside those of the threads: of a format of
// others, stored as it comes, byte for byte; and the times off the processor (switch_times.h).
enum class PassthroughKind : uint8_t { kDial9 = 0, kSwitches = 1 };
inline constexpr PassthroughKind kPassthroughKinds[] = {PassthroughKind::kDial9,
                                                        PassthroughKind::kSwitches};

struct SessionTotals {
  uint32_t threads = 0;
  uint64_t events = 0;
  uint64_t detail_records = 0;
  uint64_t lost_events = 0;
  uint64_t lost_detail_records = 0;
  uint64_t calls_left_out = 0;   // of threads that have ended
  uint64_t stored_bytes = 0;     // of records and passthrough streams
  uint64_t container_bytes = 0;  // of the RTC containers that are there
  uint64_t first_ns = 0;
  uint64_t last_ns = 0;
  StallTotals stalls;  // of all threads, and of the process as a whole, which counts once
};

// RTC containers beside the thread files (rtc_roller.h).
struct CaptureOptions {
  bool enabled = false;
  uint64_t roll_bytes = uint64_t{256} << 20;  // 0: not by size
  uint64_t roll_ns = 0;                       // 0: not by age
  uint64_t budget_bytes = 0;                  // of a session's containers; 0: none is removed
};

inline constexpr uint64_t kDefaultKeepFreeBytes = 16u << 20;
inline constexpr uint64_t kDefaultKeepFreeFiles = 1024;

// What a session makes on its disk: two directories, manifest, reserve, container, one more; and
// each of its threads: a directory, index, detail, journal.
inline constexpr uint64_t kFilesPerSession = 6;
inline constexpr uint64_t kFilesPerThread = 4;

class RootLock;
class SessionBudget;

struct SessionOptions {
  std::string root;
  CollectorIdentity collector{};  // whose new sessions these are; not known: as their identity says
  Durability durability = Durability::kOs;
  bool symbolize = true;  // the functions are to be named after the seal
  CaptureOptions capture;
  // Limit of the records and containers together; beyond it the session ends as failed. 0: no
  // limit.
  uint64_t max_session_bytes = 0;
  // Before the disk has less than this free, the session ends as failed. 0: the disk is filled.
  uint64_t keep_free_bytes = kDefaultKeepFreeBytes;
  // Likewise the number of files that can still be made there, checked before each new thread.
  uint64_t keep_free_files = kDefaultKeepFreeFiles;
  // Held by the user of the root; taken again when the root was moved or removed. Borrowed.
  RootLock* root_lock = nullptr;
  Clock* clock = nullptr;           // null: the system's; borrowed, outlives the session
  SessionBudget* budget = nullptr;  // of the one session; null: it has none. Borrowed, outlives it
};

// Limits of one session; a peer that goes beyond gets kLimit.
inline constexpr uint32_t kMaxThreads = 65536;
inline constexpr uint32_t kMaxModules = 16384;
inline constexpr uint32_t kMaxGapsPerThread = 1024;  // later ones are merged into the last, exactly
                                                     // counted
// Stalls that the manifest lists, of each kind; what is more is joined, exactly counted. Of many
// threads each has its share of kMaxStallsListed, but never less than kLeastStallsPerThread.
inline constexpr size_t kMaxStallsPerThread = 1024;
inline constexpr size_t kMaxStallsListed = 65'536;
inline constexpr size_t kLeastStallsPerThread = 8;
inline constexpr uint32_t kMaxDetailWindows = 4096;
inline constexpr uint32_t kMaxFunctionFilters = 256;
inline constexpr uint32_t kMaxSwitchedOff = 1024;   // of one filter; no more are switched off then
inline constexpr uint32_t kMaxFilterPatterns = 64;  // kept of each list

}  // namespace collect::storage
