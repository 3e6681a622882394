// manifest.json: what a session is, which threads and modules it has, what is missing from it and
// why. A superset of the public format_version "2.1"; STORAGE.md "Manifest" has the keys. This file
// knows the model and its JSON; manifest_file.h puts it on the disk.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/core/json_shape.h"
#include "formats/core/result.h"
#include "storage/fs/fs.h"
#include "storage/model/session_types.h"

namespace collect::storage {

inline constexpr uint64_t kMaxManifestBytes = 256ull << 20;  // a larger file is not read
// A file of ours is nested five deep, and in kMaxManifestBytes has no more values than these.
inline constexpr JsonLimits kManifestShape{64, 16u << 20};
inline constexpr size_t kMaxManifestList = 4u << 20;  // entries of one list
inline constexpr size_t kMaxTextBytes = 4096;         // of each string of a peer; the rest is cut
inline constexpr size_t kMaxBuildIdBytes = 64;
inline constexpr size_t kMaxClockSyncs = 1024;   // then every second one goes
inline constexpr size_t kMaxNotes = 1024;        // later ones are only counted
inline constexpr size_t kMaxMarkers = 65'536;    // later ones are only counted
inline constexpr size_t kMaxMissingInput = 100;  // kinds of it; later ones are only counted

// Keys of a thread, or of the totals, that the JSON of another writer may lack: what no one said is
// no zero to compare with.
enum ManifestKey : uint8_t {
  kEventsKey = 1,
  kDetailRecordsKey = 2,
  kLostEventsKey = 4,
  kLostDetailRecordsKey = 8,
  kThreadIdKey = 16,
};

// One of a thread's names, and from when on it had it.
struct ThreadName {
  uint64_t from_ns = 0;
  std::string name;
  bool operator==(const ThreadName&) const = default;
};
inline constexpr size_t kMaxThreadNames = 64;  // then the newest takes the last place

struct ManifestThread {
  uint32_t id = 0;  // N of thread_N
  uint32_t stream_id = 0;
  uint32_t thread_id = 0;
  std::string name;                 // the last one
  std::vector<ThreadName> names{};  // all, in order of time; empty: `name` since its start
  bool has_detail = false;
  bool ended = false;
  uint64_t events = 0;
  uint64_t detail_records = 0;
  uint64_t lost_events = 0;
  uint64_t lost_detail_records = 0;
  uint64_t calls_left_out = 0;  // that the agent's settings did not want; known when it has ended
  uint64_t start_ns = 0;        // of the thread, as the agent said
  uint64_t end_ns = 0;
  uint64_t index_next = 0;  // Session::positions()
  uint64_t detail_next = 0;
  uint64_t first_ns = 0;  // of the first and the last event stored
  uint64_t last_ns = 0;
  StallTotals stalls{};  // its own
  uint8_t unsaid = 0;    // ManifestKey set
  bool says(ManifestKey key) const { return (unsaid & key) == 0; }
  bool unlisted = false;  // not in the JSON: found as a directory that no manifest names
};

// The thread has another name now. Nothing changes when it has it already, or for an empty one.
void rename_thread(ManifestThread& thread, const std::string& name, uint64_t from_ns);

// All that is missing before one record.
struct Gap {
  uint32_t thread = 0;  // N of thread_N
  Lane lane = Lane::kIndex;
  uint32_t reasons = 0;        // LostReason set
  uint64_t before_seq = 0;     // position in the file of the first record after the gap
  uint64_t lost = 0;           // records, all reasons
  uint64_t numbered_lost = 0;  // of these, the ones that had numbers
  uint64_t first_ns = 0;       // times of the first and last record lost, 0 when not known
  uint64_t last_ns = 0;
  uint32_t merged = 1;    // how many gaps this one represents (kMaxGapsPerThread)
  bool has_place = true;  // not where another writer's JSON lacks before_seq
};

struct StallKindName {
  StallKind kind;
  const char* name;
};
inline constexpr StallKindName kStallKindNames[] = {
    {StallKind::kPageWait, "page_wait"},  {StallKind::kStopped, "stopped"},
    {StallKind::kSuspended, "suspended"}, {StallKind::kBlocked, "blocked"},
    {StallKind::kPreempted, "preempted"}, {StallKind::kLock, "lock"},
    {StallKind::kSample, "sample"},
};

struct DetailWindow {
  std::string mode;  // "armed" or "on"
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;  // 0 while open
  uint64_t pre_roll_from_ns = 0;
  uint64_t pre_roll_records = 0;
  std::string reason;
};

struct Note {
  uint64_t at_unix_ns = 0;
  std::string what;
};

struct Symbol {
  uint64_t function_id = 0;
  std::string name;    // demangled
  std::string file{};  // of its source, as the compiler was given it; empty: not known
  uint32_t line = 0;
};

// Whether the functions have been named: that comes after the seal.
enum class SymbolsState : uint8_t {
  kNone,     // no one wants it, or nothing is to be named
  kPending,  // not yet, or not whole
  kDone,     // looked up; module_symbols says what came of it
  kFailed,   // given up; an event says why
};

// How naming went for one module.
struct ModuleSymbols {
  uint32_t module_id = 0;
  std::string source;      // the file that names came from; empty without one
  std::string problem;     // why there is none
  uint64_t functions = 0;  // seen in the events
  uint64_t named = 0;
};

// One RTC container of the session.
struct Container {
  std::string name{};
  std::string state{};  // "open", "finished", "unfinished"
  uint64_t bytes = 0;
  uint64_t first_ns = 0;  // of its records
  uint64_t last_ns = 0;
};

// A stream in a file of its own.
struct PassthroughStream {
  PassthroughKind kind{};
  uint64_t bytes = 0;          // stored: whole frames
  uint64_t refused_bytes = 0;  // came, or were there, and are no whole frames
  std::string problem{};       // where and why; empty when the stream ended at a frame's end
};

struct Manifest {
  SessionState state = SessionState::kRecording;
  std::string reason{};
  // Set before the first file is sealed: how the session is to end. Recovery finishes with it.
  bool sealing = false;
  SessionState sealing_state = SessionState::kRecording;
  uint64_t time_start_ns = 0;
  uint64_t time_end_ns = 0;
  SessionIdentity identity{};
  ProcessEnd process_end{};
  uint64_t created_unix_ns = 0;  // the collector's clock
  uint64_t finished_unix_ns = 0;
  std::vector<ManifestThread> threads{};
  std::vector<ModuleInfo> modules{};
  std::vector<Symbol> symbols{};
  std::vector<ModuleSymbols> module_symbols{};
  uint64_t symbols_left_out = 0;
  SymbolsState symbols_state = SymbolsState::kNone;
  uint32_t symbols_tries = 0;  // how often naming was begun, and not ended in an orderly way
  std::vector<Gap> gaps{};
  std::vector<Stall> stalls{};  // of each thread in order of time
  std::vector<DetailWindow> detail_windows{};
  uint64_t detail_windows_left_out = 0;
  std::vector<FunctionFilter> function_filters{};
  uint64_t function_filters_left_out = 0;
  std::vector<ClockSync> clock_syncs{};
  std::vector<Note> notes{};
  uint64_t notes_left_out = 0;
  std::vector<MissingInput> input_missing{};  // of a session that was converted or rebuilt
  uint64_t input_missing_left_out = 0;
  std::vector<PassthroughStream> passthrough_streams{};
  bool has_stream_of_others() const;
  std::vector<Container> containers{};
  uint64_t containers_removed = 0;
  std::vector<Marker> markers{};
  uint64_t markers_left_out = 0;
  uint64_t lost_without_stream = 0;
  uint64_t switches_lost = 0;  // of threads, that the agent did not see
  SessionTotals totals{};
  uint8_t totals_unsaid = 0;  // ManifestKey set
};

// What is wrong in a manifest that can be read all the same.
struct ManifestProblem {
  std::string place;  // a JSON pointer, as "/symbols/3/function_id"
  std::string sentence;
};

// What the model does not keep of a manifest.
struct ManifestReading {
  static constexpr size_t kMaxProblems = 100;

  std::string format_version{};
  std::string said_state{};  // as it is there; empty in files of others
  std::vector<ManifestProblem> problems{};
};

struct LostReasonName {
  uint32_t bit;
  const char* name;
};
inline constexpr LostReasonName kLostReasonNames[] = {
    {kLostRingFull, "ring_full"}, {kLostOverwritten, "overwritten"}, {kLostReentry, "reentry"},
    {kLostNoMemory, "no_memory"}, {kLostUnavailable, "unavailable"}, {kLostUnlinked, "unlinked"},
    {kLostDamaged, "damaged"},
};

std::string_view session_state_name(SessionState state);
std::string_view lane_name(Lane lane);
std::string_view symbols_state_name(SymbolsState state);  // empty for kNone
// "exited", "signaled", "execed", "unknown"; empty when nothing is known.
std::string_view process_end_name(ProcessEnd::How how);
std::string_view passthrough_kind_name(PassthroughKind kind);  // "dial9", "switches"
std::vector<std::string> lost_reason_names(uint32_t reasons);
std::string_view stall_kind_name(StallKind kind);
std::optional<StallKind> stall_kind_of(std::string_view name);
void bound_text(std::string& text);  // to kMaxTextBytes

// Beyond kMaxMissingInput it is only counted.
void add_missing_input(Manifest& manifest, MissingInput missing);

// Text that is not UTF-8 becomes U+FFFD; it never fails.
std::string manifest_to_json(const Manifest& manifest);
// The keys of manifest_to_json() in one line, without lists that are empty: for a manifest that
// holds only what is new. manifest_from_json reads it.
std::string manifest_delta_to_json(const Manifest& delta);
// Unknown keys are ignored, missing ones keep their defaults; an entry without the number that it
// goes by is left out. kDamaged: not JSON, or no list of threads. kLimit: kManifestShape or
// kMaxManifestList. With `reading`, raw control characters and bytes that are no UTF-8 are forgiven
// in texts, as published writers leave them.
Result<Manifest> manifest_from_json(std::string_view json, ManifestReading* reading = nullptr);

Result<std::string> read_manifest_json(Fs& fs, const std::string& directory);
Result<Manifest> read_manifest(Fs& fs, const std::string& directory);

}  // namespace collect::storage
