// What an agent was asked to do, from the C API or from COLLECT_* variables. AGENT.md lists them.
// Plain data in fixed storage: read once at start, constant afterwards.
#pragma once

#include <cstddef>
#include <cstdint>

namespace collect::agent {

enum class FullPolicy : uint8_t { kDrop, kOverwrite, kWait };
enum class DrainBy : uint8_t { kThread, kProcess };
enum class Role : uint8_t { kNone, kConnect, kListen };

inline constexpr size_t kMaxAddress = 256;
inline constexpr size_t kMaxConnect = 1024;  // several addresses
inline constexpr uint32_t kDefaultBufferMb = 64;
inline constexpr uint32_t kMinBufferMb = 1;
inline constexpr uint32_t kThreadFlushMs = 5000;
inline constexpr uint32_t kProcessFlushMs = 60000;
// How long the first process of a PID namespace waits at its end for others of the run in it.
inline constexpr uint32_t kNamespaceFlushMs = 2000;
inline constexpr uint32_t kMaxBufferMb = 16 * 1024;
inline constexpr uint32_t kDefaultSpoolMb = 256;
inline constexpr uint32_t kMaxMaxDepth = 1'000'000;
inline constexpr uint32_t kMaxMaxRate = 1'000'000'000;
inline constexpr uint32_t kMaxSampleHz = 10'000;
inline constexpr uint64_t kMaxLongerThanNs = 3'600'000'000'000;
inline constexpr size_t kMaxFilterText = 4095;                      // as wire::kMaxFilterText
inline constexpr uint64_t kMaxMaxTimeNs = 100'000'000'000'000'000;  // three years
inline constexpr uint64_t kMaxMaxBytes = uint64_t{1} << 60;
inline constexpr uint32_t kMaxSpoolMb = 64 * 1024;
inline constexpr size_t kMaxRunKey = 128;

struct Settings {
  Role role = Role::kNone;
  // "host:port", "tls://host:port", "unix:/path", "abstract:name", "tcp:port"; of collectors to
  // connect to, several with commas between them.
  char address[kMaxConnect] = {};
  char token_file[kMaxAddress] = {};  // read by the drain thread at each connect
  char tls_ca[kMaxAddress] = {};      // PEM files, read at start
  char tls_certificate[kMaxAddress] = {};
  char tls_key[kMaxAddress] = {};
  char run[kMaxAddress] = {};         // folder for this process's record of a run; empty: none
  char run_key[kMaxRunKey + 1] = {};  // proved where there is no token file; empty: none
  char tag[64] = {};
  FullPolicy full = FullPolicy::kDrop;
  DrainBy drain = DrainBy::kThread;
  uint32_t buffer_mb = kDefaultBufferMb;
  char spool[kMaxAddress] = {};  // folder for the spool's file; empty: none
  uint32_t spool_mb = kDefaultSpoolMb;
  char plans[kMaxAddress] = {};  // folder with patch plans; empty: none
  uint8_t atf_version = 2;
  uint32_t max_depth = 0;       // calls of a thread that are deeper are left out; 0: none
  uint64_t longer_than_ns = 0;  // calls that return sooner are left out; 0: none
  uint32_t max_rate = 0;        // functions with more calls in a second are switched off; 0: none
  uint64_t max_time_ns = 0;     // a recording ends after it; 0: by command or with the process
  uint64_t max_time_since_ns =
      0;                   // for one that no command started: counted from then; 0: its start
  uint64_t max_bytes = 0;  // a recording ends when it has so many; 0: at any size
  // Patterns of functions, separated by ";". With any, nothing is recorded before the collector has
  // sent the filter that they make.
  char only[kMaxFilterText + 1] = {};    // these functions; empty: all
  char except[kMaxFilterText + 1] = {};  // but not these
  bool has_filter() const { return only[0] != '\0' || except[0] != '\0'; }
  bool switches = false;   // times in which threads are off the processor are recorded: by default
                           // with a drain process
  uint32_t sample_hz = 0;  // where running threads are is recorded so often in a second; 0: never
  // Forked children are not recorded, nor a process whose parent is not `child_of` (0: any).
  bool this_process_only = false;
  int32_t child_of = 0;
  // Calls of library functions that are recorded: "on" for those that may block and are not brief,
  // or patterns with "," between them, for all calls of these; empty: none.
  char library_calls[kMaxAddress] = {};
  uint8_t detail = 0;  // 0 off, 1 armed, 2 on: from the first event
  bool start_recording = true;
  bool log = false;  // COLLECT_LOG=1: diagnostics on standard error
  // How long the collector may take for the rest after the end: of exit(), which waits for it, or
  // of the drain process, for which no one waits.
  uint32_t exit_flush_ms = kThreadFlushMs;
};

// Zeros before settings are made in it: default values would be in the library's file.
union SettingsMemory {
  constexpr SettingsMemory() : zeros{} {}
  unsigned char zeros[sizeof(Settings)];
  Settings settings;
};

// What the others are copied from: each one that is initialised in place makes the library 10 KiB
// larger. Never changed; no constant, because arm64's linker pads what is read-only to 64 KiB.
extern Settings default_settings;

// Whether the program runs for someone who may not have its rights: set-uid, set-gid, with file
// capabilities, or however else the system says so. Its environment is then that user's, and
// nothing in it holds.
bool is_privileged();

// Fills `settings` from the environment; of a privileged program there is none. Returns false and a
// static sentence in `*error` when a variable holds something else than AGENT.md says; the agent
// then stays off and says so if logging.
bool settings_from_environment(Settings& settings, const char** error);

// Fills `settings` from a block of variables, "NAME=value", each terminated, up to an empty one;
// the block's last two bytes are zero. Not on two threads at once.
bool settings_from_block(const char* block, size_t bytes, Settings& settings, const char** error);

// Calls `say` with a sentence for each variable that begins with COLLECT_ and that no program of
// ours reads, kMaxUnknownVariables at most; of a privileged program for none.
inline constexpr uint32_t kMaxUnknownVariables = 8;
inline constexpr size_t kMaxShownVariable = 63;  // bytes of a name
void warn_of_unknown_variables(void (*say)(const char* sentence));

}  // namespace collect::agent
