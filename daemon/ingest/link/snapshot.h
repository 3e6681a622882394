// What ingest reports to the collector: copies of an agent's or a session's state at every change,
// and counters. No protobuf here: collector.h translates for the control plane.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "storage/manifest/session_health.h"
#include "storage/model/session_types.h"

namespace collect::ingest {

using ProcessId = std::array<uint8_t, 16>;
using AgentId = uint64_t;  // ours, counts from 1
using SystemTime = std::chrono::system_clock::time_point;

enum class AgentState : uint8_t { kDialing, kConnected, kRecording, kDisconnected, kGone };
enum class SessionState : uint8_t {
  kActive,
  kInterrupted,
  kSealing,
  kComplete,
  kRecovered,
  kFailed,
};
enum class DetailMode : uint8_t { kOff = 0, kArmed = 1, kOn = 2 };

inline bool is_over(SessionState state) {
  return state >= SessionState::kComplete;
}

// How a session that ended so, or continues, is shown.
inline SessionState shown_state(storage::SessionState state) {
  switch (state) {
    case storage::SessionState::kRecording:
      return SessionState::kActive;
    case storage::SessionState::kComplete:
      return SessionState::kComplete;
    case storage::SessionState::kRecovered:
      return SessionState::kRecovered;
    case storage::SessionState::kFailed:
      break;
  }
  return SessionState::kFailed;
}

// What an agent asks for before it records, and what became of it.
struct FilterRequest {
  std::vector<std::string> only;
  std::vector<std::string> except;
  std::vector<storage::ModuleInfo> modules;  // that the process has loaded
};
struct StartFilter {
  uint64_t functions = 0;
  std::vector<std::string> unmatched;  // patterns
  std::string error;                   // why there is none; then nothing is recorded
};

struct AgentSnapshot {
  AgentId id = 0;
  AgentState state{};
  ProcessId process_id{};
  std::string process_name;
  std::string executable;
  uint32_t pid = 0;
  uint32_t parent_pid = 0;
  std::string device_id;
  std::string device_model;
  std::string os;
  std::string arch;
  std::string address;  // of the peer, or the one that is dialled
  std::string tag;
  std::string agent_version;
  std::string session;  // name of the current or last one
  DetailMode detail{};
  SystemTime connected_at{};
  std::string status;
  uint32_t reconnects = 0;
  // As the agent last said.
  uint64_t link_raw_bytes = 0;   // pages sent on this link, before and
  uint64_t link_sent_bytes = 0;  // after encoding
  uint64_t spooled_bytes = 0;    // in its spool file
  bool dialled = false;
  std::map<std::string, int64_t> counters;  // of the program, by name
  std::optional<StartFilter> start_filter;  // none: it was started without one
};

struct SessionSnapshot {
  std::string name;  // "session_YYYYMMDD_HHMMSS/pid_N"
  std::string directory;
  SessionState state{};
  AgentId agent = 0;
  uint32_t recording = 0;
  std::string process_name;
  uint32_t pid = 0;
  std::string device_id;
  std::string route;  // the address at which its agent was dialled; empty: it came by itself
  std::string tag;
  SystemTime start_time{};
  SystemTime end_time{};  // epoch while it continues
  storage::SessionTotals totals;
  DetailMode detail{};
  std::string status;
  storage::ProcessEnd process_end;
  storage::SymbolsState symbols{};  // of a sealed one
  storage::SessionHealth health{};  // of a sealed one
  bool packed = false;              // its thread files are in its container alone
  std::optional<StartFilter> start_filter;
  uint64_t late_ns = 0;  // the program ran for so long without the filter
};

// Thread-safe; called on io threads, so it must not block.
class IngestObserver {
 public:
  virtual ~IngestObserver() = default;
  virtual void agent_changed(const AgentSnapshot& agent) = 0;
  // The entry of a dialled address that is an agent of its own now, or is dialled no more.
  virtual void agent_removed(AgentId id) = 0;
  virtual void session_changed(const SessionSnapshot& session) = 0;
  // The agent records nothing before it is given a filter, by Ingest::note_start_filter and then by
  // SetFunctionFilter.
  virtual void filter_wanted(const AgentSnapshot& /*agent*/, FilterRequest /*wanted*/) {}
  // A process said that it has loaded these. On a thread that stores.
  virtual void modules_loaded(const std::vector<storage::ModuleInfo>& /*modules*/) {}
  // On the sealing thread: the session is sealed, and these functions occur in it, sorted; none: to
  // be read from its files. True when they are going to be named.
  virtual bool to_be_named(const std::string& /*name*/, const std::string& /*directory*/,
                           std::vector<uint64_t> /*functions*/) {
    return false;
  }
};

struct IngestCounters {
  std::atomic<uint64_t> connections_accepted{0};
  std::atomic<uint64_t> connections_refused{0};
  std::atomic<uint64_t> bytes_received{0};
  std::atomic<uint64_t> bytes_stored{0};
  std::atomic<uint64_t> pages_stored{0};
  std::atomic<uint64_t> pages_decoded{0};  // of those stored: they came encoded
  std::atomic<uint64_t> pages_bad_checksum{0};
  std::atomic<uint64_t> events_stored{0};
  std::atomic<uint64_t> events_lost{0};
  std::atomic<uint64_t> detail_records_stored{0};
  std::atomic<uint64_t> writes_held{0};  // rounds that waited for descriptors or memory of our own
  std::atomic<uint64_t> reads_held{0};   // times that a socket was left unread for a full queue
};

}  // namespace collect::ingest
